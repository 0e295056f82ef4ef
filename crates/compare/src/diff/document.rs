//! The document of the changes: a sentence and a table for each figure.

use std::cmp::{Ordering, Reverse};

use heaptoll_report::document::{Document, Section, Table};
use heaptoll_report::format::{count, plural, seconds};
use heaptoll_units::{percent, three_digits, whole_bytes};

use super::figures::{DiffFigures, Recording};
use heaptoll_command::subject::manager_name;
use heaptoll_gate::diagnosis::site_flame;
use heaptoll_gate::differences::{Differences, Part, Row, holds_0, less};
use heaptoll_gate::sites::Lack;

/// What flame graphs call the two recordings.
pub(super) const SIDES: [&str; 2] = ["the first", "the second"];

/// Call sites that a table lists at most.
const LISTED: usize = 20;

/// A figure of the call sites.
struct Measure {
    title: &'static str,
    /// What a site does more of: `requests 3 MiB more`.
    verb: &'static str,
    is_bytes: bool,
    /// What it is called where a side has it not.
    lack: Lack,
    of: fn(&DiffFigures) -> &Differences,
}

/// In the order of the document. Those of live bytes come first: they are what is looked for most often.
const MEASURES: [Measure; 4] = [
    Measure {
        title: "Bytes live at the peak",
        verb: "retains at the peak",
        is_bytes: true,
        lack: Lack::Live,
        of: |figures| &figures.sites.live,
    },
    Measure {
        title: "Bytes live at the end",
        verb: "retains at the end",
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
fn compared(figures: &DiffFigures) -> impl Iterator<Item = &'static Measure> + '_ {
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

    fn interval(&self, [low, high]: [i64; 2]) -> String {
        format!("{} to {}", self.signed(low), self.signed(high))
    }
}

/// The document. `command` repeats it.
pub fn document(figures: &DiffFigures, command: &str) -> Document {
    let mut first = Section { title: "What changed".into(), ..Section::default() };
    first.text = compared(figures).filter_map(|measure| sentence(measure, figures)).collect();
    match &figures.sites.unjoined {
        Some(sites) => first.text.insert(0, sites.clone()),
        None if compared(figures).all(|measure| (measure.of)(figures).added().is_empty()) => {
            first.text.extend(without_growth(figures, first.text.is_empty()));
        }
        None => {}
    }
    let flame = figures.sites.stacks.as_ref().map(|stacks| site_flame(stacks, SIDES));
    let mut sections = vec![first.with(totals(figures)).with_all(flame)];
    for measure in compared(figures) {
        let differences = (measure.of)(figures);
        let text: Vec<String> = undecided(differences).into_iter().collect();
        let section = Section { text, ..Section::new(measure.title) }.with_all(table(measure, differences));
        if !section.items.is_empty() || !section.text.is_empty() {
            sections.push(section);
        }
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

/// Which call sites of sampled profiles are not listed.
fn undecided(differences: &Differences) -> Option<String> {
    let sites = plural(differences.undecided as usize, "call site");
    (differences.undecided > 0).then(|| {
        format!(
            "{sites} not listed: the 95 % interval of the difference contains 0. A smaller size after \
                 --sample shows more."
        )
    })
}

/// What is stated where no call site grew for certain; `alone`, where none shrank, either.
fn without_growth(figures: &DiffFigures, alone: bool) -> Option<String> {
    let all = || MEASURES.iter().map(|measure| (measure.of)(figures));
    let most = |of: fn(&Differences) -> u64| all().map(of).max().unwrap_or(0) as usize;
    let (base, new) = (most(|found| found.only_base.parts), most(|found| found.only_new.parts));
    if base + new > 0 {
        return Some(format!(
            "No common call site grew. Only in the first: {}; only in the second: {} (removed or added, \
             renamed, or of another program).",
            plural(base, "call site"),
            plural(new, "call site")
        ));
    }
    if !alone {
        return None;
    }
    let changed = compared(figures)
        .map(|measure| (measure, (measure.of)(figures)))
        .filter(|(_, all)| all.interval.is_some_and(|interval| !holds_0(interval)));
    let changed: Vec<String> =
        changed.map(|(measure, all)| format!(" {}, {}.", measure.title, total(measure, all))).collect();
    Some(match (all().any(|found| found.undecided > 0), changed.is_empty()) {
        (false, _) => "Nothing: every call site allocated and retained the same.".into(),
        (true, true) => "No difference detected in the samples.".into(),
        (true, false) => format!("No call site changed for certain.{}", changed.concat()),
    })
}

/// Which figures are not there, in a sentence.
fn not_compared(figures: &DiffFigures) -> Option<String> {
    let missing = MEASURES.iter().filter(|measure| figures.sites.not_compared.contains(&measure.lack));
    let missing: Vec<String> = missing.map(|measure| measure.title.to_lowercase()).collect();
    (!missing.is_empty()).then(|| format!("Not compared (missing in one file): {}.", missing.join(", ")))
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
    let manager = manager_name(&recording.manager);
    format!("{}: {} under {manager}", in_words(recording), recording.program)
}

/// What shrank most, and by how much for certain: a call site of both, or one of the first alone beyond what all of
/// the second alone have, since these may have it under another name.
fn shrunk_most(differences: &Differences) -> Option<(u64, Row)> {
    let rows = differences.shrunk.first().map(|row| (row.difference.unsigned_abs(), row.clone()));
    let single = differences.only_base.largest.first().map(|single| {
        let row = Row {
            part: single.part.clone(),
            base: single.amount,
            interval: single.interval,
            ..Row::default()
        };
        (single.amount.saturating_sub(differences.only_new.amount), row)
    });
    // Of equal ones the first.
    let all = single.into_iter().chain(rows);
    all.filter(|(certain, _)| *certain > 0).max_by_key(|(certain, _)| *certain)
}

/// The call site that changed most for certain, in words: one that grew, unless another shrank by more.
fn sentence(measure: &Measure, figures: &DiffFigures) -> Option<String> {
    let differences = (measure.of)(figures);
    let added = differences.added();
    let most = added.first();
    let shrunk = shrunk_most(differences).filter(|(less, _)| most.is_none_or(|most| *less > most.more));
    let (less, noun) = if measure.is_bytes { ("less", "") } else { ("fewer", " calls") };
    let became =
        |base, new| format!("{} became {} ({})", measure.amount(base), measure.amount(new), grown(base, new));
    let (change, interval) = match (shrunk, most) {
        (Some((_, Row { part, base, new, interval, .. })), most) => {
            let by = measure.amount(base.saturating_sub(new));
            let change = format!("{} {} {by} {less}{noun}: {}", part.name, measure.verb, became(base, new));
            match most {
                Some(most) => {
                    let more = measure.amount(most.more);
                    (format!("{change}; {} grew most, by {more}", most.part.name), None)
                }
                None => (change, interval),
            }
        }
        (None, most) => {
            let most = most?;
            let change = match most.base.filter(|base| *base > 0) {
                Some(base) => {
                    format!("{} more{noun}: {}", measure.amount(most.more), became(base, most.new))
                }
                None => format!("{}{noun}, and nothing before", measure.amount(most.new)),
            };
            (format!("{} {} {change}", most.part.name, measure.verb), most.interval)
        }
    };
    let interval =
        interval.map_or_else(String::new, |ends| format!("; 95 % interval {}", measure.interval(ends)));
    Some(format!("{change}{interval}; {}.", total(measure, differences)))
}

/// What all call sites differ by, in words.
fn total(measure: &Measure, differences: &Differences) -> String {
    let sides = format!("{} to {}", measure.amount(differences.base), measure.amount(differences.new));
    match (differences.difference, differences.interval) {
        (0, None) => "the total did not change".into(),
        (all, None) => format!("total: {} ({sides})", measure.signed(all)),
        (_, Some(interval)) if holds_0(interval) => {
            format!(
                "no difference detected in the total ({sides}; 95 % interval {})",
                measure.interval(interval)
            )
        }
        (all, Some(interval)) => {
            format!("total: {} ({sides}; 95 % interval {})", measure.signed(all), measure.interval(interval))
        }
    }
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

fn totals(figures: &DiffFigures) -> Table {
    let is_sampled = compared(figures).any(|measure| (measure.of)(figures).interval.is_some());
    Table::of(compared(figures).map(|measure| (measure, (measure.of)(figures))))
        .text("All call sites", |(measure, _)| measure.title)
        .figure("from", |(measure, all)| measure.amount(all.base))
        .figure("to", |(measure, all)| measure.amount(all.new))
        .figure("difference", |(measure, all)| measure.signed(all.difference))
        .when(is_sampled, |table| {
            table.figure("95 % interval", |(measure, all)| all.interval.map(|ends| measure.interval(ends)))
        })
        .figure("%", |(_, all)| (all.base > 0).then(|| grown(all.base, all.new)))
        .optional("only in from", |(_, all)| plural((all.only_base.parts) as usize, "site"))
        .optional("only in to", |(_, all)| plural((all.only_new.parts) as usize, "site"))
        .table()
}

/// A call site that a table lists; an amount is `None` where the recording has it not.
struct Listed {
    name: String,
    base: Option<u64>,
    new: Option<u64>,
    difference: i64,
    interval: Option<[i64; 2]>,
}

/// The call sites that changed most, in either direction, most first. What changed by less than a thousandth of the
/// first is left to the row of all others.
fn listed(differences: &Differences) -> Vec<Listed> {
    let both = differences.grown.iter().chain(&differences.shrunk).map(|row| Listed {
        name: name(&row.part),
        base: Some(row.base),
        new: Some(row.new),
        difference: row.difference,
        interval: row.interval,
    });
    let only_new = differences.only_new.largest.iter().map(|single| Listed {
        name: name(&single.part),
        base: None,
        new: Some(single.amount),
        difference: less(single.amount, 0),
        interval: single.interval,
    });
    let only_base = differences.only_base.largest.iter().map(|single| Listed {
        name: name(&single.part),
        base: Some(single.amount),
        new: None,
        difference: less(0, single.amount),
        interval: single.interval,
    });
    let mut changed: Vec<Listed> = both.chain(only_new).chain(only_base).collect();
    changed.sort_by_key(|site| Reverse((site.difference.unsigned_abs(), site.difference)));
    let least = changed.first().map_or(0, |site| site.difference.unsigned_abs() / 1000);
    changed.truncate(LISTED);
    changed.retain(|site| site.difference.unsigned_abs() >= least);
    changed
}

/// A share of the whole difference; negative where a site changed in the other direction.
fn signed_share(share: f64) -> String {
    format!("{}{}", if share < 0.0 { "−" } else { "" }, percent(share.abs()))
}

/// The table of a figure: rows and the last row add up to the difference of the totals. `None` without any change.
fn table(measure: &Measure, differences: &Differences) -> Option<Table> {
    let listed = listed(differences);
    let sum = |of: fn(&Listed) -> Option<u64>| listed.iter().filter_map(of).fold(0_u64, u64::saturating_add);
    let base = differences.base.saturating_sub(sum(|site| site.base));
    let new = differences.new.saturating_sub(sum(|site| site.new));
    let share = |difference: i64| match differences.difference {
        0 => None,
        all => Some(signed_share(difference as f64 / all as f64)),
    };
    // Tables of exact recordings have no intervals.
    let is_sampled = listed.iter().any(|site| site.interval.is_some());
    let others = (!listed.is_empty() && (base > 0 || new > 0)).then(|| Listed {
        name: "all other call sites".into(),
        base: Some(base),
        new: Some(new),
        difference: less(new, base),
        interval: None,
    });
    let shares = listed.iter().map(|site| share(site.difference)).chain([None]);
    Table::of(listed.iter().chain(&others).zip(shares))
        .sites("Call site", |(site, _)| site.name.clone())
        .figure("from", |(site, _)| site.base.map(|amount| measure.amount(amount)))
        .figure("to", |(site, _)| site.new.map(|amount| measure.amount(amount)))
        .figure("difference", |(site, _)| measure.signed(site.difference))
        .when(is_sampled, |table| {
            table.figure("95 % interval", |(site, _)| site.interval.map(|ends| measure.interval(ends)))
        })
        .figure("% of all", |(_, share)| share.clone())
        .if_any()
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
    use heaptoll_gate::differences::Amounts;
    use heaptoll_report::document::Item;
    use heaptoll_report::format::NONE;

    fn part(name: &str) -> Part {
        Part { name: name.into(), ..Part::default() }
    }

    fn figures() -> DiffFigures {
        let mut figures = DiffFigures::default();
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
            text[0].starts_with(
                "parse < main retains at the peak 1.00 KiB more: 1.00 KiB became 2.00 KiB (+100"
            ),
            "{text:?}"
        );
        let Item::Table(table) = &document.sections[1].items[0] else { panic!("no table") };
        let names: Vec<&str> = table.rows.iter().map(|row| row[0].text.as_str()).collect();
        assert_eq!(names, ["parse < main", "fresh < main", "gone < main", "all other call sites"]);
        assert_eq!(table.rows[2][1..4], ["24 B", NONE, "−24 B"]);
        assert_eq!(document.sections.len(), 2, "figures that no site has are left out");
    }

    /// Before, every such share was 0 %.
    #[test]
    fn a_site_that_shrank_where_all_together_grew_has_a_negative_share() {
        let differences =
            Differences::new([(part("up"), Amounts::Both(0, 150)), (part("down"), Amounts::Both(50, 0))]);
        let table = table(&MEASURES[0], &differences).unwrap();
        let shares: Vec<&str> = table.rows.iter().map(|row| row[4].text.as_str()).collect();
        assert_eq!(shares, ["150 %", "−50.0 %"]);
    }

    /// Before, a call site with 26 calls more was named first where another had 200,000 less, and the latter stood last.
    #[test]
    fn what_shrank_most_comes_first_where_nothing_grew_as_much() {
        let mut figures = DiffFigures::default();
        figures.sites.calls = Differences::new(
            [(part("realloc"), Amounts::Both(200_000, 1)), (part("set"), Amounts::New(260))]
                .into_iter()
                .chain((0..50).map(|i| (part(&format!("small {i}")), Amounts::Both(1, 2)))),
        );
        let document = document(&figures, "");
        let text = document.sections[0].text.concat();
        assert!(
            text.replace('\u{202f}', "").starts_with("realloc makes 199999 fewer calls: 200000 became 1 ("),
            "{text}"
        );
        assert!(text.contains("; set grew most, by 260; total: "), "{text}");
        let Item::Table(table) = &document.sections[1].items[0] else { panic!("no table") };
        let names: Vec<&str> = table.rows.iter().map(|row| row[0].text.as_str()).collect();
        assert_eq!(names, ["realloc", "set", "all other call sites"]);
        assert_eq!(table.rows[2][1..4], ["50", "100", "+50"]);
    }

    /// Before, a total of −196 calls stood as if it were exact where 12,000 more were made.
    #[test]
    fn a_total_of_sampled_profiles_has_the_interval_that_its_samples_give() {
        let of = |all: Option<[i64; 2]>, site: [i64; 2]| {
            let parts = [
                (part("more"), Amounts::Both(100, 200), Some(site)),
                (part("less"), Amounts::Both(104, 0), Some([-250, 42])),
            ];
            let mut figures = DiffFigures::default();
            figures.sites.bytes = Differences { interval: all, ..Differences::estimated(parts) };
            document(&figures, "")
        };
        let text = |document: &Document| document.sections[0].text.concat();
        let open = of(Some([-50, 42]), [60, 140]);
        assert!(
            text(&open).contains(
                "; no difference detected in the total (204 B to 200 B; 95 % interval −50 B to +42 B)."
            ),
            "{}",
            text(&open)
        );
        let Item::Table(table) = &open.sections[0].items[0] else { panic!("no table") };
        assert_eq!(table.rows[2][3..5], ["−4 B", "−50 B to +42 B"]);
        assert!(
            text(&of(Some([1, 42]), [60, 140]))
                .contains("; total: −4 B (204 B to 200 B; 95 % interval +1 B to")
        );
        let of_none = text(&of(Some([-50, 42]), [-1, 9]));
        assert_eq!(of_none, "No difference detected in the samples.");
        let of_all = text(&of(Some([1, 42]), [-1, 9]));
        assert!(of_all.contains("for certain. Bytes allocated, total: −4 B"), "{of_all}");
    }

    /// Before, "No difference detected in the samples." stood above a row that had certainly shrunk, and "some shrank"
    /// named none.
    #[test]
    fn what_shrank_most_is_named_where_nothing_grew() {
        let text = |interval: Option<[i64; 2]>, less: Amounts, new| {
            let mut figures = DiffFigures::default();
            figures.sites.live = Differences::estimated([
                (part("less"), less, interval),
                (part("open"), Amounts::Both(10, 12), interval.map(|_| [-5, 9])),
                (part("new"), Amounts::New(new), interval.map(|_| [20, 60])),
            ]);
            document(&figures, "").sections[0].text.join("|")
        };
        let sampled = text(Some([-900, -300]), Amounts::Both(700, 100), 0);
        assert_eq!(
            sampled.split("; total").next(),
            Some(
                "less retains at the peak 600 B less: 700 B became 100 B (−85.7 %); 95 % interval −900 B to −300 B"
            )
        );
        let exact = text(None, Amounts::Both(700, 100), 0);
        assert!(exact.contains("became 100 B (−85.7 %); open grew most, by 2 B; total"), "{exact}");
        let removed = text(Some([-900, -300]), Amounts::Base(700), 40);
        assert!(
            removed.starts_with("less retains at the peak 700 B less: 700 B became 0 B (−100 %)"),
            "{removed}"
        );
    }

    #[test]
    fn growth_is_a_share_or_how_many_times() {
        assert_eq!(grown(100, 150), "+50.0 %");
        assert_eq!((grown(100, 100).as_str(), grown(100, 25).as_str()), ("0 %", "−75.0 %"));
        assert_eq!(grown(100, 1230), "12.3 times");
    }

    #[test]
    fn recordings_that_are_equal_differ_in_nothing() {
        let document = document(&DiffFigures::default(), "");
        assert_eq!(document.sections[0].text, ["Nothing: every call site allocated and retained the same."]);
        let mut unjoined = DiffFigures::default();
        unjoined.sites.unjoined = Some("Not joined: 1.".into());
        assert_eq!(super::document(&unjoined, "").sections[0].text, ["Not joined: 1."]);
    }

    #[test]
    fn recordings_without_a_common_call_site_are_not_the_same() {
        let mut figures = DiffFigures::default();
        figures.sites.bytes =
            Differences::new([(part("a"), Amounts::Base(300)), (part("b"), Amounts::New(300))]);
        let text = document(&figures, "").sections.remove(0).text.concat();
        assert!(text.contains("Only in the first: 1 call site; only in the second: 1 call site"), "{text}");
        figures.sites.bytes = Differences::new([(part("a"), Amounts::Both(300, 100))]);
        assert_eq!(
            document(&figures, "").sections[0].text,
            ["a allocates 200 B less: 300 B became 100 B (−66.7 %); total: −200 B (300 B to 100 B)."]
        );
    }
}
