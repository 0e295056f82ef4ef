use heaptoll_experiment::comparison::Metric;
use heaptoll_experiment::observation::{Observation, Outcome, Phase};
use heaptoll_experiment::varied::Varied;
use heaptoll_statistics::Interval;

use super::*;
use crate::document::{Form, Layout};
use crate::html;
use crate::terminal::{Style, render_document};
use crate::testing::{HOSTILE, Shape, experiment, heaps};

const ALL: Extras = Extras { bounds: true, collections: true, explain: true, sections_before: 0 };

fn render(experiment: &Experiment, comparison: &Comparison, style: &Style, extras: Extras) -> String {
    render_document(&document(experiment, comparison, extras), style)
}

fn page(experiment: &Experiment, comparison: &Comparison) -> String {
    html::document::render(&document(experiment, comparison, ALL)).expect("a page")
}

fn shown(shape: Shape, width: Option<u16>) -> String {
    let (experiment, comparison) = experiment(shape);
    render(&experiment, &comparison, &Style { color: false, width, unicode: true }, ALL)
}

fn words<'a>(text: &'a str, first: &str) -> Vec<&'a str> {
    text.lines()
        .map(|l| l.split_whitespace().collect::<Vec<_>>())
        .find(|w| w.first() == Some(&first))
        .unwrap()
}

#[test]
fn a_stack_with_options_is_written_in_one_line_where_it_fits() {
    let (mut made, _) = experiment(Shape::Single);
    let long = "quarantine=64K,evict=random/tcmalloc";
    let other =
        made.stacks.iter().map(|stack| &stack.name).find(|name| **name != made.baseline).unwrap().clone();
    for stack in made.stacks.iter_mut().filter(|stack| stack.name == other) {
        stack.name = long.into();
    }
    for row in made.observations.iter_mut().filter(|row| row.stack == other) {
        row.stack = long.into();
    }
    let comparison = heaptoll_experiment::compare::compare(&made);
    for width in [None, Some(200)] {
        let text = render(&made, &comparison, &Style { color: false, width, unicode: true }, ALL);
        let row = text.lines().find(|line| line.starts_with(long));
        assert!(row.is_some_and(|row| row.contains('–') || row.contains('(')), "{text}");
    }
}

#[test]
fn a_warning_that_every_manager_has_stands_once() {
    let (mut made, comparison) = experiment(Shape::Single);
    for stack in &mut made.stacks {
        stack.warnings = vec!["a child is static".to_owned()];
    }
    let text = render(&made, &comparison, &Style { color: false, width: None, unicode: true }, ALL);
    assert_eq!(text.matches("a child is static").count(), 1, "{text}");
    assert!(text.contains("every manager: a child is static"), "{text}");
}

#[test]
fn a_program_that_is_left_out_is_named_with_its_reason() {
    let (mut made, comparison) = experiment(Shape::Single);
    made.refused.push(("stat".into(), "glibc".into(), "statically linked".into()));
    let text = render(&made, &comparison, &Style { color: false, width: None, unicode: true }, ALL);
    assert!(text.contains("stat is left out, refused under glibc: statically linked"), "{text}");
}

#[test]
fn one_row_a_stack_in_the_order_given() {
    let (experiment, comparison) = experiment(Shape::Single);
    let style = Style { color: false, width: Some(120), unicode: true };
    let text = render(&experiment, &comparison, &style, ALL);
    let order: Vec<&str> = comparison.tables[0].rows.iter().map(|row| row.stack.as_str()).collect();
    let at =
        |name: &&str| text.lines().position(|line| line.split_whitespace().next() == Some(name)).unwrap();
    assert!(order.iter().map(at).is_sorted(), "{text}");
    let row = &comparison.tables[0].rows[0];
    let cpu = &row.figures[&Metric::Cpu];
    let expected = format!("{} {}", format::seconds(cpu.median), format::interval(&cpu.ratio.unwrap()));
    assert!(words(&text, &row.stack).join(" ").contains(&expected), "{text}");
    assert!(words(&text, "glibc").join(" ").ends_with("baseline"), "{text}");
    assert!(text.contains("15 repetitions after 1 warm-up") && text.contains("THP madvise"), "{text}");
    assert!(text.contains("own cost: 0.63 ms and 212 KiB an invocation"), "{text}");
    let wide = render(&experiment, &comparison, &Style { width: None, ..style }, ALL);
    for row in &comparison.tables[0].rows {
        assert!(words(&wide, &row.stack).join(" ").ends_with(&row.verdict), "{}: {wide}", row.verdict);
    }
    assert!(wide.contains("9.1 % less CPU, 2.1x the memory"), "{wide}");
}

