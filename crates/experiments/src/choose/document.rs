//! The answer in words, the fresh runs, the frontier as a picture, and the search.

use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::manager;
use heaptoll_experiment::places::Places;
use heaptoll_report::document::{Axis, Chart, Column, Document, Form, Item, Section, Series, Table};
use heaptoll_report::format::{NONE, and_list, mib_from_bytes, plural, ratio};
use heaptoll_statistics::Interval;
use heaptoll_units::rounded_percent;

use super::figures::{Candidate, Figures, Finalist};
use super::score::Preference;

/// The document. `command` repeats it.
pub fn document(figures: &Figures, experiment: &Experiment, places: &Places, command: &str) -> Document {
    Document {
        title: format!("Which memory manager for {}?", and_list(&figures.programs)),
        subtitle: format!(
            "wanted: {}{}; compared with {}",
            match figures.preference {
                Preference::Time => "little CPU time",
                Preference::Memory => "little memory",
                Preference::Balance => "little CPU time and little memory",
            },
            figures
                .memory_limit_bytes
                .map(|limit| format!(", at most {} MiB", mib_from_bytes(limit as f64)))
                .unwrap_or_default(),
            figures.baseline
        ),
        warnings: warnings(figures),
        sections: vec![answer(figures, places), frontier(figures), search(figures)],
        facts: facts(figures, experiment),
        command: command.into(),
        ..Document::default()
    }
}

fn warnings(figures: &Figures) -> Vec<String> {
    let failed = figures.finalists.iter().filter(|finalist| !finalist.trouble.is_empty());
    failed.map(|finalist| format!("{}: {}", finalist.stack, finalist.trouble)).collect()
}

fn facts(figures: &Figures, experiment: &Experiment) -> Vec<(String, String)> {
    let mut facts = vec![
        (
            "search".into(),
            format!(
                "{} candidates in {}, each compared with {} in the same repetitions",
                figures.candidates.len(),
                plural(figures.search_runs as usize, "run"),
                figures.baseline
            ),
        ),
        (
            "fresh runs".into(),
            format!(
                "{} repetitions of {}",
                figures.fresh_repetitions,
                plural(figures.finalists.len(), "stack")
            ),
        ),
        (
            "score".into(),
            "weighted mean of the logarithms of both ratios: time 9 to 1, memory 1 to 9, balance 1 to 1"
                .into(),
        ),
    ];
    let machine = &experiment.machine;
    facts.push((
        "machine".into(),
        format!(
            "{}, {}, Linux {}, load {:.1}",
            machine.cpu,
            plural(machine.cores as usize, "core"),
            machine.kernel,
            machine.load[0]
        ),
    ));
    facts
}

fn answer(figures: &Figures, places: &Places) -> Section {
    let chosen = figures.finalists.iter().find(|finalist| finalist.stack == figures.choice);
    let mut text = vec![match chosen.filter(|_| figures.choice != figures.baseline) {
        Some(chosen) => format!("{}: {}.", chosen.stack, price(chosen, &figures.baseline)),
        None => no_answer(figures),
    }];
    if figures.choice != figures.baseline {
        text.extend(how_to_set(&figures.choice, places));
    }
    let rows = figures.finalists.iter().map(|finalist| {
        let interval = |interval: &Option<Interval>| interval.as_ref().map_or_else(|| NONE.into(), bracketed);
        vec![
            finalist.stack.clone(),
            interval(&finalist.cpu),
            interval(&finalist.memory),
            finalist.peak_bytes.map_or_else(|| NONE.into(), mib_from_bytes),
            if finalist.stack == figures.choice { "chosen".into() } else { finalist.trouble.clone() },
        ]
    });
    let table = Table {
        columns: vec![
            Column::text("Stack"),
            Column::figures(&format!("CPU / {}", figures.baseline)),
            Column::figures(&format!("memory / {}", figures.baseline)),
            Column::figures("RSS MiB"),
            Column::text(""),
        ],
        rows: rows.collect(),
        notes: vec![
            "Of fresh runs, made after the search. Where an interval holds 1, no difference was seen.".into(),
        ],
        ..Table::default()
    };
    Section { title: "Answer".into(), text, items: vec![Item::Table(table)] }
}

fn bracketed(interval: &Interval) -> String {
    format!("{} ({}–{})", ratio(interval.ratio), ratio(interval.low), ratio(interval.high))
}

/// What a stack costs and saves, in words: `35 % less memory (33 to 37), 4 % more CPU (2 to 6)`.
fn price(finalist: &Finalist, baseline: &str) -> String {
    let part = |interval: &Option<Interval>, noun: &str| {
        let Some(interval) = interval else { return format!("{noun} not compared") };
        if !interval.differs {
            return format!("no difference seen in {noun} ({})", bracketed(interval));
        }
        let share = |value: f64| rounded_percent((value - 1.0).abs());
        let (near, far) = match interval.ratio < 1.0 {
            true => (interval.high, interval.low),
            false => (interval.low, interval.high),
        };
        let direction = if interval.ratio < 1.0 { "less" } else { "more" };
        format!("{} {direction} {noun} ({} to {})", share(interval.ratio), share(near), share(far))
    };
    format!(
        "{}, {} than {baseline}, in fresh runs",
        part(&finalist.memory, "memory"),
        part(&finalist.cpu, "CPU time")
    )
}

