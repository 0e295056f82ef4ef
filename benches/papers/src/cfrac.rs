//! `heaptoll-papers cfrac`: CPU time of cfrac under each of the papers' managers over glibc's, with an interval, once
//! as it is and once with a second thread that sleeps, so that every lock is taken.
//!
//! The runs are planned, interleaved and compared by the laboratory, like any experiment. The limit of 1.25 holds
//! for managers that need not search for a fit; where one does, its instructions per malloc say what the search takes.

use heaptoll_catalog::Size;
use heaptoll_lab::comparison::Interval;

use crate::counting::{Counts, count, per_call};
use crate::sheet::{Cell, Outputs, Sheet, column, data};
use crate::timing::{Settings, measure};
use crate::workshop::{Choice, Chosen, Workshop, machine_line, missing_note};
use crate::{Error, stand_ins};

/// CPU time over glibc's that a manager may reach.
const LIMIT: f64 = 1.25;
const PROGRAM: &str = "cfrac";
/// So many times the baseline's page faults are worth a sentence.
const MANY_FAULTS: f64 = 5.0;

/// How to measure.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Timed repetitions, each with one run under every manager; below 6 there is no interval
    #[arg(long = "repetitions", short = 'n', value_name = "PAIRS", default_value_t = 15, value_parser = clap::value_parser!(u32).range(2..))]
    pub repetitions: u32,
    /// Seed of the order and of every other random choice
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Leave out the instructions per call, which need Valgrind
    #[arg(long)]
    pub no_callgrind: bool,
    #[command(flatten)]
    pub choice: Choice,
    #[command(flatten)]
    pub outputs: Outputs,
}

/// What a ratio says about the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Judgement {
    /// The whole interval is within it.
    Pass,
    /// The ratio is within, the interval's end is not.
    Likely,
    /// Above, in a manager that searches for a fit, whose calls were counted and are longer than the baseline's.
    ByDesign,
    /// Above with the lock taken, and within the limit without it.
    MissByLock,
    /// Above, for another reason or none that was measured.
    Miss,
    /// Nothing to judge.
    NoFigure,
}

impl Judgement {
    /// `long_search`: the manager searches for a fit, and its malloc and free together were counted and are longer
    /// than the baseline's.
    fn of(ratio: Option<Interval>, long_search: bool) -> Judgement {
        match ratio {
            None => Judgement::NoFigure,
            Some(ratio) if ratio.high <= LIMIT => Judgement::Pass,
            Some(ratio) if ratio.ratio <= LIMIT => Judgement::Likely,
            Some(_) if long_search => Judgement::ByDesign,
            Some(_) => Judgement::Miss,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Judgement::Pass => "pass",
            Judgement::Likely => "pass (interval reaches above)",
            Judgement::ByDesign => "above, by design",
            Judgement::MissByLock => "miss, by the lock alone",
            Judgement::Miss => "miss",
            Judgement::NoFigure => "no figure",
        }
    }
}

/// A manager's figures.
#[derive(Debug, Clone)]
struct Row {
    manager: String,
    /// Over glibc: single-threaded, and with the sleeping thread.
    ratios: [Option<Interval>; 2],
    /// Median CPU seconds less start-up, single-threaded.
    cpu_s: Option<f64>,
    /// Page faults of a run, single-threaded.
    faults: Option<f64>,
    counts: Option<Counts>,
    marks: Vec<String>,
}