#[test]
fn a_row_that_is_as_the_baseline_shows_no_difference() {
    let (mut made, _) = experiment(Shape::Single);
    let same = |row: Observation| Observation { stack: "jemalloc".into(), ..row };
    let copies: Vec<Observation> = made
        .observations
        .iter()
        .filter(|row| row.stack == "glibc" && row.phase == Phase::Timed)
        .cloned()
        .map(same)
        .collect();
    made.observations.retain(|row| row.stack != "jemalloc" && row.phase != Phase::Startup);
    made.observations.extend(copies);
    let comparison = heaptoll_experiment::compare::compare(&made);
    let text = render(&made, &comparison, &Style { color: false, width: None, unicode: true }, ALL);
    assert!(words(&text, "jemalloc").join(" ").ends_with(format::NO_DIFFERENCE), "{text}");
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for shape in Shape::ALL {
        for width in [30, 40, 60, 72, 80, 100, 120, 200] {
            let text = shown(shape, Some(width));
            for line in text.lines() {
                assert!(line.chars().count() <= usize::from(width), "{shape:?} {width}: {line:?}\n{text}");
            }
        }
    }
}

#[test]
fn what_is_in_a_row_stays_readable_when_narrow() {
    for width in [40, 80, 100, 120] {
        let text = shown(Shape::Single, Some(width));
        for stack in ["glibc", "mimalloc3", "jemalloc", "snmalloc", "tcmalloc"] {
            assert!(text.contains(stack), "{width}: {text}");
        }
        // No figure is ever broken in two.
        assert!(text.matches('(').count() == text.matches(')').count());
        let is_broken =
            |line: &str| line.ends_with(['–', '.']) && !line.ends_with(").") && line.contains('(');
        let broken = text.lines().map(str::trim_end).any(is_broken);
        assert!(!broken || width < 60, "{width}: {text}");
    }
}

#[test]
fn trouble_is_marked_and_explained() {
    let text = shown(Shape::Troubled, Some(110));
    for needle in [
        "incomplete",
        "! snmalloc",
        "2x killed by signal 11 in repetition",
        "it wrote: </pre>",
        "! tcmalloc",
        "5x wrong output",
        "./libnothing.so refused: exports no malloc",
        "the manager does not reach it",
        "5 pairs at most",
        "THP never",
    ] {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(needle), "{needle}: {text}");
    }
    assert!(!text.contains('\x1b') && !text.contains('\u{202e}') && text.contains("\\u{1b}[31m"), "{text}");
    assert!(HOSTILE.contains('\x1b'));
}

/// Before, no word said why a program that hides its pointers fails under each collector.
#[test]
fn hidden_pointers_are_named_where_collectors_alone_fail() {
    let named = |failing: [&str; 2], outcome: &Outcome| {
        let (mut made, _) = experiment(Shape::Single);
        let mut names = made.stacks.iter_mut().map(|stack| &mut stack.name);
        let renamed =
            names.by_ref().skip(1).zip(failing).map(|(name, new)| (std::mem::replace(name, new.into()), new));
        for (old, new) in renamed.collect::<Vec<_>>() {
            for row in made.observations.iter_mut().filter(|row| row.stack == old) {
                row.stack = new.into();
                row.outcome = outcome.clone();
            }
        }
        let comparison = heaptoll_experiment::compare::compare(&made);
        let text = render(&made, &comparison, &Style { color: false, width: None, unicode: true }, ALL);
        text.matches("the likely cause is hidden pointers, see docs/method/limits.md#tithe").count()
    };
    for outcome in [Outcome::WrongOutput, Outcome::Signal(11)] {
        assert_eq!(named(["bdw", "tithe-collect"], &outcome), 2, "{outcome}");
        assert_eq!(named(["bdw", "other"], &outcome), 0, "{outcome}");
    }
    for outcome in [Outcome::Ok, Outcome::Signal(6), Outcome::Exit(1)] {
        assert_eq!(named(["bdw", "tithe-collect"], &outcome), 0, "{outcome}");
    }
}

