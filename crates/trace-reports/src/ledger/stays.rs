//! What stays in memory after the peak although the program has freed it.

use heaptoll_ledger::{Ledger, Snapshot, Term};
use heaptoll_units::whole_bytes;

use super::groups::{DEAD, EMPTY};
use super::headline::headline;

/// Where the program goes on for so long after it has freed what it held, what stays is the first thing to know: it
/// allocates this part of all bytes, as a divisor, works for this part of the time, or makes no call for some time.
const LASTING: u64 = 10;
const LASTING_TIME: u64 = 4;
const IDLE_NS: u64 = 100_000_000;
/// Parts of the free memory that are less, as a divisor, are not named.
const NAMED: u64 = 20;

/// Most of what was live at the peak is freed later, and what is free then is most of the resident set.
#[derive(Debug, Clone, Copy)]
pub struct Stays<'a> {
    peak: &'a Snapshot,
    later: &'a Snapshot,
    is_last: bool,
    /// Whether the program goes on like this.
    pub leads: bool,
}

impl<'a> Stays<'a> {
    /// That of a ledger; none where what is freed is given back, or is live again later.
    pub fn of(ledger: &'a Ledger) -> Option<Stays<'a>> {
        let snapshots = &ledger.snapshots;
        let peak = &snapshots[ledger.peak()?];
        let first = 1 + snapshots.iter().rposition(|snapshot| snapshot.live_bytes > peak.live_bytes / 2)?;
        let full = &snapshots[first - 1];
        // What holds the pages may be freed, too, before the program ends: of the snapshots with nearly most that is free, the
        // one that is longest the newest; and how long there are such.
        let stays = |of: &'a [Snapshot]| {
            let most = of.iter().map(free).max()?;
            let is_like_this = |snapshot: &&Snapshot| free(snapshot) >= most - most / NAMED;
            let like_this: Vec<&Snapshot> = of.iter().filter(is_like_this).collect();
            let time = |from: &Snapshot, to: &Snapshot| to.time_ns.saturating_sub(from.time_ns);
            let longest = like_this.windows(2).max_by_key(|pair| time(pair[0], pair[1]));
            let (first, last) = (like_this.first()?, like_this.last()?);
            let lasts = time(first, last) >= last.time_ns / LASTING_TIME;
            // Where it does not last, those may be of the middle of the frees, and all be given back after them.
            Some((longest.filter(|_| lasts).map_or(of.last()?, |pair| pair[0]), lasts))
        };
        let before_last_frees = ledger.before_last_frees().get(first..).and_then(stays);
        let (later, lasts) = before_last_frees.or_else(|| stays(&snapshots[first..]))?;
        let free = free(later);
        let freed = live(peak).saturating_sub(live(later));
        if free < later.rss_bytes / 2 || free < live(peak) / 2 || freed < free / 4 {
            return None;
        }
        let works = ledger.before_last_frees().get(first..).and_then(<[Snapshot]>::last).is_some_and(|on| {
            on.clock_bytes.saturating_sub(full.clock_bytes) >= on.clock_bytes / LASTING
                || on.time_ns.saturating_sub(full.time_ns) >= on.time_ns / LASTING_TIME
        });
        let rests = snapshots[first..]
            .chunk_by(|one, next| one.events == next.events)
            .any(|same| same.iter().map(|snapshot| snapshot.idle_ns).sum::<u64>() >= IDLE_NS);
        let is_last = snapshots.last().is_some_and(|last| std::ptr::eq(last, later));
        // It may also last although next to nothing is allocated from then on.
        Some(Stays { peak, later, is_last, leads: works || rests || lasts })
    }

    /// Whether most of the free memory is on pages with live blocks.
    pub fn is_pinned(&self) -> bool {
        self.later.amount(Term::External).resident >= free(self.later) / 2
    }