/// Measures, prints, and gives whether every manager ran and none misses the limit.
///
/// # Errors
/// What keeps the whole table from being made.
pub fn run(options: &Options) -> Result<bool, Error> {
    let workshop =
        Workshop::open(std::time::Duration::from_secs(options.choice.timeout), options.choice.jobs)?;
    let mut managers = workshop.managers(&options.choice.managers)?;
    if !managers.iter().any(|manager| manager.object.is_none()) {
        managers.splice(0..0, workshop.managers(&["glibc".to_owned()])?);
    }
    let size = options.choice.size(Size::Demo)?;
    let cfrac = [PROGRAM.to_owned()];
    let programs = workshop.programs(&cfrac, size)?;
    let sleeper = workshop.sleeper()?;
    let baseline = baseline(&managers);
    let settings =
        Settings { repetitions: options.repetitions, seed: options.seed, timeout_s: options.choice.timeout };
    let timed = |sleeper| measure(&workshop, &programs[0], &managers, &baseline, sleeper, settings);
    let (mut single, mut threaded) = (timed(None)?, timed(Some(sleeper.as_path()))?);
    let counted: Vec<Option<Counts>> = if options.no_callgrind {
        vec![None; managers.len()]
    } else {
        // Their number does not depend on the input's size much, and the small one takes seconds.
        let small = workshop.programs(&cfrac, Size::Quick)?;
        let counts = workshop.each(&managers, |manager| count(&workshop, &small[0], manager, None));
        counts
            .into_iter()
            .map(|counts| match counts {
                Ok(counts) => Ok(Some(counts)),
                // Its marks in the table say so already.
                Err(Error::Failed { .. }) => Ok(None),
                Err(error) => Err(error),
            })
            .collect::<Result<_, _>>()?
    };
    let rows: Vec<Row> = managers
        .iter()
        .zip(counted)
        .map(|(manager, counts)| {
            let single = single.remove(&manager.name).unwrap_or_default();
            let threaded = threaded.remove(&manager.name).unwrap_or_default();
            Row {
                manager: manager.name.clone(),
                ratios: [single.ratio, threaded.ratio],
                cpu_s: single.cpu_s,
                faults: single.faults,
                counts,
                marks: single.marks.into_iter().chain(threaded.marks).collect(),
            }
        })
        .collect();
    let mut sheet = sheet(&rows, &baseline, size, options.repetitions);
    sheet.notes.extend(missing_note(&workshop).filter(|_| options.choice.managers.is_empty()));
    options.outputs.write(&sheet)?;
    let base = find_baseline(&rows, &baseline);
    let mut judged = rows.iter().filter(|row| row.manager != baseline).flat_map(|row| judgements(row, base));
    Ok(judged
        .all(|judgement| !matches!(judgement, Judgement::MissByLock | Judgement::Miss | Judgement::NoFigure)))
}

fn baseline(managers: &[Chosen]) -> String {
    managers
        .iter()
        .find(|manager| manager.object.is_none())
        .map_or_else(String::new, |manager| manager.name.clone())
}

/// Instructions of a malloc and a free together.
fn per_pair(row: &Row) -> Option<f64> {
    let counts = row.counts?;
    Some(per_call(counts.malloc)? + per_call(counts.free)?)
}

/// The judgement of a row, single-threaded and with the lock.
fn judgements(row: &Row, baseline: Option<&Row>) -> [Judgement; 2] {
    let searches = stand_ins::find(&row.manager).is_some_and(|stand_in| stand_in.searches);
    let longer = per_pair(row).zip(baseline.and_then(per_pair)).is_some_and(|(own, base)| own > base);
    let [single, locked] = row.ratios.map(|ratio| Judgement::of(ratio, searches && longer));
    let within = matches!(single, Judgement::Pass | Judgement::Likely);
    let above = matches!(locked, Judgement::Miss | Judgement::ByDesign);
    [single, if within && above { Judgement::MissByLock } else { locked }]
}

fn find_baseline<'a>(rows: &'a [Row], baseline: &str) -> Option<&'a Row> {
    rows.iter().find(|row| row.manager == baseline)
}

