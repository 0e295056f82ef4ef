//! The share that one kind of memory has of the resident set, and who it belongs to.

use heaptoll_ledger::{Snapshot, Term};
use heaptoll_report::document::{Column, Item, Section, Table};
use heaptoll_units::{part, whole_bytes};

/// Names in the sentence.
const NAMED: usize = 5;

/// `75.0 % of the resident set are live: 300 B. Call sites that hold most: main 300 B.` The largest of `named` come first;
/// the sentence has few.
pub fn sentence(
    (snapshot, term): (&Snapshot, Term),
    what: &str,
    who: &str,
    named: impl Iterator<Item = (String, u64)>,
) -> String {
    let resident = snapshot.amount(term).resident;
    let named = named.take(NAMED).filter(|(_, bytes)| *bytes > 0);
    let named: Vec<String> = named.map(|(name, bytes)| format!("{name} {}", whole_bytes(bytes))).collect();
    format!(
        "{} of the resident set are {what}: {}. {who}: {}.",
        part(resident, snapshot.rss_bytes),
        whole_bytes(resident),
        named.join("; ")
    )
}

/// A section of one table.
pub fn section(title: &str, columns: Vec<Column>, rows: Vec<Vec<String>>, note: &str) -> Section {
    let table = Table { columns, rows, notes: vec![note.into()], ..Table::default() };
    Section { title: title.into(), text: Vec::new(), items: vec![Item::Table(table)] }
}