#[test]
fn colours_follow_the_claims() {
    let (experiment, mut comparison) = experiment(Shape::Single);
    let rows = &mut comparison.tables[0].rows;
    let mut set = |stack: &str, low: f64, ratio: f64, high: f64| {
        let row = rows.iter_mut().find(|row| row.stack == stack).unwrap();
        let differs = low > 1.0 || high < 1.0;
        let interval = Interval { ratio, low, high, differs, pairs: 15 };
        row.figures.get_mut(&Metric::Cpu).unwrap().ratio = Some(interval);
    };
    set("mimalloc3", 0.85, 0.9, 0.95);
    set("jemalloc", 1.1, 1.2, 1.3);
    set("snmalloc", 0.97, 1.01, 1.05);
    let style = Style { color: true, width: Some(130), unicode: true };
    let text = render(&experiment, &comparison, &style, ALL);
    assert!(text.contains("\x1b[38;5;10m0.90 (0.85–0.95)"), "{text:?}");
    assert!(text.contains("\x1b[38;5;9m1.20 (1.10–1.30)"), "{text:?}");
    assert!(text.contains("\x1b[2m1.01 (0.97–1.05)"), "{text:?}");
    assert!(!render(&experiment, &comparison, &Style { color: false, ..style }, ALL).contains('\x1b'));
}

#[test]
fn collections_are_shown_where_a_manager_reported_any() {
    let collections = |width| shown(Shape::Single, Some(width));
    for width in [60, 80, 120] {
        let line = collections(width)
            .split("Lower bounds")
            .next()
            .unwrap_or_default()
            .lines()
            .filter(|line| line.trim_start().starts_with("mimalloc3"))
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .next_back()
            .expect("a line of its own");
        assert_eq!(line, "mimalloc3 17 24.2 3.10 5.0", "{}", collections(width));
    }
    let (experiment, mut comparison) = experiment(Shape::Single);
    for row in &mut comparison.tables[0].rows {
        if let Some(collections) = &mut row.collections {
            collections.count = 0.0;
        }
    }
    let text =
        render(&experiment, &comparison, &Style { color: false, width: Some(120), unicode: true }, ALL);
    assert!(!text.contains("collector  "), "{text}");
    assert!(text.contains("No garbage collections (--collections): no manager"), "and why: {text}");
    comparison.lower_bounds.programs.clear();
    let text =
        render(&experiment, &comparison, &Style { color: false, width: Some(120), unicode: true }, ALL);
    assert!(text.contains("No lower bounds of overhead (--bounds): they need"), "{text}");
}

#[test]
fn lower_bounds_state_what_they_rest_on() {
    let text = shown(Shape::Single, Some(120));
    let bounds = text.split("lower bound of overhead").nth(1).expect("a table");
    assert!(
        words(bounds, "mimalloc3").join(" ").contains("collections: 0.0242 s, 0.0261 s of CPU"),
        "{bounds}"
    );
    assert!(bounds.contains("nothing is subtracted, so the bounds are low"), "{bounds}");
    let narrow = shown(Shape::Single, Some(50)).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(narrow.contains("glibc time: ") && narrow.contains("subtracted: "), "{narrow}");
    let suite = shown(Shape::Suite, Some(120));
    assert!(suite.contains("overall: lower bounds of overhead"), "{suite}");
}

#[test]
fn bounds_and_collections_are_shown_on_request_alone() {
    let (experiment, comparison) = experiment(Shape::Suite);
    let style = Style { color: false, width: Some(120), unicode: true };
    let output = |extras| {
        let text = render(&experiment, &comparison, &style, extras);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let has = |words: &str| text.contains(words);
        [
            has("pauses, wall ms longest, wall ms"),
            has("lower bound of overhead time"),
            has("overall: lower bounds"),
            has("--bounds"),
        ]
    };
    assert_eq!(output(Extras::default()), [false, false, false, true]);
    assert_eq!(output(Extras { bounds: true, ..Extras::default() }), [false, true, true, false]);
    assert_eq!(output(Extras { collections: true, ..Extras::default() }), [true, false, false, true]);
    let text = render(&experiment, &comparison, &style, ALL);
    assert!(!text.contains("Not shown here"), "{text}");
}