    /// States it.
    pub fn sentence(&self, manager: &str) -> String {
        let (later, free) = (self.later, free(self.later));
        let of = |terms: &[Term]| resident(later, terms);
        let parts = [
            (of(&[Term::External]), "on pages that live blocks pin".to_owned()),
            (of(&EMPTY), format!("on pages without a live block, which {manager} keeps")),
            (of(&DEAD), format!("that {manager} has not reclaimed")),
        ];
        let named = parts.into_iter().filter(|(bytes, _)| *bytes > free / NAMED).collect::<Vec<_>>();
        let each = |(bytes, what): &(u64, String)| format!("{} {what}", whole_bytes(*bytes));
        let parts = match &named[..] {
            [(_, what)] => format!(", {what}"),
            all => format!(": {}", all.iter().map(each).collect::<Vec<_>>().join(", ")),
        };
        format!(
            "{} of the {} live at the snapshot shown below are freed later, and at {} snapshot {} of free memory are resident{}. {}",
            whole_bytes(live(self.peak).saturating_sub(live(later))),
            whole_bytes(live(self.peak)),
            if self.is_last { "the last" } else { "a later" },
            whole_bytes(free),
            parts,
            headline("Then", later)
        )
    }
}

fn resident(snapshot: &Snapshot, terms: &[Term]) -> u64 {
    terms.iter().map(|&term| snapshot.amount(term).resident).sum()
}

fn live(snapshot: &Snapshot) -> u64 {
    snapshot.amount(Term::Live).resident
}

/// Resident bytes of the heap that the program has freed, or has never had.
fn free(snapshot: &Snapshot) -> u64 {
    resident(snapshot, &[Term::External]) + resident(snapshot, &EMPTY) + resident(snapshot, &DEAD)
}

#[cfg(test)]
mod tests {
    use heaptoll_ledger::{Amount, How, LedgerLine, LivePeak};

    use super::*;

    /// A snapshot of these bytes: live, free on live pages, and free on other pages.
    fn snapshot(clock_bytes: u64, [live, external, caches]: [u64; 3]) -> Snapshot {
        let line = |(term, resident)| LedgerLine {
            term,
            amount: Amount { resident, ..Amount::default() },
            how: How::Counted,
        };
        let lines = [(Term::Live, live), (Term::External, external), (Term::Caches, caches)].map(line);
        Snapshot {
            time_ns: clock_bytes,
            clock_bytes,
            rss_bytes: live + external + caches,
            live_bytes: live,
            lines: lines.into(),
            ..Snapshot::default()
        }
    }

    fn ledger(snapshots: impl IntoIterator<Item = (u64, [u64; 3])>) -> Ledger {
        let snapshots = snapshots.into_iter().map(|(clock, bytes)| snapshot(clock, bytes)).collect();
        Ledger { manager: "glibc".into(), snapshots, ..Ledger::default() }
    }

    /// A cache was freed and stayed resident, and the ledger described the one time or the other.
    /// The last snapshot was described: when the program had freed what held the pages, before it returned.
    #[test]
    fn what_stayed_for_long_is_described_though_it_is_given_back_before_the_end() {
        let full = (400, [390, 5, 0]);
        let plateau =
            ledger([full, (401, [4, 380, 0]), (800, [4, 380, 0]), (900, [4, 1, 383]), (901, [4, 1, 9])]);
        let stays = Stays::of(&plateau).expect("it stayed");
        assert!(stays.leads && stays.is_pinned());
        assert_eq!(stays.later.clock_bytes, 401);
        assert!(
            stays.sentence("glibc").contains(" and at a later snapshot 380 B "),
            "{}",
            stays.sentence("glibc")
        );
    }

    /// A snapshot in the middle of the last frees was called the last, and the table had another without that memory.
    #[test]
    fn what_the_last_frees_give_back_does_not_stay() {
        let full = (400, [390, 5, 0]);
        let gives_back = [full, (401, [4, 1, 380]), (402, [0, 1, 9])];
        assert!(Stays::of(&ledger(gives_back)).is_none());
        let later = Stays::of(&ledger([full, (401, [4, 1, 380]), (402, [0, 1, 300])]))
            .map(|stays| stays.sentence("glibc"));
        assert!(
            later.as_ref().is_some_and(|text| text.contains(" at the last snapshot 301 B ")),
            "{later:?}"
        );
    }

