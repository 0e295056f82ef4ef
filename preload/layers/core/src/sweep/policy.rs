//! When to collect: how many bytes may be allocated, or in the guard layer freed, before the next collection.

use crate::sweep::settings::Settings;

/// Bytes that may be on top of the headroom.
pub const LEAST_HEADROOM: usize = 256 << 10;
/// So often the budget doubles while collections are aborted.
const MOST_DOUBLINGS: u32 = 20;

/// What is kept from one collection to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    settings: Settings,
    budget: usize,
    aborts: u32,
    collections: u64,
}

impl Policy {
    /// By these settings.
    pub const fn new(settings: Settings) -> Policy {
        Policy { settings, budget: LEAST_HEADROOM, aborts: 0, collections: 0 }
    }

    /// The budget at start, bytes.
    pub fn first(&mut self) -> usize {
        self.next_pass(0, 0)
    }

    fn wanted(&self, read: usize) -> usize {
        match (self.settings.every, self.settings.heap) {
            (Some(every), _) => every,
            (None, Some(_)) => usize::MAX,
            (None, None) => {
                (read / 100).saturating_mul(self.settings.headroom).saturating_add(LEAST_HEADROOM)
            }
        }
    }

    /// The budget after a collection that found so much live and read so much of roots, bytes.
    pub fn next(&mut self, live: usize, roots: usize) -> usize {
        self.aborts = 0;
        self.budget = self.wanted(live.saturating_add(roots));
        self.budget
    }

    /// How many of the bytes that were allocated before a collection count towards the next: those beyond a period, so
    /// that there are as many collections as periods and not as many as calls that passed one; none where single calls
    /// are larger than it.
    pub fn carried(&self, allocated: usize) -> usize {
        let beyond = self.settings.every.map_or(0, |every| allocated.saturating_sub(every));
        if beyond < self.settings.every.unwrap_or(0) { beyond } else { 0 }
    }

    /// The budget after a pass of the guard layer that read so much and found words that lead to freed blocks of `kept`
    /// bytes. At the bound of what waits there is still a pass for every [`LEAST_HEADROOM`] bytes only, as what is kept
    /// may be more.
    pub fn next_pass(&mut self, read: usize, kept: usize) -> usize {
        let left = self.settings.waiting.saturating_sub(kept).max(LEAST_HEADROOM);
        self.budget = self.next(read, 0).min(left);
        self.budget
    }

    /// The budget after an aborted collection, bytes. It doubles each time: one that waits for a thread in vain costs
    /// the whole patience, and the next one will hardly fare better.
    pub fn after_abort(&mut self) -> usize {
        self.aborts = MOST_DOUBLINGS.min(self.aborts + 1);
        self.budget.max(LEAST_HEADROOM).saturating_mul(1 << (self.aborts - 1))
    }

    /// Whether the collection that is about to be made reclaims.
    pub fn reclaims(&mut self) -> bool {
        self.collections += 1;
        self.collections.is_multiple_of(self.settings.reclaim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::settings::HEADROOM;

    #[test]
    fn a_period_is_kept_whatever_is_live() {
        let mut policy = Policy::new(Settings { every: Some(64 << 10), ..Settings::new() });
        assert_eq!(policy.first(), 64 << 10);
        assert_eq!([(0, 0), (1 << 40, 5)].map(|(live, roots)| policy.next(live, roots)), [64 << 10; 2]);
    }

    /// Blocks of 100 000 bytes every 256 KiB came to 666 collections where 763 periods had passed.
    #[test]
    fn collections_do_not_drift_from_their_period() {
        let mut policy = Policy::new(Settings { every: Some(256 << 10), ..Settings::new() });
        let (budget, mut since, mut collections) = (policy.first(), 0, 0);
        for _ in 0..2000 {
            since += 100_000;
            if since > budget {
                assert_eq!(policy.next(0, 0), budget);
                since = policy.carried(since);
                collections += 1;
            }
        }
        assert_eq!(collections, 2000 * 100_000 / (256 << 10));
        assert_eq!([0, 256 << 10, 512 << 10, 1 << 30].map(|since| policy.carried(since)), [0; 4]);
        assert_eq!(Policy::new(Settings::new()).carried(1 << 20), 0);
    }

    #[test]
    fn by_itself_it_is_in_proportion() {
        let mut policy = Policy::new(Settings::new());
        assert_eq!(policy.first(), LEAST_HEADROOM);
        assert_eq!(policy.next(90 << 20, 10 << 20), (100 << 20) / 100 * HEADROOM + LEAST_HEADROOM);
    }

    #[test]
    fn what_waits_is_bounded_and_passes_have_a_least_distance() {
        let settings = Settings { headroom: 50, waiting: 4 << 20, ..Settings::new() };
        let mut policy = Policy::new(settings);
        assert_eq!(policy.first(), LEAST_HEADROOM);
        assert_eq!(policy.next_pass(1 << 20, 0), (1 << 20) / 100 * 50 + LEAST_HEADROOM);
        assert_eq!(policy.next_pass(1 << 30, 0), 4 << 20);
        assert_eq!(policy.next_pass(1 << 30, 3 << 20), 1 << 20);
        assert_eq!(policy.next_pass(1 << 30, 1 << 40), LEAST_HEADROOM);
    }

    #[test]
    fn with_a_heap_limit_alone_nothing_but_the_limit_collects() {
        let mut policy = Policy::new(Settings { heap: Some(1 << 20), ..Settings::new() });
        assert_eq!((policy.first(), policy.next(5, 5)), (usize::MAX, usize::MAX));
    }

    #[test]
    fn aborts_double_the_budget_and_success_resets_it() {
        let mut policy = Policy::new(Settings { every: Some(1), ..Settings::new() });
        policy.first();
        let waits = [(); 3].map(|()| policy.after_abort());
        assert_eq!(waits, [LEAST_HEADROOM, 2 * LEAST_HEADROOM, 4 * LEAST_HEADROOM]);
        assert_eq!(policy.next(0, 0), 1);
        assert_eq!(policy.after_abort(), LEAST_HEADROOM);
        for _ in 0..100 {
            policy.after_abort();
        }
    }

    #[test]
    fn every_fourth_reclaims() {
        let mut policy = Policy::new(Settings { reclaim: 4, ..Settings::new() });
        let first: [bool; 9] = core::array::from_fn(|_| policy.reclaims());
        assert_eq!(first, [false, false, false, true, false, false, false, true, false]);
        let mut policy = Policy::new(Settings::new());
        assert!(policy.reclaims() && policy.reclaims());
    }
}
