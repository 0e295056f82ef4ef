//! The bisection, by steps: which heap to try next, given everything that was tried. It never assumes that a program
//! behaves the same way twice.
//!
//! A heap is *good* when the program completed in it every time, *bad* when it did not at least once. The answer lies
//! between the largest bad heap and the smallest good one above it. A failure far up makes everything below it bad, so
//! a flaky program is found and not averaged away; an ending that is neither completion nor lack of memory makes a heap
//! bad as well, but stays what it is in the answer.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How one run in a heap of some size ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind", content = "detail")]
pub enum Outcome {
    /// Right output, right status.
    Done,
    /// The manager refused a block for lack of heap, and the program did not complete.
    OutOfMemory,
    /// Anything else: why.
    Other(String),
}

/// What is searched for, and how closely.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question {
    /// The first heap tried, bytes: what the program was seen to need.
    pub start: u64,
    /// No heap beyond this is tried, bytes.
    pub ceiling: u64,
    /// No heap below this is tried, bytes: the least that the manager takes, or 0.
    pub least: u64,
    /// Heaps are whole multiples of this, bytes.
    pub step: u64,
    /// The answer may be this share too large; it is never finer than one step.
    pub tolerance: f64,
    /// Runs at either side of the edge.
    pub repeats: u32,
    /// Runs in all.
    pub most_runs: u32,
}

/// What came of the runs in one heap.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tried {
    /// Bytes.
    pub heap: u64,
    /// Runs that completed.
    pub done: u32,
    /// Runs that ran out of memory.
    pub out_of_memory: u32,
    /// What became of the others.
    pub other: Vec<String>,
}

impl Tried {
    fn runs(&self) -> u32 {
        self.done + self.out_of_memory + self.other.len() as u32
    }

    fn is_good(&self) -> bool {
        self.done > 0 && self.done == self.runs()
    }
}

/// Why there is no smallest heap, or why the search ended where it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The edge is known as closely as requested, each side by all its repeats.
    Found,
    /// It did not complete in the largest heap that may be tried.
    NeverDone,
    /// As many runs as were allowed did not settle it.
    TooManyRuns,
}

/// What the search found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// How it ended.
    pub end: End,
    /// The smallest heap in which every run completed with none that failed above it, bytes.
    pub heap: Option<u64>,
    /// The largest heap in which some run did not, bytes; 0: none was too small.
    pub failed_at: u64,
    /// The smallest heap in which any run completed, bytes: below `heap`, where the program is flaky.
    pub sometimes_from: Option<u64>,
    /// How the runs at `failed_at` ended that neither completed nor ran out of memory; not empty: the edge is not one of
    /// memory alone.
    pub failed_otherwise: Vec<String>,
    /// Everything tried, by size.
    pub tried: Vec<Tried>,
}

impl Answer {
    /// Whether heaps of one size, or a smaller and a larger one, contradicted each other.
    pub fn is_flaky(&self) -> bool {
        self.sometimes_from.is_some_and(|from| from <= self.failed_at)
    }

    /// Whether any run ended in the third way.
    pub fn has_others(&self) -> bool {
        self.tried.iter().any(|tried| !tried.other.is_empty())
    }
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Run the program in a heap of this many bytes and record the outcome.
    Try(u64),
    /// Nothing is left to try.
    End(Answer),
}

/// A search under way.
#[derive(Debug, Clone)]
pub struct Search {
    question: Question,
    tried: BTreeMap<u64, Tried>,
    runs: u32,
}

impl Search {
    /// Begins one.
    pub fn new(question: Question) -> Search {
        Search { question, tried: BTreeMap::new(), runs: 0 }
    }

    /// Records the outcome of a run.
    pub fn record(&mut self, heap: u64, outcome: Outcome) {
        self.runs += 1;
        let tried = self.tried.entry(heap).or_insert_with(|| Tried { heap, ..Tried::default() });
        match outcome {
            Outcome::Done => tried.done += 1,
            Outcome::OutOfMemory => tried.out_of_memory += 1,
            Outcome::Other(why) => tried.other.push(why),
        }
    }

