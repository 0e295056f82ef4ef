//! The document of the changes: a sentence and a table for each figure.

use std::cmp::Ordering;

use heaptoll_report::document::{Column, Document, Item, Section, Table};
use heaptoll_report::format::{NONE, count, plural, seconds};
use heaptoll_units::{percent, three_digits, whole_bytes};

use super::figures::{Figures, Recording};
use crate::gate::diagnosis::site_flame;
use crate::gate::differences::{Differences, Part, less};
use crate::gate::sites::Lack;

/// What flame graphs call the two recordings.
pub(super) const SIDES: [&str; 2] = ["the first", "the second"];

/// A figure of the call sites.
struct Measure {
    title: &'static str,
    /// What a site does more of: `requests 3 MiB more`.
    verb: &'static str,
    is_bytes: bool,
    /// What it is called where a side has it not.
    lack: Lack,
    of: fn(&Figures) -> &Differences,
}

/// In the order of the document. Those of live bytes come first: they are what is looked for most often.
const MEASURES: [Measure; 4] = [
    Measure {
        title: "Bytes live at the peak",
        verb: "holds at the peak",
        is_bytes: true,
        lack: Lack::Live,
        of: |figures| &figures.sites.live,
    },
    Measure {
        title: "Bytes live at the end",
        verb: "holds at the end",
        is_bytes: true,
        lack: Lack::Exit,
        of: |figures| &figures.sites.exit,
    },
    Measure {
        title: "Bytes allocated",
        verb: "allocates",
        is_bytes: true,
        lack: Lack::Bytes,
        of: |figures| &figures.sites.bytes,
    },
    Measure {
        title: "Calls",
        verb: "makes",
        is_bytes: false,
        lack: Lack::Calls,
        of: |figures| &figures.sites.calls,
    },
];

/// The figures that both sides have.
fn compared(figures: &Figures) -> impl Iterator<Item = &'static Measure> + '_ {
    MEASURES.iter().filter(|measure| !figures.sites.not_compared.contains(&measure.lack))
}

impl Measure {
    fn amount(&self, amount: u64) -> String {
        if self.is_bytes { whole_bytes(amount) } else { count(amount as f64) }
    }

    fn signed(&self, difference: i64) -> String {
        let sign = match difference {
            0 => "",
            1.. => "+",
            _ => "−",
        };
        format!("{sign}{}", self.amount(difference.unsigned_abs()))
    }
}

/// The document. `command` repeats it.
pub fn document(figures: &Figures, command: &str) -> Document {
    let mut first = Section { title: "What changed".into(), ..Section::default() };
    first.text = compared(figures).filter_map(|measure| sentence(measure, figures)).collect();
    if first.text.is_empty() {
        first.text.push(without_growth(figures));
    }
    first.items.push(Item::Table(totals(figures)));
    first.items.extend(figures.sites.stacks.as_ref().map(|stacks| site_flame(stacks, SIDES)));
    let mut sections = vec![first];
    for measure in compared(figures) {
        let differences = (measure.of)(figures);
        let rows = rows(measure, differences);
        if rows.is_empty() {
            continue;
        }
        sections.push(Section {
            title: measure.title.into(),
            text: Vec::new(),
            items: vec![Item::Table(table(measure, differences, rows))],
        });
    }
    Document {
        title: "What changed between two recordings".into(),
        subtitle: format!("from {} to {}", in_words(&figures.base), in_words(&figures.new)),
        warnings: figures.warnings.clone().into_iter().chain(not_compared(figures)).collect(),
        sections,
        facts: vec![
            ("from".into(), fact(&figures.base)),
            ("to".into(), fact(&figures.new)),
            ("call stacks".into(), {
                let stacks = [figures.sites.base_stacks, figures.sites.new_stacks];
                format!("{} and {}", count(stacks[0] as f64), count(stacks[1] as f64))
            }),
        ],
        command: command.into(),
        ..Document::default()
    }
}

/// What is stated where no call site grew for certain.
fn without_growth(figures: &Figures) -> String {
    let all = || MEASURES.iter().map(|measure| (measure.of)(figures));
    let most = |of: fn(&Differences) -> u64| all().map(of).max().unwrap_or(0) as usize;
    let (base, new) = (most(|found| found.only_base.parts), most(|found| found.only_new.parts));
    if base + new > 0 {
        return format!(
            "No call site of both grew. Only the first has {}, only the second {}: these were removed or added, were \
             renamed, or are of another program.",
            plural(base, "call site"),
            plural(new, "call site")
        );
    }
    if all().all(|found| found.grown.is_empty() && found.shrunk.is_empty()) {
        return "Nothing: every call site requested and held the same.".into();
    }
    "No call site grew; some shrank.".into()
}