    /// A service that makes small calls for most of its run has hardly allocated when it ends.
    #[test]
    fn what_stays_for_a_quarter_of_the_time_leads_though_next_to_nothing_is_allocated() {
        let full = (400, [390, 5, 0]);
        let at = |time_ns: u64| (time_ns, [4, 386, 0]);
        let until = |last| {
            let mut ledger = ledger([full, (401, [300, 90, 0]), at(401), at(402)]);
            ledger.live_peak = Some(LivePeak { live_bytes: 390, clock_bytes: 400, ..LivePeak::default() });
            ledger.snapshots[3].time_ns = last;
            Stays::of(&ledger).map(|stays| stays.leads)
        };
        assert_eq!((until(500), until(600)), (Some(false), Some(true)));
    }

    /// It was shown as it was before the last frees of it.
    #[test]
    fn what_stays_is_as_it_is_when_all_of_it_is_freed() {
        let frees = ledger([(400, [390, 5, 0]), (401, [16, 1, 370]), (402, [1, 1, 386]), (900, [0, 1, 387])]);
        let later = Stays::of(&frees).map(|stays| stays.later.clock_bytes);
        assert_eq!(later, Some(402));
    }

    #[test]
    fn what_is_freed_and_stays_leads_where_the_program_goes_on() {
        let full = (400, [390, 5, 0]);
        let works = ledger([full, (401, [4, 1, 390]), (900, [4, 1, 391])]);
        let stays = Stays::of(&works).expect("it stays");
        assert!(stays.leads && !stays.is_pinned());
        let sentence = stays.sentence("glibc");
        assert!(
            sentence.starts_with(
                "386 B of the 390 B live at the snapshot shown below are freed later, and at a later snapshot 391 B of free memory are resident, on pages \
                 without a live block, which glibc keeps. Then, after "
            ),
            "{sentence}"
        );
        let halves = ledger([full, (401, [4, 200, 191]), (900, [4, 200, 191])]);
        let sentence = Stays::of(&halves).map(|stays| stays.sentence("glibc"));
        let parts =
            " are resident: 200 B on pages that live blocks pin, 191 B on pages without a live block, ";
        assert!(sentence.as_ref().is_some_and(|text| text.contains(parts)), "{sentence:?}");
        let mut idle = ledger([full, (401, [4, 391, 0]), (401, [4, 391, 0])]);
        assert!(Stays::of(&idle).is_some_and(|stays| !stays.leads && stays.is_pinned()), "it ends");
        idle.snapshots[1..].iter_mut().for_each(|snapshot| snapshot.idle_ns = IDLE_NS / 2);
        assert!(Stays::of(&idle).is_some_and(|stays| stays.leads), "it makes no call");
        // One before the last frees is described.
        let ends = ledger([full, (401, [100, 200, 0]), (900, [40, 340, 0]), (900, [0, 391, 0])]);
        assert_eq!(Stays::of(&ends).map(|stays| stays.later.live_bytes), Some(40));
    }

    #[test]
    fn what_is_in_use_again_or_given_back_does_not_stay() {
        let full = [390, 5, 0];
        for (snapshots, why) in [
            (vec![(400, full)], "it ends"),
            (vec![(400, full), (500, [300, 95, 0])], "most is in use"),
            (vec![(400, full), (500, [4, 1, 40])], "given back"),
            (vec![(400, full), (401, [4, 1, 390]), (800, full)], "in use again"),
            (vec![(400, [10, 380, 5]), (900, [4, 386, 5])], "free at the peak as well"),
        ] {
            assert!(Stays::of(&ledger(snapshots)).is_none(), "{why}");
        }
        assert!(Stays::of(&Ledger::default()).is_none());
    }
}
