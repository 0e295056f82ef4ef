//! What the machine's memory cannot hold is not tried.

use std::path::Path;

use crate::replay_graph::mmtk::Prepared;
use heaptoll_replay::study::available;
use heaptoll_units::bytes;

use super::error::GraphReplayError;
use super::figures::PlanRow;
use heaptoll_command::failure::Failure;

/// A header and rounding of an object, bytes.
const EACH_OBJECT_BYTES: u64 = 16;

/// Refuses a heap that is larger than free memory.
///
/// # Errors
/// It is.
pub fn can_hold(heap_bytes: u64) -> Result<(), Failure> {
    let free = available();
    if heap_bytes <= free {
        return Ok(());
    }
    Err(Failure::Refused(Box::new(GraphReplayError::TooLarge {
        heap: bytes(heap_bytes as f64),
        available: bytes(free as f64),
    })))
}

/// Refuses a trace made ready that is larger than free memory, for replays read all of it.
///
/// # Errors
/// It is.
pub fn can_read(trace: &Path, needs_bytes: u64) -> Result<(), Failure> {
    let free = available();
    if needs_bytes <= free {
        return Ok(());
    }
    Err(Failure::Refused(Box::new(GraphReplayError::TooLong {
        trace: trace.display().to_string(),
        needs: bytes(needs_bytes as f64),
        available: bytes(free as f64),
    })))
}

/// Bytes that all objects of a trace take, about, where nothing is collected.
pub fn all_objects_bytes(prepared: &Prepared) -> u64 {
    prepared.allocated_bytes.saturating_add(prepared.objects.saturating_mul(EACH_OBJECT_BYTES))
}

/// Refuses a plan that never collects where the machine cannot hold all objects.
pub fn refuse_what_it_cannot_hold(rows: &mut [PlanRow], prepared: &Prepared) {
    let (needs, free) = (all_objects_bytes(prepared), available());
    for row in rows.iter_mut().filter(|row| !row.collects && needs > free) {
        row.refused = Some(format!(
            "it collects nothing, all objects take {}, and this machine has {} free",
            bytes(needs as f64),
            bytes(free as f64)
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_that_collects_nothing_is_refused_where_its_objects_do_not_fit_into_memory() {
        let mut rows = ["nogc", "immix"].map(PlanRow::new);
        refuse_what_it_cannot_hold(&mut rows, &Prepared { allocated_bytes: u64::MAX, ..Prepared::default() });
        assert!(rows[0].refused.as_ref().is_some_and(|why| why.contains("collects nothing")));
        assert_eq!(rows[1].refused, None);
        let mut rows = ["nogc"].map(PlanRow::new);
        refuse_what_it_cannot_hold(&mut rows, &Prepared { allocated_bytes: 1000, ..Prepared::default() });
        assert_eq!(rows[0].refused, None);
    }

    #[test]
    fn a_trace_that_memory_cannot_hold_is_refused_with_both_sizes() {
        assert!(can_read(Path::new("a.graph"), 4096).is_ok());
        let refused =
            can_read(Path::new("a.graph"), u64::MAX).expect_err("no machine has as much").to_string();
        assert!(refused.contains("a.graph") && refused.contains("--references"), "{refused}");
    }

    #[test]
    fn a_heap_beyond_free_memory_is_refused_with_both_sizes() {
        assert!(can_hold(4096).is_ok());
        let refused = can_hold(u64::MAX).expect_err("no machine has as much").to_string();
        assert!(refused.contains("--heap") && refused.contains("free"), "{refused}");
    }
}
