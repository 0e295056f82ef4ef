//! Programs under allocators and collectors: CPU and memory over glibc's, and the targets of Tithe's modes.

use heaptoll_experiment::comparison::{Metric, Row};
use heaptoll_report::format;
use heaptoll_statistics::{Interval, geometric_mean};

use super::document::Outputs;
use super::measured::{Measured, Plan, Source};
use super::targets;
use crate::Error;
use crate::table::table;

/// The programs of the table of peers that the catalog has.
const NINE: [&str; 9] =
    ["cfrac", "espresso", "gawk", "ghostscript", "lua", "make", "perl", "python", "sqlite"];
/// The one of the nine that the set `twenty` does not have.
const NOT_OF_THE_TWENTY: &str = "ghostscript";
/// What the published page is made with.
pub const PLAN: Plan = Plan {
    set: Some("twenty"),
    words: "-p ghostscript --size demo -n 10 --pairing lockstep --seed 20261130 -m tithe -m tithe-explicit \
            -m tithe-collect -m bdw -m bdw-nofree -m bdw-nofree,incremental=on -m mimalloc3 -m snmalloc",
};
const DASH: &str = "–";
/// A few MiB decide nothing on a program of 3 MiB: so much more than glibc costs nothing, KiB.
const FREE_KIB: f64 = 4096.0;

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

/// Memory over the baseline's, the first 4 MiB of difference not counted: 1 + max(0, ours - base - 4 MiB) / base.
fn excess(ours_kib: f64, base_kib: f64) -> f64 {
    1.0 + (ours_kib - base_kib - FREE_KIB).max(0.0) / base_kib
}

/// A manager's figures over those of the baseline, on one program.
#[derive(Default)]
pub struct Over {
    pub cpu: Option<Interval>,
    excess: Option<f64>,
    peak: Option<f64>,
    mean: Option<f64>,
}

/// A manager on a program.
pub fn over(measured: &Measured, program: &str, manager: &str) -> Over {
    let figures = measured.row(program, manager).map(|row| &row.figures);
    let ratio = |metric| figures.and_then(|figures| figures.get(&metric)?.ratio);
    let kib = |manager: &str| measured.median(program, manager, Metric::PeakRss);
    Over {
        cpu: ratio(Metric::Cpu),
        excess: kib(manager).zip(kib(&measured.experiment.baseline)).map(|(ours, base)| excess(ours, base)),
        peak: measured.over(manager, kib),
        // The watched run of a manager that failed ended early.
        mean: kib(manager).and(measured.over(manager, |manager| measured.mean_kib(program, manager))),
    }
}

/// A manager over the programs of a group.
pub struct Summary {
    pub manager: String,
    programs: u32,
    pub cpu: Option<Interval>,
    pub excess: Option<f64>,
    pub peak: Option<Interval>,
    mean: Option<f64>,
    /// The most expensive in CPU, and in excess memory.
    worst_cpu: Option<(String, f64)>,
    worst_excess: Option<(String, f64)>,
}

impl Summary {
    fn of_all(group: &Measured) -> Vec<Summary> {
        group.managers().into_iter().filter_map(|manager| Summary::of(group, manager)).collect()
    }

    fn of(group: &Measured, manager: &str) -> Option<Summary> {
        let overall = group.comparison.overall.iter().find(|row| row.stack == manager)?;
        let all: Vec<(&str, Over)> =
            group.programs().map(|program| (program, over(group, program, manager))).collect();
        let mean = |figure: fn(&Over) -> Option<f64>| {
            geometric_mean(all.iter().filter_map(|(_, over)| figure(over)))
        };
        let worst = |figure: fn(&Over) -> Option<f64>| {
            let found = all.iter().filter_map(|(name, over)| Some((name.to_string(), figure(over)?)));
            found.max_by(|a, b| a.1.total_cmp(&b.1))
        };
        Some(Summary {
            manager: manager.into(),
            programs: overall.programs,
            cpu: overall.cpu,
            excess: mean(|over| over.excess),
            peak: overall.peak_rss,
            mean: mean(|over| over.mean),
            worst_cpu: worst(|over| over.cpu.map(|cpu| cpu.ratio)),
            worst_excess: worst(|over| over.excess),
        })
    }
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
    let said: Vec<String> = summaries.iter().filter_map(collect).collect();
    format!("**Ignoring frees is not free.** `tithe-collect` takes {}.", said.join(", and "))
}

fn means(summaries: &[(&str, Vec<Summary>); 2]) -> String {
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
    summaries.each_ref().map(of_group).join("\n")
}

/// The tables with a row a program and a column a manager.
fn programs(measured: &Measured) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_four_mebibytes_are_free() {
        assert_eq!(excess(3000.0 + 4096.0, 3000.0), 1.0);
        assert_eq!(excess(1000.0, 3000.0), 1.0);
        assert_eq!(excess(3000.0 + 4096.0 + 1500.0, 3000.0), 1.5);
    }
}
