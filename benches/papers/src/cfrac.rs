//! `heaptoll-papers cfrac`: CPU time of cfrac under each of the papers' managers over glibc's, with an interval, once
//! as it is and once with a second thread that sleeps, so that every lock is taken.
//!
//! The runs are planned, interleaved and compared by `heaptoll_experiment`, like any experiment. The limit holds in both.
//! For designs that cannot keep it, measured reasons are shown with it: the length of a search, and page faults.

use heaptoll_catalog::Size;
use heaptoll_statistics::Interval;

use crate::counting::{Counts, count, per_call};
use crate::installation::{Choice, Installation, SelectedManager, machine_line, missing_note};
use crate::judgement::{Evidence, Judgement, LIMIT};
use crate::result_table::{Cell, Outputs, ResultTable, column, data};
use crate::search::{self, PerMalloc};
use crate::stand_ins::Design;
use crate::timing::{Settings, measure};
use crate::{Error, stand_ins};

const PROGRAM: &str = "cfrac";
/// Of the document block.
pub const COMMAND: &str = "cfrac";

/// Repetitions and seed.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Timing {
    /// Timed repetitions, each with one run under every manager; below 6 there is no interval
    #[arg(long = "repetitions", short = 'n', value_name = "PAIRS", default_value_t = 15, value_parser = clap::value_parser!(u32).range(2..))]
    pub repetitions: u32,
    /// Seed of the order and of every other random choice
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
}

/// How to measure.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    pub timing: Timing,
    /// Leave out the instructions per call, which need Valgrind
    #[arg(long)]
    pub no_callgrind: bool,
    #[command(flatten)]
    pub choice: Choice,
    #[command(flatten)]
    pub outputs: Outputs,
}

/// A manager's figures.
#[derive(Debug, Clone)]
struct Row {
    manager: String,
    /// Over glibc: single-threaded, and with the sleeping thread.
    ratios: [Option<Interval>; 2],
    /// Median CPU seconds less start-up, single-threaded.
    cpu_s: Option<f64>,
    /// Page faults of a run, single-threaded and with the sleeping thread.
    faults: [Option<f64>; 2],
    counts: Option<Counts>,
    search: Option<PerMalloc>,
    marks: Vec<String>,
}

/// Measures, prints, and returns whether every manager ran and none is above the limit but by its design.
///
/// # Errors
/// An error that prevents the whole table.
pub fn run(options: &Options) -> Result<bool, Error> {
    options.outputs.check(&[COMMAND])?;
    let installation =
        Installation::open(std::time::Duration::from_secs(options.choice.timeout), options.choice.jobs)?;
    let mut managers = installation.managers(&options.choice.managers)?;
    if !managers.iter().any(|manager| manager.object.is_none()) {
        managers.splice(0..0, installation.managers(&["glibc".to_owned()])?);
    }
    let size = options.choice.size(Size::Demo)?;
    let cfrac = [PROGRAM.to_owned()];
    let programs = installation.programs(&cfrac, size)?;
    let sleeper = installation.sleeper()?;
    let layer = installation.live_layer()?;
    let baseline = baseline(&managers);
    let Timing { repetitions, seed } = options.timing;
    let settings = Settings { repetitions, seed, timeout_s: options.choice.timeout };
    let timed = |sleeper| measure(&installation, &programs[0], &managers, &baseline, sleeper, settings);
    let (mut single, mut threaded) = (timed(None)?, timed(Some(sleeper.as_path()))?);
    let counted: Vec<Option<Counts>> = if options.no_callgrind {
        vec![None; managers.len()]
    } else {
        // Their number does not depend on the input's size much, and the small one takes seconds.
        let small = installation.programs(&cfrac, Size::Quick)?;
        of_those_that_ran(
            installation.each(&managers, |manager| count(&installation, &small[0], manager, None).map(Some)),
        )?
    };
    let searches = of_those_that_ran(
        installation.each(&managers, |manager| search::measure(&installation, &programs[0], manager, &layer)),
    )?;
    let rows: Vec<Row> = managers
        .iter()
        .zip(counted)
        .zip(searches)
        .map(|((manager, counts), search)| {
            let single = single.remove(&manager.name).unwrap_or_default();
            let threaded = threaded.remove(&manager.name).unwrap_or_default();
            Row {
                manager: manager.name.clone(),
                ratios: [single.ratio, threaded.ratio],
                cpu_s: single.cpu_s,
                faults: [single.faults, threaded.faults],
                counts,
                search,
                marks: single.marks.into_iter().chain(threaded.marks).collect(),
            }
        })
        .collect();
    let mut result_table = result_table(&rows, &baseline, size, repetitions);
    result_table.notes.extend(missing_note(&installation).filter(|_| options.choice.managers.is_empty()));
    options.outputs.write(&result_table)?;
    let base = find_baseline(&rows, &baseline);
    let mut judged = rows.iter().filter(|row| row.manager != baseline).flat_map(|row| judgements(row, base));
    Ok(judged.all(|judgement| judgement.is_within() || judgement.is_by_design()))
}

