//! Flame graphs in a real browser: what the page's script reads, what keys, search and filter show, on a phone and on a
//! desktop.
//!
//! Needs Chromium; see `page_in_browser.rs`.

use std::path::Path;
use std::time::Instant;

use crate::browser::chromium_or_note;
use heaptoll_profiles::{Builder, Frame, Measure, Profile};
use heaptoll_report::document::{Document, Flame, FlameBase, Item, Section};
use heaptoll_report::html;
use serde_json::{Value, json};

const MEASURES: [Measure; 2] = [Measure::AllocatedObjects, Measure::AllocatedBytes];

fn page(profile: Profile) -> String {
    page_of(profile, None)
}

/// A page that compares a profile with a base, where there is one.
fn page_of(profile: Profile, base: Option<Profile>) -> String {
    let names = || ["before <b>".to_owned(), "after".to_owned()];
    let flame = Flame {
        title: "Who allocates".into(),
        caption: "Requested bytes.".into(),
        profile,
        first: Measure::AllocatedBytes,
        base: base.map(|profile| Box::new(FlameBase { profile, names: names() })),
    };
    let section = Section { title: "Stacks".into(), items: vec![Item::Flame(flame)], ..Section::default() };
    html::document::render(&Document { title: "t".into(), sections: vec![section], ..Document::default() })
        .unwrap()
}

/// A profile of stacks, innermost function first; those with a colon have an object file before it.
fn profile(stacks: &[(&[&str], [u64; 2])]) -> Profile {
    let mut builder = Builder::new(MEASURES.to_vec());
    for (stack, values) in stacks {
        let frames: Vec<u32> = stack.iter().map(|name| builder.frame(frame(name))).collect();
        builder.stack(&frames, values);
    }
    builder.finish()
}

fn frame(name: &str) -> Frame {
    let (object, function) = name.split_once(": ").unwrap_or(("/usr/bin/a", name));
    // `f@12` is called, or calls, in line 12.
    let (function, line) = match function.rsplit_once('@').map(|(name, line)| (name, line.parse())) {
        Some((name, Ok(line))) => (name, line),
        _ => (function, 0),
    };
    Frame { function: function.into(), object: object.into(), file: "a.c".into(), line, ..Frame::default() }
}

/// What flame graphs offer to a script of a test.
const PRELUDE: &str = r#"
  const figure = document.querySelector("figure.flame"), flame = figure.flame, part = (name) => figure.querySelector(`[data-part="${name}"]`);
  const key = (name) => part("view").dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
  const status = () => [...part("status").children].map((one) => one.textContent);
  const set = (name, value) => { part(name)[typeof value === "boolean" ? "checked" : "value"] = value; part(name).dispatchEvent(new Event(["measure", "side"].includes(name) ? "change" : "input")); };
"#;

/// What a script in the page found, whose body fills `found`, and every line of the browser's console.
fn drive(browser: &Path, page: &str, script: &str, width: u32) -> (Value, Vec<String>) {
    crate::driven::drive(browser, page, &format!("{PRELUDE}{script}"), width)
}