/// Which figures are not there, in a sentence.
fn not_compared(figures: &Figures) -> Option<String> {
    let missing = MEASURES.iter().filter(|measure| figures.sites.not_compared.contains(&measure.lack));
    let missing: Vec<String> = missing.map(|measure| measure.title.to_lowercase()).collect();
    (!missing.is_empty())
        .then(|| format!("A side has not all figures; not compared: {}.", missing.join(", ")))
}

fn in_words(recording: &Recording) -> String {
    match recording.until_s {
        Some(until_s) => format!("{} at {} s", recording.trace, seconds(until_s)),
        None => recording.trace.clone(),
    }
}

fn fact(recording: &Recording) -> String {
    if recording.is_profile {
        return format!("{}: a profile of {}", in_words(recording), recording.program);
    }
    let manager = if recording.manager.is_empty() { "an unknown manager" } else { &recording.manager };
    format!("{}: {} under {manager}", in_words(recording), recording.program)
}

/// What grew most for certain, in words.
fn sentence(measure: &Measure, figures: &Figures) -> Option<String> {
    let differences = (measure.of)(figures);
    let added = differences.added();
    let most = added.first()?;
    let noun = if measure.is_bytes { "" } else { " calls" };
    let change = match most.base {
        Some(base) if base > 0 => format!(
            "{} more{noun}: {} became {} ({})",
            measure.amount(most.more),
            measure.amount(base),
            measure.amount(most.new),
            grown(base, most.new),
        ),
        _ => format!("{}{noun}, and nothing before", measure.amount(most.new)),
    };
    let total = match differences.difference {
        0 => "; all together did not change".to_owned(),
        all => format!(
            "; all together: {} ({} to {})",
            measure.signed(all),
            measure.amount(differences.base),
            measure.amount(differences.new)
        ),
    };
    Some(format!("{} {} {change}{total}.", most.part.name, measure.verb))
}

/// `+50.0 %`; from ten times on `12.3 times`.
fn grown(base: u64, new: u64) -> String {
    let share = (new as f64 - base as f64) / base as f64;
    if share >= 9.0 {
        return format!("{} times", three_digits(new as f64 / base as f64));
    }
    let sign = match new.cmp(&base) {
        Ordering::Greater => "+",
        Ordering::Equal => "",
        Ordering::Less => "−",
    };
    format!("{sign}{}", percent(share.abs()))
}

fn totals(figures: &Figures) -> Table {
    let rows = compared(figures).map(|measure| {
        let all = (measure.of)(figures);
        let change = if all.base == 0 { NONE.into() } else { grown(all.base, all.new) };
        vec![
            measure.title.into(),
            measure.amount(all.base),
            measure.amount(all.new),
            measure.signed(all.difference),
            change,
            plural((all.only_base.parts) as usize, "site"),
            plural((all.only_new.parts) as usize, "site"),
        ]
    });
    let columns = vec![
        Column::text("All call sites"),
        Column::figures("from"),
        Column::figures("to"),
        Column::figures("difference"),
        Column::figures("%"),
        Column::optional("only in from"),
        Column::optional("only in to"),
    ];
    Table { columns, rows: rows.collect(), ..Table::default() }
}

/// The rows of a table: those that grew or are new, most first; those that shrank or are gone; the rest.
fn rows(measure: &Measure, differences: &Differences) -> Vec<Vec<String>> {
    let share = |difference: i64| match differences.difference {
        0 => NONE.to_owned(),
        all => signed_share(difference as f64 / all as f64),
    };
    let cells = |name: &str, base: Option<u64>, new: Option<u64>| {
        let difference = less(new.unwrap_or(0), base.unwrap_or(0));
        let amount =
            |amount: Option<u64>| amount.map_or_else(|| NONE.to_owned(), |bytes| measure.amount(bytes));
        vec![name.to_owned(), amount(base), amount(new), measure.signed(difference), share(difference)]
    };
    let mut changed: Vec<(i64, Vec<String>)> = Vec::new();
    for row in differences.grown.iter().chain(&differences.shrunk) {
        changed.push((row.difference, cells(&name(&row.part), Some(row.base), Some(row.new))));
    }
    for single in &differences.only_new.largest {
        changed.push((less(single.amount, 0), cells(&name(&single.part), None, Some(single.amount))));
    }
    for single in &differences.only_base.largest {
        changed.push((less(0, single.amount), cells(&name(&single.part), Some(single.amount), None)));
    }
    changed.sort_by_key(|(difference, _)| std::cmp::Reverse(*difference));
    changed.into_iter().map(|(_, cells)| cells).collect()
}

