//! What is run: each plan in each heap.

use crate::replay_graph::mmtk::{PAGE, Replayed};

use super::figures::{PlanRow, Wrong};
use super::heaps;
use super::memory;
use super::request::{GraphReplayRequest, HeapSize};
use heaptoll_command::failure::Failure;

/// A plan that failed so often in a row in a heap is not run there again.
const GIVE_UP_AFTER: u32 = 2;

/// What a run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To be compared with the trace.
    Check,
    /// To simulate caches.
    Simulate,
    /// To be timed; the repetition.
    Time(u32),
}

/// One plan in one heap, and its runs.
#[derive(Debug, Clone, Default)]
pub struct Cell {
    /// Place of the plan.
    pub plan: usize,
    /// Place of the heap; none where the plan collects nothing, so that its heap has no limit.
    pub heap: Option<usize>,
    /// The heap, bytes.
    pub heap_bytes: u64,
    /// The run that was compared with the trace.
    pub checked: Option<Replayed>,
    /// The run in which caches were simulated.
    pub simulated: Option<Replayed>,
    /// Good runs, each with its number.
    pub runs: Vec<(u32, Replayed)>,
    /// The run in which an object found no memory: there are no others.
    pub full: Option<Replayed>,
    /// What went wrong in the others.
    pub failures: Vec<String>,
    in_a_row: u32,
}

impl Cell {
    /// Nothing is run yet.
    pub fn new(plan: usize, heap: Option<usize>, heap_bytes: u64) -> Cell {
        Cell { plan, heap, heap_bytes, ..Cell::default() }
    }

    /// Whether nothing is known of it.
    pub fn is_empty(&self) -> bool {
        self.checked.is_none()
            && self.simulated.is_none()
            && self.runs.is_empty()
            && self.full.is_none()
            && self.failures.is_empty()
    }

    /// What the check found wrong.
    pub fn wrong(&self) -> Option<Wrong<'_>> {
        let found = &self.checked.as_ref()?.collections;
        Wrong::of(found.violation.as_deref(), found.damage.as_deref())
    }

    /// Whether another run would show nothing new: none fits, the collector is wrong, or every run fails.
    pub fn is_settled(&self) -> bool {
        self.full.is_some() || self.wrong().is_some() || self.in_a_row >= GIVE_UP_AFTER
    }

    /// Takes the answer of a run.
    pub fn add(&mut self, purpose: Purpose, answer: Replayed) {
        self.in_a_row = 0;
        match purpose {
            // What is wrong ends a run as well, and is found in a heap that may be too small.
            _ if !answer.fits && !answer.collections.is_wrong() => self.full = Some(answer),
            Purpose::Check => self.checked = Some(answer),
            Purpose::Simulate => self.simulated = Some(answer),
            Purpose::Time(number) => self.runs.push((number, answer)),
        }
    }

    /// A run failed.
    pub fn fail(&mut self, why: String) {
        self.in_a_row += 1;
        self.failures.push(why);
    }
}

/// All that are to be run: of each plan that is not refused, and whose smallest heap is known where heaps are its
/// multiples.
///
/// # Errors
/// A heap is larger than the machine's memory.
pub fn cells(request: &GraphReplayRequest, plans: &[PlanRow]) -> Result<Vec<Cell>, Failure> {
    let mut cells = Vec::new();
    for (plan, row) in plans.iter().enumerate().filter(|(_, row)| row.refused.is_none()) {
        if !row.collects {
            cells.push(Cell::new(plan, None, PAGE));
            continue;
        }
        for (heap, size) in request.heaps.iter().enumerate() {
            let Some(heap_bytes) = heap_bytes(*size, request, plans, row) else { continue };
            memory::can_hold(heap_bytes)?;
            cells.push(Cell::new(plan, Some(heap), heap_bytes));
        }
    }
    Ok(cells)
}

fn heap_bytes(size: HeapSize, request: &GraphReplayRequest, plans: &[PlanRow], row: &PlanRow) -> Option<u64> {
    let exact = match size {
        HeapSize::Bytes(bytes) => bytes,
        HeapSize::Times(times) => (heaps::base(request.base, plans, row)? as f64 * times) as u64,
    };
    Some(exact.div_ceil(PAGE).max(1) * PAGE)
}
