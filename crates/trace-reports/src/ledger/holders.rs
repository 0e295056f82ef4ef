//! Who holds the live memory: the call sites that allocated the live blocks.

use heaptoll_ledger::{LiveHolder, LiveHolders, Snapshot, Term};
use heaptoll_report::document::{Section, Table};
use heaptoll_report::format::{count, plural, seconds};
use heaptoll_trace_analysis::stacks::CallSites;
use heaptoll_units::{kib, per_hundred, whole_bytes};

use super::share;
use super::site_rows::merged;

/// Rows of the table.
const ROWS: usize = 20;
/// The document has the sentence where live bytes are at least this part of the resident set, as a divisor.
const NOTABLE: u64 = 20;

/// The part of the document on live memory, and the sentence that it may begin with.
pub struct Shown {
    /// Names the sites that hold most, where that matters.
    pub sentence: Option<String>,
    /// The section.
    pub section: Section,
}

/// Who holds what is live in a snapshot; none where call sites were not recorded, or nothing is live.
pub fn shown(snapshot: &Snapshot, call_sites: &mut CallSites) -> Option<Shown> {
    let holders = snapshot.holders.as_ref()?;
    let rows = rows(holders, call_sites);
    if !holders.sites.iter().any(|holder| holder.site != 0 && holder.bytes > 0) {
        return None;
    }
    let text = format!(
        "After {} s, {} were live in {}.",
        seconds(snapshot.time_ns as f64 / 1e9),
        whole_bytes(snapshot.live_bytes),
        plural(snapshot.live_blocks as usize, "block")
    );
    let table = table(&rows, &holders.others, snapshot.live_bytes);
    let section = Section::new("Who allocated the live memory").state(text).with(table);
    let is_notable = snapshot.amount(Term::Live).resident >= snapshot.rss_bytes / NOTABLE;
    Some(Shown { sentence: is_notable.then(|| sentence(&rows, snapshot)), section })
}

/// The sites of a snapshot by row, those that hold most first; stacks that read alike are one.
fn rows(holders: &LiveHolders, call_sites: &mut CallSites) -> Vec<(String, LiveHolder)> {
    let merged =
        merged(&holders.sites, call_sites, |holder| holder.site, LiveHolder::add, |holder| holder.bytes);
    merged.into_iter().map(|(row, holder)| (call_sites.name(row), holder)).collect()
}

fn sentence(rows: &[(String, LiveHolder)], snapshot: &Snapshot) -> String {
    let named = rows.iter().map(|(name, holder)| (name.clone(), holder.bytes));
    share::sentence((snapshot, Term::Live), "live", "Call sites with the most live memory", named)
}

fn table(rows: &[(String, LiveHolder)], others: &LiveHolder, live_bytes: u64) -> Table {
    let mut others = ("all other call sites".to_owned(), *others);
    rows.iter().skip(ROWS).for_each(|(_, holder)| others.1.add(holder));
    let others = Some(others).filter(|(_, holder)| holder.bytes > 0);
    Table::of(rows.iter().take(ROWS).chain(&others))
        .sites("Call site of the live blocks", |(name, _)| name.clone())
        .figure("Live KiB", |(_, holder)| kib(holder.bytes))
        .figure("%", |(_, holder)| per_hundred(holder.bytes, live_bytes))
        .figure("Blocks", |(_, holder)| count(holder.blocks as f64))
        .note("Live: requested and not freed, resident or not.")
        .table()
}

#[cfg(test)]
mod tests {
    use heaptoll_ledger::{Amount, How, LedgerLine};
    use heaptoll_trace::{Frame, Site, Sites};

    use super::*;
    use heaptoll_report::document::Item;

    #[test]
    fn the_sentence_names_the_five_call_sites_that_hold_most() {
        let frame = |function: String| Frame { function, object: "/bin/p".into(), ..Frame::default() };
        let sites = Sites {
            frames: (0..9).map(|at| frame(format!("f{at}"))).collect(),
            // 7 and 8 read alike.
            sites: (0..9).map(|at| Site { frames: if at == 0 { vec![] } else { vec![at.min(7)] } }).collect(),
        };
        let holder = |site: u32| LiveHolder { site, blocks: 1, bytes: u64::from(site) * 10 };
        let holders = LiveHolders { sites: (1..9).rev().map(holder).collect(), others: holder(3) };
        let amount = Amount { resident: 300, ..Amount::default() };
        let snapshot = Snapshot {
            rss_bytes: 400,
            live_bytes: 390,
            lines: vec![LedgerLine { term: Term::Live, amount, how: How::Counted }],
            holders: Some(holders),
            ..Snapshot::default()
        };
        let mut call_sites = CallSites::new(&sites, heaptoll_callsites::FRAMES);
        let found = shown(&snapshot, &mut call_sites).expect("sites");
        let held = "f7 150 B; f6 60 B; f5 50 B; f4 40 B; f3 30 B.";
        let sentence = found.sentence.expect("most is live");
        assert!(sentence.starts_with("75.0 % of RSS are live: 300 B."), "{sentence}");
        assert!(sentence.ends_with(held), "{sentence}");
        let Item::Table(table) = &found.section.items[0] else { panic!("no table") };
        assert_eq!(table.rows.len(), 8, "seven and the others");
        let unknown = Snapshot {
            holders: Some(LiveHolders { sites: vec![holder(0)], ..LiveHolders::default() }),
            ..snapshot
        };
        assert!(shown(&unknown, &mut call_sites).is_none());
        assert!(shown(&Snapshot::default(), &mut call_sites).is_none());
    }
}
