//! The answer in words, how to set it, and the fresh runs as a table.

use heaptoll_experiment::manager::{self, Manager, ManagerSource};
use heaptoll_experiment::places::Places;
use heaptoll_report::document::{Column, Section, Table};
use heaptoll_report::format::{self, and_list, changed, mib_from_bytes};
use heaptoll_statistics::{FEWEST_PAIRS, Interval, NO_DIFFERENCE, State, TOO_FEW};
use heaptoll_units::rounded_percent;

use super::figures::{ChooseFigures, Finalist};

/// The section.
pub(super) fn section(figures: &ChooseFigures, places: &Places) -> Section {
    let chosen = figures.finalists.iter().find(|finalist| finalist.stack == figures.choice);
    let mut text = vec![match chosen.filter(|_| figures.choice != figures.baseline) {
        Some(chosen) => {
            let first = unimproved(figures).map_or(String::new(), |none| format!("{none}; "));
            format!("{first}{}: {}.", chosen.stack, price(chosen, &figures.baseline))
        }
        None => no_answer(figures),
    }];
    if figures.choice != figures.baseline {
        let known = manager::known(places).unwrap_or_default();
        let choice = manager::find(&known, &figures.choice).ok();
        text.extend(choice.and_then(|choice| how_to_set(&choice, places)));
    }
    Section { text, ..Section::new("Answer") }.with(fresh_runs(figures)).with_all(servers(figures))
}

fn fresh_runs(figures: &ChooseFigures) -> Table {
    let baseline = &figures.baseline;
    Table::of(&figures.finalists)
        .text("Stack", |finalist| finalist.stack.clone())
        .figure(&format!("CPU / {baseline}"), |finalist| bracketed(&finalist.cpu))
        .figure(&format!("memory / {baseline}"), |finalist| bracketed(&finalist.memory))
        .figure("RSS MiB", |finalist| finalist.peak_bytes.map(mib_from_bytes))
        .text("", |finalist| match finalist.stack == figures.choice {
            true => "chosen".into(),
            false => finalist.trouble.clone(),
        })
        .notes(notes(figures))
        .table()
}

fn notes(figures: &ChooseFigures) -> Vec<String> {
    let read = "From fresh runs after the search. If an interval contains 1.00, no difference was detected.";
    let mut all = vec![read.to_owned()];
    if figures.finalists.iter().any(|finalist| finalist.cpu.as_ref().is_some_and(are_few)) {
        all.push(format!(
            "Fewer than {FEWEST_PAIRS} repetitions: brackets are ranges, and no difference is claimed."
        ));
    }
    all
}

/// Whether there are too few repetitions to state a difference.
pub(super) fn are_few(interval: &Interval) -> bool {
    !interval.has_enough_pairs()
}

/// Requests and idle memory, where a server has them.
fn servers(figures: &ChooseFigures) -> Option<Table> {
    let has_p99 = figures.finalists.iter().any(|finalist| finalist.served.p99_ms.is_some());
    let idle =
        figures.finalists.iter().map(|finalist| &finalist.served.idle).max_by_key(|idle| idle.len())?;
    if !has_p99 && idle.is_empty() {
        return None;
    }
    let baseline = &figures.baseline;
    let title = |after_s| match after_s {
        0.0 => Column::figures("MiB at the load's end"),
        after_s => Column::figures(&format!("after {after_s} s")),
    };
    let table = Table::of(&figures.finalists)
        .text("Stack", |finalist| finalist.stack.clone())
        .when(has_p99, |table| {
            let p99 = |finalist: &&Finalist| finalist.served.p99_ms.map(heaptoll_units::significant);
            table
                .figure("p99 ms", p99)
                .figure(&format!("p99 / {baseline}"), |finalist| bracketed(&finalist.p99))
        })
        .each(
            idle.iter().enumerate(),
            |(_, memory)| title(memory.after_s),
            |finalist, (at, _)| finalist.served.idle.get(*at).map(|memory| mib_from_bytes(memory.bytes)),
        )
        .when(!idle.is_empty(), |table| {
            table.figure(&format!("idle / {baseline}"), |finalist| bracketed(&finalist.idle))
        })
        .note("Medians of the fresh runs. Memory is the resident memory of all processes of the server.");
    Some(table.table())
}

fn bracketed(interval: &Option<Interval>) -> Option<String> {
    interval.as_ref().map(format::interval)
}

