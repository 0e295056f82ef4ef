//! The page in a real browser: no error on its console, every chart drawn, nothing wider than the screen, in the light
//! and in the dark, on a phone and on a desktop.
//!
//! Needs Chromium. Where there is none the test prints a note and passes, except in continuous integration (`CI` is
//! set).

use std::path::Path;
use std::process::Command;

use crate::browser::chromium_or_note;
use heaptoll_report::document::{Axis, Chart, Column, Document, Form, Item, Part, Section, Series, Table};
use heaptoll_report::experiment::{Extras, document as of_experiment};
use heaptoll_report::html;
use heaptoll_report::testing::{HOSTILE, Shape, experiment, studies};
use serde_json::Value;

/// Inspects one page through four windows and writes the results into its own document. A window of its own cannot be
/// narrower than 500 pixels, so each is a frame.
const LOUPE: &str = r#"<!DOCTYPE html><meta charset="utf-8"><title>loupe</title><body><script>
const views = [["light", 390], ["dark", 390], ["light", 1280], ["dark", 1280]];
const frames = views.map(([theme, width]) => {
  const frame = document.createElement("iframe");
  frame.style.cssText = `border:0;display:block;height:900px;width:${width}px;color-scheme:${theme}`;
  frame.src = "page.html";
  document.body.append(frame);
  return frame;
});
function inspect(frame, [theme, width]) {
  const inner = frame.contentDocument, root = inner.documentElement, style = frame.contentWindow.getComputedStyle;
  const charts = [...inner.querySelectorAll(".chart")];
  const marks = (chart) => chart.querySelectorAll("svg .mark").length;
  // What the reader sees who points at the lower left of the first mark.
  const note = (chart) => {
    const { left: clientX, bottom: clientY } = chart.querySelector(".mark").getBoundingClientRect();
    chart.dispatchEvent(new frame.contentWindow.PointerEvent("pointermove", { clientX, clientY }));
    const tip = chart.querySelector(".tip");
    return tip.hidden ? "" : [...tip.children].map((line) => line.textContent).join("|");
  };
  return {
    theme, width,
    notes: charts.map(note),
    title: inner.title,
    charts: charts.length,
    empty: charts.filter((chart) => marks(chart) === 0).map((chart) => chart.id),
    tooWide: charts.filter((chart) => chart.querySelector("svg")?.getBoundingClientRect().width > width).map((c) => c.id),
    overflow: root.scrollWidth - root.clientWidth,
    paper: style.call(frame.contentWindow, inner.body).backgroundColor,
    ticks: [...new Set([...inner.querySelectorAll("svg .xtick")].map((text) => style.call(frame.contentWindow, text).fill))],
    alert: !inner.getElementById("no-charts").hidden,
    broken: charts.filter((chart) => /NaN|undefined|null|Infinity/.test(chart.querySelector("svg").innerHTML)).map((c) => c.id),
  };
}
(async () => {
  for (const frame of frames) {
    while (frame.contentDocument?.documentElement?.dataset.charts !== "drawn"
      && frame.contentDocument?.getElementById("no-charts")?.hidden !== false) {
      await new Promise((done) => setTimeout(done, 50));
    }
  }
  const found = frames.map((frame, index) => inspect(frame, views[index]));
  frames.forEach((frame) => frame.remove());
  const result = document.createElement("pre");
  result.id = "found";
  result.textContent = JSON.stringify(found).replaceAll("<", "\\u003c").replaceAll("&", "\\u0026");
  document.body.append(result);
})();
</script>"#;