/// Seven notes stood under a table before, in the order in which they were found.
#[test]
fn a_table_has_the_two_notes_that_change_its_reading_most_and_all_on_request() {
    let (mut made, mut comparison) = experiment(Shape::Single);
    made.refused.push((comparison.tables[0].program.clone(), "./none.so".into(), "exports no malloc".into()));
    comparison.tables[0].notes = vec!["it wrote to freed memory".into(), "in lockstep".into()];
    comparison.tables[0].asides = 1;
    let notes = |made: &Experiment, explain| {
        let section = program_section(made, &comparison, &comparison.tables[0], Extras { explain, ..ALL });
        let (mut under, mut warned, mut folded) = (vec![], vec![], vec![]);
        for item in section.items {
            match item {
                Item::Table(table) if table.layout == Layout::Wide => under.extend(table.notes),
                Item::Warnings(warnings) => warned.extend(warnings),
                Item::Part(part) if part.option == "--explain" && part.folded => folded.extend(part.text),
                _ => {}
            }
        }
        (under, warned, folded)
    };
    let (under, warned, folded) = notes(&made, false);
    assert_eq!(under, ["./none.so refused: exports no malloc", "it wrote to freed memory"]);
    assert!(warned.is_empty() && folded.contains(&"in lockstep".to_owned()), "{warned:?} {folded:?}");
    let (all, _, none) = notes(&made, true);
    assert_eq!((all, none), ([under, folded].concat(), vec![]));
    for row in made.observations.iter_mut().filter(|row| row.phase.is_measured() && row.repetition == 1) {
        row.outcome = Outcome::Signal(11);
    }
    let comparison = heaptoll_experiment::compare::compare(&made);
    let section = program_section(&made, &comparison, &comparison.tables[0], Extras::default());
    let crashes = section.items.iter().map(|item| match item {
        Item::Warnings(warnings) => warnings.len(),
        Item::Table(table) if table.layout == Layout::Wide => 100 * table.notes.len(),
        _ => 0,
    });
    let named = comparison.tables[0].rows.len();
    assert_eq!(
        crashes.sum::<usize>(),
        named + 100,
        "what failed is named, and one note, which may have the cause"
    );
}

#[test]
fn more_repetitions_are_advised_where_a_table_shows_too_little() {
    let (mut made, mut comparison) = experiment(Shape::Single);
    (made.settings.precision, made.settings.budget_s) = (None, None);
    let mut advised = |detectable, made: &Experiment| {
        comparison.tables[0].detectable_cpu_ratio = detectable;
        advised_repetitions(made, &comparison)
    };
    let repetitions = made.repetitions();
    assert_eq!(advised(Some(1.021), &made), None);
    assert_eq!(advised(Some(1.2), &made), Some(4 * repetitions));
    assert_eq!(advised(None, &made), None, "there are {repetitions}, and no ratio of CPU");
    made.settings.precision = Some(0.01);
    assert_eq!(advised(Some(1.2), &made), None, "it decides by itself");
}

/// The single program's table with these intervals of CPU time and memory, by the order of its other stacks.
fn judged(ratios: &[[(f64, f64); 2]]) -> (Experiment, Comparison) {
    let (made, mut comparison) = experiment(Shape::Single);
    let rows = comparison.tables[0].rows.iter_mut().filter(|row| row.stack != "glibc");
    for (row, ratios) in rows.zip(ratios.iter().cycle()) {
        row.marks.clear();
        for (metric, (low, high)) in [Metric::Cpu, Metric::PeakRss].into_iter().zip(*ratios) {
            let differs = high < 1.0 || low > 1.0;
            let ratio = Interval { ratio: (low * high).sqrt(), low, high, differs, pairs: 10 };
            row.figures.get_mut(&metric).expect("a figure").ratio = Some(ratio);
        }
    }
    (made, comparison)
}

