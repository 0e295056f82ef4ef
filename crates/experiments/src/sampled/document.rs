//! The document of a sampled profile: call sites, each with its error bar.

use heaptoll_profiles::{Measure, Profile};
use heaptoll_report::document::{Document, Flame, Item, Section};
use heaptoll_report::format::{printable, shell_command};
use heaptoll_units::{bytes, number, size_text};

use super::figures::{Estimated, Figures, Row, Value};
use crate::tables::site_table;

/// Rows listed of a table.
const LISTED: usize = 20;

/// An interval; `exact` where it has no width; without the unit where both ends have the same: `1.20–3.41 MiB`.
fn interval(value: Value) -> String {
    if value.low >= value.high {
        return "exact".into();
    }
    let (low, high) = (bytes(value.low), bytes(value.high));
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => format!("{number}–{high}"),
        _ => format!("{low}–{high}"),
    }
}

fn table(figures: &Figures, of: impl Fn(&Row) -> Estimated) -> Option<Item> {
    let mut rows: Vec<(&Row, Estimated)> =
        figures.rows.iter().map(|row| (row, of(row))).filter(|(_, sums)| sums.samples > 0).collect();
    rows.sort_by(|a, b| b.1.bytes.estimate.total_cmp(&a.1.bytes.estimate));
    let all = rows.len();
    rows.truncate(LISTED);
    let caption = match all > rows.len() {
        true => format!("the {} with the most bytes of {}", rows.len(), number(all as u64)),
        false => String::new(),
    };
    let cells = rows.into_iter().map(|(row, sums)| {
        vec![
            row.name.clone(),
            bytes(sums.bytes.estimate),
            interval(sums.bytes),
            number(sums.objects.estimate.round() as u64),
            number(sums.samples),
        ]
    });
    let columns = ["call site", "bytes", "95 % interval", "objects", "samples"];
    site_table(&caption, &columns, cells.collect())
}

fn section(title: &str, sums: Estimated, item: Option<Item>) -> Section {
    let text = match sums.samples {
        0 => "Nothing was sampled.".to_owned(),
        samples => format!(
            "{} ({}), estimated from {} sample{}.",
            bytes(sums.bytes.estimate),
            interval(sums.bytes),
            number(samples),
            if samples == 1 { "" } else { "s" }
        ),
    };
    Section { title: title.to_owned(), text: vec![text], items: item.into_iter().collect() }
}

fn warnings(figures: &Figures) -> Vec<String> {
    let mut warnings = Vec::new();
    if figures.without_site > 0 {
        warnings.push(format!(
            "of {} samples the call stack is not known, as there was no memory for it: they are in the row `not recorded`",
            number(figures.without_site)
        ));
    }
    if figures.not_followed > 0 {
        warnings.push(format!(
            "{} samples do not count as in use, as there was no place to follow them",
            number(figures.not_followed)
        ));
    }
    warnings
}

/// The whole document.
pub fn document(figures: &Figures, profile: &Profile) -> Document {
    let mut live = section("In use", figures.live, table(figures, |row| row.live));
    live.items.push(Item::Flame(Flame {
        title: "Call stacks".into(),
        caption: "Estimates from samples: a stack with few samples may be off by much, as the tables show."
            .into(),
        profile: profile.clone(),
        first: if figures.live.samples > 0 { Measure::EndBytes } else { Measure::AllocatedBytes },
        base: None,
    }));
    if figures.mean_bytes > 1 {
        live.text.push(format!(
            "A call site of small objects that is not listed holds less than {} with 95 % probability.",
            bytes(figures.unseen_bytes)
        ));
    }
    let name = figures.exe.rsplit('/').next().unwrap_or(&figures.exe);
    Document {
        title: format!("Heap profile of {}", printable(name)),
        subtitle: format!(
            "{}: process {}, {} sampled, over {}",
            printable(&shell_command(&figures.command)),
            figures.pid,
            if figures.mean_bytes > 1 {
                format!("one byte in {}", size_text(figures.mean_bytes))
            } else {
                "every allocation".into()
            },
            printable(&figures.manager)
        ),
        warnings: warnings(figures),
        sections: vec![live, section("Allocated", figures.allocated, table(figures, |row| row.allocated))],
        ..Document::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_has_its_unit_once_where_it_has_one() {
        let value = |low: f64, high: f64| Value { estimate: low, low, high };
        assert_eq!(interval(value(1.5 * 1048576.0, 3.0 * 1048576.0)), "1.50–3.00 MiB");
        assert_eq!(interval(value(512.0 * 1024.0, 3.0 * 1048576.0)), "512 KiB–3.00 MiB");
        assert_eq!(interval(value(7.0, 7.0)), "exact");
    }

    #[test]
    fn what_was_not_sampled_is_stated() {
        let document = document(
            &Figures { exe: "/bin/x".into(), mean_bytes: 1 << 19, ..Figures::default() },
            &Profile::default(),
        );
        assert_eq!(document.title, "Heap profile of x");
        assert!(document.sections.iter().all(|section| section.text[0] == "Nothing was sampled."));
    }
}