/// What the loupe found, and every line of the browser's console.
fn inspect(browser: &Path, page: &str) -> (Vec<Value>, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("page.html"), page).unwrap();
    std::fs::write(folder.path().join("loupe.html"), LOUPE).unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args([
            "--disable-dev-shm-usage",
            "--allow-file-access-from-files",
            "--enable-logging=stderr",
            "--v=0",
        ])
        .args(["--virtual-time-budget=120000", "--window-size=1400,1000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg(format!("file://{}", folder.path().join("loupe.html").display()))
        .output()
        .unwrap();
    let (dom, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let console = log.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect();
    let found = dom.split_once("<pre id=\"found\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let found = found.unwrap_or_else(|| panic!("the charts were not drawn in time\n{log}"));
    (serde_json::from_str(found.0).unwrap(), console)
}

fn check(shape: Shape) {
    let Some(browser) = chromium_or_note() else { return };
    let (experiment, comparison) = experiment(shape);
    let page = html::document::render(&of_experiment(&experiment, &comparison, Extras::default())).unwrap();
    let (views, console) = inspect(&browser, &page);
    assert!(console.is_empty(), "{shape:?}: {console:#?}");
    assert_eq!(views.len(), 4);
    let expected = 5 * comparison.tables.len() + if comparison.overall.is_empty() { 0 } else { 2 };
    for view in views {
        check_view(&view, expected);
    }
}

/// What must hold of every page in every window.
fn check_view(view: &Value, charts: usize) {
    assert_eq!(view["charts"], charts, "{view}");
    assert_eq!(view["empty"], serde_json::json!([]), "{view}");
    assert_eq!(view["tooWide"], serde_json::json!([]), "{view}");
    assert_eq!(view["broken"], serde_json::json!([]), "{view}");
    assert_eq!(view["overflow"], 0, "{view}");
    assert_eq!(view["alert"], false, "{view}");
    let (paper, ink) = match view["theme"].as_str() {
        Some("dark") => ("rgb(20, 23, 27)", "rgb(230, 233, 236)"),
        _ => ("rgb(255, 255, 255)", "rgb(28, 32, 36)"),
    };
    assert_eq!(view["paper"], paper, "{view}");
    assert_eq!(view["ticks"], serde_json::json!([ink]), "{view}");
    let title = view["title"].as_str().unwrap();
    assert!(title.ends_with("· heaptoll"), "{title}");
}

/// A document with a chart of each form and a wide table.
fn document() -> Document {
    let axis = |title: &str, log| Axis { title: title.into(), log, names: vec![] };
    let series = |name: &str, slope: f64| Series {
        name: name.into(),
        points: (1..200).map(|x| (f64::from(x), 50.0 + slope * f64::from(x))).collect(),
        ..Series::default()
    };
    let charts = [Form::Lines, Form::Steps, Form::Stacked, Form::Bars].map(|form| {
        Item::Chart(Chart {
            title: format!("{form:?}"),
            caption: "How to read it.".into(),
            form,
            x: axis("byte clock, MiB", form == Form::Lines),
            y: axis("share", false),
            series: vec![series("all of them, with a long name", 1.0), series("<img src=x>", 0.5)],
        })
    });
    let table = Table::of([(); 3])
        .caption("figures")
        .text("column 0", |_| "0,000,000,000")
        .each(
            1..12,
            |place| Column::figures(&format!("column {place}")),
            |_, place| format!("{place},000,000,000"),
        )
        .note("A note.")
        .table();
    Document {
        title: HOSTILE.into(),
        // A path is one word, and wider than a small screen.
        warnings: vec!["The trace was cut off.".into(), format!("/a/{}/b is gone", "long".repeat(60))],
        sections: vec![Section {
            title: "One".into(),
            text: vec!["A sentence.".into()],
            items: charts.into_iter().chain([Item::Table(table)]).collect(),
        }],
        facts: vec![("machine".into(), "two cores".into())],
        command: "heaptoll trace stat x".into(),
        ..Document::default()
    }
}

#[test]
fn a_document() {
    let Some(browser) = chromium_or_note() else { return };
    let page = html::document::render(&document()).unwrap();
    let (views, console) = inspect(&browser, &page);
    assert!(console.is_empty(), "{console:#?}");
    assert_eq!(views.len(), 4);
    let near = "all of them, with a long name|1: 51";
    for view in views {
        check_view(&view, 4);
        let notes = [near, near, "1|<img src=x&gt;: 50.5|all of them, with a long name: 51", near];
        assert_eq!(view["notes"], serde_json::json!(notes), "{view}");
    }
}

#[test]
#[ignore = "slow: starts Chromium; a page with a chart of each form is in the fast tests"]
fn of_studies() {
    let Some(browser) = chromium_or_note() else { return };
    let page = html::document::render(&studies()).unwrap();
    let (views, console) = inspect(&browser, &page);
    assert!(console.is_empty(), "{console:#?}");
    for view in views {
        check_view(&view, 8);
    }
}

/// Pictures that were taken as soon as the page was loaded had empty charts: they were drawn in the background.
#[test]
fn charts_in_sight_are_drawn_when_the_page_counts_as_loaded() {
    let Some(browser) = chromium_or_note() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let counted = "<script>addEventListener('load', () => {
      const seen = [...document.querySelectorAll('.chart')].filter((chart) => chart.getBoundingClientRect().top < innerHeight);
      const drawn = seen.filter((chart) => chart.querySelector('svg .mark'));
      console.log(`LOADED ${drawn.length} of ${seen.length}.`);
    });</script></body>";
    std::fs::write(&page, html::document::render(&document()).unwrap().replace("</body>", counted)).unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage"])
        .args(["--disable-background-networking", "--enable-logging=stderr", "--v=0", "--dump-dom"])
        .arg("--window-size=1000,1200")
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    let loaded = log.lines().find_map(|line| line.split_once("LOADED ")?.1.split('.').next());
    let (drawn, seen) =
        loaded.and_then(|counts| counts.split_once(" of ")).unwrap_or_else(|| panic!("{log}"));
    assert!(drawn == seen && seen != "0", "{drawn} of {seen}");
}

/// Sorts and filters a table as a reader without a mouse does, and follows a link to what is folded.
const READER: &str = r##"<script>addEventListener("load", () => {
  const table = document.querySelector("table.sortable"), names = () => [...table.tBodies[0].rows].filter((row) => !row.hidden).map((row) => row.cells[0].textContent);
  const found = { written: names() };
  const heading = table.tHead.rows[0].cells[1], button = heading.querySelector("button");
  button.focus();
  found.focused = document.activeElement === button;
  found.sorted = ["", "", ""].map(() => { button.click(); return [heading.getAttribute("aria-sort"), names().join()]; });
  const filter = document.querySelector(".filter input");
  filter.value = "KIB";
  filter.dispatchEvent(new Event("input"));
  found.filtered = [names().join(), document.querySelector(".filter output").textContent];
  found.boxes = [...document.querySelectorAll(".scroll")].every((box) => box.tabIndex === 0 && box.getAttribute("aria-label"));
  found.folded = document.querySelector("details").open;
  location.hash = "#inside";
  setTimeout(() => {
    found.unfolded = document.querySelector("details").open;
    const result = document.createElement("pre");
    result.id = "found";
    result.textContent = JSON.stringify(found);
    document.body.append(result);
  }, 200);
});</script></body>"##;