/// The first sentences, with the names of the other stacks.
fn lead(ratios: &[[(f64, f64); 2]]) -> (String, Vec<String>) {
    let (made, comparison) = judged(ratios);
    let rows = comparison.tables[0].rows.iter().filter(|row| row.stack != "glibc");
    let names = rows.map(|row| overall::with_collections(&comparison, &row.stack)).collect();
    (document(&made, &comparison, ALL).sections[0].text[0].clone(), names)
}

#[test]
fn a_sentence_at_the_top_stands_before_charts_and_names_few_stacks_by_their_verdict() {
    let (made, mut comparison) = experiment(Shape::Single);
    comparison.tables[0].rows.retain(|row| ["glibc", "mimalloc3", "snmalloc"].contains(&row.stack.as_str()));
    for row in &mut comparison.tables[0].rows {
        row.verdict = "no difference detected".to_owned();
    }
    let shown = document(&made, &comparison, ALL);
    let lead = &shown.sections[0];
    assert!(lead.title.is_empty() && lead.items.is_empty(), "the page shows it under the title: {lead:?}");
    let text = &lead.text[0];
    assert!(
        text.starts_with("Against glibc: no difference detected (") && text.contains("snmalloc"),
        "{text}"
    );
    assert_eq!(text.matches("no difference detected").count(), 1, "{text}");
    let html = page(&made, &comparison);
    let at = |words: &str| html.find(words).unwrap_or_else(|| panic!("{words}"));
    assert!(at("class=\"lead\"") < at("class=\"chart\"") && at("class=\"chart\"") < at("<table"), "{text}");
}

/// Before, the sentence went by point estimates: 13 % less CPU for certain was in "2 more below", after two rows without a
/// difference.
#[test]
fn the_first_sentence_names_who_certainly_saves_and_ranks_only_what_intervals_rank() {
    let (none, more) = ((0.67, 1.06), (1.02, 1.1));
    let (text, names) = lead(&[[(0.5, 0.6), more], [none, none], [(0.76, 0.99), more], [none, (0.95, 0.99)]]);
    assert_eq!(
        text,
        format!(
            "Against glibc, {} takes 45 % less CPU (40 % to 50 %), the least, and 5.9 % more memory; {} takes 3.0 % less \
             memory (1.0 % to 5.0 %).",
            names[0], names[3]
        )
    );
    let (text, names) = lead(&[[(0.6, 0.9), more], [none, more], [(0.76, 0.99), more], [none, more]]);
    assert_eq!(
        text,
        format!(
            "Against glibc, {} takes 27 % less CPU (10 % to 40 %) and {} takes 13 % less CPU (1.0 % to 24 %), not ranked; \
             no manager takes measurably less memory.",
            names[0], names[2]
        )
    );
    let (made, mut comparison) = judged(&[[(0.6, 0.9), more], [none, more], [none, more], [none, more]]);
    let failed = comparison.tables[0].rows.iter_mut().find(|row| row.stack != "glibc").expect("a row");
    failed.marks.push("2x killed by signal 11".to_owned());
    let text = &document(&made, &comparison, ALL).sections[0].text[0];
    assert!(!text.contains(" takes "), "what fails is no choice: {text}");
}

/// Before, the first sentence listed what four managers did, and no sentence said to keep the allocator.
#[test]
fn the_first_sentence_keeps_the_baseline_where_nothing_is_better_and_differences_would_show() {
    let (text, names) = lead(&[[(0.99, 1.02), (1.05, 1.1)]]);
    let others = names.len();
    assert_eq!(
        text,
        format!(
            "Keep glibc: none of {others} takes measurably less CPU or memory; all take more memory. \
             A CPU difference of about 1.5 % would have been detected about half the time."
        )
    );
    let (text, _) = lead(&[[(0.8, 1.2), (1.05, 1.1)], [(0.99, 1.02), (1.05, 1.1)]]);
    assert!(text.contains("A CPU difference of 1.5 % (") && text.contains(") to 18 % ("), "{text}");
    assert!(
        text.starts_with(&format!("None of {others} takes measurably less CPU or memory than glibc; all")),
        "{text}"
    );
}