/// The figures of the managers under which the program ran. Where it failed, its marks in the table show that already.
fn of_those_that_ran<T>(figures: Vec<Result<Option<T>, Error>>) -> Result<Vec<Option<T>>, Error> {
    let figure = |figure| match figure {
        Err(Error::Failed { .. }) => Ok(None),
        other => other,
    };
    figures.into_iter().map(figure).collect()
}

fn baseline(managers: &[SelectedManager]) -> String {
    managers
        .iter()
        .find(|manager| manager.object.is_none())
        .map_or_else(String::new, |manager| manager.name.clone())
}

/// The judgement of a row, single-threaded and with the lock.
fn judgements(row: &Row, baseline: Option<&Row>) -> [Judgement; 2] {
    let evidence = [0, 1].map(|number| Evidence {
        design: stand_ins::design(&row.manager),
        steps_per_malloc: row.search.map(|search| search.steps()),
        faults: row.faults[number].zip(baseline.and_then(|baseline| baseline.faults[number])),
    });
    Judgement::of_both(row.ratios, evidence)
}

fn find_baseline<'a>(rows: &'a [Row], baseline: &str) -> Option<&'a Row> {
    rows.iter().find(|row| row.manager == baseline)
}

fn result_table(rows: &[Row], baseline: &str, size: Size, repetitions: u32) -> ResultTable {
    let base = find_baseline(rows, baseline);
    let interval = |ratio: Option<Interval>| {
        ratio.map_or(Cell::None, |ratio| Cell::Text(format!("{:.3}-{:.3}", ratio.low, ratio.high)))
    };
    let cells = rows
        .iter()
        .map(|row| {
            let per =
                |entries: fn(&Counts) -> Option<f64>| Cell::maybe(row.counts.as_ref().and_then(entries), 1);
            let label = match judgements(row, base) {
                _ if row.manager == baseline => "the baseline".to_owned(),
                [single, threaded] if single == threaded => single.label().to_owned(),
                [single, threaded] => format!("{}; with the lock: {}", single.label(), threaded.label()),
            };
            let label = [vec![label], row.marks.clone()].concat().join("; ");
            vec![
                Cell::Text(row.manager.clone()),
                Cell::maybe(row.cpu_s, 3),
                Cell::maybe(row.ratios[0].map(|ratio| ratio.ratio), 3),
                interval(row.ratios[0]),
                Cell::maybe(row.ratios[1].map(|ratio| ratio.ratio), 3),
                interval(row.ratios[1]),
                per(|counts| per_call(counts.malloc)),
                per(|counts| per_call(counts.free)),
                Cell::maybe(row.search.map(|search| search.searches()), 2),
                Cell::maybe(row.search.map(|search| search.found.mean()), 1),
                Cell::maybe(row.search.map(|search| search.found.longest as f64), 0),
                Cell::maybe(row.faults[0], 0),
                Cell::Text(label),
                Cell::maybe(row.ratios[0].map(|ratio| ratio.low), 3),
                Cell::maybe(row.ratios[0].map(|ratio| ratio.high), 3),
                Cell::maybe(row.ratios[1].map(|ratio| ratio.low), 3),
                Cell::maybe(row.ratios[1].map(|ratio| ratio.high), 3),
                Cell::maybe(row.faults[1], 0),
            ]
        })
        .collect();
    ResultTable {
        command: COMMAND,
        title: format!(
            "CPU time of cfrac over {baseline}'s (input of size {size}, {repetitions} repetitions); the limit is {LIMIT}"
        ),
        columns: vec![
            column("manager", "manager"),
            column("cpu_s", "CPU, s"),
            column("cpu_ratio", "ratio"),
            column("cpu_interval", "95 % interval"),
            column("locked_cpu_ratio", "ratio, locked"),
            column("locked_cpu_interval", "95 % interval, locked"),
            column("instructions_per_malloc", "instructions a malloc"),
            column("instructions_per_free", "a free"),
            column("searches_per_malloc", "searches a malloc"),
            column("search_mean_blocks", "blocks examined a search"),
            column("search_longest_blocks", "longest"),
            column("page_faults", "page faults"),
            column("judgement", "judgement"),
            data("cpu_ratio_low"),
            data("cpu_ratio_high"),
            data("locked_cpu_ratio_low"),
            data("locked_cpu_ratio_high"),
            data("locked_page_faults"),
        ],
        rows: cells,
        verdict: verdict(rows, baseline),
        notes: vec![
            "Interleaved runs, start-up taken off, trimmed means of paired ratios; the intervals of a column hold \
             together. `locked`: a second thread sleeps, so that every call of the papers' managers takes their one \
             lock by an atomic instruction. glibc takes its own then too, but needs none for the few blocks of each \
             size that it keeps for a thread."
                .into(),
            "Instructions per call are counted single-threaded, on the smallest input. Searches are those of a run of \
             its own, single-threaded, on the input that is timed; a manager without figures does not search, or does \
             not report. Page faults are a run's, start-up included."
                .into(),
        ],
        machine: machine_line(),
    }
}