fn sheet(rows: &[Row], baseline: &str, size: Size, repetitions: u32) -> Sheet {
    let base = find_baseline(rows, baseline);
    let interval = |ratio: Option<Interval>| {
        ratio.map_or(Cell::None, |ratio| Cell::Text(format!("{:.3}-{:.3}", ratio.low, ratio.high)))
    };
    let cells = rows
        .iter()
        .map(|row| {
            let per =
                |entries: fn(&Counts) -> Option<f64>| Cell::maybe(row.counts.as_ref().and_then(entries), 1);
            let words = match judgements(row, base) {
                _ if row.manager == baseline => "the baseline".to_owned(),
                [single, threaded] if single == threaded => single.words().to_owned(),
                [single, threaded] => format!("{}; with the lock: {}", single.words(), threaded.words()),
            };
            let words = [vec![words], row.marks.clone()].concat().join("; ");
            vec![
                Cell::Text(row.manager.clone()),
                Cell::maybe(row.cpu_s, 3),
                Cell::maybe(row.ratios[0].map(|ratio| ratio.ratio), 3),
                interval(row.ratios[0]),
                Cell::maybe(row.ratios[1].map(|ratio| ratio.ratio), 3),
                interval(row.ratios[1]),
                per(|counts| per_call(counts.malloc)),
                per(|counts| per_call(counts.free)),
                Cell::Text(words),
                Cell::maybe(row.ratios[0].map(|ratio| ratio.low), 3),
                Cell::maybe(row.ratios[0].map(|ratio| ratio.high), 3),
                Cell::maybe(row.ratios[1].map(|ratio| ratio.low), 3),
                Cell::maybe(row.ratios[1].map(|ratio| ratio.high), 3),
            ]
        })
        .collect();
    Sheet {
        command: "cfrac",
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
            column("judgement", "judgement"),
            data("cpu_ratio_low"),
            data("cpu_ratio_high"),
            data("locked_cpu_ratio_low"),
            data("locked_cpu_ratio_high"),
        ],
        rows: cells,
        verdict: verdict(rows, baseline),
        notes: vec![
            "Interleaved runs, start-up taken off, trimmed means of paired ratios; the intervals of a column hold \
             together. `locked`: a second thread sleeps, so that every manager, the baseline too, takes its locks."
                .into(),
            "Instructions per call are counted single-threaded, on the smallest input.".into(),
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
        (!names.is_empty()).then(|| format!("{}: {}", wanted.words(), names.join(", ")))
    };
    let all = [
        Judgement::Pass,
        Judgement::Likely,
        Judgement::ByDesign,
        Judgement::MissByLock,
        Judgement::Miss,
        Judgement::NoFigure,
    ];
    let mut sentences: Vec<String> = ["Single-threaded", "With the lock taken"]
        .into_iter()
        .enumerate()
        .map(|(number, what)| {
            let parts: Vec<String> = all.into_iter().filter_map(|wanted| named(number, wanted)).collect();
            format!("{what}, of {} managers: {}.", others.len(), parts.join("; "))
        })
        .collect();
    for row in others.iter().filter(|row| judgements(row, base).contains(&Judgement::ByDesign)) {
        let per = |row: &Row, of: fn(&Counts) -> Option<f64>| row.counts.as_ref().and_then(of).unwrap_or(0.0);
        let malloc = |row: &Row| per(row, |counts| per_call(counts.malloc));
        let free = |row: &Row| per(row, |counts| per_call(counts.free));
        if let Some(base) = base {
            sentences.push(format!(
                "{} searches for a fit: {:.0} instructions a malloc and {:.0} a free, where {baseline} takes {:.0} \
                 and {:.0}.",
                row.manager,
                malloc(row),
                free(row),
                malloc(base),
                free(base)
            ));
        }
    }
    for row in others.iter().filter(|row| judgements(row, base)[0] == Judgement::Miss) {
        if let (Some(own), Some(base)) = (row.faults, base.and_then(|base| base.faults))
            && own > MANY_FAULTS * base
        {
            sentences.push(format!(
                "{} takes {own:.0} page faults a run, where {baseline} takes {base:.0}: it uses much more memory.",
                row.manager
            ));
        }
    }
    sentences
}

