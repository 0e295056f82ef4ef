//! What a collector costs over the size of its heap, in a sentence.

use heaptoll_experiment::comparison::{HeapCurve, HeapPoint};
use heaptoll_units::kib;

use crate::format;

/// A sentence a collector.
pub(super) fn lead(curves: &[HeapCurve], baseline: &str) -> Vec<String> {
    curves.iter().map(|curve| sentence(curve, baseline)).collect()
}

/// A heap by its factor, and its size where it is of one program.
pub(super) fn heap(heap: &HeapPoint) -> String {
    let size = heap.heap_bytes.map_or(String::new(), |bytes| format!(" ({} KiB)", kib(bytes)));
    format!("{} times its smallest heap{size}", heap.factor)
}

/// From which heap on the collector costs no more than the baseline.
fn sentence(curve: &HeapCurve, baseline: &str) -> String {
    let collector = &curve.collector;
    let Some(largest) = curve.heaps.last() else { return format!("{collector} ran in no fixed heap.") };
    let from =
        |factor: f64| curve.heaps.iter().find(|heap| heap.factor == factor).map_or(String::new(), heap);
    match (curve.no_more_cpu_from, curve.less_cpu_from) {
        (Some(no_more), Some(less)) if less <= no_more => {
            format!("{collector} uses less CPU than {baseline} from {} on.", from(less))
        }
        (Some(no_more), less) => {
            let less = less.map_or(String::new(), |less| format!(", and less from {} on", from(less)));
            format!("{collector} has no measurable CPU cost over {baseline} from {} on{less}.", from(no_more))
        }
        (None, _) => {
            let largest_heap = heap(largest);
            match largest.costs.cpu {
                _ if !largest.fits => format!("{collector} still fails in some runs in {largest_heap}."),
                Some(cpu) if cpu.has_enough_pairs() && cpu.differs => format!(
                    "{collector} uses more CPU than {baseline} in every heap up to {largest_heap}: {} times there.",
                    format::interval(&cpu)
                ),
                Some(cpu) => format!(
                    "Too few repetitions to judge {collector} against {baseline}: {} times its CPU in {largest_heap}.",
                    format::interval(&cpu)
                ),
                None => format!("Too few repetitions to judge {collector} against {baseline}."),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_experiment::comparison::Costs;
    use heaptoll_statistics::Interval;

    use super::*;

    fn curve(no_more_cpu_from: Option<f64>, less_cpu_from: Option<f64>, largest: Interval) -> HeapCurve {
        let point = |factor: f64| HeapPoint {
            factor,
            heap_bytes: Some((factor * 409_600.0) as u64),
            fits: true,
            programs: 1,
            costs: Costs { cpu: Some(largest), ..Costs::default() },
        };
        HeapCurve {
            collector: "tithe-collect".into(),
            smallest_bytes: Some(409_600),
            heaps: [1.5, 2.0, 4.0].map(point).into(),
            no_more_cpu_from,
            less_cpu_from,
        }
    }

    const MORE: Interval = Interval { ratio: 1.5, low: 1.4, high: 1.6, differs: true, pairs: 10 };

    #[test]
    fn the_least_sufficient_heap_is_named_with_its_size() {
        let text = sentence(&curve(Some(1.5), None, MORE), "glibc");
        assert!(text.starts_with("tithe-collect has no measurable CPU cost over glibc"));
        assert!(text.ends_with("from 1.5 times its smallest heap (600 KiB) on."), "{text}");
        let text = sentence(&curve(Some(1.5), Some(2.0), MORE), "glibc");
        assert!(text.ends_with("and less from 2 times its smallest heap (800 KiB) on."), "{text}");
        let text = sentence(&curve(Some(2.0), Some(2.0), MORE), "glibc");
        assert_eq!(
            text,
            "tithe-collect uses less CPU than glibc from 2 times its smallest heap (800 KiB) on."
        );
    }

    #[test]
    fn a_collector_that_is_dearer_everywhere_has_its_ratio_in_the_largest_heap() {
        let text = sentence(&curve(None, None, MORE), "glibc");
        assert!(
            text.contains("more CPU than glibc in every heap up to 4 times its smallest heap (1600 KiB)")
        );
        assert!(text.ends_with("1.50 (1.40–1.60) times there."), "{text}");
    }

    #[test]
    fn few_pairs_and_heaps_that_are_too_small_are_no_verdict() {
        let few = Interval { pairs: 3, differs: false, ..MORE };
        assert!(sentence(&curve(None, None, few), "glibc").starts_with("Too few repetitions"));
        let mut failing = curve(None, None, MORE);
        failing.heaps[2].fits = false;
        assert!(sentence(&failing, "glibc").contains("still fails in some runs in 4 times"));
    }
}
