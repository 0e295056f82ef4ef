//! From calls with addresses to events with slots, in the order of the process.
//!
//! The layer records a free and the beginning of a resize *before* the manager is called, an allocation and the end of
//! a resize *after* it has returned. So wherever an address comes up again, its previous owner has freed it before. A
//! resize is two calls: at its beginning the object is taken out of the table, since another thread may get its address
//! before the end, and at its end it is put where it is then.

use heaptoll_ledger::FreedBlocks;
use heaptoll_trace::{Allocation, EventKind, Output, TraceError, Writer};

use crate::brk::Brk;
use crate::live::LiveBlocks;

/// A resize that has begun.
#[derive(Debug, Clone, Copy)]
struct Pending {
    /// The object; `None` when the trace does not know it.
    slot: Option<u32>,
    /// Where it lay.
    block: u64,
}

/// What the ledger needs of a live object in addition to its size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ObjectFacts {
    /// Bytes usable in it; 0 where unknown.
    pub usable: u64,
    /// The call site that allocated it; 0 where not recorded.
    pub site: u32,
    /// Bytes that the process had allocated before it.
    pub allocated_at_bytes: u64,
}

/// One process's table of live blocks, in front of its trace.
pub struct Resolver<W> {
    writer: Writer<W>,
    live: LiveBlocks,
    /// By thread: what it is resizing, the last begun on top: a signal handler may resize during a resize.
    resizing: Vec<Vec<Pending>>,
    /// By slot: what the ledger needs, where there is one.
    facts: Option<Vec<ObjectFacts>>,
    /// What was freed where, for the ledger.
    freed: Option<FreedBlocks>,
    brk: Brk,
    /// Objects whose address came up again though no free was recorded.
    unseen_frees: u64,
    /// The first error of the writer other than a full disk, which should not occur.
    defect: Option<TraceError>,
}

impl<W: Output> Resolver<W> {
    /// For a process that has no blocks yet. `keeps_facts`: what the ledger needs of live
    /// objects is kept for [`Resolver::facts`].
    pub fn new(writer: Writer<W>, keeps_facts: bool) -> Resolver<W> {
        Resolver {
            writer,
            live: LiveBlocks::default(),
            resizing: Vec::new(),
            facts: keeps_facts.then(Vec::new),
            freed: keeps_facts.then(|| FreedBlocks::new(rustix::param::page_size() as u64)),
            brk: Brk::default(),
            unseen_frees: 0,
            defect: None,
        }
    }

    /// A new object at `block`.
    #[inline(always)]
    pub fn allocate(&mut self, block: u64, call: &Allocation) {
        self.brk.block(block, call.usable);
        let (writer, facts) = (&mut self.writer, &mut self.facts);
        let put = self.live.put(block, |lost| {
            if let Some(lost) = lost {
                self.unseen_frees += 1;
                writer.free(lost, EventKind::Lost, call.thread, 0)?;
            }
            let allocated_at_bytes = writer.clock_bytes();
            let slot = writer.allocate(call)?;
            if let Some(facts) = facts {
                *at(facts, slot) = ObjectFacts { usable: call.usable, site: call.site, allocated_at_bytes };
            }
            Ok(slot)
        });
        if let Err(error) = put {
            self.fails(error);
        }
    }

    /// The block is freed.
    #[inline(always)]
    pub fn free(&mut self, block: u64, kind: EventKind, thread: u32, latency_ns: u32) {
        let freed = match self.live.take(block) {
            Some(slot) => {
                self.note_freed(block, slot);
                self.writer.free(slot, kind, thread, latency_ns)
            }
            None => self.writer.note(EventKind::Foreign, &nothing(thread, latency_ns)),
        };
        if let Err(error) = freed {
            self.fails(error);
        }
    }

    /// The block is about to be resized.
    pub fn resize_begin(&mut self, block: u64, thread: u32) {
        let slot = self.live.take(block);
        let index = thread as usize;
        if self.resizing.len() <= index {
            self.resizing.resize_with(index + 1, Vec::new);
        }
        self.resizing[index].push(Pending { slot, block });
    }

