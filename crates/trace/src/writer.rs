//! What a writer of traces is given: calls that allocate, resize and free objects.

use crate::TraceError;
use crate::encoder::{Call, Encoder, op_of};
use crate::event::EventKind;
use crate::event_writer::EventWriter;
use crate::format::{SIZE_MAX, op};
use crate::output::Output;

/// A call that made or resized an object, or failed to.
#[derive(Debug, Clone, Copy)]
pub struct Allocation {
    /// The function called.
    pub kind: EventKind,
    /// The calling thread, an index.
    pub thread: u32,
    /// Bytes requested.
    pub size: u64,
    /// Bytes usable, by `malloc_usable_size`; 0 where unknown.
    pub usable: u64,
    /// Binary logarithm of the alignment requested; 0 for none.
    pub align_log2: u8,
    /// The call stack; kept when the header has `sites` set.
    pub site: u32,
    /// ns that the call took; kept when the header has `latency` set.
    pub latency_ns: u32,
}

impl<W: Output> EventWriter<W, Encoder> {
    /// A new object; returns its slot.
    ///
    /// # Errors
    /// The caller's: a kind that makes no object, a number of live objects beyond 2^32.
    #[inline]
    pub fn allocate(&mut self, call: &Allocation) -> Result<u32, TraceError> {
        if !call.kind.allocates() {
            return Err(TraceError::WrongKind { kind: call.kind, call: "allocate" });
        }
        self.start_chunk_if_full();
        let size = call.size.min(SIZE_MAX);
        let (slot, predicted) = self.encoder.slots.assign(size)?;
        self.totals.clock_bytes += size;
        self.totals.live_bytes += size;
        self.totals.max_live_bytes = self.totals.max_live_bytes.max(self.totals.live_bytes);
        let fields = fields(op_of(call.kind), size, call);
        self.encoder.allocate(fields, call.thread, call.latency_ns, slot, predicted);
        Ok(slot)
    }

    /// An object gets another size and keeps its slot; `moved`: and another address.
    ///
    /// # Errors
    /// The caller's: the kind is not [`EventKind::Realloc`], the object is not live.
    #[inline]
    pub fn resize(&mut self, slot: u32, call: &Allocation, moved: bool) -> Result<(), TraceError> {
        if call.kind != EventKind::Realloc {
            return Err(TraceError::WrongKind { kind: call.kind, call: "resize" });
        }
        self.start_chunk_if_full();
        let size = call.size.min(SIZE_MAX);
        let before = self.encoder.slots.resize(slot, size)?;
        self.totals.clock_bytes += size.saturating_sub(before);
        self.totals.live_bytes = self.totals.live_bytes - before + size;
        self.totals.max_live_bytes = self.totals.max_live_bytes.max(self.totals.live_bytes);
        let fields = fields(if moved { op::REALLOC_MOVED } else { op::REALLOC }, size, call);
        self.encoder.resize(fields, call.thread, call.latency_ns, slot);
        Ok(())
    }

    /// The end of an object.
    ///
    /// # Errors
    /// The caller's: the kind frees nothing, the object is not live.
    #[inline]
    pub fn free(
        &mut self,
        slot: u32,
        kind: EventKind,
        thread: u32,
        latency_ns: u32,
    ) -> Result<(), TraceError> {
        if !kind.frees() {
            return Err(TraceError::WrongKind { kind, call: "free" });
        }
        self.start_chunk_if_full();
        self.totals.live_bytes -= self.encoder.slots.release(slot)?;
        self.encoder.free(op_of(kind), thread, latency_ns, slot);
        Ok(())
    }

    /// A call that changed nothing: [`EventKind::Failed`] (size, thread, site and latency are kept) or
    /// [`EventKind::Foreign`] (thread and latency are kept).
    ///
    /// # Errors
    /// The caller's: another kind.
    pub fn note(&mut self, kind: EventKind, call: &Allocation) -> Result<(), TraceError> {
        if !matches!(kind, EventKind::Failed | EventKind::Foreign) {
            return Err(TraceError::WrongKind { kind, call: "note" });
        }
        self.start_chunk_if_full();
        if kind == EventKind::Failed {
            self.encoder.failed(call.size, call.site, call.thread, call.latency_ns);
        } else {
            self.encoder.foreign(call.thread, call.latency_ns);
        }
        Ok(())
    }

    /// The time of what follows, ns from the beginning; one that lies before the last is taken as the last.
    #[inline]
    pub fn stamp(&mut self, time_ns: u64) {
        self.encoder.stamp(time_ns);
    }

    /// Requested bytes of a live object.
    pub fn size(&self, slot: u32) -> Option<u64> {
        self.encoder.slots.size(slot)
    }
}

#[inline(always)]
fn fields(op: u8, size: u64, call: &Allocation) -> Call {
    let usable = call.usable.min(SIZE_MAX);
    Call { op, size, usable, align_log2: call.align_log2.min(63), site: call.site }
}
