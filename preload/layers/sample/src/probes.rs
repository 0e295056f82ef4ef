//! The USDT probes `otel_memory:alloc` and `otel_memory:free`, by which a profiler outside follows samples.
//!
//! The names and arguments are those that OpenTelemetry's eBPF profiler looks for (its design document 00003, "USDT
//! contract"): an address, the requested bytes, and the bytes that the sample stands for; and the address of a sampled
//! block that is about to be freed. A probe is an instruction that does nothing, and a note in the object file that states
//! where it is and where its arguments are; the kernel puts a trap there when a profiler attaches.

use heaptoll_layer_core::sample::Observer;
use probe::probe;

/// Fires the probes.
pub struct Probes;

impl Observer for Probes {
    #[inline(always)]
    fn allocated(block: usize, bytes: usize, weighted_bytes: u64) {
        probe!(otel_memory, alloc, block, bytes, weighted_bytes);
    }

    #[inline(always)]
    fn freed(block: usize) {
        probe!(otel_memory, free, block);
    }
}