    /// The block that this thread began to resize lies at `block` now; at 0: it was not resized, or, when 0 bytes were
    /// requested, freed.
    pub fn resize_end(&mut self, block: u64, call: &Allocation) {
        let pending = self.resizing.get_mut(call.thread as usize).and_then(Vec::pop);
        // An end without a beginning: the layer was loaded between the two.
        let Pending { slot, block: old } = pending.unwrap_or(Pending { slot: None, block: 0 });
        let resized = match (slot, block) {
            (Some(slot), 0) if call.size == 0 => {
                self.note_freed(old, slot);
                self.writer.free(slot, EventKind::ReallocFree, call.thread, call.latency_ns)
            }
            (Some(slot), 0) => {
                self.put_back(old, slot, call.thread).and_then(|()| self.writer.note(EventKind::Failed, call))
            }
            (Some(slot), _) => {
                self.brk.block(block, call.usable);
                let call = Allocation { kind: EventKind::Realloc, ..*call };
                if block != old {
                    self.note_freed(old, slot);
                }
                self.put_back(block, slot, call.thread).and_then(|()| {
                    if let Some(facts) = &mut self.facts {
                        at(facts, slot).usable = call.usable;
                    }
                    self.writer.resize(slot, &call, block != old)
                })
            }
            (None, 0) if call.size != 0 => self.writer.note(EventKind::Failed, call),
            (None, 0) => self.writer.note(EventKind::Foreign, &nothing(call.thread, call.latency_ns)),
            (None, _) => {
                let foreign = self.writer.note(EventKind::Foreign, &nothing(call.thread, 0));
                self.allocate(block, &Allocation { kind: EventKind::Malloc, ..*call });
                foreign
            }
        };
        if let Err(error) = resized {
            self.fails(error);
        }
    }

    /// A call returned no block.
    pub fn failed(&mut self, call: &Allocation) {
        if let Err(error) = self.writer.note(EventKind::Failed, call) {
            self.fails(error);
        }
    }

    /// Puts an object that exists where it is now.
    fn put_back(&mut self, block: u64, slot: u32, thread: u32) -> Result<(), TraceError> {
        let writer = &mut self.writer;
        self.live.put(block, |lost| {
            lost.map_or(Ok(()), |lost| writer.free(lost, EventKind::Lost, thread, 0)).map(|()| slot)
        })
    }

    /// The object has its place at `block` no longer.
    #[inline]
    fn note_freed(&mut self, block: u64, slot: u32) {
        let (Some(freed), Some(facts)) = (&mut self.freed, &self.facts) else { return };
        let facts = facts.get(slot as usize).copied().unwrap_or_default();
        if facts.site == 0 {
            return;
        }
        let bytes = facts.usable.max(self.writer.size(slot).unwrap_or(0));
        freed.free(block, block.saturating_add(bytes), facts.site);
    }

    #[cold]
    fn fails(&mut self, error: TraceError) {
        self.defect.get_or_insert(error);
    }

    /// The trace.
    pub fn writer(&mut self) -> &mut Writer<W> {
        &mut self.writer
    }

    /// The same, to be read.
    pub fn written(&self) -> &Writer<W> {
        &self.writer
    }

    /// The live blocks. Those that are being resized are missing.
    pub fn live(&self) -> &LiveBlocks {
        &self.live
    }

    /// The brk segment, computed as if the manager were glibc.
    pub fn brk(&self) -> &Brk {
        &self.brk
    }

    /// Objects that were freed past the layer so far, as their addresses came up again.
    pub fn unseen_frees(&self) -> u64 {
        self.unseen_frees
    }

    /// What was freed where, if it is kept.
    pub fn freed(&self) -> Option<&FreedBlocks> {
        self.freed.as_ref()
    }

    /// What the ledger needs of a live object.
    pub fn facts(&self, slot: u32) -> ObjectFacts {
        self.facts.as_ref().and_then(|facts| facts.get(slot as usize)).copied().unwrap_or_default()
    }

    /// The trace, to be finished, and the error other than a full disk that occurred.
    pub fn into_parts(self) -> (Writer<W>, Option<TraceError>) {
        (self.writer, self.defect)
    }
}

/// The facts of a slot.
#[inline]
fn at(facts: &mut Vec<ObjectFacts>, slot: u32) -> &mut ObjectFacts {
    let index = slot as usize;
    if facts.len() <= index {
        facts.resize(index + 1, ObjectFacts::default());
    }
    &mut facts[index]
}

/// A call with nothing known but its thread.
fn nothing(thread: u32, latency_ns: u32) -> Allocation {
    Allocation { kind: EventKind::Foreign, thread, size: 0, usable: 0, align_log2: 0, site: 0, latency_ns }
}

#[cfg(test)]
#[path = "resolver_tests.rs"]
mod tests;