/// What a stack costs and saves, in words: `35 % less memory (33 to 37), 4 % more CPU (2 to 6)`.
fn price(finalist: &Finalist, baseline: &str) -> String {
    let part = |interval: &Option<Interval>, noun: &str| {
        let Some(interval) = interval else { return format!("{noun} not compared") };
        if are_few(interval) {
            return format!("{TOO_FEW} to judge {noun} ({})", format::interval(interval));
        }
        if !interval.differs {
            return format!("{NO_DIFFERENCE} in {noun} ({})", format::interval(interval));
        }
        changed(interval, noun)
    };
    let idle = finalist.idle.as_ref().map(|_| part(&finalist.idle, "memory when idle"));
    let p99 = finalist.p99.as_ref().map(|_| part(&finalist.p99, "p99 latency"));
    let parts: Vec<String> = [part(&finalist.memory, "memory"), part(&finalist.cpu, "CPU time")]
        .into_iter()
        .chain(idle)
        .chain(p99)
        .collect();
    format!("{} than {baseline}, in fresh runs", parts.join(", "))
}

/// What finalists that work certainly save.
fn gains(figures: &ChooseFigures) -> impl Iterator<Item = (&Finalist, &'static str, &Interval)> {
    let works = figures.finalists.iter().filter(|finalist| finalist.trouble.is_empty());
    works.flat_map(|finalist| finalist.gains().map(move |(noun, gain)| (finalist, noun, gain)))
}

/// The largest of these savings.
fn largest(figures: &ChooseFigures) -> Option<(&Finalist, &'static str, &Interval)> {
    gains(figures).min_by(|a, b| a.2.ratio.total_cmp(&b.2.ratio))
}

/// That no finalist certainly saves the floor of what is wanted most: `No finalist certainly saves 2.0 % of memory`.
fn unimproved(figures: &ChooseFigures) -> Option<String> {
    let (wanted, _) = figures.finalists.first()?.preferred(figures.preference)?;
    let is_improved =
        |(_, noun, gain): (&Finalist, &str, &Interval)| noun == wanted && gain.ratio <= 1.0 - figures.floor;
    let floor = rounded_percent(figures.floor);
    (!gains(figures).any(is_improved)).then(|| format!("No finalist certainly saves {floor} of {wanted}"))
}

/// The largest certain saving of all finalists, where it is below the floor.
fn too_little(figures: &ChooseFigures) -> Option<String> {
    let (finalist, noun, gain) = largest(figures)?;
    (gain.ratio > 1.0 - figures.floor).then(|| {
        format!(
            "Keep {}: the most that a setting saves is {} ({}). That is below {}, so it is not worth it (--floor).",
            figures.baseline,
            changed(gain, noun),
            finalist.stack,
            rounded_percent(figures.floor)
        )
    })
}

fn no_answer(figures: &ChooseFigures) -> String {
    let stacks = figures.finalists.iter().map(|finalist| finalist.stack.clone());
    let others: Vec<String> = stacks.filter(|stack| *stack != figures.baseline).collect();
    let measured = figures.finalists.iter().filter_map(|finalist| finalist.cpu.as_ref());
    if measured.clone().next().is_some() && measured.into_iter().all(are_few) {
        return format!(
            "Keep {}: {} fresh repetitions are too few to judge the best candidates of the search ({}). \
             {FEWEST_PAIRS} can show a difference, ten are better (-n).",
            figures.baseline,
            figures.fresh_repetitions,
            and_list(&others)
        );
    }
    if let Some(text) = too_little(figures) {
        return text;
    }
    let is_worse = |finalist: &Finalist| {
        finalist.stack == figures.baseline
            || finalist.weighted.is_some_and(|weighted| weighted.state() == State::More)
    };
    if figures.finalists.iter().all(is_worse) {
        return format!(
            "Keep {}: {} certainly did worse in fresh runs.",
            figures.baseline,
            and_list(&others)
        );
    }
    if let (Some(none), Some((finalist, noun, gain))) = (unimproved(figures), largest(figures)) {
        let (baseline, stack, saves) = (&figures.baseline, &finalist.stack, changed(gain, noun));
        return format!("Keep {baseline}. {none}; {stack} takes {saves}.");
    }
    let is_below = |finalist: &Finalist| {
        let below = |interval: &Interval| !are_few(interval) && interval.low > 1.0 - figures.floor;
        finalist.stack == figures.baseline
            || finalist.cpu.is_some()
                && finalist.named().iter().filter_map(|(_, interval)| interval.as_ref()).all(below)
    };
    if figures.finalists.iter().all(is_below) {
        return format!(
            "Keep {}: none of the best candidates ({}) saves {} or more. Less is not worth a setting (--floor).",
            figures.baseline,
            and_list(&others),
            rounded_percent(figures.floor)
        );
    }
    format!(
        "Keep {}: none of the search's best candidates ({}) is certainly better in fresh runs. More repetitions \
         (-n) detect smaller differences.",
        figures.baseline,
        and_list(&others)
    )
}

