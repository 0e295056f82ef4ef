//! Why a block is kept: the chain of words from a root to it, and how much each sort of root holds alone.
//!
//! For debugging leaks, and slow: the world is stopped while everything is read, once for a chain and five times for
//! the shares. The collector's own marking keeps no parents, so this is a separate tracer. It proceeds breadth first,
//! so that a chain is as short as possible, and its queue, the list of all blocks it has reached, records where each
//! was found; the memory for it is mapped, never allocated.
//!
//! The calling thread holds the address itself, in a register or on its stack. Therefore what is on the stack between the
//! caller's frame and the switch to the collector's stack is left out, and a chain avoids the calling thread's stack if
//! there is another.

mod mappings;
mod stopped_heap;
mod text;
mod tracer;

use core::ffi::c_int;
use core::slice;

use heaptoll_roots::World;
use heaptoll_runtime::Region;

use crate::collector::Collector;
use crate::heap::Heap;
use stopped_heap::{Query, StoppedHeap, with_stopped_heap};
use text::{Text, write_line};
use tracer::{Entry, Source};

pub use stopped_heap::{Frame, Unavailable};

/// `struct tithe_held`: bytes in blocks that only this sort of root reaches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Shares {
    pub stacks: u64,
    pub statics: u64,
    pub mappings: u64,
    pub registers: u64,
}

// The layout of include/tithe.h.
const _: () = {
    assert!(size_of::<Shares>() == 32 && core::mem::offset_of!(Shares, stacks) == 0);
    assert!(core::mem::offset_of!(Shares, statics) == 8 && core::mem::offset_of!(Shares, mappings) == 16);
    assert!(core::mem::offset_of!(Shares, registers) == 24);
};

impl Shares {
    /// The sum, bytes.
    pub const fn total(&self) -> u64 {
        self.stacks + self.statics + self.mappings + self.registers
    }
}

/// Links of a chain that are written to the log from each of its ends, and the bytes of their text.
const LOGGED: usize = 32;
const LOGGED_BYTES: usize = 24 << 10;

impl Heap {
    /// `tithe_is_live`: 1 if the address lies in an allocated block, 0 if not, -1 if the answer is unavailable.
    pub fn is_live(&self, address: usize) -> c_int {
        let mut collector = self.collector.lock();
        let live = with_stopped_heap(self, &mut collector, Query::Blocks, 0, |stopped_heap| {
            stopped_heap.live(address).is_some()
        });
        live.map_or(-1, c_int::from)
    }

    /// Writes the chain that keeps the block at an address into `text`, as far as it fits. Returns its whole length,
    /// bytes; 0: there is no such block, or no root reaches it.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub fn why(&self, address: usize, text: &mut [u8], frame: Frame) -> Result<usize, Unavailable> {
        let mut collector = self.collector.lock();
        let mut text = Text::new(text);
        with_stopped_heap(self, &mut collector, Query::Chains, frame, |stopped_heap| {
            chain(stopped_heap, address, usize::MAX, &mut text)
        })??;
        text.finish();
        Ok(text.length())
    }

    /// The bytes that each sort of root holds alone.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub fn held(&self, frame: Frame) -> Result<Shares, Unavailable> {
        let mut collector = self.collector.lock();
        with_stopped_heap(self, &mut collector, Query::Chains, frame, shares)?
    }

    /// After a collection, if `TITHE_WHY` is set: writes the chain to the log or to standard error, and the bytes that
    /// roots hold alone. Returns the sum of these.
    pub(crate) fn explain(&self, collector: &mut Collector) -> Option<usize> {
        let (address, sink) = (collector.why?, collector.log);
        let mut region = Region::new();
        let memory = region.grow(LOGGED_BYTES)?;
        // SAFETY: `grow` has just mapped these bytes, and `region` owns them until this function returns.
        let memory = unsafe { slice::from_raw_parts_mut(memory.as_ptr(), LOGGED_BYTES) };
        let mut text = Text::new(memory);
        let frame = collector.world.map_or(0, World::program_stack);
        let outcome = with_stopped_heap(self, collector, Query::Chains, frame, |stopped_heap| {
            let live = chain(stopped_heap, address, LOGGED, &mut text)?;
            Ok::<_, Unavailable>((live, shares(stopped_heap)?))
        });
        let Ok(Ok((is_live, shares))) = outcome else {
            write_line(sink, address, b"unavailable: a thread does not stop, or there is no memory");
            return None;
        };
        if text.length() == 0 {
            text.text(if is_live { "no root leads to this block" } else { "no block is allocated here" });
        }
        for row in text.finish().split(|&byte| byte == b'\n').filter(|row| !row.is_empty()) {
            write_line(sink, address, row);
        }
        let mut line = [0; 256];
        let mut text = Text::new(&mut line);
        let named = [
            ("held_stacks_bytes=", shares.stacks),
            (" held_statics_bytes=", shares.statics),
            (" held_mappings_bytes=", shares.mappings),
            (" held_registers_bytes=", shares.registers),
        ];
        for (key, bytes) in named {
            text.text(key);
            text.number(bytes as usize);
        }
        write_line(sink, address, text.finish());
        Some(shares.total() as usize)
    }
}