#[test]
#[ignore = "slow: starts Chromium; keys that move and zoom are in the fast tests"]
fn the_script_reads_names_and_64_bits() {
    let Some(browser) = chromium_or_note() else { return };
    let most = (1_u64 << 63) + 12_345;
    let stacks: &[(&[&str], [u64; 2])] = &[
        (&["a;b", "two\nlines", "</script><img src=x onerror=alert(1)>"], [1, most]),
        (
            &["\"quoted' &amp;", "two\nlines", "</script><img src=x onerror=alert(1)>"],
            [200, 9_007_199_254_740_993],
        ),
        (&[], [3, 0]),
    ];
    let script = r#"
      const { calls } = flame, path = (call) => call === 0 ? [] : [...path(calls.parents[call]), calls.functions[calls.functionOf[call]].name];
      found.own = Array.from({ length: calls.count }, (_, call) => [path(call).join(" / "), ...calls.measures.map((one) => one.own[call])]).filter(([, ...own]) => own.some((one) => one > 0n));
      found.all = status();
      key("ArrowDown"), key("ArrowDown"), key("ArrowDown");
      found.innermost = status();
      found.images = document.querySelectorAll("img").length;
    "#;
    let (found, console) = drive(&browser, &page(profile(stacks)), script, 1280);
    assert!(console.is_empty(), "{console:#?}");
    let outer = "</script><img src=x onerror=alert(1)> / two\\nlines";
    assert_eq!(
        found["own"],
        json!([
            [format!("{outer} / a;b"), "1", most.to_string()],
            [format!("{outer} / \"quoted' &amp;"), "200", "9007199254740993"],
            ["(no call stack)", "3", "0"],
        ])
    );
    let plain = |value: &Value| value.to_string().replace('\u{202f}', "");
    assert!(plain(&found["all"]).contains(&format!("{} bytes", most + 9_007_199_254_740_993)), "{found}");
    assert!(
        plain(&found["innermost"]).contains(&format!("\"a;b\",\"bytes allocated: {most} bytes")),
        "{found}"
    );
    assert_eq!(found["images"], 0);
}

#[test]
fn keys_move_and_zoom() {
    let Some(browser) = chromium_or_note() else { return };
    let stacks: &[(&[&str], [u64; 2])] = &[
        (&["parse", "main"], [1, 600]),
        (&["log", "parse", "main"], [50, 100]),
        (&["/lib/b.so: load", "main"], [1, 300]),
    ];
    let script = r#"
      const name = () => status()[0], zoomed = () => [...part("path").children].map((one) => one.textContent).join();
      const steps = ["ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowLeft", "Enter", "ArrowDown", "ArrowUp", "ArrowUp", "Backspace", "Escape", "Escape"];
      found.steps = steps.map((step) => { key(step); return `${step} ${name()} (${zoomed()})`; });
      key("Home");
      key("ArrowDown");
      found.main = status();
      set("measure", "0");
      key("ArrowDown");
      found.objects = status();
      set("inverted", true);
      found.inverted = zoomed();
      key("ArrowDown");
      found.innermost = status();
      key("ArrowDown");
      found.caller = status();
      found.focus = part("view").tabIndex === 0;
      found.legend = part("legend").textContent;
    "#;
    let (found, console) = drive(&browser, &page(profile(stacks)), script, 1280);
    assert!(console.is_empty(), "{console:#?}");
    let steps = json!([
        "ArrowDown main (all)",
        "ArrowDown parse (all)",
        "ArrowRight load (all)",
        "ArrowRight load (all)",
        "ArrowLeft parse (all)",
        "Enter parse (all,main,parse)",
        "ArrowDown log (all,main,parse)",
        "ArrowUp parse (all,main,parse)",
        "ArrowUp main (all,main)",
        "Backspace parse (all,main,parse)",
        "Escape parse (all)",
        "Escape parse (all)",
    ]);
    assert_eq!(found["steps"], steps, "{found:#}");
    assert_eq!(
        found["main"],
        json!(["main", "bytes allocated: 1000 bytes, 100 % of all; itself 0", "/usr/bin/a · a.c"])
    );
    let parse = "objects allocated: 51, 98.1 % of all; 98.1 % of its caller; itself 1, 1.9 %";
    assert_eq!(found["objects"], json!(["parse", parse, "/usr/bin/a · a.c"]));
    assert_eq!(found["inverted"], "all");
    assert_eq!(
        found["innermost"],
        json!(["log", "objects allocated: 50, 96.2 % of all", "/usr/bin/a · a.c"])
    );
    assert_eq!(found["caller"][0], "parse");
    assert_eq!((&found["focus"], &found["legend"]), (&true.into(), &"ab.so".into()));
}

