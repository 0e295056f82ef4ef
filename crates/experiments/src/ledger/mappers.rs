//! Who mapped the memory that is not the heap's, nor any file's.

use heaptoll_ledger::{Mapper, Snapshot, Term};
use heaptoll_report::document::{Column, Item, Section, Table};
use heaptoll_trace_analysis::stacks::CallSites;
use heaptoll_units::{kib, part, whole_bytes};

/// Less than this part of the resident set, as a divisor, is not attributed.
const NOTABLE: u64 = 20;
/// Call sites in the sentence.
const NAMED: usize = 5;

/// A sentence that names the callers of `mmap` with most in memory, and a section of them; none where that is little of the
/// resident set.
pub fn shown(snapshot: &Snapshot, call_sites: &mut CallSites) -> Option<(String, Section)> {
    let rows = rows(&snapshot.mappers, call_sites);
    let mapped: u64 = rows.iter().map(|(_, mapper)| mapper.resident).sum();
    if mapped == 0 || mapped < snapshot.rss_bytes / NOTABLE {
        return None;
    }
    let named = rows.iter().take(NAMED).filter(|(_, mapper)| mapper.resident > 0);
    let named = named.map(|(name, mapper)| format!("{name} {}", whole_bytes(mapper.resident)));
    let resident = snapshot.amount(Term::OtherAnonymous).resident;
    let sentence = format!(
        "{} of the resident set are other anonymous memory: {}. Who called mmap: {}.",
        part(resident, snapshot.rss_bytes),
        whole_bytes(resident),
        named.collect::<Vec<_>>().join("; ")
    );
    let lines = rows.iter().map(|(name, mapper)| vec![name.clone(), kib(mapper.resident), kib(mapper.bytes)]);
    let table = Table {
        columns: vec![
            Column::sites("Call site of mmap"),
            Column::figures("Resident KiB"),
            Column::figures("Mapped KiB"),
        ],
        rows: lines.collect(),
        notes: vec!["Calls for 256 KiB and more, as far as they are still mapped and hold no heap.".into()],
        ..Table::default()
    };
    let section = Section {
        title: "Who mapped other memory".into(),
        text: Vec::new(),
        items: vec![Item::Table(table)],
    };
    Some((sentence, section))
}

/// The call sites by row; stacks that read alike are one.
fn rows(mappers: &[Mapper], call_sites: &mut CallSites) -> Vec<(String, Mapper)> {
    let mut by_row: Vec<(usize, Mapper)> = Vec::new();
    for mapper in mappers {
        let row = call_sites.row(mapper.site);
        match by_row.iter_mut().find(|(known, _)| *known == row) {
            Some((_, sum)) => {
                sum.bytes += mapper.bytes;
                sum.resident += mapper.resident;
            }
            None => by_row.push((row, *mapper)),
        }
    }
    by_row.sort_by_key(|(_, mapper)| std::cmp::Reverse(mapper.resident));
    by_row.into_iter().map(|(row, mapper)| (call_sites.name(row), mapper)).collect()
}

#[cfg(test)]
mod tests {
    use heaptoll_ledger::{Amount, How, LedgerLine};
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
        let mapper = |site: u32, resident: u64| Mapper { site, bytes: resident, resident };
        let amount = Amount { resident: 300, ..Amount::default() };
        let snapshot = Snapshot {
            rss_bytes: 400,
            lines: vec![LedgerLine { term: Term::OtherAnonymous, amount, how: How::Counted }],
            mappers: vec![mapper(2, 100), mapper(1, 80), mapper(3, 60)],
            ..Snapshot::default()
        };
        let mut call_sites = CallSites::new(&sites, heaptoll_callsites::FRAMES);
        let (sentence, section) = shown(&snapshot, &mut call_sites).expect("mappers");
        assert!(sentence.starts_with("75.0 % of the resident set are other anonymous memory"), "{sentence}");
        assert!(sentence.ends_with("Who called mmap: pool 140 B; arena 100 B."), "{sentence}");
        let Item::Table(table) = &section.items[0] else { panic!("no table") };
        assert_eq!(table.rows.len(), 2);
        assert!(shown(&Snapshot { rss_bytes: 10_000, ..snapshot }, &mut call_sites).is_none());
    }
}