fn no_answer(figures: &Figures) -> String {
    let stacks = figures.finalists.iter().map(|finalist| finalist.stack.clone());
    let others: Vec<String> = stacks.filter(|stack| *stack != figures.baseline).collect();
    format!(
        "Keep {}: in fresh runs neither of the best candidates of the search ({}) is better for certain. More \
         repetitions (-n) see smaller differences.",
        figures.baseline,
        and_list(&others)
    )
}

/// How a program is started with a stack.
fn how_to_set(stack: &str, places: &Places) -> Option<String> {
    let known = manager::known(places).ok()?;
    let manager = manager::find(&known, stack).ok()?;
    let mut words: Vec<String> =
        manager.environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let preload: Vec<String> =
        manager.preload(places).iter().map(|object| object.display().to_string()).collect();
    if !preload.is_empty() {
        words.insert(0, format!("LD_PRELOAD={}", preload.join(":")));
    }
    (!words.is_empty()).then(|| format!("Set it like this: {} ./program", words.join(" ")))
}

/// Every candidate by what it had in the search, and the finalists by their fresh runs.
fn frontier(figures: &Figures) -> Section {
    let searched = figures.candidates.iter().filter_map(|row| Some((row.cpu_ratio?, row.memory_ratio?)));
    let fresh = figures.finalists.iter().map(|finalist| {
        let ratio = |interval: &Option<Interval>| interval.as_ref().map_or(1.0, |interval| interval.ratio);
        (ratio(&finalist.cpu), ratio(&finalist.memory))
    });
    let series =
        |name: &str, points: Vec<(f64, f64)>| Series { name: name.into(), points, ..Series::default() };
    let (searched, fresh): (Vec<_>, Vec<_>) = (searched.collect(), fresh.collect());
    let ratios = |of: fn(&(f64, f64)) -> f64| searched.iter().chain(&fresh).map(of).collect::<Vec<_>>();
    let axis =
        |title: &str, values: Vec<f64>| Axis::spread(&format!("{title}, to {}", figures.baseline), values);
    let chart = Chart {
        title: "CPU time against memory".into(),
        caption: "Down and left is better.".into(),
        form: Form::Points,
        x: axis("CPU time", ratios(|point| point.0)),
        y: axis("peak resident memory", ratios(|point| point.1)),
        series: vec![series("in the search", searched.clone()), series("fresh runs", fresh.clone())],
    };
    Section { title: "Time and memory".into(), text: Vec::new(), items: vec![Item::Chart(chart)] }
}

fn search(figures: &Figures) -> Section {
    let cells = |row: &Candidate| {
        let number = |value: Option<f64>| value.map_or_else(|| NONE.into(), ratio);
        vec![
            row.stack.clone(),
            row.round.to_string(),
            number(row.cpu_ratio),
            number(row.memory_ratio),
            row.peak_bytes.map_or_else(|| NONE.into(), mib_from_bytes),
            row.why_out.clone().unwrap_or_default(),
        ]
    };
    let table = Table {
        columns: vec![
            Column::text("Candidate"),
            Column::figures("last round"),
            Column::figures("CPU"),
            Column::figures("memory"),
            Column::figures("RSS MiB"),
            Column::text(""),
        ],
        rows: figures.candidates.iter().map(cells).collect(),
        notes: vec![
            "Few runs each, and the lucky ones were kept: these ratios chose the finalists and are no prices.".into(),
        ],
        ..Table::default()
    };
    Section { title: "The search".into(), text: Vec::new(), items: vec![Item::Table(table)] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(ratio: f64, low: f64, high: f64) -> Option<Interval> {
        Some(Interval { ratio, low, high, differs: low > 1.0 || high < 1.0, pairs: 20 })
    }

    #[test]
    fn the_price_is_in_words_with_its_interval() {
        let finalist = Finalist {
            cpu: interval(1.04, 1.02, 1.06),
            memory: interval(0.65, 0.63, 0.67),
            ..Finalist::default()
        };
        assert_eq!(
            price(&finalist, "glibc"),
            "35 % less memory (33 % to 37 %), 4.0 % more CPU time (2.0 % to 6.0 %) than glibc, in fresh runs"
        );
        let unsure = Finalist { cpu: interval(1.0, 0.99, 1.02), ..finalist };
        assert!(
            price(&unsure, "glibc").contains("no difference seen in CPU time (1.00 (0.99–1.02))"),
            "{}",
            price(&unsure, "glibc")
        );
    }
}