/// How a program is started with a manager, and how its library comes to another machine.
fn how_to_set(manager: &Manager, places: &Places) -> Option<String> {
    let mut words: Vec<String> =
        manager.environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let preload: Vec<String> =
        manager.preload(places).iter().map(|object| object.display().to_string()).collect();
    if !preload.is_empty() {
        words.insert(0, format!("LD_PRELOAD={}", preload.join(":")));
    }
    (!words.is_empty())
        .then(|| format!("Set {} like this: {} ./program{}", manager.name, words.join(" "), source(manager)))
}

/// Where the library of a manager comes from, and what to do about it where the program runs.
fn source(manager: &Manager) -> String {
    let (origin, version) = (&manager.origin, &manager.version);
    match manager.kind {
        ManagerSource::Glibc if manager.layers.is_empty() => "; it needs no library".to_owned(),
        ManagerSource::Debian => {
            format!("; install its library where the program runs: {origin}, version {version}")
        }
        ManagerSource::Built | ManagerSource::Added => format!(
            "; copy its library, heaptoll's build of version {version} ({origin}), to where the program runs"
        ),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use heaptoll_experiment::manager::glibc;

    use super::*;
    use crate::choose::score::Preference;
    use crate::choose::servers::{IdleMemory, Served};

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
            price(&unsure, "glibc").contains("no difference detected in CPU time (1.00 (0.99–1.02))"),
            "{}",
            price(&unsure, "glibc")
        );
        let few = |ratio, low, high| interval(ratio, low, high).map(|found| Interval { pairs: 2, ..found });
        let two = Finalist { cpu: few(1.04, 1.03, 1.05), memory: few(0.5, 0.49, 0.51), ..unsure.clone() };
        assert!(price(&two, "glibc").starts_with("too few repetitions to judge memory (0.50"), "two runs");
        let figures = ChooseFigures {
            baseline: "glibc".into(),
            finalists: vec![two],
            fresh_repetitions: 2,
            ..ChooseFigures::default()
        };
        assert!(notes(&figures)[1].starts_with("Fewer than 6 repetitions: brackets are ranges"));
        assert!(no_answer(&figures).contains("2 fresh repetitions are too few"), "{}", no_answer(&figures));
        let server = Finalist { idle: interval(0.5, 0.4, 0.6), p99: interval(0.8, 0.7, 0.9), ..unsure };
        assert!(price(&server, "glibc").contains("50 % less memory when idle (40 % to 60 %)"));
    }

    /// Before, 0.3 % less memory was recommended beside a ratio of 1.00, with how to set the other finalist too; and more
    /// repetitions were advised where all finalists were certainly worse.
    #[test]
    fn a_default_that_stays_has_its_reason() {
        let tiny = Finalist {
            stack: "tiny".into(),
            cpu: interval(1.03, 0.99, 1.08),
            memory: interval(0.997, 0.994, 0.999),
            ..Finalist::default()
        };
        let worse = |stack: &str| Finalist {
            stack: stack.into(),
            memory: interval(1.2, 1.1, 1.3),
            weighted: interval(1.1, 1.05, 1.15),
            ..Finalist::default()
        };
        let of = |finalists: Vec<Finalist>| {
            let baseline = Finalist { stack: "glibc".into(), ..Finalist::default() };
            let finalists = std::iter::once(baseline).chain(finalists).collect();
            let names = ("glibc".to_owned(), "glibc".to_owned());
            ChooseFigures {
                baseline: names.0,
                choice: names.1,
                finalists,
                floor: 0.02,
                ..ChooseFigures::default()
            }
        };
        let figures = of(vec![tiny.clone(), worse("a")]);
        let text = section(&figures, &Places::at(Path::new("/none"))).text;
        assert_eq!(
            text,
            ["Keep glibc: the most that a setting saves is 0.3 % less memory (0.1 % to 0.6 %) (tiny). \
              That is below 2.0 %, so it is not worth it (--floor)."]
        );
        assert_eq!(fresh_runs(&figures).rows[1][2], "0.997 (0.994–0.999)");
        let text = no_answer(&of(vec![worse("a"), worse("b")]));
        assert!(text.contains("a and b certainly did worse") && !text.contains("-n"), "{text}");
        let unsure = Finalist { cpu: interval(1.0, 0.97, 1.03), memory: None, ..tiny };
        assert!(no_answer(&of(vec![worse("a"), unsure.clone()])).contains("More repetitions (-n)"));
        let narrow = Finalist { cpu: interval(1.0, 0.99, 1.01), ..unsure };
        assert!(no_answer(&of(vec![narrow])).contains("(tiny) saves 2.0 % or more"));
    }

    /// Before, an answer to `--prefer memory` whose gain was CPU time alone did not state that no candidate takes less memory.
    #[test]
    fn an_answer_states_that_the_preferred_figure_was_not_improved() {
        let fast = Finalist {
            stack: "fast".into(),
            cpu: interval(0.63, 0.6, 0.66),
            memory: interval(1.0, 0.99, 1.01),
            ..Finalist::default()
        };
        let of = |finalist: Finalist, choice: &str, preference| ChooseFigures {
            baseline: "glibc".into(),
            choice: choice.into(),
            finalists: vec![Finalist { stack: "glibc".into(), ..Finalist::default() }, finalist],
            floor: 0.02,
            preference,
            ..ChooseFigures::default()
        };
        let first =
            |figures: &ChooseFigures| section(figures, &Places::at(Path::new("/none"))).text.swap_remove(0);
        let none = "No finalist certainly saves 2.0 % of memory";
        assert_eq!(
            first(&of(fast.clone(), "fast", Preference::Memory)),
            format!(
                "{none}; fast: no difference detected in memory (1.00 (0.99–1.01)), \
                 37 % less CPU time (34 % to 40 %) than glibc, in fresh runs."
            )
        );
        assert_eq!(
            first(&of(fast.clone(), "glibc", Preference::Memory)),
            format!("Keep glibc. {none}; fast takes 37 % less CPU time (34 % to 40 %).")
        );
        let lean = Finalist { memory: interval(0.9, 0.89, 0.91), ..fast.clone() };
        for (figures, choice) in
            [(lean, Preference::Memory), (fast.clone(), Preference::Time), (fast, Preference::Balance)]
        {
            let text = first(&of(figures, "fast", choice));
            assert!(text.starts_with("fast: "), "{text}");
        }
    }

    /// Before, the answer named a file of heaptoll's build tree, and nothing for the runner-up.
    #[test]
    fn how_to_set_a_manager_states_where_its_library_comes_from_elsewhere() {
        let made = |name: &str, kind, origin: &str| Manager {
            name: name.into(),
            kind,
            origin: origin.into(),
            version: "5.3.0-1".into(),
            ..glibc()
        };
        let places = Places::at(Path::new("/none"));
        let with = |name: &str, value: &str, manager| Manager {
            environment: vec![(name.into(), value.into())],
            ..manager
        };
        let huge = with("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1", glibc());
        assert_eq!(
            how_to_set(&huge, &places).as_deref(),
            Some("Set glibc like this: GLIBC_TUNABLES=glibc.malloc.hugetlb=1 ./program; it needs no library")
        );
        assert_eq!(how_to_set(&glibc(), &places), None);
        let debian = Manager {
            object: Some("/usr/lib/libjemalloc.so.2".into()),
            ..made("debian-jemalloc", ManagerSource::Debian, "Debian package libjemalloc2")
        };
        let line = how_to_set(&debian, &places).expect("a line");
        assert!(
            line.contains(
                "LD_PRELOAD=/usr/lib/libjemalloc.so.2 ./program; install its library where the program runs: \
                 Debian package libjemalloc2, version 5.3.0-1"
            ),
            "{line}"
        );
        let built = source(&made("rpmalloc", ManagerSource::Built, "crate rpmalloc-sys 0.2.3"));
        assert!(built.ends_with("version 5.3.0-1 (crate rpmalloc-sys 0.2.3), to where the program runs"));
    }

    #[test]
    fn a_server_has_a_table_of_its_requests_and_of_its_memory_when_idle() {
        let idle =
            [0.0, 1.0, 10.0].map(|after_s| IdleMemory { after_s, bytes: (50.0 - after_s) * 1048576.0 });
        let served = Served { p99_ms: Some(1.25), idle: idle.into(), ..Served::default() };
        let finalist = Finalist { stack: "glibc".into(), served, ..Finalist::default() };
        let figures =
            ChooseFigures { baseline: "glibc".into(), finalists: vec![finalist], ..ChooseFigures::default() };
        let table = servers(&figures).expect("a table");
        assert_eq!(&table.rows[0][3..6], ["50.0", "49.0", "40.0"]);
        assert_eq!(table.columns[5].title, "after 10 s");
        assert!(
            servers(&ChooseFigures { finalists: vec![Finalist::default()], ..ChooseFigures::default() })
                .is_none()
        );
    }
}