#[test]
#[ignore = "slow: starts Chromium; keys that move and zoom are in the fast tests"]
fn lines_are_with_the_file_and_not_in_the_name() {
    let Some(browser) = chromium_or_note() else { return };
    let stacks: &[(&[&str], [u64; 2])] = &[
        (&["parse@12", "main@3"], [1, 600]),
        (&["parse@40", "main@5"], [1, 10]),
        (&["parse@40", "other@9"], [1, 1]),
    ];
    let script = r#"
      key("ArrowDown");
      found.main = status();
      key("ArrowDown");
      found.parse = status();
      set("inverted", true);
      key("Home"), key("ArrowDown");
      found.inverted = status();
    "#;
    let (found, console) = drive(&browser, &page(profile(stacks)), script, 1280);
    assert!(console.is_empty(), "{console:#?}");
    assert_eq!((&found["main"][0], &found["main"][2]), (&"main".into(), &"/usr/bin/a · a.c:3, 5".into()));
    assert_eq!(
        (&found["parse"][0], &found["parse"][2]),
        (&"parse".into(), &"/usr/bin/a · a.c:12, 40".into())
    );
    assert_eq!((&found["inverted"][0], &found["inverted"][2]), (&found["parse"][0], &found["parse"][2]));
    assert_eq!(found["inverted"][1], "bytes allocated: 611 bytes, 100 % of all");
}

#[test]
#[ignore = "slow: starts Chromium; keys that move and zoom are in the fast tests"]
fn a_search_counts_a_stack_once_and_filters() {
    let Some(browser) = chromium_or_note() else { return };
    let stacks: &[(&[&str], [u64; 2])] = &[
        (&["walk", "step", "walk", "main"], [1, 100]),
        (&["walk", "main"], [1, 50]),
        (&["/lib/b.so: load", "main"], [1, 850]),
    ];
    let script = r#"
      const text = () => part("found").textContent;
      set("search", "WALK");
      found.text = text();
      set("only", true);
      key("ArrowDown");
      found.filtered = status();
      set("inverted", true);
      key("ArrowDown");
      found.innermost = status();
      set("inverted", false);
      set("pattern", true);
      set("search", "^(wal|loa)");
      found.pattern = text();
      set("search", "(");
      found.broken = text();
      set("search", "b.so");
      found.object = text();
      set("search", "nothing");
      found.nothing = [text(), status()];
      set("search", "");
      found.cleared = [text(), status()[1]];
    "#;
    let (found, console) = drive(&browser, &page(profile(stacks)), script, 1280);
    assert!(console.is_empty(), "{console:#?}");
    assert_eq!(
        found["text"],
        "1 function matches; call stacks with at least one of them hold 150 bytes, 15.0 % of all."
    );
    assert_eq!(found["filtered"][1], "bytes allocated: 150 bytes, 15.0 % of all; itself 0");
    assert_eq!(found["innermost"][0], "walk");
    assert_eq!(found["innermost"][1], "bytes allocated: 150 bytes, 15.0 % of all");
    assert!(found["pattern"].as_str().unwrap().contains("hold 1000 bytes, 100 % of all"), "{found}");
    assert!(found["broken"].as_str().unwrap().starts_with("This is no regular expression"), "{found}");
    assert!(found["object"].as_str().unwrap().contains("850 bytes, 85.0 %"), "{found}");
    assert!(found["nothing"][0].as_str().unwrap().starts_with("0 functions match"), "{found}");
    assert_eq!(found["cleared"], json!(["", "bytes allocated: 1000 bytes"]));
}

