//! One experiment as text: a head line, one table a program, what was refused, and the geometric means.

mod collections;
mod extras;
mod figures;
mod load;
mod lower_bounds;
mod overall;
mod program;

use heaptoll_experiment::comparison::Comparison;
use heaptoll_experiment::experiment::Experiment;

use super::style::{Style, Tone};
use crate::format::{self, plural};

pub use extras::Extras;
pub(crate) use overall::overall_verdict;

/// The whole experiment as text: one table a program, then the geometric means over programs; with `extras` what else
/// there is.
pub fn render(experiment: &Experiment, comparison: &Comparison, style: &Style, extras: Extras) -> String {
    let mut out = head(experiment, style);
    for table in &comparison.tables {
        out.push('\n');
        out.push_str(&program::program(experiment, comparison, table, style, extras));
    }
    let left_out = format::left_out(experiment);
    if !left_out.is_empty() {
        out.push('\n');
    }
    for text in left_out {
        out.push_str(&style.paragraph("!", &text, Tone::Bad));
    }
    if !comparison.overall.is_empty() {
        out.push('\n');
        out.push_str(&overall::overall(comparison, style));
    }
    if extras.bounds && !comparison.lower_bounds.overall.is_empty() {
        out.push('\n');
        out.push_str(&lower_bounds::overall_bounds(comparison, style));
    }
    out.push('\n');
    out.push_str(&style.paragraph("", &how_to_read(comparison), Tone::Dim));
    if let Some(text) = extras::available_on_request(comparison, extras) {
        out.push_str(&style.paragraph("", &text, Tone::Dim));
    }
    for text in extras::requested_but_absent(comparison, extras) {
        out.push_str(&style.paragraph("", text, Tone::Dim));
    }
    out
}

/// What was done, where and when.
fn head(experiment: &Experiment, style: &Style) -> String {
    let machine = &experiment.machine;
    let settings = &experiment.settings;
    let thp = if settings.thp.is_empty() { &machine.thp } else { &settings.thp };
    let mut out = style.paragraph(
        "",
        &format!(
            "heaptoll {} · {} · {} after {} warm-up · seed {}",
            experiment.heaptoll_version,
            format::date(experiment.created_unix_s),
            plural(settings.repetitions as usize, "repetition"),
            settings.warmup,
            settings.seed
        ),
        Tone::Bold,
    );
    let place = format!(
        "{}, {}, {} MiB · {}, Linux {}, glibc {} · THP {thp} · load {:.2}",
        machine.cpu,
        plural(machine.cores as usize, "core"),
        format::mib_from_kib(machine.memory_kib as f64),
        machine.distribution,
        machine.kernel,
        machine.libc,
        machine.load[0]
    );
    out.push_str(&style.paragraph("", &place, Tone::Dim));
    if let Some(why) = &machine.no_hardware_counters {
        out.push_str(&style.paragraph("", &format!("no hardware counters: {why}"), Tone::Dim));
    }
    if let Some((seconds, kib)) = experiment.own_cost {
        let text = format!("own cost: {} an invocation", format::own_cost(seconds, kib));
        out.push_str(&style.paragraph("", &text, Tone::Dim));
    }
    if !experiment.complete {
        let rows = plural(experiment.observations.len(), "row");
        let text = format!("incomplete: interrupted or still running; {rows} so far, shown below");
        out.push_str(&style.paragraph("!", &text, Tone::Bad));
    }
    out
}

fn how_to_read(comparison: &Comparison) -> String {
    format!(
        "Ratios are to {}, paired within a repetition, in brackets their interval: all intervals of a table hold \
         together in {} % of experiments. Where one holds 1, no difference was seen. CPU is user + system seconds less \
         start-up; RSS is the peak.",
        comparison.baseline,
        format::significant((1.0 - comparison.alpha) * 100.0).trim_end_matches('0').trim_end_matches('.'),
    )
}

#[cfg(test)]
mod tests {
    use heaptoll_experiment::comparison::Metric;
    use heaptoll_statistics::Interval;

    use super::*;
    use crate::testing::{HOSTILE, Shape, experiment};

    const ALL: Extras = Extras { bounds: true, collections: true };

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
        assert!(text.contains("no difference was seen"), "{text}");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for shape in Shape::ALL {
            for width in [30, 40, 60, 72, 80, 100, 120, 200] {
                let text = shown(shape, Some(width));
                for line in text.lines() {
                    assert!(
                        line.chars().count() <= usize::from(width),
                        "{shape:?} {width}: {line:?}\n{text}"
                    );
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
            let broken = text.lines().any(|line| line.trim_end().ends_with(['–', '.']) && line.contains('('));
            assert!(!broken || width < 60, "{width}: {text}");
        }
    }

    #[test]
    fn trouble_is_marked_and_explained() {
        let text = shown(Shape::Troubled, Some(110));
        for needle in [
            "incomplete",
            "! snmalloc",
            "2x killed by signal 11",
            "it wrote: </pre>",
            "! tcmalloc",
            "5x wrong output",
            "./libnothing.so refused: exports no malloc",
            "the manager does not reach it",
            "5 pairs at most",
            "THP never",
        ] {
            assert!(text.contains(needle), "{needle}: {text}");
        }
        assert!(
            !text.contains('\x1b') && !text.contains('\u{202e}') && text.contains("\\u{1b}[31m"),
            "{text}"
        );
        assert!(HOSTILE.contains('\x1b'));
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
                .split("lower bound")
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
        assert!(!text.contains("garbage collections  "), "{text}");
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
        assert!(bounds.contains("nothing is taken out, for there are no exact counts"), "{bounds}");
        let narrow = shown(Shape::Single, Some(50)).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(narrow.contains("lower bound under glibc: time"), "{narrow}");
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
                has("pauses ms longest ms"),
                has("lower bound of overhead"),
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
        assert!(shown(Shape::Server, None).contains("requests_per_s"));
        let (experiment, comparison) = experiment(Shape::Troubled);
        let text =
            render(&experiment, &comparison, &Style { color: false, width: Some(100), unicode: false }, ALL);
        assert!(text.is_ascii(), "{text}");
    }
}
