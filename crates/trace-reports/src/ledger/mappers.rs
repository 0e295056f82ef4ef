//! Who mapped the memory that is not the heap's.

use heaptoll_ledger::{Mapper, Snapshot, Term};
use heaptoll_report::document::{Section, Table};
use heaptoll_trace_analysis::stacks::CallSites;
use heaptoll_units::kib;

use super::groups::line_name;
use super::share;
use super::site_rows::merged;

/// Less than this part of the resident set, as a divisor, is not attributed.
const NOTABLE: u64 = 20;

/// A sentence that names the callers of `mmap` with most of a line in memory, and a section of them; none where that is little
/// of the resident set.
pub fn shown(snapshot: &Snapshot, term: Term, call_sites: &mut CallSites) -> Option<(String, Section)> {
    let what = line_name(term);
    let mappers: Vec<Mapper> =
        snapshot.mappers.iter().copied().filter(|mapper| mapper.term == term).collect();
    let rows = rows(&mappers, call_sites);
    let mapped: u64 = rows.iter().map(|(_, mapper)| mapper.resident).sum();
    if mapped == 0 || mapped < snapshot.rss_bytes / NOTABLE {
        return None;
    }
    let named = rows.iter().map(|(name, mapper)| (name.clone(), mapper.resident));
    let sentence = share::sentence((snapshot, term), what, "Who called mmap", named);
    let table = Table::of(&rows)
        .sites("Call site of mmap", |(name, _)| name.clone())
        .figure("Resident KiB", |(_, mapper)| kib(mapper.resident))
        .figure("Mapped KiB", |(_, mapper)| kib(mapper.bytes))
        .note("Parts of mappings of 256 KiB and more that are still mapped and contain no heap.");
    Some((sentence, Section::new(format!("Who mapped {what}")).with(table)))
}

/// The call sites by row; stacks that read alike are one.
fn rows(mappers: &[Mapper], call_sites: &mut CallSites) -> Vec<(String, Mapper)> {
    let add = |sum: &mut Mapper, other: &Mapper| {
        sum.bytes += other.bytes;
        sum.resident += other.resident;
    };
    let merged = merged(mappers, call_sites, |mapper| mapper.site, add, |mapper| mapper.resident);
    merged.into_iter().map(|(row, mapper)| (call_sites.name(row), mapper)).collect()
}

#[cfg(test)]
mod tests {
    use heaptoll_ledger::{Amount, How, LedgerLine};
    use heaptoll_report::document::Item;
    use heaptoll_trace::{Frame, Site, Sites};

    use super::*;

    #[test]
    fn the_sentence_names_the_callers_of_mmap() {
        let frame =
            |function: &str| Frame { function: function.into(), object: "/bin/p".into(), ..Frame::default() };
        let sites = Sites {
            frames: vec![frame("pool"), frame("arena")],
            sites: [vec![], vec![0], vec![1], vec![0]].map(|frames| Site { frames }).into(),
        };
        let mapper =
            |site: u32, resident: u64| Mapper { site, bytes: resident, resident, ..Mapper::default() };
        let amount = Amount { resident: 300, ..Amount::default() };
        let snapshot = Snapshot {
            rss_bytes: 400,
            lines: vec![LedgerLine { term: Term::OtherAnonymous, amount, how: How::Counted }],
            mappers: vec![
                Mapper { term: Term::Shared, ..mapper(2, 900) },
                mapper(2, 100),
                mapper(1, 80),
                mapper(3, 60),
            ],
            ..Snapshot::default()
        };
        let mut call_sites = CallSites::new(&sites, heaptoll_callsites::FRAMES);
        let (sentence, section) = shown(&snapshot, Term::OtherAnonymous, &mut call_sites).expect("mappers");
        assert!(sentence.starts_with("75.0 % of RSS are other anonymous memory"), "{sentence}");
        assert!(sentence.ends_with("Who called mmap: pool 140 B; arena 100 B."), "{sentence}");
        let Item::Table(table) = &section.items[0] else { panic!("no table") };
        assert_eq!(table.rows.len(), 2);
        let (sentence, _) = shown(&snapshot, Term::Shared, &mut call_sites).expect("a mapper");
        assert!(sentence.ends_with("Who called mmap: arena 900 B."), "{sentence}");
        let large = Snapshot { rss_bytes: 100_000, ..snapshot };
        assert!(shown(&large, Term::OtherAnonymous, &mut call_sites).is_none());
    }
}