/// Widths by name under each choice of what they are of; texts and marks of all frames; what a search shows.
const COMPARED: &str = r#"
  const width = (name) => { for (const [node, box] of flame.boxes) if (flame.calls.functions[node.function]?.name === name) return Math.round(box.w * 1000 / flame.width) / 1000; return 0; };
  const widths = () => Object.fromEntries(["main", "grown", "gone;\n<b>", "fresh", "same"].map((name) => [name, width(name)]));
  found.all = status();
  found.larger = widths();
  found.names = [...flame.boxes.keys()].map((node) => status(flame.select(node))).map(([name, numbers]) => [name, numbers]);
  found.frames = [...flame.boxes.values()].map((box) => [flame.look(box).name, flame.look(box).mark ?? "", flame.look(box).fill]);
  set("side", "base");
  found.base = widths();
  set("side", "own");
  found.own = widths();
  set("side", "larger");
  set("inverted", true);
  found.inverted = [...flame.boxes.keys()].map((node) => status(flame.select(node))).map(([name, numbers]) => [name, numbers]);
  set("inverted", false);
  set("search", "gone");
  found.text = part("found").textContent;
  set("only", true);
  found.only = status(flame.select(flame.tree.root))[1];
  found.legend = [...part("legend").children].map((one) => one.textContent);
  found.bold = figure.querySelectorAll("b").length;
  const root = document.documentElement;
  found.overflow = root.scrollWidth - root.clientWidth;
"#;

#[test]
#[ignore = "slow: starts Chromium; keys that move and zoom are in the fast tests"]
fn a_comparison_shows_both_and_the_difference() {
    let Some(browser) = chromium_or_note() else { return };
    let gone = "gone;\n<b>";
    let base: &[(&[&str], [u64; 2])] =
        &[(&["grown", "main"], [1, 300]), (&[gone, "main"], [1, 200]), (&["same", "main"], [1, 100])];
    let own: &[(&[&str], [u64; 2])] =
        &[(&["grown", "main"], [1, 450]), (&["fresh", "main"], [1, 50]), (&["same", "main"], [1, 100])];
    let page = page_of(profile(own), Some(profile(base)));
    for width in [390, 1280] {
        let (found, console) = drive(&browser, &page, COMPARED, width);
        assert!(console.is_empty(), "{console:#?}");
        let all = "bytes allocated: before <b> 600 bytes, after 600 bytes: no difference";
        assert_eq!(found["all"], json!(["all", all, ""]), "{found:#}");
        let of = |one: &Value, name: &str| (one[name].as_f64().unwrap() * 100.0).round();
        // 450, 200, 100 and 50 of 800; then of 600.
        let larger = ["grown", "gone;\n<b>", "same", "fresh"].map(|name| of(&found["larger"], name));
        assert_eq!(larger, [56.0, 0.0, 13.0, 6.0], "the name is shown with its escapes: {found:#}");
        assert_eq!((of(&found["base"], "grown"), of(&found["base"], "fresh")), (50.0, 0.0), "{found:#}");
        assert_eq!((of(&found["own"], "grown"), of(&found["own"], "fresh")), (75.0, 8.0), "{found:#}");
        let numbers = |list: &Value, name: &str| {
            let rows = list.as_array().unwrap();
            rows.iter().find(|row| row[0] == name).unwrap_or_else(|| panic!("{found:#}"))[1].clone()
        };
        let names = &found["names"];
        let grown = "bytes allocated: before <b> 300 bytes, after 450 bytes: +150 bytes (+50.0 %)";
        assert_eq!(numbers(names, "grown"), grown);
        let gone =
            "bytes allocated: before <b> 200 bytes, after 0 bytes: \u{2212}200 bytes (only in before <b>)";
        assert_eq!(numbers(names, "gone;\\n<b>"), gone);
        let fresh = "bytes allocated: before <b> 0 bytes, after 50 bytes: +50 bytes (only in after)";
        assert_eq!(numbers(names, "fresh"), fresh);
        assert_eq!(numbers(&found["inverted"], "grown"), grown);
        let marks: Vec<(&str, &str)> = found["frames"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| (one[0].as_str().unwrap(), one[1].as_str().unwrap()))
            .collect();
        assert!(marks.contains(&("grown", "\u{25b2} ")) && marks.contains(&("same", "")), "{marks:?}");
        assert!(marks.contains(&("gone;\\n<b>", "\u{25bc} ")), "{marks:?}");
        assert!(found["text"].as_str().unwrap().contains("200 bytes (only in before <b>)"), "{found}");
        assert!(found["only"].as_str().unwrap().contains("before <b> 200 bytes, after 0 bytes"), "{found}");
        let legend = json!(["only in before <b>", "half", "the same", "double", "only in after"]);
        assert_eq!((&found["legend"], &found["bold"], &found["overflow"]), (&legend, &json!(0), &json!(0)));
    }
}