#[cfg(test)]
mod tests {
    use heaptoll_callgrind::profile::Entries;

    use super::*;

    fn interval(ratio: f64, half: f64) -> Option<Interval> {
        Some(Interval { ratio, low: ratio - half, high: ratio + half, differs: true, pairs: 15 })
    }

    fn row(manager: &str, single: Option<Interval>, locked: Option<Interval>, malloc: u64) -> Row {
        Row {
            manager: manager.into(),
            ratios: [single, locked],
            cpu_s: Some(0.5),
            faults: Some(100.0),
            counts: Some(Counts {
                malloc: Entries { calls: 1, instructions: malloc },
                free: Entries { calls: 1, instructions: 30 },
                ..Counts::default()
            }),
            marks: vec![],
        }
    }

    #[test]
    fn the_whole_interval_must_be_within_the_limit() {
        for (ratio, searches, wanted) in [
            (interval(1.0, 0.05), false, Judgement::Pass),
            (interval(1.2, 0.05), false, Judgement::Pass),
            (interval(1.22, 0.05), false, Judgement::Likely),
            (interval(1.26, 0.05), false, Judgement::Miss),
            (interval(1.26, 0.05), true, Judgement::ByDesign),
            (interval(1.1, 0.05), true, Judgement::Pass),
            (None, true, Judgement::NoFigure),
        ] {
            assert_eq!(Judgement::of(ratio, searches), wanted, "{ratio:?}");
        }
    }

    #[test]
    fn a_search_that_is_not_long_or_not_counted_excuses_nothing() {
        let base = row("glibc", None, None, 40);
        let mut bestfit = row("bestfit", interval(1.4, 0.1), interval(1.4, 0.1), 60);
        assert_eq!(judgements(&bestfit, Some(&base)), [Judgement::ByDesign; 2]);
        bestfit.counts = None;
        assert_eq!(judgements(&bestfit, Some(&base)), [Judgement::Miss; 2]);
        let short = row("bestfit", interval(1.4, 0.1), None, 30);
        assert_eq!(judgements(&short, Some(&base)), [Judgement::Miss, Judgement::NoFigure]);
    }

    #[test]
    fn a_search_is_shown_with_its_length_and_a_miss_is_a_miss() {
        let rows = [
            row("glibc", None, None, 40),
            row("knuth", interval(2.0, 0.1), interval(1.9, 0.1), 900),
            row("lea", interval(1.4, 0.1), interval(1.1, 0.02), 70),
            row("bestfit", interval(1.1, 0.1), interval(1.4, 0.1), 900),
            Row { faults: Some(90_000.0), ..row("bump", interval(2.6, 0.1), interval(2.6, 0.1), 9) },
        ];
        let sheet = sheet(&rows, "glibc", Size::Quick, 15);
        assert!(sheet.rows.iter().all(|row| row.len() == sheet.columns.len()));
        let words = |number: usize| match &sheet.rows[number][8] {
            Cell::Text(text) => text.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(words(0), "the baseline");
        assert_eq!(words(1), "above, by design");
        assert_eq!(words(2), "miss; with the lock: pass");
        assert_eq!(words(3), "pass; with the lock: miss, by the lock alone");
        let said = sheet.verdict.join("\n");
        assert!(
            said.contains(
                "Single-threaded, of 4 managers: pass: bestfit; above, by design: knuth; miss: lea, bump."
            ),
            "{said}"
        );
        assert!(
            said.contains("knuth searches for a fit: 900 instructions a malloc and 30 a free, where glibc takes 40 and 30."),
            "{said}"
        );
        assert!(said.contains("bump takes 90000 page faults a run, where glibc takes 100"), "{said}");
        assert!(!said.contains("lea searches") && !said.contains("lea takes"), "{said}");
        assert!(!said.contains("bestfit searches"), "{said}");
    }
}
