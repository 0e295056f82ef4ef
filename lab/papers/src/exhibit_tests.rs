//! Exhibits of made-up figures, and whether every published number is on one.

use std::collections::BTreeSet;

use super::super::bundled::all;
use super::super::placed;
use super::super::testing::{cells, samples};
use super::*;
use heaptoll_facts::Value;
use heaptoll_laboratory::published;

/// Zorn's programs and managers, those of the paper that are run here by other names.
const ZORN: &str = r#"
name = "made"
title = "Made up"
source = "made up"
about = []
[names.programs]
yacr = "route"
"cfrac boehm_weiser" = "cfrac:gc"
[names.managers]
sunos = "cartesian"
bsd = "kingsley"
boehm_weiser = "bw16"
[names.missing]
ghostscript = "it is not installed anywhere"
knuth = "it is not built"
[[step]]
id = "t"
kind = "run"
programs = ["cfrac", "cfrac:gc", "gawk", "route", "lua"]
managers = ["cartesian", "kingsley", "bw16"]
"#;

fn zorn(more: &str) -> Study {
    Study::parse(
        &format!("{ZORN}\n[[exhibit]]\nid = \"x\"\ntitle = \"X\"\nstep = \"t\"\nmetric = \"cpu_s\"\n{more}"),
        "made.toml",
    )
    .unwrap_or_else(|fault| panic!("{fault}"))
}

const PUBLISHED: &str = "[exhibit.published]\nfile = \"zorn1992-table3-cpu-seconds.csv\"\nprogram = [\"program\"]\n\
                         manager = \"manager\"\nvalue = \"cpu_seconds\"";

fn timed() -> Figures {
    cells(
        "t",
        "cpu_s",
        &[
            ("cfrac", "cartesian", None, samples(1.0, 10, 1)),
            ("cfrac", "kingsley", None, samples(0.5, 10, 2)),
            ("gawk", "cartesian", None, samples(2.0, 10, 3)),
            ("gawk", "kingsley", None, samples(3.0, 10, 4)),
            ("cfrac:gc", "bw16", None, samples(0.8, 10, 5)),
        ],
    )
}

fn shown(study: &Study, figures: &Figures) -> Shown {
    show(
        study,
        &study.exhibits[0],
        figures,
        &BTreeMap::from([("t".into(), "heaptoll run".into())]),
        &Absent::default(),
    )
}

