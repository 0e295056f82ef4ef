//! Which variables the static data is.

use heaptoll_ledger::{Ledger, Snapshot, StaticVariable, Term};
use heaptoll_report::document::{Section, Table};
use heaptoll_units::kib;

use super::share;

/// The sentence names variables of at least this part of static data, as a divisor.
const NOTABLE: u64 = 100;

/// A sentence that names the largest variables, and a section of them; none where static data is little of the resident set.
pub fn shown(ledger: &Ledger, snapshot: &Snapshot) -> Option<(String, Section)> {
    let variables = &ledger.static_variables;
    let resident = snapshot.amount(Term::StaticData).resident;
    let is_notable = |variable: &&StaticVariable| variable.resident >= resident / NOTABLE;
    let mut named = variables.iter().filter(is_notable).peekable();
    named.peek()?;
    let named = named.map(|variable| {
        let file = variable.file.rsplit('/').next().unwrap_or_default();
        (format!("{} of {file}", variable.name), variable.resident)
    });
    let sentence = share::sentence((snapshot, Term::StaticData), "static data", "The largest", named);
    let table = Table::of(variables)
        .text("Variable", |variable| variable.name.clone())
        .text("File", |variable| variable.file.clone())
        .figure("Resident KiB", |variable| kib(variable.resident))
        .figure("KiB", |variable| kib(variable.bytes))
        .note("Variables of stripped files have no names, and are missing.");
    Some((sentence, Section::new("The largest variables of static data").with(table)))
}

#[cfg(test)]
mod tests {
    use heaptoll_ledger::{Amount, How, LedgerLine};

    use super::*;

    #[test]
    fn the_sentence_names_the_largest_variables() {
        let amount = Amount { resident: 3 << 20, ..Amount::default() };
        let lines = vec![LedgerLine { term: Term::StaticData, amount, how: How::Counted }];
        let snapshot = Snapshot { rss_bytes: 4 << 20, lines, ..Snapshot::default() };
        let variable = |name: &str, resident| StaticVariable {
            name: name.into(),
            file: "/usr/bin/p".into(),
            bytes: 9 << 20,
            resident,
        };
        let static_variables = vec![variable("buffer", 2 << 20), variable("table", 1 << 20)];
        let ledger = Ledger { static_variables, ..Ledger::default() };
        let (sentence, _) = shown(&ledger, &snapshot).expect("variables");
        assert_eq!(
            sentence,
            "75.0 % of RSS are static data: 3.00 MiB. The largest: buffer of p 2.00 MiB; table of p 1.00 MiB."
        );
        assert!(shown(&Ledger::default(), &snapshot).is_none());
    }
}