fn verdict(rows: &[Row], baseline: &str) -> Vec<String> {
    let base = find_baseline(rows, baseline);
    let others: Vec<&Row> = rows.iter().filter(|row| row.manager != baseline).collect();
    let named = |column: usize, wanted: Judgement| {
        let names: Vec<&str> = others
            .iter()
            .filter(|row| judgements(row, base)[column] == wanted)
            .map(|row| row.manager.as_str())
            .collect();
        (!names.is_empty()).then(|| format!("{}: {}", wanted.label(), names.join(", ")))
    };
    let mut sentences: Vec<String> = ["Single-threaded", "With the lock taken"]
        .into_iter()
        .enumerate()
        .map(|(number, what)| {
            let parts: Vec<String> =
                Judgement::ALL.into_iter().filter_map(|wanted| named(number, wanted)).collect();
            format!("{what}, of {} managers: {}.", others.len(), parts.join("; "))
        })
        .collect();
    sentences.extend(others.into_iter().filter_map(|row| reason(row, base?)));
    sentences
}

/// Why a manager is above the limit, with what was measured, when that is its design.
fn reason(row: &Row, base: &Row) -> Option<String> {
    let judgements = judgements(row, Some(base));
    let first = judgements.iter().position(|judgement| judgement.is_by_design())?;
    let only_locked = if judgements[0].is_within() { ", which leaves no margin for the lock" } else { "" };
    // Seconds more than the baseline's, by each of so many.
    let each = |number: f64| {
        let seconds = (row.cpu_s? - base.cpu_s?) / number;
        (seconds > 0.0).then_some(seconds * 1e9)
    };
    match (judgements[first], stand_ins::design(&row.manager)) {
        (Judgement::Search, Design::Searches(how)) => {
            let search = row.search?;
            let cost = each(search.found.steps as f64).map_or_else(String::new, |ns| {
                format!(
                    " Single-threaded, each of them goes with {ns:.1} ns of CPU above {}'s.",
                    base.manager
                )
            });
            Some(format!(
                "{} searches: {how}. It examines {:.1} blocks a malloc{only_locked}; {:.1} a search, {} in the \
                 longest.{cost}",
                row.manager,
                search.steps(),
                search.found.mean(),
                search.found.longest
            ))
        }
        (Judgement::NoReuse, _) => {
            let (own, base_faults) = (row.faults[first]?, base.faults[first]?);
            let cost = each(own - base_faults).map_or_else(String::new, |ns| {
                format!(
                    " Single-threaded, each further one goes with {ns:.0} ns of CPU above {}'s.",
                    base.manager
                )
            });
            Some(format!(
                "{} never uses memory again: {own:.0} page faults a run{only_locked}, where {} takes \
                 {base_faults:.0}.{cost}",
                row.manager, base.manager
            ))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_callgrind::profile::Entries;

    use super::*;
    use crate::search::Searches;

    fn interval(ratio: f64, half: f64) -> Option<Interval> {
        Some(Interval { ratio, low: ratio - half, high: ratio + half, differs: true, pairs: 15 })
    }

    /// 1000 mallocs, each with a search.
    fn row(manager: &str, single: f64, locked: f64, steps: Option<u64>) -> Row {
        let ratio = |ratio: f64| (ratio > 0.0).then(|| interval(ratio, 0.02)).flatten();
        let found = |steps| Searches { searches: 1000, steps, longest: 77 };
        Row {
            manager: manager.into(),
            ratios: [ratio(single), ratio(locked)],
            cpu_s: Some(0.5 * single.max(1.0)),
            faults: [Some(100.0), Some(110.0)],
            counts: Some(Counts {
                malloc: Entries { calls: 1, instructions: 40 },
                free: Entries { calls: 1, instructions: 30 },
                ..Counts::default()
            }),
            search: steps.map(|steps| PerMalloc { found: found(steps), mallocs: 1000 }),
            marks: vec![],
        }
    }

    #[test]
    fn a_design_is_shown_with_its_figures_and_a_miss_is_a_miss() {
        let rows = [
            row("glibc", 0.0, 0.0, None),
            row("knuth", 2.0, 1.9, Some(4000)),
            row("lea", 1.4, 1.1, Some(9000)),
            row("bestfit", 1.1, 1.4, Some(2900)),
            Row { faults: [Some(90_100.0), Some(90_200.0)], ..row("bump", 1.9, 1.9, None) },
            row("pow2", 1.1, 1.4, None),
            row("cartesian", 1.4, 1.4, Some(1100)),
        ];
        let result_table = result_table(&rows, "glibc", Size::Quick, 15);
        assert!(result_table.rows.iter().all(|row| row.len() == result_table.columns.len()));
        let cell = |number: usize, key: &str| {
            let column = result_table.columns.iter().position(|column| column.key == key).expect(key);
            result_table.rows[number][column].clone()
        };
        let label = [
            "the baseline",
            "above, by design: it searches",
            "miss; with the lock: pass",
            "pass; with the lock: above, by design: it searches",
            "above, by design: it never uses memory again",
            "pass; with the lock: miss, by the lock alone",
            "miss",
        ];
        for (number, label) in label.into_iter().enumerate() {
            assert_eq!(cell(number, "judgement"), label.into());
        }
        assert_eq!(cell(1, "search_mean_blocks"), Cell::Figure(4.0, 1));
        assert_eq!(cell(1, "search_longest_blocks"), Cell::Figure(77.0, 0));
        assert_eq!(cell(5, "search_mean_blocks"), Cell::None);
        assert_eq!(cell(4, "page_faults"), Cell::Figure(90_100.0, 0));
        let sentences = result_table.verdict.join("\n");
        for label in [
            "Single-threaded, of 6 managers: pass: bestfit, pow2; above, by design: it searches: knuth; above, by \
             design: it never uses memory again: bump; miss: lea, cartesian.",
            "It examines 4.0 blocks a malloc; 4.0 a search, 77 in the longest. Single-threaded, each of \
             them goes with 125000.0 ns of CPU above glibc's.",
            "bestfit searches: each malloc",
            "2.9 blocks a malloc, which leaves no margin for the lock;",
            "bump never uses memory again: 90100 page faults a run, where glibc takes 100. Single-threaded, each \
             further one goes with 5000 ns",
        ] {
            assert!(sentences.contains(label), "{label}\n{sentences}");
        }
        assert!(
            !sentences.contains("lea searches") && !sentences.contains("cartesian searches"),
            "{sentences}"
        );
    }
}
