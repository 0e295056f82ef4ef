//! The tables of `heaptoll managers` and `heaptoll programs`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::style::Style;
use super::table::render;
use crate::document::{Cell, Table, Tone};
use crate::format::NONE;

/// One manager of `heaptoll managers`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ManagerRow {
    /// Name for `-m`.
    pub name: String,
    /// The group it is in.
    pub group: String,
    /// Version; empty when unknown.
    pub version: String,
    /// Crate, package or path.
    pub origin: String,
    /// One line: what it is; empty when unknown.
    pub about: String,
    /// The preflight's result, as text.
    pub status: String,
    /// Whether it can be used; `None` when it was not tried.
    pub usable: Option<bool>,
}

/// One layer of `heaptoll managers`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LayerRow {
    /// How it is written in front of a manager.
    pub pattern: String,
    /// Its options: `every=SIZE`.
    pub options: Vec<String>,
    /// The preflight's result for it in front of a manager that is always there.
    pub status: String,
    /// Whether it can be used.
    pub usable: bool,
    /// One line: what it does.
    pub about: String,
}

/// Managers of `heaptoll managers` that have the same options.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OptionsRow {
    /// Their names.
    pub managers: Vec<String>,
    /// Their options: `heap=SIZE`.
    pub options: Vec<String>,
}

/// One program of `heaptoll programs`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramRow {
    /// Name for `--program`.
    pub name: String,
    /// One line: what it is.
    pub about: String,
    /// `bundled`, or the Debian package it comes from.
    pub package: String,
    /// Whether it can be run now.
    pub installed: bool,
    /// Names of its variants.
    pub variants: Vec<String>,
    /// The most bytes that are live at once at size full, in MiB, by `heaptoll trace stat`.
    #[serde(default)]
    pub live_mib: Option<f64>,
    /// How many threads allocate at size full, by `heaptoll trace stat`.
    #[serde(default)]
    pub allocating_threads: Option<u32>,
    /// What of its memory it manages itself, which no manager changes.
    #[serde(default)]
    pub pools: Option<String>,
}

fn tone(usable: bool) -> Tone {
    if usable { Tone::Less } else { Tone::More }
}

/// `heaptoll managers`: name, group, version, origin, the preflight's result and what it is.
pub fn managers_table(rows: &[ManagerRow], style: &Style) -> String {
    let table = Table::of(rows)
        .text("manager", |row| row.name.as_str())
        .text("group", |row| or_none(&row.group))
        .text("version", |row| or_none(&row.version))
        .text("origin", |row| or_none(&row.origin))
        .text("preflight", |row| Cell::text(or_none(&row.status)).toned(row.usable.map_or(Tone::Dim, tone)))
        .text("about", |row| or_none(&row.about));
    render(&table.table(), style)
}

/// The layers of `heaptoll managers`: how each is written, its options, the preflight's result and what it does.
pub fn layers_table(rows: &[LayerRow], style: &Style) -> String {
    let table = Table::of(rows)
        .text("layer", |row| row.pattern.as_str())
        .text("options", |row| or_none(&row.options.join(", ")).to_owned())
        .text("preflight", |row| Cell::text(or_none(&row.status)).toned(tone(row.usable)))
        .text("about", |row| row.about.as_str());
    render(&table.table(), style)
}

/// The options of `heaptoll managers`: which managers have which.
pub fn options_table(rows: &[OptionsRow], style: &Style) -> String {
    let table = Table::of(rows)
        .text("managers with options", |row| row.managers.join(", "))
        .text("options", |row| row.options.join(", "));
    render(&table.table(), style)
}

/// `heaptoll programs`: name, package, whether it is there, variants and what it is.
pub fn programs_table(rows: &[ProgramRow], style: &Style) -> String {
    let installed = |is| Cell::text(if is { "yes" } else { "no" }).toned(tone(is));
    let table = Table::of(rows)
        .text("program", |row| row.name.as_str())
        .text("package", |row| or_none(&row.package))
        .text("installed", |row| installed(row.installed))
        .text("live MiB", |row| row.live_mib.map(|live| format!("{live:.1}")))
        .text("threads", |row| row.allocating_threads.map(|count| count.to_string()))
        .text("variants", |row| or_none(&row.variants.join(", ")).to_owned())
        .text("about", |row| row.about.as_str());
    render(&table.table(), style)
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { NONE } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Style = Style { color: false, width: Some(80), unicode: true };

    #[test]
    fn the_managers_table_shows_what_can_be_used() {
        let rows = [
            ManagerRow {
                name: "glibc".into(),
                group: "modern".into(),
                version: "2.36".into(),
                origin: "Debian libc6 2.36-9".into(),
                about: "the baseline".into(),
                status: "passes".into(),
                usable: Some(true),
            },
            ManagerRow {
                name: "./lib\x1b[2Jmine.so".into(),
                status: "exports no malloc".into(),
                ..Default::default()
            },
        ];
        let wide = Style { width: Some(120), ..PLAIN };
        let text = managers_table(&rows, &wide);
        assert_eq!(
            text,
            "manager                group   version  origin               preflight          about\n\
             ─────────────────────────────────────────────────────────────────────────────────────────────\n\
             glibc                  modern  2.36     Debian libc6 2.36-9  passes             the baseline\n\
             ./lib\\u{1b}[2Jmine.so  –       –        –                    exports no malloc  –\n"
        );
        let coloured = managers_table(&rows, &Style { color: true, ..PLAIN });
        assert!(coloured.contains("\x1b[38;5;10mpasses") && !coloured.contains("\x1b[2J"), "{coloured:?}");
    }

    #[test]
    fn layers_and_options_are_shown_as_they_are_written() {
        let layers = [LayerRow {
            pattern: "quarantine=SIZE".into(),
            options: vec!["check=on|off".into(), "seed=N".into()],
            status: "passes".into(),
            usable: true,
            about: "holds freed blocks back".into(),
        }];
        let wide = Style { width: Some(120), ..PLAIN };
        assert_eq!(
            layers_table(&layers, &wide),
            "layer            options               preflight  about\n\
             ──────────────────────────────────────────────────────────────────────────\n\
             quarantine=SIZE  check=on|off, seed=N  passes     holds freed blocks back\n"
        );
        let options = [OptionsRow {
            managers: vec!["tithe".into(), "tithe-collect".into()],
            options: vec!["every=SIZE".into()],
        }];
        let text = options_table(&options, &wide);
        assert!(text.contains("tithe, tithe-collect   every=SIZE"), "{text}");
    }

    #[test]
    fn programs_wrap_what_they_are_about() {
        let rows = [ProgramRow {
            name: "cfrac".into(),
            about:
                "factors an integer by continued fractions over big integers that are counted by reference"
                    .into(),
            package: "bundled".into(),
            installed: true,
            variants: vec!["quick".into(), "long".into()],
            live_mib: Some(1.25),
            allocating_threads: Some(1),
            pools: None,
        }];
        let text = programs_table(&rows, &PLAIN);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(
            text.contains("cfrac    bundled  yes        1.2       1        quick, long  factors an integer"),
            "{text}"
        );
        let ascii = programs_table(&rows, &Style { unicode: false, ..PLAIN });
        assert!(ascii.is_ascii(), "{ascii}");
    }
}
