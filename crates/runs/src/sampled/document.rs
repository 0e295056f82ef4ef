//! The document of a sampled profile: call sites, each with its error bar.

use heaptoll_profiles::{Measure, Profile};
use heaptoll_report::document::{Document, Flame, Item, Section, Table};
use heaptoll_report::format::{printable, shell_command};
use heaptoll_units::{bytes, number, size_text};

use super::figures::{Estimated, Figures, Row, Value};

/// Rows listed of a table.
const LISTED: usize = 20;

/// Whether sums count all samples, or some are missing: then they are lower limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counted {
    All,
    SomeMissing,
}

/// An interval; `exact`, or `at least` where samples are missing, where it has no width; without the unit where both ends
/// have the same: `1.20–3.41 MiB`.
fn interval(value: Value, counted: Counted) -> String {
    if value.low >= value.high {
        return if counted == Counted::All { "exact" } else { "at least" }.into();
    }
    let (low, high) = (bytes(value.low), bytes(value.high));
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => format!("{number}–{high}"),
        _ => format!("{low}–{high}"),
    }
}

fn table(figures: &Figures, counted: Counted, of: impl Fn(&Row) -> Estimated) -> Option<Table> {
    let mut rows: Vec<(&Row, Estimated)> =
        figures.rows.iter().map(|row| (row, of(row))).filter(|(_, sums)| sums.samples > 0).collect();
    rows.sort_by(|a, b| b.1.bytes.estimate.total_cmp(&a.1.bytes.estimate));
    let all = rows.len();
    rows.truncate(LISTED);
    let caption = match all > rows.len() {
        true => format!("the {} with the most bytes of {}", rows.len(), number(all as u64)),
        false => String::new(),
    };
    Table::of(rows)
        .caption(caption)
        .sites("call site", |(row, _)| row.name.clone())
        .figure("bytes", |(_, sums)| bytes(sums.bytes.estimate))
        .figure("95 % interval", |(_, sums)| interval(sums.bytes, counted))
        .figure("objects", |(_, sums)| number(sums.objects.estimate.round() as u64))
        .figure("samples", |(_, sums)| number(sums.samples))
        .if_any()
}

fn section(title: &str, sums: Estimated, counted: Counted, table: Option<Table>) -> Section {
    let text = match sums.samples {
        0 => "Nothing was sampled.".to_owned(),
        samples => format!(
            "{} ({}), estimated from {} sample{}.",
            bytes(sums.bytes.estimate),
            interval(sums.bytes, counted),
            number(samples),
            if samples == 1 { "" } else { "s" }
        ),
    };
    Section::new(title).state(text).with_all(table)
}

fn warnings(figures: &Figures) -> Vec<String> {
    let mut warnings = Vec::new();
    if figures.without_site > 0 {
        warnings.push(format!(
            "{} samples have no call stack, because memory was missing: they are in the row `not recorded`",
            number(figures.without_site)
        ));
    }
    if figures.not_followed > 0 {
        warnings.push(format!(
            "{} samples could not be followed and do not count as in use: the estimate of bytes in use is a lower \
             bound",
            number(figures.not_followed)
        ));
    }
    warnings
}

/// The whole document.
pub fn document(figures: &Figures, profile: &Profile) -> Document {
    let counted = if figures.not_followed == 0 { Counted::All } else { Counted::SomeMissing };
    let mut live = section("In use", figures.live, counted, table(figures, counted, |row| row.live));
    live.items.push(Item::Flame(Flame {
        title: "Call stacks".into(),
        caption: "Estimates from samples: stacks with few samples have wide intervals.".into(),
        profile: profile.clone(),
        first: if figures.live.samples > 0 { Measure::EndBytes } else { Measure::AllocatedBytes },
        base: None,
    }));
    if figures.mean_bytes > 1 {
        live.text.push(format!(
            "A call site of small objects that is not listed has less than {} in use, with 95 % probability.",
            bytes(figures.unseen_bytes)
        ));
    }
    let allocated = table(figures, Counted::All, |row| row.allocated);
    let allocated = section("Allocated", figures.allocated, Counted::All, allocated);
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
        sections: vec![live, allocated],
        ..Document::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_has_its_unit_once_where_it_has_one() {
        let value = |low: f64, high: f64| Value { estimate: low, low, high };
        let all = |low, high| interval(value(low, high), Counted::All);
        assert_eq!(all(1.5 * 1048576.0, 3.0 * 1048576.0), "1.50–3.00 MiB");
        assert_eq!(all(512.0 * 1024.0, 3.0 * 1048576.0), "512 KiB–3.00 MiB");
        assert_eq!(all(7.0, 7.0), "exact");
    }

    #[test]
    fn samples_that_were_not_followed_make_sums_in_use_lower_limits() {
        let sums = |bytes: f64| Estimated {
            bytes: Value { estimate: bytes, low: bytes, high: bytes },
            samples: 3,
            ..Estimated::default()
        };
        let row = Row { name: "a".into(), live: sums(7.0), allocated: sums(9.0), ..Row::default() };
        let figures = Figures {
            mean_bytes: 1,
            not_followed: 2,
            live: sums(7.0),
            allocated: sums(9.0),
            rows: vec![row],
            ..Figures::default()
        };
        let document = document(&figures, &Profile::default());
        let texts: Vec<&str> = document.sections.iter().map(|section| section.text[0].as_str()).collect();
        assert!(texts[0].contains("(at least)") && texts[1].contains("(exact)"), "{texts:?}");
        assert!(document.warnings[0].contains("lower bound"), "{:?}", document.warnings);
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