/// A share of the whole difference; negative where a site changed in the other direction.
fn signed_share(share: f64) -> String {
    format!("{}{}", if share < 0.0 { "−" } else { "" }, percent(share.abs()))
}

fn table(measure: &Measure, differences: &Differences, mut rows: Vec<Vec<String>>) -> Table {
    let listed = |side: &crate::gate::differences::Unmatched| {
        side.largest.iter().fold(0_u64, |sum, single| sum.saturating_add(single.amount))
    };
    let (base, new) = (
        differences.rest.base + differences.only_base.amount.saturating_sub(listed(&differences.only_base)),
        differences.rest.new + differences.only_new.amount.saturating_sub(listed(&differences.only_new)),
    );
    if base > 0 || new > 0 {
        rows.push(vec![
            "all other call sites".into(),
            measure.amount(base),
            measure.amount(new),
            measure.signed(less(new, base)),
            NONE.into(),
        ]);
    }
    Table {
        columns: vec![
            Column::sites("Call site"),
            Column::figures("from"),
            Column::figures("to"),
            Column::figures("difference"),
            Column::figures("% of all"),
        ],
        rows,
        ..Table::default()
    }
}

/// The name of a site, with the one that it had before where they were joined by their innermost functions.
fn name(part: &Part) -> String {
    match part.base_name.as_str() {
        base if base.is_empty() || base == part.name => part.name.clone(),
        base => format!("{} (was {base})", part.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::differences::Amounts;

    fn part(name: &str) -> Part {
        Part { name: name.into(), ..Part::default() }
    }

    fn figures() -> Figures {
        let mut figures = Figures::default();
        figures.sites.live = Differences::new([
            (part("parse < main"), Amounts::Both(1024, 2048)),
            (part("same < main"), Amounts::Both(500, 500)),
            (part("gone < main"), Amounts::Base(24)),
            (part("fresh < main"), Amounts::New(1000)),
        ]);
        figures
    }

    #[test]
    fn the_sentence_names_what_grew_most_and_the_rows_close() {
        let document = document(&figures(), "heaptoll diff a b");
        let text = &document.sections[0].text;
        assert_eq!(text.len(), 1);
        assert!(
            text[0]
                .starts_with("parse < main holds at the peak 1.00 KiB more: 1.00 KiB became 2.00 KiB (+100"),
            "{text:?}"
        );
        let Item::Table(table) = &document.sections[1].items[0] else { panic!("no table") };
        let names: Vec<&str> = table.rows.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(names, ["parse < main", "fresh < main", "gone < main", "all other call sites"]);
        assert_eq!(table.rows[2][1..4], ["24 B", NONE, "−24 B"]);
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
        assert_eq!(document.sections.len(), 2, "figures that no site has are left out");
    }

    /// Before, every such share was 0 %.
    #[test]
    fn a_site_that_shrank_where_all_together_grew_has_a_negative_share() {
        let differences =
            Differences::new([(part("up"), Amounts::Both(0, 150)), (part("down"), Amounts::Both(50, 0))]);
        let rows = rows(&MEASURES[0], &differences);
        let shares: Vec<&str> = rows.iter().map(|row| row[4].as_str()).collect();
        assert_eq!(shares, ["150 %", "−50.0 %"]);
    }

    #[test]
    fn growth_is_a_share_or_how_many_times() {
        assert_eq!(grown(100, 150), "+50.0 %");
        assert_eq!((grown(100, 100).as_str(), grown(100, 25).as_str()), ("0 %", "−75.0 %"));
        assert_eq!(grown(100, 1230), "12.3 times");
    }

    #[test]
    fn recordings_that_are_equal_differ_in_nothing() {
        let document = document(&Figures::default(), "");
        assert_eq!(document.sections[0].text, ["Nothing: every call site requested and held the same."]);
    }

    #[test]
    fn recordings_without_a_common_call_site_are_not_the_same() {
        let mut figures = Figures::default();
        figures.sites.bytes =
            Differences::new([(part("a"), Amounts::Base(300)), (part("b"), Amounts::New(300))]);
        let text = document(&figures, "").sections.remove(0).text.concat();
        assert!(text.contains("Only the first has 1 call site, only the second 1 call site"), "{text}");
        figures.sites.bytes = Differences::new([(part("a"), Amounts::Both(300, 100))]);
        assert_eq!(document(&figures, "").sections[0].text, ["No call site grew; some shrank."]);
    }
}