    /// Runs so far in a heap of this size.
    pub fn runs_in(&self, heap: u64) -> u32 {
        self.tried.get(&heap).map_or(0, Tried::runs)
    }

    /// Multiples of the step, at least one.
    fn rounded(&self, bytes: u64) -> u64 {
        let step = self.question.step.max(1);
        bytes.div_ceil(step).max(1) * step
    }

    /// The largest heap below those that may be tried, bytes.
    fn untried(&self) -> u64 {
        self.rounded(self.question.least) - self.question.step.max(1)
    }

    /// The largest bad heap (0 is bad without trying), and the smallest good one above it.
    fn edge(&self) -> (u64, Option<u64>) {
        let low = self.tried.values().filter(|tried| !tried.is_good()).map(|tried| tried.heap).max();
        let low = low.unwrap_or(0);
        (low, self.tried.range(low + 1..).next().map(|(heap, _)| *heap))
    }

    /// What to do next.
    pub fn next(&self) -> Step {
        let question = &self.question;
        let (low, high) = self.edge();
        if self.runs >= question.most_runs {
            return Step::End(self.answer(End::TooManyRuns));
        }
        let Some(high) = high else {
            let ceiling = self.rounded(question.ceiling);
            if low >= ceiling {
                return Step::End(self.answer(End::NeverDone));
            }
            let next = if low == 0 { question.start } else { low.saturating_mul(2) };
            // A start below what is known to be bad would lead downwards.
            let above = self.rounded(low.max(self.untried()) + 1);
            return Step::Try(self.rounded(next).max(above).min(ceiling.max(above)));
        };
        let step = question.step.max(1);
        let close = ((high as f64 * question.tolerance) as u64).max(step);
        let below = low.max(self.untried());
        if high - below > close {
            return Step::Try(self.rounded(below + (high - below) / 2).clamp(below + 1, high - 1));
        }
        let needs_more =
            |heap: u64| heap > 0 && self.tried.get(&heap).is_none_or(|tried| tried.runs() < question.repeats);
        match [high, low].into_iter().find(|heap| needs_more(*heap)) {
            Some(heap) => Step::Try(heap),
            None => Step::End(self.answer(End::Found)),
        }
    }