fn table(shown: &Shown) -> (&[String], BTreeMap<&str, &[Pair]>) {
    match &shown.body {
        Body::Table { columns, rows } => {
            (columns, rows.iter().map(|(name, pairs)| (name.as_str(), pairs.as_slice())).collect())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_table_has_the_published_value_with_ours_or_a_reason() {
    let shown = shown(
        &zorn(&format!("form = \"table\"\nunit = \"s\"\nrelative_to = \"cartesian\"\n{PUBLISHED}")),
        &timed(),
    );
    let (columns, rows) = table(&shown);
    assert_eq!(
        columns,
        ["program, s", "cartesian (sunos)", "kingsley (bsd)", "bw16 (boehm_weiser)", "gnu", "knuth"]
    );
    let cell =
        |row: &str, column: usize| rows.get(row).unwrap_or_else(|| panic!("{row}: {rows:?}"))[column].clone();
    let kingsley = cell("cfrac", 1);
    assert_eq!(kingsley.published, ["221.6"]);
    let ours = kingsley.ours.expect("measured");
    assert!((ours.value - 0.5).abs() < 0.01 && ours.interval.is_some() && !ours.exact);
    let (ratio, interval) = ours.ratio.expect("a ratio");
    assert!((ratio - 0.5).abs() < 0.01 && interval.is_some_and(|(low, high)| low < ratio && ratio < high));
    assert_eq!(cell("cfrac", 0).ours.and_then(|ours| ours.ratio), None, "of the base itself");
    // The collector's column is of another version of the program.
    assert_eq!(cell("cfrac", 2).published, Vec::<String>::new());
    assert_eq!(cell("cfrac:gc (cfrac)", 2).published, ["175.9"]);
    assert_eq!(cell("route (yacr)", 0).missing.as_deref(), Some("route was not run in this form"));
    assert_eq!(cell("route (yacr)", 0).published, ["91.6"]);
    assert_eq!(cell("ghostscript", 1).missing.as_deref(), Some("it is not installed anywhere"));
    assert_eq!(cell("gawk", 4).missing.as_deref(), Some("it is not built"));
    assert_eq!(cell("gawk", 3).missing.as_deref(), Some("nothing here stands for it"));
    assert_eq!(cell("perl", 0).missing.as_deref(), Some("nothing here stands for it"));
    assert_eq!(shown.commands, ["heaptoll run"]);
    assert_eq!(shown.notes[0], "Ratios are to cartesian.");
}

#[test]
fn every_row_is_as_long_as_the_heading_and_no_cell_is_empty_without_a_reason() {
    let shown = shown(&zorn(&format!("form = \"table\"\n{PUBLISHED}")), &timed());
    let (columns, rows) = table(&shown);
    for (name, pairs) in rows {
        assert_eq!(pairs.len() + 1, columns.len(), "{name}");
        assert!(pairs.iter().all(|pair| pair.ours.is_some() != pair.missing.is_some()), "{name}: {pairs:?}");
    }
}

#[test]
fn order_of_managers_is_compared_with_the_papers() {
    let mut figures = timed();
    figures.cells.extend(
        cells(
            "t",
            "cpu_s",
            &[("cfrac", "bw16", None, samples(3.0, 10, 1)), ("gawk", "bw16", None, samples(9.0, 10, 1))],
        )
        .cells,
    );
    let study = zorn(&format!("form = \"table\"\n{PUBLISHED}"));
    let notes = shown(&study, &figures).notes;
    // cfrac: sunos < bsd there, more here. gawk: bsd < sunos there, more here; bw over both there and here.
    assert!(
        notes[0].starts_with(
            "Of 4 pairs of managers on one program that the paper distinguishes, 2 have the same order"
        ),
        "{notes:?}"
    );
    assert_eq!(shown(&study, &Figures::default()).notes, Vec::<String>::new(), "nothing to compare");
}

#[test]
fn an_absent_step_or_cell_has_its_reason() {
    let study = zorn("form = \"table\"");
    let mut absent = Absent::default();
    absent.cell("t", "lua", None, "it is not installed");
    let one = show(&study, &study.exhibits[0], &timed(), &BTreeMap::new(), &absent);
    assert_eq!(table(&one).1["lua"][1].missing.as_deref(), Some("it is not installed"));
    absent.step("t", "there was no time for it");
    let none = show(&study, &study.exhibits[0], &Figures::default(), &BTreeMap::new(), &absent);
    assert_eq!(none.notes, ["Step t: there was no time for it."]);
    assert_eq!(table(&none).1["gawk"][1].missing.as_deref(), Some("there was no time for it"));
}

#[test]
fn ratios_to_another_variant_stand_in_place_of_values() {
    let text = "form = \"table\"\nprograms = [\"cfrac\", \"cfrac:gc\", \"gawk\"]\nmanagers = [\"cartesian\", \"kingsley\", \
                \"bw16\"]\nrelative_to = \"cartesian\"\nrelative_variant = \"gc\"\nas_ratio = true";
    let mut figures = timed();
    figures.cells.extend(cells("t", "cpu_s", &[("cfrac:gc", "cartesian", None, samples(0.5, 10, 6))]).cells);
    let shown = shown(&zorn(text), &figures);
    let (_, rows) = table(&shown);
    let value = |row: &str, column: usize| rows[row][column].ours.as_ref().map(|ours| ours.value);
    assert!(value("cfrac", 0).is_some_and(|ratio| (ratio - 2.0).abs() < 0.05), "{rows:?}");
    assert_eq!(value("cfrac:gc", 0), Some(1.0));
    assert!(value("cfrac:gc", 2).is_some_and(|ratio| (ratio - 1.6).abs() < 0.05));
    // gawk has no such variant: to itself.
    assert!(value("gawk", 1).is_some_and(|ratio| (ratio - 1.5).abs() < 0.05));
    assert!(
        rows["cfrac"][0].ours.as_ref().is_some_and(|ours| ours.interval.is_some() && ours.ratio.is_none())
    );
    assert_eq!(shown.notes[0], "Ratios are to cartesian with the gc program.");
}

#[test]
fn a_table_over_metrics_has_columns_and_rows_under_a_manager() {
    let text = "form = \"table\"\nprograms = [\"cfrac under kingsley\", \"gawk\"]\n[exhibit.published]\n\
                file = \"zorn1992-table2-programs.csv\"\nprogram = [\"program\"]\n\
                [[exhibit.columns]]\ntitle = \"lines\"\nmissing = \"not counted\"\npublished = \"lines_of_code\"\n\
                [[exhibit.columns]]\ntitle = \"ms\"\nmetric = \"cpu_s\"\nscale = 1000.0\npublished = \"exec_seconds\"\n\
                [[exhibit.columns]]\ntitle = \"MB/s\"\nmetric = \"heap_high_kib\"\nover = { metric = \"cpu_s\" }";
    let mut figures = timed();
    figures
        .cells
        .extend(cells("t", "heap_high_kib", &[("gawk", "cartesian", None, samples(100.0, 10, 1))]).cells);
    let shown = shown(&zorn(text), &figures);
    let (columns, rows) = table(&shown);
    assert_eq!(columns, ["program", "lines", "ms", "MB/s"]);
    let gawk = rows["gawk"];
    assert_eq!((gawk[0].published[0].as_str(), gawk[0].missing.as_deref()), ("8500", Some("not counted")));
    assert!(gawk[1].ours.as_ref().is_some_and(|ours| (ours.value - 2000.0).abs() < 20.0));
    assert!(gawk[2].ours.as_ref().is_some_and(|ours| (ours.value - 50.0).abs() < 1.0), "{gawk:?}");
    assert!(
        rows["cfrac under kingsley"][1].ours.as_ref().is_some_and(|ours| (ours.value - 500.0).abs() < 5.0)
    );
    assert_eq!(rows["route (yacr)"][1].published, ["92"]);
}

#[test]
fn bars_are_by_program_or_of_one_program_by_manager() {
    let all = shown(
        &zorn(&format!("form = \"bars\"\nrelative_to = \"cartesian\"\nas_ratio = true\n{PUBLISHED}")),
        &timed(),
    );
    let Body::Bars { y_title, places, series, .. } = &all.body else { panic!("{:?}", all.body) };
    assert_eq!((y_title.as_str(), places.len(), series.len()), ("ratio to cartesian", 8, 5));
    assert!(series.iter().all(|(_, pairs)| pairs.len() == places.len()));
    assert_eq!((series[1].0.as_str(), series[1].1[0].published[0].as_str()), ("kingsley (bsd)", "221.6"));
    let one = shown(&zorn("form = \"bars\"\nprogram = \"gawk\""), &timed());
    let Body::Bars { places, series, .. } = &one.body else { panic!("{:?}", one.body) };
    assert_eq!(places.as_slice(), ["cartesian", "kingsley", "bw16"]);
    assert_eq!((series.len(), series[0].0.as_str()), (1, "gawk"));
}

#[test]
fn lines_are_of_managers_over_places_in_their_order() {
    let mut study =
        zorn("form = \"lines\"\nprogram = \"gawk\"\nrelative_to = \"cartesian\"\nas_ratio = true");
    study.exhibits[0].metric = "page_faults".into();
    let exact = |program, manager, at, value| (program, manager, Some(at), Value::Exact(value));
    let figures = cells(
        "t",
        "page_faults",
        &[
            exact("gawk", "kingsley", 512.0, 30.0),
            exact("gawk", "kingsley", 128.0, 80.0),
            exact("gawk", "cartesian", 128.0, 40.0),
            exact("gawk", "cartesian", 512.0, 10.0),
        ],
    );
    let shown = shown(&study, &figures);
    let Body::Lines { series, .. } = &shown.body else { panic!("{:?}", shown.body) };
    assert_eq!(series.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["cartesian", "kingsley"]);
    let points: Vec<(f64, f64)> =
        series[1].1.iter().filter_map(|(at, pair)| Some((*at, pair.ours.as_ref()?.value))).collect();
    assert_eq!(points.len(), 2);
    assert!((points[0].0, points[1].0) == (128.0, 512.0), "{points:?}");
    assert!((points[0].1 - 2.0).abs() < 1e-9 && (points[1].1 - 3.0).abs() < 1e-9, "{points:?}");
    assert_eq!(shown.notes[1], "Without bw16: not run in this form.");
}

#[test]
fn lines_over_numbered_variants_are_one_a_program() {
    let mut study = zorn("form = \"lines\"");
    study.steps[0].programs = vec!["churn:1".into(), "churn:2".into(), "churn:10".into()];
    study.steps[0].managers.truncate(1);
    let figures = cells(
        "t",
        "cpu_s",
        &[
            ("churn:10", "cartesian", None, samples(5.0, 4, 1)),
            ("churn:2", "cartesian", None, samples(1.0, 4, 2)),
            ("churn:1", "cartesian", None, samples(0.5, 4, 3)),
        ],
    );
    let shown = shown(&study, &figures);
    let Body::Lines { series, .. } = &shown.body else { panic!("{:?}", shown.body) };
    assert_eq!((series.len(), series[0].0.as_str()), (1, "cartesian"));
    assert_eq!(series[0].1.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [1.0, 2.0, 10.0]);
}

#[test]
fn a_list_has_published_ranges_and_ours_as_percent() {
    let text = format!(
        "{ZORN}\n[[exhibit]]\nid = \"x\"\ntitle = \"X\"\nform = \"list\"\n[exhibit.published]\n\
         file = \"sareen2022-headline-results.csv\"\nprogram = [\"study\", \"quantity\"]\nvalue = \"value\"\n\
         [[exhibit.row]]\nwords = \"slower\"\nshown = \"percent\"\npublished = [\"proximity, the same, high end\", \
         \"background, the same, high end\"]\nours = {{ step = \"t\", metric = \"cpu_s\", programs = [\"gawk\"], \
         of = {{ managers = [\"kingsley\"] }}, over = {{ managers = [\"cartesian\"] }} }}\n\
         [[exhibit.row]]\nwords = \"none\"\nmissing = \"no copying collector is built\""
    );
    let study = Study::parse(&text, "made.toml").unwrap_or_else(|fault| panic!("{fault}"));
    let shown = shown(&study, &timed());
    let (_, rows) = table(&shown);
    let slower = &rows["slower, %"][0];
    assert_eq!(slower.published, ["10", "9"]);
    assert!(
        slower.ours.as_ref().is_some_and(|ours| (ours.value - 50.0).abs() < 1.0 && ours.interval.is_some())
    );
    assert_eq!(rows["none"][0].missing.as_deref(), Some("no copying collector is built"));
}

/// A mean of one program stood next to the paper's of a whole suite as if it were one.
#[test]
fn a_row_states_of_how_many_programs_its_mean_is() {
    let text = format!(
        "{ZORN}\n[[exhibit]]\nid = \"x\"\ntitle = \"X\"\nform = \"list\"\n[[exhibit.row]]\nwords = \"mean\"\n\
         ours = {{ step = \"t\", metric = \"cpu_s\", programs = [\"gawk\", \"lua\"], of = {{ managers = \
         [\"kingsley\"] }}, over = {{ managers = [\"cartesian\"] }} }}"
    );
    let study = Study::parse(&text, "made.toml").unwrap_or_else(|fault| panic!("{fault}"));
    let shown = shown(&study, &timed());
    assert!(table(&shown).1.contains_key("mean (here 1 of 2 programs)"), "{shown:?}");
}

/// Columns of numbers that name a line and are no values.
const KEYS: [&str; 5] =
    ["size_bytes", "every_bytes", "over_every_bytes", "programs_faster_by_more_than_percent", "collections"];

#[test]
fn every_published_number_is_on_an_exhibit() {
    let studies = all().unwrap_or_else(|fault| panic!("{fault}"));
    let mut shown = BTreeSet::new();
    for study in &studies {
        for exhibit in &study.exhibits {
            let covered = placed::covered(study, exhibit);
            let on_page = show(study, exhibit, &Figures::default(), &BTreeMap::new(), &Absent::default());
            assert_eq!(texts(&on_page.body), covered.len(), "{} {}", study.name, exhibit.id);
            shown.extend(covered);
        }
    }
    let mut absent = Vec::new();
    for table in published::all() {
        for (column, name) in table.columns.iter().enumerate() {
            let number = |text: &String| text.is_empty() || text.parse::<f64>().is_ok();
            if KEYS.contains(&name.as_str()) || !table.rows.iter().all(|row| number(&row[column])) {
                continue;
            }
            let lines = table.rows.iter().enumerate().filter(|(_, row)| !row[column].is_empty());
            absent.extend(
                lines.filter(|(line, _)| !shown.contains(&(table.name.to_owned(), *line, column))).map(
                    |(line, row)| format!("{} line {}: {name} of {}", table.name, line + 2, row.join(", ")),
                ),
            );
        }
    }
    assert!(absent.is_empty(), "{} published values are on no exhibit:\n{}", absent.len(), absent.join("\n"));
}

/// How many published values stand in an exhibit.
fn texts(body: &Body) -> usize {
    let of = |pairs: &[Pair]| pairs.iter().map(|pair| pair.published.len()).sum::<usize>();
    match body {
        Body::Table { rows, .. } => rows.iter().map(|(_, pairs)| of(pairs)).sum(),
        Body::Bars { series, .. } => series.iter().map(|(_, pairs)| of(pairs)).sum(),
        Body::Lines { .. } => 0,
    }
}

#[test]
fn a_column_has_ours_over_the_papers_and_an_exhibit_names_of_its_own() {
    let text = "form = \"table\"\nprograms = [\"lua\", \"gawk\", \"route\"]\n[exhibit.names]\nespresso = \"lua\"\n\
                [exhibit.published]\nfile = \"zorn1992-table2-programs.csv\"\nprogram = [\"program\"]\n\
                [[exhibit.columns]]\ntitle = \"s\"\nmetric = \"cpu_s\"\nmanager = \"kingsley\"\npublished = \"exec_seconds\"\n\
                [[exhibit.columns]]\ntitle = \"over\"\nmetric = \"cpu_s\"\nmanager = \"kingsley\"\npublished = \"exec_seconds\"\n\
                over_paper = true";
    let mut figures = Figures::default();
    let made: Vec<_> = [("lua", 474.0), ("gawk", 72.0)]
        .map(|(program, value)| (program, "kingsley", None, Value::Exact(value)))
        .to_vec();
    figures.cells.extend(cells("t", "cpu_s", &made).cells);
    let shown = shown(&zorn(text), &figures);
    let (_, rows) = table(&shown);
    // Published: espresso 237 s, gawk 144 s.
    let row = |name: &str| rows.iter().find(|(row, _)| row.starts_with(name)).expect("a row").1;
    assert_eq!(row("lua")[0].published, ["237"]);
    let over = |name: &str| row(name)[1].ours.as_ref().map(|ours| ours.value);
    assert_eq!((over("lua"), over("gawk"), over("route")), (Some(2.0), Some(0.5), None));
    assert!(row("lua")[1].published.is_empty() && row("route")[1].missing.is_some());
}
