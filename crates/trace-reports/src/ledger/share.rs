//! The share that one kind of memory has of the resident set, and who it belongs to.

use heaptoll_ledger::{Snapshot, Term};
use heaptoll_report::format::plural;
use heaptoll_units::{part, whole_bytes};

/// Names in the sentence.
const NAMED: usize = 5;
/// What is less than this part of the whole, as a divisor, is not stated.
const NOTABLE: u64 = 20;

/// `75.0 % of the resident set are live: 300 B. Call sites that hold most: main 300 B.` The largest of `named` come first;
/// the sentence has few. Names may have more than is resident: then the sentence states how much is not, be it little.
pub fn sentence(
    (snapshot, term): (&Snapshot, Term),
    what: &str,
    who: &str,
    named: impl Iterator<Item = (String, u64)>,
) -> String {
    let amount = snapshot.amount(term);
    let resident = amount.resident;
    let absent = amount.absent + amount.swapped;
    let named: Vec<(String, u64)> = named.take(NAMED).filter(|(_, bytes)| *bytes > 0).collect();
    let exceed = named.iter().map(|(_, bytes)| bytes).sum::<u64>() > resident;
    let not_resident = match term {
        Term::Live if absent >= snapshot.whole() / NOTABLE || exceed && absent > 0 => {
            format!(
                "{} more are {what} and not resident: never touched, given back or swapped. ",
                whole_bytes(absent)
            )
        }
        _ => String::new(),
    };
    let named: Vec<String> =
        named.iter().map(|(name, bytes)| format!("{name} {}", whole_bytes(*bytes))).collect();
    format!(
        "{} of RSS are {what}: {}. {not_resident}{who}: {}.",
        part(resident, snapshot.whole()),
        whole_bytes(resident),
        named.join("; ")
    )
}

/// A sentence on the stacks of threads; none where they are little of the resident set.
pub fn stacks(snapshot: &Snapshot) -> Option<String> {
    let resident = snapshot.amount(Term::Stacks).resident;
    let of = match snapshot.threads {
        0 => String::new(),
        threads => format!(" of {}", plural(threads as usize, "thread")),
    };
    (resident > 0 && resident >= snapshot.rss_bytes / NOTABLE).then(|| {
        format!("{} of RSS are stacks: {}{of}.", part(resident, snapshot.whole()), whole_bytes(resident))
    })
}

#[cfg(test)]
mod tests {
    use heaptoll_ledger::{Amount, How, LedgerLine};

    use super::*;

    /// "103 % of the resident set are live", and 200 MiB of names after "live: 8 MiB".
    #[test]
    fn a_share_is_at_most_the_whole_and_what_is_live_and_not_resident_is_stated() {
        let line = |resident, absent| LedgerLine {
            term: Term::Live,
            amount: Amount { resident, absent, ..Amount::default() },
            how: How::Counted,
        };
        let text = |line, bytes| {
            let snapshot = Snapshot { rss_bytes: 100, lines: vec![line], ..Snapshot::default() };
            sentence((&snapshot, Term::Live), "live", "Who", std::iter::once(("f".to_owned(), bytes)))
        };
        assert_eq!(text(line(103, 4), 99), "100 % of RSS are live: 103 B. Who: f 99 B.");
        // Before, a call site held more than all live bytes.
        assert_eq!(
            text(line(90, 3), 93),
            "90.0 % of RSS are live: 90 B. 3 B more are live and not resident: never touched, given back or swapped. Who: f 93 B."
        );
        assert_eq!(
            text(line(90, 310), 400),
            "90.0 % of RSS are live: 90 B. 310 B more are live and not resident: never touched, given back or swapped. Who: f 400 B."
        );
    }

    #[test]
    fn stacks_that_are_much_of_the_resident_set_have_a_sentence() {
        let amount = Amount { resident: 60, ..Amount::default() };
        let line = LedgerLine { term: Term::Stacks, amount, how: How::Counted };
        let mut snapshot = Snapshot { rss_bytes: 100, threads: 9, lines: vec![line], ..Snapshot::default() };
        let text = "60.0 % of RSS are stacks: 60 B of 9 threads.";
        assert_eq!(stacks(&snapshot).as_deref(), Some(text));
        snapshot.rss_bytes = 10_000;
        assert_eq!(stacks(&snapshot), None);
    }
}
