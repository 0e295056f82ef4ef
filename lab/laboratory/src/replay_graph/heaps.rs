//! The smallest heap of each plan, and heaps as multiples of one.

use crate::replay_graph::mmtk::{PAGE, Prepared};

use super::figures::PlanRow;
use super::request::HeapBase;
use heaptoll_compare::smallest_heap::{Question, Search};

/// No heap beyond so many times the most live bytes, and beyond this many bytes, is tried.
const CEILING: (u64, u64) = (16, 64 << 20);
/// Runs of one search, at most.
const MOST_RUNS: u32 = 60;

/// The search for one.
pub fn search(prepared: &Prepared, tolerance: f64) -> Search {
    let live = prepared.most_live_bytes;
    Search::new(Question {
        start: live.max(PAGE),
        ceiling: live.saturating_mul(CEILING.0).saturating_add(CEILING.1),
        least: 0,
        step: PAGE,
        tolerance,
        // A replay behaves the same way twice.
        repeats: 1,
        most_runs: MOST_RUNS,
    })
}

/// The least of all plans' smallest heaps, bytes.
pub fn least(plans: &[PlanRow]) -> Option<u64> {
    plans.iter().filter_map(PlanRow::smallest_bytes).min()
}

/// What a plan's heaps are multiples of, bytes.
pub fn base(base: HeapBase, plans: &[PlanRow], row: &PlanRow) -> Option<u64> {
    match base {
        HeapBase::Least => least(plans),
        HeapBase::Own => row.smallest_bytes(),
    }
}

/// Notes each plan's smallest heap over the least one.
pub fn over_least(plans: &mut [PlanRow]) {
    let Some(least) = least(plans) else { return };
    for smallest in plans.iter_mut().filter_map(|row| row.smallest.as_mut()) {
        smallest.over_least = smallest.search.heap.map(|heap| heap as f64 / least as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay_graph::figures::Smallest;
    use heaptoll_compare::smallest_heap::{Answer, End};

    fn row(plan: &str, heap: Option<u64>) -> PlanRow {
        let search = Answer {
            end: if heap.is_some() { End::Found } else { End::NeverDone },
            heap,
            failed_at: 0,
            sometimes_from: heap,
            failed_otherwise: vec![],
            tried: vec![],
        };
        PlanRow { smallest: Some(Smallest { over_least: None, search }), ..PlanRow::new(plan) }
    }

    #[test]
    fn multiples_are_of_the_least_heap_of_all_plans_or_of_each_plan_s_own() {
        let mut plans = [
            row("semispace", Some(300)),
            row("immix", Some(200)),
            row("gencopy", None),
            PlanRow::new("nogc"),
        ];
        assert_eq!(base(HeapBase::Least, &plans, &plans[0]), Some(200));
        assert_eq!(base(HeapBase::Own, &plans, &plans[0]), Some(300));
        assert_eq!(base(HeapBase::Own, &plans, &plans[2]), None);
        over_least(&mut plans);
        let ratios = plans.map(|row| row.smallest.and_then(|smallest| smallest.over_least));
        assert_eq!(ratios, [Some(1.5), Some(1.0), None, None]);
    }
}
