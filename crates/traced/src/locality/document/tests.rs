//! Documents of made-up runs: rows and columns fit, sums are shown as sums, and doubts are reported.

use heaptoll_locality::image::{ImageResult, ImageSimulator, Plan};
use heaptoll_locality::machine::Machine;
use heaptoll_locality::simulation::{Sampling, Settings};
use heaptoll_locality::study::{RunInfo, StudyOptions, study};
use heaptoll_reftrace::{Owner, Reference, Sink};
use heaptoll_report::document::{Chart, Item, Section, Table};

use super::super::figures::SamplingFigures;
use super::*;

const SIZES: [u64; 3] = [16 << 10, 64 << 10, 1 << 20];

/// The program goes round over words that lie `apart`; its allocator walks over as many bytes in between.
fn simulated(apart: u64, own: u64, sampling: Option<Sampling>) -> ImageResult {
    let settings = Settings { sampling, ..Settings::default() };
    let machine: Machine = "32K/8,1M/16".parse().expect("a machine");
    let mut simulator = ImageSimulator::new(&Plan::new(settings, machine, true).expect("a plan"));
    let walk = |from: u64, words: u64, apart: u64| -> Vec<Reference> {
        (0..words).map(|word| Reference::new(from + word * apart, 8, false)).collect()
    };
    for _ in 0..8 {
        simulator.references(Owner::Program, &walk(1 << 20, 1 << 12, apart));
        simulator.references(Owner::Allocator, &walk(1 << 30, own / 8, 8));
    }
    simulator.finish()
}

fn figures(runs: Vec<(&str, ImageResult)>, sampling: Option<Sampling>) -> ExactLocalityFigures {
    let machine: Machine = "32K/8,1M/16".parse().expect("a machine");
    let about = |name: &str| RunInfo { manager: name.into(), images: 1, ..RunInfo::default() };
    let runs: Vec<(RunInfo, ImageResult)> =
        runs.into_iter().map(|(name, simulated)| (about(name), simulated)).collect();
    let wanted = StudyOptions { caches: SIZES.to_vec(), ..StudyOptions::default() };
    ExactLocalityFigures {
        complete: true,
        pinned: true,
        machine_origin: "as given".into(),
        baseline: "glibc".into(),
        programs: vec![Program {
            program: "gawk".into(),
            command: vec!["gawk".into(), "{ n++ }".into()],
            sampling: sampling.map(SamplingFigures::of),
            study: study(&machine, &runs, &wanted).expect("runs"),
        }],
    }
}

fn shown_document(figures: &ExactLocalityFigures) -> Document {
    document(figures, &SIZES)
}

fn tables(section: &Section) -> impl Iterator<Item = &Table> {
    section.items.iter().filter_map(|item| match item {
        Item::Table(table) => Some(table),
        _ => None,
    })
}

fn charts(document: &Document) -> Vec<&Chart> {
    let items = document.sections.iter().flat_map(|section| &section.items);
    items
        .filter_map(|item| match item {
            Item::Chart(chart) => Some(chart),
            _ => None,
        })
        .collect()
}

fn number(cell: &str) -> f64 {
    cell.replace('\u{2212}', "-").replace(['+', '\u{202f}'], "").parse().expect(cell)
}

#[test]
fn every_table_has_rows_and_every_section_its_charts() {
    let shown_document = shown_document(&figures(
        vec![("glibc", simulated(8, 1 << 12, None)), ("wide", simulated(64, 1 << 14, None))],
        None,
    ));
    assert!(shown_document.warnings.is_empty(), "{:?}", shown_document.warnings);
    for table in shown_document.sections.iter().flat_map(tables) {
        assert!(!table.rows.is_empty(), "{}", table.caption);
    }
    let titles: Vec<&str> = charts(&shown_document).iter().map(|chart| chart.title.as_str()).collect();
    for title in [
        "direct-mapped",
        "Page faults",
        "Why the misses of wide differ",
        "Whose misses they are under wide",
        "Working set",
    ] {
        assert!(titles.iter().any(|other| other.contains(title)), "{title}: {titles:?}");
    }
}

