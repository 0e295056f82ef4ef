//! Programs under allocators and collectors: CPU and memory over glibc's, and the targets of Tithe's modes.

use heaptoll_experiment::comparison::Row;
use heaptoll_report::format;
use heaptoll_statistics::Interval;

use super::document::Outputs;
use super::measured::{Measured, Plan, Source};
use super::summary::{Summary, over};
use super::targets;
use crate::Error;
use crate::table::table;

/// The programs of the table of peers that the catalog has.
pub const NINE: [&str; 9] =
    ["cfrac", "espresso", "gawk", "ghostscript", "lua", "make", "perl", "python", "sqlite"];
/// The one of the nine that the set `twenty` does not have.
const NOT_OF_THE_TWENTY: &str = "ghostscript";
/// What the published page is made with.
pub const PLAN: Plan = Plan {
    sets: &["twenty"],
    added: &[],
    words: "-p ghostscript --size demo -n 10 --pairing lockstep --seed 20261130 -m tithe -m tithe-explicit \
            -m tithe-collect -m bdw -m bdw-nofree -m bdw-nofree,incremental=on -m mimalloc3 -m snmalloc",
};
const DASH: &str = "–";

/// The command line of `table`.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    outputs: Outputs,
}

/// Runs it. False when a program failed under a manager.
///
/// # Errors
/// Nothing could be measured, or the files cannot be written.
pub fn run(options: &Options) -> Result<bool, Error> {
    let measured = options.source.measured(&PLAN)?;
    for (section, text) in sections(&measured) {
        options.outputs.write(section, &text)?;
    }
    Ok(measured.not_well().is_empty())
}

/// The sections of the page: a sentence for its top, and the tables.
pub fn sections(measured: &Measured) -> [(&'static str, String); 2] {
    let groups = [
        ("the nine", measured.only(|program| NINE.contains(&program))),
        ("the twenty", measured.only(|program| program != NOT_OF_THE_TWENTY)),
    ];
    let mut text = format!("{}\n\n", measured.heading());
    let summaries = groups.map(|(name, group)| (name, Summary::of_all(&group)));
    text.push_str(&means(&summaries));
    text.push_str("\n**What Tithe's modes have to reach**\n\n");
    text.push_str(&targets::table(&summaries[0].1, measured));
    text.push_str(&programs(measured));
    text.push_str(&measured.outputs());
    [("sentence", sentence(&summaries)), ("table", text)]
}

fn ratio(value: Option<f64>) -> String {
    value.map_or(DASH.into(), format::ratio)
}

fn interval(value: Option<Interval>) -> String {
    value.map_or(DASH.into(), |value| format::interval(&value))
}

/// What ignoring every free costs, in a sentence.
fn sentence(summaries: &[(&str, Vec<Summary>); 2]) -> String {
    let collect = |(what, all): &(&str, Vec<Summary>)| {
        let found = all.iter().find(|one| one.manager == targets::COLLECT)?;
        let (program, worst) = found.worst_cpu.as_ref()?;
        Some(format!(
            "{} times glibc's CPU at excess memory {} on {what} (worst: {program}, {})",
            interval(found.cpu),
            ratio(found.excess),
            format::ratio(*worst)
        ))
    };
    let parts: Vec<String> = summaries.iter().filter_map(collect).collect();
    format!("**Ignoring frees is not free.** `tithe-collect` takes {}.", parts.join(", and "))
}

/// A table of means for each group.
pub fn means(summaries: &[(&str, Vec<Summary>)]) -> String {
    let worst = |worst: &Option<(String, f64)>| {
        worst.as_ref().map_or(DASH.into(), |(name, value)| format!("{} {name}", format::ratio(*value)))
    };
    let of_group = |(name, summaries): &(&str, Vec<Summary>)| {
        let rows = summaries.iter().map(|one| {
            vec![
                one.manager.clone(),
                one.programs.to_string(),
                interval(one.cpu),
                ratio(one.excess),
                interval(one.peak),
                ratio(one.mean),
                worst(&one.worst_cpu),
                worst(&one.worst_excess),
            ]
        });
        let headings = [
            &format!("means over {name}"),
            "programs",
            "CPU",
            "excess memory",
            "peak RSS",
            "mean RSS",
            "worst CPU",
            "worst excess",
        ];
        table(&headings, 1, rows).markdown()
    };
    summaries.iter().map(of_group).collect::<Vec<_>>().join("\n")
}

/// The tables with a row a program and a column a manager.
pub fn programs(measured: &Measured) -> String {
    let managers = measured.managers();
    let by_program = |title: &str, cell: &dyn Fn(&str, &str) -> String| {
        let rows = measured.programs().map(|program| {
            let cells = managers.iter().map(|manager| cell(program, manager));
            std::iter::once(program.to_owned()).chain(cells).collect()
        });
        let headings = [&["program"][..], &managers].concat();
        format!("\n**{title}**\n\n{}", table(&headings, 1, rows).markdown())
    };
    let cpu = by_program("CPU", &|program, manager| {
        let marks = measured.row(program, manager).map(|row| row.marks.join(", ")).unwrap_or_default();
        let marks = if marks.is_empty() { marks } else { format!(" ({marks})") };
        interval(over(measured, program, manager).cpu) + &marks
    });
    let memory = by_program("Excess memory / peak RSS / mean RSS", &|program, manager| {
        let over = over(measured, program, manager);
        [over.excess, over.peak, over.mean].map(ratio).join(" / ")
    });
    let collections = by_program("Collections / longest pause, ms", &|program, manager| {
        let found = measured.row(program, manager).and_then(|row: &Row| row.collections);
        found.map_or(DASH.into(), |found| format!("{:.0} / {:.2}", found.count, found.pause_max_s * 1e3))
    });
    cpu + &memory + &collections
}
