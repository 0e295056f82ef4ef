//! Sections of made-up differences, in every form in which they are shown.

use heaptoll_profiles::Frame;
use heaptoll_report::document::Document;
use heaptoll_report::terminal::{Style, render_document};
use heaptoll_report::{html, markdown};

use super::*;
use crate::differences::Amounts;
use crate::figures::{Change, MetricVerdict};
use crate::stack_pair::PairBuilder;

fn function(name: &str) -> Part {
    Part { name: name.into(), object: "prog".into(), ..Part::default() }
}

fn of_functions(found: &Differences) -> Causes<'_> {
    Causes { functions: Some(found), ..Causes::default() }
}

fn stack(functions: &str) -> Part {
    let stack: Vec<String> = functions.split(" < ").map(str::to_owned).collect();
    Part { name: stack[..stack.len().min(3)].join(" < "), stack, ..Part::default() }
}

fn terminal(sections: Vec<Section>) -> String {
    let style = Style { color: false, width: None, unicode: true };
    render_document(&Document { sections, ..Document::default() }, &style)
}

#[test]
fn the_first_row_is_what_adds_most() {
    let found = Differences::new([
        (function("parse"), Amounts::Both(10_000_000, 10_100_000)),
        (function("main"), Amounts::Both(500, 600)),
        (function("print"), Amounts::Both(900, 100)),
        (function("added"), Amounts::New(50)),
    ]);
    let text = terminal(sections(of_functions(&found)));
    assert!(
        text.contains("The largest part is added by parse of prog: 100\u{202f}000 more instructions"),
        "{text}"
    );
    let page = "In the page (--html FILE), or here with the named option: functions that shrank and functions of one build only";
    assert!(text.contains(page), "{text}");
    let rows: Vec<&str> = text.lines().filter(|line| line.contains(" prog ")).collect();
    assert!(
        rows[0].starts_with("parse ") && rows[1].starts_with("main ") && rows[2].starts_with("added "),
        "{text}"
    );
    assert_eq!(
        first_function(&found, None).as_deref().map(|text| text.starts_with("parse of prog")),
        Some(true)
    );
}

/// Gates of real packages named `memcpy`, which no change of theirs had touched.
#[test]
fn of_a_library_the_caller_is_named_too() {
    let copy = |object: &str| Part { name: "memcpy".into(), object: object.into(), ..Part::default() };
    let found = |object| {
        Differences::new([(copy(object), Amounts::Both(1000, 9000)), (function("main"), Amounts::Both(5, 9))])
    };
    let library = Differences::new([
        (function("parse"), Amounts::Both(900, 8800)),
        (function("print"), Amounts::Both(100, 200)),
    ]);
    let of = found("libc.so");
    let text = terminal(sections(Causes { library: Some(&library), ..of_functions(&of) }));
    assert!(text.contains("Most additional library instructions are for parse of prog: 7900 more"), "{text}");
    assert!(text.contains("Instructions of the libraries of C and C++\n"), "{text}");
    let first = first_function(&of, Some(&library)).expect("named");
    assert!(
        first.starts_with("memcpy of libc.so: ") && first.contains("; most for parse of prog: "),
        "{first}"
    );
    let own = first_function(&found("libmine.so"), Some(&library)).expect("named");
    assert!(!own.contains("parse"), "{own}");
}

#[test]
fn nothing_is_named_where_nothing_differs() {
    let same = Differences::new([(function("main"), Amounts::Both(500, 500))]);
    let text = terminal(sections(of_functions(&same)));
    assert!(text.contains("500 instructions in both builds, the same in every function."), "{text}");
    // Before, "1 allocation calls".
    let one = Differences::new([(function("main"), Amounts::Both(1, 1))]);
    let text = terminal(sections(of_functions(&one)));
    assert!(text.contains("1 instruction in both builds, the same in every function."), "{text}");
    assert_eq!(first_function(&same, None), None);
    let moved =
        Differences::new([(function("a"), Amounts::Both(10, 15)), (function("b"), Amounts::Both(10, 5))]);
    assert!(terminal(sections(of_functions(&moved))).contains("but not in the same functions."));
}