/// Writes the chain to the block at an address, at most `most` links from each end. Returns whether there is such a
/// block.
fn chain(
    stopped_heap: &StoppedHeap<'_>,
    address: usize,
    most: usize,
    text: &mut Text<'_>,
) -> Result<bool, Unavailable> {
    let Some(block) = stopped_heap.live(address) else { return Ok(false) };
    let mut tracer = stopped_heap.tracer(block.start);
    // Other roots are more informative than the calling thread's own stack, which comes second.
    for own in [false, true] {
        stopped_heap.roots(&mut |range, source, is_own| {
            if is_own == own {
                // SAFETY: `StoppedHeap::roots` yields readable ranges, and the world is stopped.
                unsafe { tracer.root(range, source) };
            }
        })?;
        tracer.follow();
        if let Some(last) = tracer.found {
            let (first, length) = tracer.reverse(last);
            let mut entry = tracer.entry(first);
            write_root(stopped_heap, entry, text);
            for place in 1..length {
                let next = tracer.entry(entry.link);
                if place == most && length - place > most {
                    text.text("... and on through blocks that are omitted: ");
                    text.number(length - 2 * most);
                    text.text("\n");
                }
                if place < most || length - place <= most {
                    write_block(stopped_heap, entry, text);
                    text.text(", word at + ");
                    text.number(next.word - entry.block);
                    write_target(next.word, text);
                }
                entry = next;
            }
            write_block(stopped_heap, entry, text);
            text.text(", queried at + ");
            text.number(address - entry.block);
            text.text("\n");
            return Ok(true);
        }
    }
    Ok(true)
}

/// Writes the root at which a chain begins.
fn write_root(stopped_heap: &StoppedHeap<'_>, entry: Entry, text: &mut Text<'_>) {
    let thread = |text: &mut Text<'_>| match stopped_heap.thread_of(entry.word) {
        Some(thread) => {
            text.text(" of thread ");
            text.number(thread as usize);
        }
        None => text.text(" of a thread"),
    };
    match entry.source {
        Source::Registers => {
            text.text("register");
            thread(text);
        }
        Source::Stack => {
            text.text("stack");
            thread(text);
            text.text(" at ");
            text.address(entry.word);
        }
        Source::Kernel => text.text("word that the kernel holds for epoll, a timer or a signal"),
        Source::Added => {
            text.text("added root at ");
            text.address(entry.word);
        }
        source @ (Source::Statics | Source::Mapping | Source::Code) => {
            text.text(match source {
                Source::Statics => "static datum",
                Source::Code => "code",
                _ => "mapping",
            });
            if let Some(mapping) = stopped_heap.mapping(entry.word) {
                if !mapping.name.is_empty() {
                    text.text(" ");
                    text.bytes(mapping.name);
                }
                text.text(" + ");
                text.address(entry.word - mapping.base);
            }
            text.text(" at ");
            text.address(entry.word);
        }
    }
    write_target(entry.word, text);
}

fn write_block(stopped_heap: &StoppedHeap<'_>, entry: Entry, text: &mut Text<'_>) {
    text.text("block ");
    text.address(entry.block);
    text.text(" of ");
    text.number(stopped_heap.size(entry.block));
    text.text(" bytes");
}

/// Writes the value of a word and ends the line.
fn write_target(word: usize, text: &mut Text<'_>) {
    text.text(" -> ");
    // SAFETY: the tracer has read this word, and the world has been stopped since.
    text.address(unsafe { (word as *const usize).read_unaligned() });
    text.text("\n");
}

/// The bytes that each sort of root holds alone: those reached from all roots, less those reached without it.
fn shares(stopped_heap: &StoppedHeap<'_>) -> Result<Shares, Unavailable> {
    let without = |excluded: &[Source]| {
        let mut tracer = stopped_heap.tracer(0);
        stopped_heap.roots(&mut |range, source, _| {
            if !excluded.contains(&source) {
                // SAFETY: `StoppedHeap::roots` yields readable ranges, and the world is stopped.
                unsafe { tracer.root(range, source) };
            }
        })?;
        tracer.follow();
        Ok(tracer.bytes)
    };
    let all = without(&[])?;
    Ok(Shares {
        stacks: all - without(&[Source::Stack])?,
        statics: all - without(&[Source::Statics])?,
        mappings: all - without(&[Source::Mapping, Source::Code, Source::Added, Source::Kernel])?,
        registers: all - without(&[Source::Registers])?,
    })
}

#[cfg(test)]
mod tests;
