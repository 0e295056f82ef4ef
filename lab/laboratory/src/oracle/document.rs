//! The document: what was recorded, what is alive by point of reclamation, and what the checks showed.

use heaptoll_callsites::Sum;
use heaptoll_oracle::Unreachable;
use heaptoll_report::document::{Document, Section, Table};
use heaptoll_report::format::shell_command;
use heaptoll_units::{number, percent, whole_bytes};

use super::figures::{OracleFigures, Program};

/// The whole document.
pub fn document(figures: &OracleFigures, command: String) -> Document {
    let mut warnings: Vec<String> = figures.programs.iter().filter_map(problem).collect();
    if !figures.complete {
        warnings.push("interrupted: not all programs were recorded".to_owned());
    }
    Document {
        title: "When objects are used last".into(),
        subtitle: figures
            .programs
            .iter()
            .map(|program| program.program.as_str())
            .collect::<Vec<_>>()
            .join(", "),
        warnings,
        sections: [
            Some(recorded(&figures.programs)),
            Some(alive(&figures.programs)),
            unreachable(&figures.programs),
        ]
        .into_iter()
        .flatten()
        .collect(),
        command,
        ..Document::default()
    }
}

fn problem(program: &Program) -> Option<String> {
    let name = &program.program;
    if let Some(why) = &program.sequence.differs {
        return Some(format!(
            "{name}: no oracle, because native runs do not make the recorded allocations: \
                             {why}"
        ));
    }
    let fails = program.proof.as_ref()?.fails.as_ref()?;
    Some(format!(
        "{name}: no oracle, because freeing at the last use is not safe, or not proved safe: \
                  {fails}"
    ))
}

fn recorded(programs: &[Program]) -> Section {
    let proof = |program: &Program| match &program.proof {
        None => "not tried".to_owned(),
        Some(proof) if proof.fails.is_none() => format!("yes, by {}", proof.how),
        Some(_) => "no".into(),
    };
    let table = Table::of(programs)
        .text("program", |program| program.program.clone())
        .figure("allocations", |program| number(program.allocations))
        .figure("allocated", |program| whole_bytes(program.allocated_bytes))
        .figure("of them reallocs", |program| number(program.resized))
        .figure("never freed", |program| number(program.never_freed))
        .figure("native runs the same", |program| match program.sequence.differs {
            None => "yes",
            Some(_) => "no",
        })
        .figure("early frees safe", |program| proof(program))
        .figure("file", |program| program.file.clone());
    let good: Vec<&Program> = programs.iter().filter(|program| program.file.is_some()).collect();
    let mut text = Vec::new();
    if let Some(program) = good.first()
        && let Some(file) = &program.file
    {
        text.push(format!(
            "Native runs recognise objects of {} by their allocation. To free each at its last use over \
             another manager: heaptoll run {} ...",
            program.program,
            shell_command(
                &["free", "last-use"].map(|point| format!("-moracle={point},file={file}/mimalloc3"))
            )
        ));
    }
    Section { text, ..Section::new("Recordings") }.with(table)
}

fn alive(programs: &[Program]) -> Section {
    let of_free = |live: u64, free: u64| (free > 0).then(|| percent(live as f64 / free as f64));
    let table = Table::of(programs)
        .text("program", |program| program.program.clone())
        .figure("peak, last use", |program| whole_bytes(program.live_last_use.peak_bytes))
        .figure("peak, free", |program| whole_bytes(program.live_free.peak_bytes))
        .figure("peak, never", |program| whole_bytes(program.live_never.peak_bytes))
        .figure("last use of free", |program| {
            of_free(program.live_last_use.peak_bytes, program.live_free.peak_bytes)
        })
        .figure("mean, last use", |program| whole_bytes(program.live_last_use.mean_bytes))
        .figure("mean, free", |program| whole_bytes(program.live_free.mean_bytes))
        .figure("last use of free", |program| {
            of_free(program.live_last_use.mean_bytes, program.live_free.mean_bytes)
        });
    let text = "Requested bytes alive if objects are freed at their last use, when the program frees them, or \
                never. Means are over the bytes allocated.";
    Section::new("Requested bytes alive").state(text).with(table)
}

/// Points of unreachability compared with the program's own frees, where they were recorded.
fn unreachable(programs: &[Program]) -> Option<Section> {
    let recorded: Vec<(&Program, &Unreachable)> =
        programs.iter().filter_map(|program| Some((program, program.unreachable.as_ref()?))).collect();
    let amount = |sum: Sum| format!("{} ({})", number(sum.objects), whole_bytes(sum.bytes));
    let counts = Table::of(&recorded)
        .caption("Objects (and bytes) that become unreachable")
        .text("program", |(program, _)| program.program.clone())
        .figure("root points", |(_, found)| number(found.root_points))
        .figure("before the free", |(_, found)| amount(found.before_free))
        .figure("at it", |(_, found)| amount(found.at_free))
        .figure("after it", |(_, found)| amount(found.after_free))
        .figure("not known", |(_, found)| amount(found.not_known))
        .figure("never freed, unreachable", |(_, found)| amount(found.lost))
        .figure("never freed, kept", |(_, found)| amount(found.kept))
        .figure("hidden pointers", |(_, found)| amount(found.hidden));
    let live = Table::of(&recorded)
        .caption("Requested bytes alive")
        .text("program", |(program, _)| program.program.clone())
        .figure("peak, last use", |(program, _)| whole_bytes(program.live_last_use.peak_bytes))
        .figure("peak, unreachable", |(_, found)| whole_bytes(found.live.peak_bytes))
        .figure("peak, free", |(program, _)| whole_bytes(program.live_free.peak_bytes))
        .figure("peak, never", |(program, _)| whole_bytes(program.live_never.peak_bytes))
        .figure("mean, last use", |(program, _)| whole_bytes(program.live_last_use.mean_bytes))
        .figure("mean, unreachable", |(_, found)| whole_bytes(found.live.mean_bytes))
        .figure("mean, free", |(program, _)| whole_bytes(program.live_free.mean_bytes))
        .figure("mean, never", |(program, _)| whole_bytes(program.live_never.mean_bytes));
    let section = Section::new("When objects cannot be reached any more").state(
        "Objects by the first root point at which they are unreachable and no longer used, compared with the \
         program's own free. At it: at the first root point after the free; after it: still reachable there. \
         Not known: freed after the last root point. Hidden pointers: objects that were unreachable at a \
         root point and were used later; they are kept until then.",
    );
    (!recorded.is_empty()).then(|| section.with(counts).with(live))
}