#[test]
fn tables_sort_and_filter_by_the_keyboard_and_links_unfold() {
    let Some(browser) = chromium_or_note() else { return };
    let sizes = ["1.5 MiB", "900 KiB", "–", "1,200", "\u{2212}3", "2 GiB", "1 KiB", "7"];
    let table = Table::of(sizes.iter().enumerate())
        .text("name", |(at, _)| format!("r{at}"))
        .figure("bytes", |(_, size)| **size)
        .table();
    let inner = Part { id: "inside".into(), title: "Inside".into(), ..Part::default() };
    let outer =
        Part { items: vec![Item::Part(inner)], folded: true, title: "More".into(), ..Part::default() };
    let section = Section { items: vec![Item::Table(table), Item::Part(outer)], ..Section::default() };
    let document = Document { sections: vec![section], ..Document::default() };
    let page = html::document::render(&document).unwrap().replace("</body>", READER);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("page.html"), page).unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage"])
        .args(["--disable-background-networking", "--virtual-time-budget=60000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg(format!("file://{}", folder.path().join("page.html").display()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    let found =
        dom.split_once("<pre id=\"found\">").and_then(|(_, rest)| rest.split_once("</pre>")).unwrap().0;
    let found: Value = serde_json::from_str(found).unwrap();
    assert_eq!(found["focused"], true, "{found}");
    let orders = serde_json::json!([
        ["descending", "r5,r0,r1,r3,r6,r7,r4,r2"],
        ["ascending", "r4,r7,r6,r3,r1,r0,r5,r2"],
        ["none", "r0,r1,r2,r3,r4,r5,r6,r7"],
    ]);
    assert_eq!(found["sorted"], orders);
    assert_eq!(found["filtered"], serde_json::json!(["r1,r6", "2 of 8"]));
    assert_eq!(
        (&found["boxes"], &found["folded"], &found["unfolded"]),
        (&true.into(), &false.into(), &true.into())
    );
}

/// Nothing of a page is folded away or cut on paper.
#[test]
#[ignore = "slow: starts Chromium; a page with a chart of each form is in the fast tests"]
fn studies_on_paper() {
    let Some(browser) = chromium_or_note() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (page, printed) = (folder.path().join("page.html"), folder.path().join("page.pdf"));
    let opened = "<script>addEventListener('beforeprint', () => console.log('FOLDED ' + document.querySelectorAll('details:not([open])').length));</script></body>";
    std::fs::write(&page, html::document::render(&studies()).unwrap().replace("</body>", opened)).unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage"])
        .args(["--disable-background-networking", "--enable-logging=stderr", "--v=0"])
        .args(["--virtual-time-budget=60000", "--no-pdf-header-footer"])
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg(format!("--print-to-pdf={}", printed.display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    let console: Vec<&str> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(printed.metadata().is_ok_and(|file| file.len() > 50_000), "{log}");
    assert!(console.iter().all(|line| line.contains("FOLDED 0\"")), "{console:#?}");
    assert!(!console.is_empty(), "{log}");
}

#[test]
#[ignore = "slow: starts Chromium; a page with a chart of each form is in the fast tests"]
fn one_program() {
    check(Shape::Single);
}

#[test]
#[ignore = "slow: starts Chromium; a page with a chart of each form is in the fast tests"]
fn twelve_programs() {
    check(Shape::Suite);
}

#[test]
#[ignore = "slow: starts Chromium; a page with a chart of each form is in the fast tests"]
fn hostile_names_stay_text() {
    assert!(HOSTILE.contains("document.title='owned'"));
    check(Shape::Troubled);
}