#[test]
fn causes_are_shown_as_a_sum() {
    let figures =
        figures(vec![("glibc", simulated(8, 1 << 12, None)), ("wide", simulated(64, 1 << 14, None))], None);
    let shown_document = shown_document(&figures);
    let section =
        shown_document.sections.iter().find(|one| one.title.starts_with("Placement")).expect("there");
    let table = tables(section).next().expect("of the first level");
    assert!(table.caption.starts_with("32K/8"));
    let [baseline, wide] = &table.rows[..] else { panic!("two rows") };
    assert_eq!(baseline[2], "baseline");
    // Words a line apart: all 4096 miss in each round. Side by side they are 512 lines, which miss once.
    assert!((number(&wide[3].text) - 984.4).abs() < 1.0, "{wide:?}");
    for row in [baseline, wide] {
        let parts: f64 = row[3..].iter().map(|cell| number(&cell.text)).sum();
        let whole = if row[2] == "baseline" { &row[1] } else { &row[2] };
        assert!((parts - number(&whole.text)).abs() < 2.0, "{row:?}");
    }
    assert!(
        section
            .text
            .iter()
            .any(|words| words.starts_with("wide: an estimated") && words.contains("where it puts"))
    );
    let exact = figures.programs[0].study.rows[1].placement.as_ref().expect("a placement");
    for cause in exact.machine.iter().chain(&exact.caches).chain([&exact.stall_cycles]) {
        assert_eq!(cause.parts.total(), cause.misses as i64, "{}", cause.cache);
    }
}

#[test]
fn one_manager_has_no_placement_but_all_else() {
    let shown_document = shown_document(&figures(vec![("glibc", simulated(8, 1 << 12, None))], None));
    assert!(shown_document.sections.iter().all(|section| !section.title.starts_with("Placement")));
    assert!(shown_document.subtitle.contains("'{ n++ }', under glibc"), "{}", shown_document.subtitle);
    assert!(charts(&shown_document).iter().any(|chart| chart.title.contains("fully associative")));
}

#[test]
fn other_work_and_cut_runs_are_reported() {
    let mut figures = figures(vec![("glibc", simulated(8, 64, None)), ("x", simulated(8, 64, None))], None);
    figures.programs[0].study.rows[1].other_work = Some(-0.25);
    figures.programs[0].study.rows[1].about.cut_short = Some("it was killed".into());
    figures.programs[0].study.rows[0].about.warnings = vec!["a caution".into()];
    figures.complete = false;
    let warnings = shown_document(&figures).warnings.join("\n");
    for words in [
        "interrupted",
        "glibc: a caution",
        "x: it was killed",
        "x: from main on, the program made 25.0 % fewer",
    ] {
        assert!(warnings.contains(words), "{words}: {warnings}");
    }
}

#[test]
fn what_is_estimated_has_its_interval() {
    let sampling = Some(Sampling { exact_lines: 1024, ..Sampling::default() });
    let figures = figures(vec![("glibc", simulated(64, 1 << 12, sampling))], sampling);
    let shown_document = shown_document(&figures);
    let section = shown_document.sections.iter().find(|one| one.title.starts_with("Fully")).expect("there");
    let table = tables(section).next().expect("a table");
    // 4096 lines: what has 16K and 64K is counted, what has 1M holds all and is known.
    assert!(
        !table.rows[0][1].text.contains('±') && !table.rows[0][2].text.contains('±'),
        "{:?}",
        table.rows[0]
    );
    assert!(table.notes.iter().any(|note| note.contains("Up to 64K") && note.contains("95 %")));
    assert!(
        shown_document.facts.iter().any(|(name, text)| name == "sampling" && text.contains("one line in 16"))
    );
}