/// Before, a median stood there: "about 36 %" under a claim of 14 % more.
#[test]
fn the_smallest_detectable_difference_contradicts_no_row() {
    let claimed = [[(1.02, 1.3), (1.0, 1.1)], [(0.76, 0.99), (1.0, 1.1)]];
    for [(low, high), _] in claimed {
        let ratio = Interval { ratio: f64::sqrt(low * high), low, high, differs: true, pairs: 6 };
        let [(_, found), _] = format::detectable([("a", ratio)].into_iter()).expect("pairs");
        assert!(1.0 - found < (1.0 - ratio.ratio).abs(), "{found} {ratio:?}");
    }
    let (made, comparison) = judged(&[claimed[0], [(0.5, 1.4), (1.0, 1.1)]]);
    let text = render(&made, &comparison, &Style { color: false, width: None, unicode: true }, ALL);
    let note = text.lines().find(|line| line.contains("Smallest detectable")).expect("a note");
    assert!(note.contains(": 11 % (") && note.contains(") to 40 % ("), "{note}");
    let (made, comparison) = judged(&[[(0.98, 1.02), (1.0, 1.1)]]);
    let text = render(&made, &comparison, &Style { color: false, width: None, unicode: true }, ALL);
    assert!(text.contains("Smallest detectable CPU difference: about 2.0 %"), "{text}");
}

/// Before, the footer had start-up outside of ratios that a note had it in, and 96 % after `--budget`.
#[test]
fn the_footer_states_what_intervals_hold_and_where_start_up_is() {
    let (mut made, mut comparison) = experiment(Shape::Single);
    (made.settings.precision, comparison.alpha) = (Some(0.0), 0.04);
    let footers =
        |made: &_, comparison: &_| [in_short(made, comparison), reading(made, comparison).text.concat()];
    for text in footers(&made, &comparison) {
        assert!(text.contains("95 % confidence") && text.contains("time without start-up"), "{text}");
    }
    comparison.tables[0].includes_startup = true;
    made.settings.level = Some(0.01);
    for text in footers(&made, &comparison) {
        assert!(text.contains("99 % confidence") && text.contains("time with start-up"), "{text}");
    }
}

/// Before, redis, which links jemalloc, was compared with glibc without a word.
#[test]
fn the_allocator_that_the_program_links_is_named_at_the_top() {
    let (mut made, comparison) = experiment(Shape::Single);
    let object = "/usr/lib/libjemalloc.so.2";
    made.programs[0].linked = Some(object.into());
    let last = |made: &Experiment| document(made, &comparison, ALL).sections[0].text[1].clone();
    let uses = format!("{} without heaptoll uses {object}", made.programs[0].name);
    assert_eq!(last(&made), format!("{uses}; `--baseline {object}` compares with that."));
    let stack = made.stacks.iter_mut().find(|stack| stack.name == "jemalloc").expect("a stack");
    stack.preload = vec![object.into()];
    assert_eq!(last(&made), format!("{uses}, which is jemalloc; `--baseline jemalloc` compares with that."));
    made.baseline = "jemalloc".into();
    assert_eq!(last(&made), format!("{uses}, which is jemalloc, the baseline."));
}

#[test]
fn ratios_sort_as_numbers() {
    let (made, comparison) = experiment(Shape::Suite);
    let shown = document(&made, &comparison, ALL);
    let tables = shown.sections.iter().flat_map(|section| &section.items);
    let tables = tables.filter_map(|item| if let Item::Table(table) = item { Some(table) } else { None });
    let columns = tables.flat_map(|table| &table.columns).filter(|column| column.title.ends_with(" ratio"));
    let numeric: Vec<bool> = columns.map(|column| column.figures).collect();
    assert!(numeric.len() >= 4 && numeric.iter().all(|numeric| *numeric), "{numeric:?}");
}

#[test]
fn several_programs_end_in_geometric_means() {
    let text = shown(Shape::Suite, Some(120));
    let overall = text.split("overall: geometric means").nth(1).unwrap();
    let overall = overall.split("overall: lower bounds").next().unwrap();
    assert!(words(overall, "mimalloc3").join(" ").contains("less CPU"), "{overall}");
    assert!(!shown(Shape::Single, Some(120)).contains("geometric means"));
}

