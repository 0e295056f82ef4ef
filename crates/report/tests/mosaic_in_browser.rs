//! Mosaics in a real browser: exact numbers by pointer and by keys, one colour alone, on a phone and on a desktop.
//!
//! Needs Chromium; see `page_in_browser.rs`.

use crate::browser::chromium_or_note;
use crate::driven::drive;
use heaptoll_report::document::{Document, Item, Key, Mosaic, Section, Tile};
use heaptoll_report::html;
use serde_json::json;

const SCRIPT: &str = r#"
  const figure = document.querySelector("figure.mosaic"), view = figure.querySelector(".tiles"), tiles = [...view.children];
  const status = () => [...figure.querySelector(".status").children].map((one) => one.textContent);
  const key = (name) => view.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
  found.first = status();
  key("ArrowRight"), key("ArrowRight");
  found.third = status();
  key("ArrowDown");
  const below = tiles.findIndex((tile) => tile.classList.contains("selected"));
  found.isBelow = tiles[below].offsetLeft === tiles[2].offsetLeft && tiles[below].offsetTop > tiles[2].offsetTop;
  key("ArrowUp"), key("Home"), key("ArrowLeft");
  found.atStart = status();
  key("End");
  found.last = status();
  tiles[5].dispatchEvent(new PointerEvent("pointermove", { bubbles: true }));
  found.pointed = status();
  const [button] = figure.querySelectorAll(".keys button");
  button.click();
  found.dim = tiles.filter((tile) => tile.classList.contains("dim")).length;
  button.click();
  found.dimAgain = tiles.filter((tile) => tile.classList.contains("dim")).length;
  const colour = () => getComputedStyle(tiles[0]).getPropertyValue("--tile");
  const before = colour();
  figure.querySelector(".toned input").click();
  found.isByStep = colour() !== before;
  found.images = document.querySelectorAll("img").length;
  found.isWide = document.documentElement.scrollWidth > document.documentElement.clientWidth;
"#;

fn page(tiles: usize) -> String {
    let tile = |at: usize| Tile {
        key: at.is_multiple_of(4).then_some(0),
        step: Some(at % 3),
        solid: 0.1,
        pale: 0.5,
        text: vec![format!("Page {at}"), "f<img src=x onerror=alert(1)>; \"quoted\"".into()],
    };
    let mosaic = Mosaic {
        title: "Pages".into(),
        bands: ["live".into(), "held".into(), "empty".into()],
        keys: vec![Key { name: "a_very_long_name_of_a_call_site".repeat(9), figure: "holds 3 MiB".into() }],
        steps: ("by age".into(), vec!["new".into(), "middle".into(), "old".into()]),
        tiles: (0..tiles).map(tile).collect(),
        ..Mosaic::default()
    };
    let section = Section { title: "Heap".into(), items: vec![Item::Mosaic(mosaic)], ..Section::default() };
    html::document::render(&Document { title: "t".into(), sections: vec![section], ..Document::default() })
        .unwrap()
}

#[test]
fn exact_numbers_are_read_by_keys_and_by_pointer_on_a_phone_and_on_a_desktop() {
    let Some(browser) = chromium_or_note() else { return };
    for width in [390, 1280] {
        let (found, console) = drive(&browser, &page(1500), SCRIPT, width);
        assert!(console.is_empty(), "{console:#?}");
        let text = |at: usize| json!([format!("Page {at}"), "f<img src=x onerror=alert(1)>; \"quoted\""]);
        assert_eq!(found["first"], text(0), "{width}");
        assert_eq!(found["third"], text(2), "{width}");
        assert_eq!(found["isBelow"], true, "{width}: {found}");
        assert_eq!((&found["atStart"], &found["last"], &found["pointed"]), (&text(0), &text(1499), &text(5)));
        assert_eq!((&found["dim"], &found["dimAgain"]), (&json!(1125), &json!(0)), "{width}");
        assert_eq!((&found["isByStep"], &found["images"]), (&json!(true), &json!(0)), "{width}");
        assert_eq!(found["isWide"], false, "{width}: nothing is wider than the page");
    }
}
