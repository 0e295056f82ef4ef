//! The document: what was recorded, what is alive by point of reclamation, and what the checks showed.

use heaptoll_oracle::{Amount, Unreachable};
use heaptoll_report::document::{Document, Item, Section};
use heaptoll_report::format::{NONE, shell_command};
use heaptoll_units::{number, percent, whole_bytes};

use super::figures::{Figures, Program};
use heaptoll_command::tables::table;

/// The whole document.
pub fn document(figures: &Figures, command: String) -> Document {
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
    let row = |program: &Program| {
        let proof = match &program.proof {
            None => "not tried".to_owned(),
            Some(proof) if proof.fails.is_none() => format!("yes, by {}", proof.how),
            Some(_) => "no".into(),
        };
        vec![
            program.program.clone(),
            number(program.allocations),
            whole_bytes(program.allocated_bytes),
            number(program.resized),
            number(program.never_freed),
            if program.sequence.differs.is_none() { "yes".into() } else { "no".into() },
            proof,
            program.file.clone().unwrap_or_else(|| NONE.into()),
        ]
    };
    let columns = [
        "program",
        "allocations",
        "allocated",
        "of them reallocs",
        "never freed",
        "native runs the same",
        "early frees safe",
        "file",
    ];
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
    let table = table("", &columns, programs.iter().map(row).collect());
    Section { title: "Recordings".into(), text, items: vec![Item::Table(table)] }
}

fn alive(programs: &[Program]) -> Section {
    let row = |program: &Program| {
        let of_free =
            |live: u64, free: u64| if free == 0 { NONE.into() } else { percent(live as f64 / free as f64) };
        vec![
            program.program.clone(),
            whole_bytes(program.live_last_use.peak_bytes),
            whole_bytes(program.live_free.peak_bytes),
            whole_bytes(program.live_never.peak_bytes),
            of_free(program.live_last_use.peak_bytes, program.live_free.peak_bytes),
            whole_bytes(program.live_last_use.mean_bytes),
            whole_bytes(program.live_free.mean_bytes),
            of_free(program.live_last_use.mean_bytes, program.live_free.mean_bytes),
        ]
    };
    let columns = [
        "program",
        "peak, last use",
        "peak, free",
        "peak, never",
        "last use of free",
        "mean, last use",
        "mean, free",
        "last use of free",
    ];
    let text = vec![
        "Requested bytes alive if objects are freed at their last use, when the program frees them, or \
         never. Means are over the bytes allocated."
            .into(),
    ];
    let table = table("", &columns, programs.iter().map(row).collect());
    Section { title: "Requested bytes alive".into(), text, items: vec![Item::Table(table)] }
}

/// Points of unreachability compared with the program's own frees, where they were recorded.
fn unreachable(programs: &[Program]) -> Option<Section> {
    let recorded: Vec<(&Program, &Unreachable)> =
        programs.iter().filter_map(|program| Some((program, program.unreachable.as_ref()?))).collect();
    let amount = |amount: Amount| format!("{} ({})", number(amount.objects), whole_bytes(amount.bytes));
    let counts = |(program, found): &(&Program, &Unreachable)| {
        let counted = [
            found.before_free,
            found.at_free,
            found.after_free,
            found.not_known,
            found.lost,
            found.kept,
            found.hidden,
        ];
        let head = [program.program.clone(), number(found.root_points)];
        head.into_iter().chain(counted.map(amount)).collect()
    };
    let live = |(program, found): &(&Program, &Unreachable)| {
        let lives = [program.live_last_use, found.live, program.live_free, program.live_never];
        let peaks = lives.map(|live| whole_bytes(live.peak_bytes));
        let means = lives.map(|live| whole_bytes(live.mean_bytes));
        std::iter::once(program.program.clone()).chain(peaks).chain(means).collect()
    };
    let of_counts = [
        "program",
        "root points",
        "before the free",
        "at it",
        "after it",
        "not known",
        "never freed, unreachable",
        "never freed, kept",
        "hidden pointers",
    ];
    let of_live = [
        "program",
        "peak, last use",
        "peak, unreachable",
        "peak, free",
        "peak, never",
        "mean, last use",
        "mean, unreachable",
        "mean, free",
        "mean, never",
    ];
    let text = vec![
        "Objects by the first root point at which they are unreachable and no longer used, compared with the \
         program's own free. At it: at the first root point after the free; after it: still reachable there. \
         Not known: freed after the last root point. Hidden pointers: objects that were unreachable at a \
         root point and were used later; they are kept until then."
            .into(),
    ];
    let items = vec![
        Item::Table(table(
            "Objects (and bytes) that become unreachable",
            &of_counts,
            recorded.iter().map(counts).collect(),
        )),
        Item::Table(table("Requested bytes alive", &of_live, recorded.iter().map(live).collect())),
    ];
    (!recorded.is_empty()).then(|| Section {
        title: "When objects cannot be reached any more".into(),
        text,
        items,
    })
}