#[test]
fn a_server_shows_its_load_and_ascii_is_ascii() {
    let (made, mut served) = experiment(Shape::Server);
    let row = served.tables[0].rows.iter_mut().find(|row| row.stack != "glibc").expect("a row");
    let ratio = Interval { ratio: 1.11, low: 0.61, high: 2.0, differs: false, pairs: 6 };
    row.load_ratios.insert("requests_per_s".into(), ratio);
    let text = render(&made, &served, &Style { color: false, width: None, unicode: true }, ALL);
    assert!(text.contains("requests_per_s ratio") && text.contains("1.11 (0.61–2.00)"), "{text}");
    let (experiment, comparison) = experiment(Shape::Troubled);
    let text =
        render(&experiment, &comparison, &Style { color: false, width: Some(100), unicode: false }, ALL);
    assert!(text.is_ascii(), "{text}");
}

#[test]
fn nothing_a_user_wrote_becomes_markup() {
    let (experiment, comparison) = experiment(Shape::Troubled);
    let html = page(&experiment, &comparison);
    assert!(!html.contains(HOSTILE) && !html.contains("<script>document.title"));
    assert!(!html.contains("<script>alert") && !html.contains("</pre><script"));
    assert!(!html.contains('\u{1b}') && !html.contains('\u{202e}') && !html.contains('\0'));
    // The two scripts of the page itself: charts, and what draws them.
    assert_eq!(html.matches("<script").count(), 2);
    assert_eq!(html.matches("</script>").count(), 2);
}

#[test]
fn the_page_loads_nothing_outside_itself() {
    let (experiment, comparison) = experiment(Shape::Suite);
    let html = page(&experiment, &comparison);
    for needle in ["src=", "<link", "@import", "url(", "http-equiv=\"refresh\""] {
        assert!(!html.contains(needle), "{needle}");
    }
    assert!(html.contains("default-src 'none'"));
    assert!(html.len() < 1_800_000, "{} bytes", html.len());
}

#[test]
fn tables_carry_the_figures_of_the_charts() {
    for shape in Shape::ALL {
        let (experiment, comparison) = experiment(shape);
        let html = page(&experiment, &comparison);
        for table in &comparison.tables {
            for interval in
                table.rows.iter().flat_map(|r| r.figures.values()).filter_map(|f| f.ratio.as_ref())
            {
                let text = crate::format::interval(interval);
                let (ratio, rest) = text.split_once(' ').unwrap();
                assert!(html.contains(ratio) && html.contains(rest), "{shape:?} {text}");
            }
        }
        for (_, stack, reason) in &experiment.refused {
            assert!(html.contains(stack) && html.contains(reason));
        }
    }
}

#[test]
fn the_page_names_a_program_without_a_section_with_its_reason() {
    let (mut experiment, comparison) = experiment(Shape::Single);
    experiment.refused.push(("stat".into(), "glibc".into(), "statically linked".into()));
    let html = page(&experiment, &comparison);
    assert!(html.contains("stat is left out, refused under glibc: statically linked"));
}

#[test]
fn counters_are_shown_where_the_machine_has_them() {
    let shown = |shape| {
        let (experiment, comparison) = experiment(shape);
        let html = page(&experiment, &comparison);
        ["cycles 10⁹", "cache misses 10⁶", "TLB misses 10⁶"].map(|heading| html.contains(heading))
    };
    assert_eq!(shown(Shape::Suite), [true; 3]);
    assert_eq!(shown(Shape::Single), [false; 3]);
}

#[test]
fn an_experiment_without_a_row_is_still_a_page() {
    let (mut experiment, mut comparison) = experiment(Shape::Single);
    experiment.observations.clear();
    experiment.tracks.clear();
    comparison.tables[0].rows.clear();
    let html = page(&experiment, &comparison);
    assert!(html.contains("No row was measured"));
}

