//! The manual's table of settings is the one that the parser has, and what it states is so.

use std::fs;

use super::*;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/tithe-settings.md");
/// Around the table in the page.
const BEGIN: &str = "<!-- The table is written by `WRITE_DOCS=1` of the tests of heaptoll-tithe. -->\n";
const END: &str = "<!-- End of the table. -->\n";

fn table() -> String {
    let mut table = "| variable | allowed | default | effect |\n|---|---|---|---|\n".to_string();
    for known in &VARIABLES {
        let row =
            format!("| `{}` | {} | {} | {} |\n", known.name, known.allowed, known.default, known.effect);
        table.push_str(&row);
    }
    table
}

#[test]
fn the_manual_has_the_table_of_the_settings() {
    let page = fs::read_to_string(PAGE).expect("docs/reference/tithe-settings.md");
    let (head, rest) = page.split_once(BEGIN).expect("the comment before the table");
    let (_, tail) = rest.split_once(END).expect("the comment after the table");
    let expected = format!("{head}{BEGIN}{}{END}{tail}", table());
    if std::env::var_os("WRITE_DOCS").is_some() {
        fs::write(PAGE, &expected).expect("the page can be written");
        return;
    }
    assert!(page == expected, "{PAGE} is not what is parsed; WRITE_DOCS=1 writes it");
}

/// What a variable needs to have an effect.
fn needed(name: &str) -> &'static [&'static str] {
    match name {
        "TITHE_AT_BOUND" => &["TITHE_MODE=guard", "TITHE_WAITING=1M"],
        "TITHE_WAITING" | "TITHE_CLEAR" | "TITHE_FAULT" | "TITHE_REPORT" => &["TITHE_MODE=guard"],
        _ => &[],
    }
}

/// A variable whose default is one value: in backticks.
#[test]
fn the_defaults_of_the_table_are_those_of_no_setting() {
    let mut checked = 0;
    for known in &VARIABLES {
        let value = known.default.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
        let Some(value) = value.filter(|value| !value.contains('`')) else { continue };
        let entry = format!("{}={value}", known.name);
        let needed = needed(known.name);
        let settings = read(&[needed, &[&entry]].concat()).map_err(|wrong| text(&wrong));
        assert_eq!(settings, read(needed).map_err(|wrong| text(&wrong)), "{entry}");
        checked += 1;
    }
    assert_eq!(checked, 11);
}

/// Of those that depend on the mode, each value.
#[test]
fn the_defaults_by_mode_are_those_of_the_modes() {
    let default = |name: &str| VARIABLES.iter().find(|known| known.name == name).expect(name).default;
    let headroom = default("TITHE_HEADROOM");
    assert!(headroom.starts_with(&format!("`collect`: {} %", mode::COLLECT_HEADROOM)), "{headroom}");
    let others = format!("`hybrid`: {} %; `guard`: {} %", mode::HYBRID_HEADROOM, mode::GUARD_HEADROOM);
    assert!(headroom.ends_with(&others), "{headroom}");
    let least = format!(
        "`collect`: {}K, `hybrid`: {}M, `guard`: {}M",
        mode::COLLECT_MIN_HEADROOM >> 10,
        mode::HYBRID_MIN_HEADROOM >> 20,
        mode::GUARD_MIN_HEADROOM >> 20
    );
    assert_eq!(default("TITHE_MIN_HEADROOM"), least);
}

/// The bounds of a text "from LEAST to MOST" are taken, and the numbers beyond them are not.
#[test]
fn the_bounds_of_the_table_are_those_of_the_parser() {
    let mut checked = 0;
    for known in &VARIABLES {
        let words: Vec<&str> = known.allowed.split([' ', ',']).collect();
        let Some(from) = words.iter().position(|&word| word == "from") else { continue };
        let (least, most) = (words[from + 1], words[from + 3]);
        for bound in [least, most] {
            let entry = format!("{}={bound}", known.name);
            assert!(read(&[needed(known.name), &[&entry]].concat()).is_ok(), "{entry}");
        }
        for beyond in [moved(least, -1), moved(most, 1)] {
            let entry = format!("{}={beyond}", known.name);
            assert!(read(&[needed(known.name), &[&entry]].concat()).is_err(), "{entry}");
        }
        checked += 1;
    }
    assert_eq!(checked, 11);
}

/// A number next to the one of the text, with the same suffix.
fn moved(text: &str, by: i64) -> String {
    let digits = text.trim_end_matches(|suffix: char| suffix.is_alphabetic());
    let number: i64 = digits.parse().expect(text);
    format!("{}{}", number + by, &text[digits.len()..])
}
