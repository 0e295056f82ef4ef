//! A made-up experiment in which heaps are fixed.

use heaptoll_experiment::comparison::Comparison;
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::heap_curves::heap_curves;
use heaptoll_experiment::heap_limit::HeapLimit;

use super::shape::Shape;

/// An experiment with two of its stacks as `jemalloc`, taken for a collector, in fixed heaps.
pub fn heaps(shape: Shape) -> (Experiment, Comparison) {
    let (mut experiment, mut comparison) = super::experiment(shape);
    for (name, factor) in [("snmalloc", 1.5), ("tcmalloc", 3.0)] {
        for stack in experiment.stacks.iter_mut().filter(|stack| stack.name == name) {
            stack.heap = Some(HeapLimit::of("jemalloc", factor, 400 << 10));
        }
    }
    comparison.heaps = heap_curves(&experiment, &comparison);
    (experiment, comparison)
}