#[test]
fn collectors_in_fixed_heaps_are_curves_and_not_managers_of_their_own() {
    let (made, comparison) = heaps(Shape::Single);
    let text = render(&made, &comparison, &Style { color: false, width: None, unicode: true }, ALL);
    assert!(text.starts_with("cfrac under 3 memory managers"), "{text}");
    let lead = text.lines().find(|line| line.starts_with("jemalloc uses"));
    assert!(lead.is_some_and(|line| line.contains("times its smallest heap (")), "{text}");
    let summary = text.lines().find(|line| line.starts_with("Against glibc")).unwrap();
    assert!(summary.contains("mimalloc3") && !summary.contains("snmalloc"), "{summary}");
    let row = text.lines().find(|line| line.contains("1.5x") && line.contains("600")).unwrap_or_default();
    assert!(row.starts_with("jemalloc"), "{text}");
    let page = page(&made, &comparison);
    for title in ["At equal memory", "CPU over heap size", "CPU over memory", "Lower bound on overhead"] {
        assert!(page.contains(title), "{title}");
    }
    let (made, comparison) = heaps(Shape::Suite);
    let text = render(&made, &comparison, &Style { color: false, width: Some(60), unicode: true }, ALL);
    assert!(text.contains("at equal memory, means over"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
}

#[test]
fn a_varied_setting_is_a_curve_and_no_manager_of_its_own() {
    for (shape, title) in
        [(Shape::Single, "Over values of narenas"), (Shape::Suite, "overall: over values of narenas")]
    {
        let (mut made, _) = experiment(shape);
        for stack in &mut made.stacks {
            let at = if stack.name == "snmalloc" { 1 } else { 2 };
            let (manager, setting, value) = ("jemalloc".into(), "narenas".into(), at.to_string());
            stack.varied = ["snmalloc", "tcmalloc"].contains(&stack.name.as_str()).then_some(Varied {
                manager,
                setting,
                value,
                at,
            });
        }
        let comparison = heaptoll_experiment::compare::compare(&made);
        let text = render(&made, &comparison, &Style { color: false, width: None, unicode: true }, ALL);
        let lead = text.lines().find(|line| line.starts_with("jemalloc: narenas=2 "));
        assert!(lead.is_some() && text.contains(title), "{text}");
        let summary = text.lines().find(|line| line.starts_with("Against glibc")).unwrap_or_default();
        assert!(!summary.contains("snmalloc") && !summary.contains("tcmalloc"), "{summary}");
        let page = page(&made, &comparison);
        assert!(page.contains("Peak memory: ") && page.contains("the manager without it"), "{shape:?}");
    }
}

/// The table of means of an interrupted run had "no difference seen" next to 0.93 (0.93–0.94), and its chart a bright
/// mark.
#[test]
fn of_too_few_repetitions_no_table_sentence_or_chart_has_a_verdict() {
    let mut marks = 0;
    for repetitions in [1, 5] {
        let (mut made, _) = experiment(Shape::Suite);
        made.observations.retain(|row| row.repetition < repetitions);
        let comparison = heaptoll_experiment::compare::compare(&made);
        let shown = document(&made, &comparison, ALL);
        assert!(!shown.sections[0].text.join(" ").contains(format::NO_DIFFERENCE), "{repetitions}");
        let mut verdicts = Vec::new();
        for item in shown.sections.iter().flat_map(|section| &section.items) {
            match item {
                Item::Table(table) => {
                    let at = table.columns.iter().position(|column| column.title == "verdict");
                    let cells = at.map(|at| table.rows.iter().map(move |row| row[at].text.clone()));
                    verdicts.extend(cells.into_iter().flatten());
                }
                Item::Chart(chart) if chart.form == Form::Ratios => {
                    for series in &chart.series {
                        marks += series.points.len();
                        assert!(series.claimed.iter().all(|is_claimed| !is_claimed), "{series:?}");
                        assert!(series.labels.iter().all(|label| label.ends_with(format::TOO_FEW)));
                    }
                }
                _ => {}
            }
        }
        assert!(verdicts.iter().any(|verdict| verdict == format::TOO_FEW), "{verdicts:?}");
        let claims = |verdict: &&String| !["baseline", format::TOO_FEW].contains(&verdict.as_str());
        let claimed: Vec<&String> =
            verdicts.iter().filter(claims).filter(|one| !one.contains("failed")).collect();
        assert!(claimed.is_empty(), "{repetitions}: {claimed:?}");
    }
    assert!(marks > 0, "charts were looked at");
}