    /// What is known by now.
    pub fn answer(&self, end: End) -> Answer {
        let (failed_at, heap) = self.edge();
        Answer {
            end,
            heap,
            failed_at,
            sometimes_from: self.tried.values().find(|tried| tried.done > 0).map(|tried| tried.heap),
            failed_otherwise: self.tried.get(&failed_at).map_or(vec![], |tried| tried.other.clone()),
            tried: self.tried.values().cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAGE: u64 = 4096;

    fn question(start: u64) -> Question {
        Question {
            start,
            ceiling: 1 << 32,
            least: 0,
            step: PAGE,
            tolerance: 0.01,
            repeats: 3,
            most_runs: 500,
        }
    }

    /// Runs a search against a program.
    fn search(question: Question, mut program: impl FnMut(u64) -> Outcome) -> Answer {
        let mut search = Search::new(question);
        loop {
            match search.next() {
                Step::Try(heap) => {
                    assert!(heap > 0 && heap.is_multiple_of(question.step), "{heap}");
                    search.record(heap, program(heap));
                }
                Step::End(answer) => return answer,
            }
        }
    }

    fn needs(bytes: u64) -> impl FnMut(u64) -> Outcome {
        move |heap| if heap >= bytes { Outcome::Done } else { Outcome::OutOfMemory }
    }

    proptest! {
        #[test]
        fn what_a_steady_program_needs_is_found(need in 1u64..1 << 31, start in 1u64..1 << 32) {
            let answer = search(question(start), needs(need));
            prop_assert_eq!(answer.end, End::Found);
            let heap = answer.heap.expect("found");
            let close = ((heap as f64 * 0.01) as u64).max(PAGE);
            prop_assert!(heap >= need && answer.failed_at < need && heap - answer.failed_at <= close, "{:?}", answer);
            prop_assert!(!answer.is_flaky() && !answer.has_others());
            let at = |heap| answer.tried.iter().find(|tried| tried.heap == heap);
            prop_assert!(at(heap).is_some_and(|tried| tried.done >= 3));
            prop_assert!(answer.failed_at == 0 || at(answer.failed_at).is_some_and(|tried| tried.out_of_memory >= 3));
        }

        /// Each run needs a little more than the last, by chance: the edge is a band.
        #[test]
        fn a_noisy_edge_is_found_within_its_noise(
            need in 1u64 << 20..1 << 28, band in 1u64..1 << 22, start in 1u64 << 18..1 << 30, seed in 1u64..u64::MAX,
        ) {
            let mut state = seed;
            let answer = search(question(start), |heap| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                needs(need + state % band)(heap)
            });
            prop_assert_eq!(answer.end, End::Found);
            let heap = answer.heap.expect("found");
            let close = ((heap as f64 * 0.01) as u64).max(PAGE);
            // Completed every time: not below what the best run needs. Failed once: below what the worst needs.
            prop_assert!(heap >= need && answer.failed_at < need + band && heap <= need + band + close);
            // What contradicts itself is called so.
            let contradicts = answer.tried.iter().any(|one| {
                one.done > 0 && answer.tried.iter().any(|two| two.heap >= one.heap && two.out_of_memory > 0)
            });
            prop_assert_eq!(answer.is_flaky(), contradicts);
        }

        /// A third way of ending is never counted as one of the two others.
        #[test]
        fn other_endings_stay_in_the_answer(need in 1u64 << 20..1 << 28, band in 1u64 << 23..1 << 25) {
            // A band wider than the tolerance: a run falls into it.
            let answer = search(question(1 << 24), |heap| match heap {
                heap if heap >= need + band => Outcome::Done,
                heap if heap >= need => Outcome::Other("over the time limit".into()),
                _ => Outcome::OutOfMemory,
            });
            let heap = answer.heap.expect("found");
            prop_assert!(heap >= need + band);
            prop_assert!(answer.failed_at >= need && !answer.failed_otherwise.is_empty(), "{:?}", answer);
            prop_assert!(answer.tried.iter().all(|tried| tried.heap < need || tried.out_of_memory == 0));
        }
    }

    #[test]
    fn a_program_that_never_completes_ends_at_the_ceiling() {
        let question = Question { ceiling: 1 << 24, ..question(1 << 20) };
        let answer = search(question, |_| Outcome::Other("killed by signal 11".into()));
        assert_eq!((answer.end, answer.heap, answer.failed_at), (End::NeverDone, None, 1 << 24));
        assert!(answer.has_others() && answer.failed_otherwise[0].contains("signal 11"));
    }

    /// A coin decides, whatever the heap: the search ends, and does not call the last lucky heap the smallest.
    #[test]
    fn a_coin_does_not_keep_the_search_going_for_ever() {
        let mut count = 0;
        let answer = search(Question { most_runs: 60, ..question(1 << 20) }, |_| {
            count += 1;
            if count % 2 == 0 { Outcome::Done } else { Outcome::OutOfMemory }
        });
        assert!(answer.end != End::Found || answer.is_flaky(), "{answer:?}");
    }

    #[test]
    fn a_program_that_needs_nothing_has_the_smallest_heap() {
        let answer = search(question(1 << 20), needs(0));
        assert_eq!((answer.heap, answer.failed_at), (Some(PAGE), 0));
    }

    #[test]
    fn no_heap_below_the_least_that_a_manager_takes_is_tried() {
        for start in [1, 4 * PAGE, 1 << 20] {
            let question = Question { least: 4 * PAGE, ..question(start) };
            let small = search(question, needs(0));
            assert_eq!((small.end, small.heap, small.failed_at), (End::Found, Some(4 * PAGE), 0));
            assert!(small.tried.iter().all(|tried| tried.heap >= 4 * PAGE), "{small:?}");
            let more = search(question, needs(6 * PAGE));
            assert_eq!((more.heap, more.failed_at), (Some(6 * PAGE), 5 * PAGE));
        }
    }
}