#[test]
fn call_stacks_are_as_long_as_makes_them_unique() {
    let grows = |path: &str| (stack(path), Amounts::Both(0, 10));
    let live =
        Differences::new([grows("a < b < c < d < main"), grows("a < b < c < e < main"), grows("f < main")]);
    let sites = SiteDifferences { exit: live, ..SiteDifferences::default() };
    let text = terminal(sections(Causes { sites: Some(&sites), ..Causes::default() }));
    for name in ["a < b < c < d ", "a < b < c < e ", "f < main "] {
        assert!(text.contains(name), "{name}: {text}");
    }
    assert!(!text.contains("d < main"), "{text}");
    let causes = Causes { sites: Some(&sites), ..Causes::default() };
    assert_eq!(place(&causes, Metric::Live), None);
    assert!(
        place(&causes, Metric::Exit)
            .is_some_and(|first| first.starts_with("a < b < c: 10 B more never freed"))
    );
}

fn figures(metric: Metric, base: f64, new: f64) -> MetricFigures {
    MetricFigures {
        metric,
        unit: metric.unit(),
        base: Some(base),
        new: Some(new),
        change: Change::None,
        base_again: None,
        limit: None,
        verdict: MetricVerdict::Broken,
    }
}

/// Before, 585 instructions of 22 million were the cause of 9.7 % more CPU time.
#[test]
fn what_is_too_small_to_be_the_cause_is_not_named() {
    let functions = Differences::new([(function("grows"), Amounts::Both(1_000_000, 1_050_000))]);
    let sites = SiteDifferences {
        live: Differences::new([(stack("main"), Amounts::Both(0, 10 << 20))]),
        ..SiteDifferences::default()
    };
    let causes = Causes { functions: Some(&functions), sites: Some(&sites), ..Causes::default() };
    let is_named = |metric, base, new| cause(&causes, &figures(metric, base, new)).is_some();
    assert!(is_named(Metric::Instructions, 1e6, 1.05e6));
    assert!(is_named(Metric::Cpu, 1.0, 1.09) && !is_named(Metric::Cpu, 1.0, 1.11));
    let mib = |mib: u64| (mib << 20) as f64;
    assert!(is_named(Metric::Resident, mib(50), mib(70)) && !is_named(Metric::Resident, mib(50), mib(71)));
}

/// A gate runs builds whose symbols the author of a change chooses.
#[test]
fn names_of_the_program_change_neither_the_terminal_nor_a_page() {
    let name = "x\u{1b}[2J|`</td><script>alert(1)</script> @everyone\u{202e}\n# owned";
    let found = Differences::new([
        (function(name), Amounts::Both(1, 2)),
        (function(&format!("{name}2")), Amounts::Both(9, 2)),
        (function(&format!("{name}3")), Amounts::New(9)),
    ]);
    let sites = SiteDifferences {
        live: Differences::new([(stack(name), Amounts::Both(1, 200))]),
        warnings: vec![name.into()],
        ..SiteDifferences::default()
    };
    let mut pair = PairBuilder::new(vec![Measure::Instructions]);
    pair.add(&[Frame { function: name.into(), object: name.into(), ..Frame::default() }], &[1], &[2]);
    let stacks = pair.finish();
    let causes = Causes { sites: Some(&sites), function_stacks: Some(&stacks), ..of_functions(&found) };
    assert!(sections(causes)[0].items.iter().any(|item| matches!(item, Item::Flame(_))));
    let document = Document { sections: sections(causes), ..Document::default() };
    let style = Style { color: false, width: Some(80), unicode: true };
    let text = render_document(&document, &style);
    assert!(text.chars().all(|c| c == '\n' || !c.is_control() && c != '\u{202e}'), "{text}");
    let page = html::document::render(&document).expect("a page");
    assert!(!page.contains("<script>alert") && !page.contains('\u{1b}') && !page.contains("</td><script"));
    let comment = markdown::render(&document);
    assert!(!comment.lines().any(|line| line.starts_with("# owned")), "{comment}");
    let rows = comment.lines().filter(|line| line.starts_with("| ") && line.contains("alert"));
    for row in rows {
        // In a code span nothing but the bar has a meaning, and the span ends after the whole name.
        let cell = row.trim_start_matches("| ");
        let is_code = cell.starts_with("``");
        assert!(is_code || !cell.contains("<script>") || cell.contains("\\<script"), "{row}");
        assert!(is_code || !cell.contains("@everyone"), "{row}");
    }
}