#[test]
#[ignore = "slow: starts Chromium; keys that move and zoom are in the fast tests"]
fn deep_recursion_scrolls_and_a_phone_shows_it_all() {
    let Some(browser) = chromium_or_note() else { return };
    let mut builder = Builder::new(MEASURES.to_vec());
    let name = "std::very_long_namespace::a_function_with_a_long_name<and, templates>".repeat(9);
    let frames = ["main", &name, "leaf"].map(|name| builder.frame(frame(name)));
    let stack = std::iter::once(frames[2]).chain(std::iter::repeat_n(frames[1], 10_000)).chain([frames[0]]);
    builder.stack(&stack.collect::<Vec<_>>(), &[1, 10]);
    let script = r#"
      const view = part("view"), root = document.documentElement;
      for (let step = 0; step < 10002; step++) key("ArrowDown");
      found.innermost = status()[0];
      found.scrolled = view.scrollTop > 199000;
      for (let step = 0; step < 3; step++) key("ArrowUp");
      key("Enter");
      found.path = part("path").childElementCount;
      found.overflow = root.scrollWidth - root.clientWidth;
      found.width = view.querySelector("canvas").getBoundingClientRect().width;
      const pixels = view.querySelector("canvas").getContext("2d").getImageData(0, 0, 200, 100).data;
      found.colors = new Set(new Uint32Array(pixels.buffer)).size;
    "#;
    let page = page(builder.finish());
    for width in [390, 1280] {
        let (found, console) = drive(&browser, &page, script, width);
        assert!(console.is_empty(), "{console:#?}");
        assert_eq!((&found["innermost"], &found["scrolled"]), (&"leaf".into(), &true.into()), "{found}");
        assert_eq!((&found["path"], &found["overflow"]), (&6.into(), &0.into()), "{found}");
        assert!(found["width"].as_f64().unwrap() <= f64::from(width), "{found}");
        assert!(found["colors"].as_u64().unwrap() > 2, "it is painted: {found}");
    }
}

#[test]
#[ignore = "slow: a million stacks"]
fn a_million_stacks_open() {
    let Some(browser) = chromium_or_note() else { return };
    let mut builder = Builder::new(MEASURES.to_vec());
    let frames: Vec<u32> = (0..3000).map(|at| builder.frame(frame(&format!("function_{at}")))).collect();
    let mut seed = 1_u64;
    let mut total = 0;
    for _ in 0..1_000_000_u64 {
        let mut next = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        let depth = 8 + next(12);
        // Few outer functions, many inner ones.
        let stack: Vec<u32> =
            (0..depth).rev().map(|at| frames[next((1 << at.min(11)) + 1) as usize]).collect();
        let bytes = 16 << next(12);
        total += bytes;
        builder.stack(&stack, &[1, bytes]);
    }
    let profile = builder.finish();
    let (stacks, calls) = (profile.stacks().len(), profile.calls().len());
    let started = Instant::now();
    let page = page(profile);
    let rendered = started.elapsed();
    let script = r#"
      let start = performance.now();
      const again = new FlameGraph(figure);
      found.drawn = performance.now() - start;
      start = performance.now();
      set("search", "function_7");
      found.searched = performance.now() - start;
      found.text = part("found").textContent;
      start = performance.now();
      set("inverted", true);
      found.inverted = performance.now() - start;
      found.all = flame.all;
      found.note = figure.querySelector("figcaption").textContent;
    "#;
    let (found, console) = drive(&browser, &page, script, 1280);
    assert!(console.is_empty(), "{console:#?}");
    eprintln!("{stacks} stacks, {calls} calls: {} bytes, rendered in {rendered:?}; {found:#}", page.len());
    assert!(stacks > 900_000 && page.len() < 6_000_000, "{} bytes", page.len());
    assert_eq!(found["all"], total.to_string(), "sums stay exact");
}
