//! Why a block stays: the chain of words from a root to it, and how much each sort of root holds alone.
//!
//! For who debugs a leak, and slow: the world stands while everything is read, once for a chain and five times for the
//! shares. The collector's own marking keeps no parents, so this is a tracer apart. It goes breadth first, so that a
//! chain is as short as can be, and its queue, which is the list of all blocks it has reached, remembers where each
//! was found; the memory for it is mapped, never allocated.
//!
//! Who asks holds the address himself, in a register or on his stack. Therefore [`with_frame`] keeps apart what is
//! his from what is ours, and the chain that is told avoids the asking thread's stack if there is another.

mod mappings;
mod stopped_heap;
mod text;
mod tracer;

use core::arch::naked_asm;
use core::ffi::{c_int, c_void};
use core::slice;

use heaptoll_floor::Region;

use crate::collection::Collection;
use crate::heap::Heap;
use stopped_heap::{Query, StoppedHeap, with_stopped_heap};
use text::{Text, write_line};
use tracer::{Entry, Source};

/// `struct tithe_held`: bytes in blocks that nothing but this sort of root leads to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Shares {
    pub stacks: u64,
    pub statics: u64,
    pub mappings: u64,
    pub registers: u64,
}

impl Shares {
    /// All of them, bytes.
    pub const fn total(&self) -> u64 {
        self.stacks + self.statics + self.mappings + self.registers
    }
}

/// Why there is no answer: a thread would not stop, the mappings are not readable, or there is no memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unavailable;

/// From where on the asking thread's stack is read: the address of the frame of whoever asked, as [`with_frame`] gives
/// it. The registers that calls preserve lie there too. 0: no roots are wanted.
pub type Frame = usize;

/// Calls `inner(context, frame)`.
///
/// # Safety
/// As the call of `inner` with this context and any frame.
#[unsafe(naked)]
pub unsafe extern "C" fn with_frame(context: *mut c_void, inner: unsafe extern "C" fn(*mut c_void, Frame)) {
    naked_asm!(
        "push rbx",
        "push rbp",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "mov rax, rsi",
        "mov rsi, rsp",
        "sub rsp, 8",
        "call rax",
        "add rsp, 56",
        "ret",
    )
}

impl Heap {
    /// `tithe_is_live`: 1 if the address lies in a block that is handed out, 0 if not, -1 if this cannot be told.
    pub fn is_live(&self, address: usize) -> c_int {
        let mut collection = self.collection.lock();
        let live = with_stopped_heap(self, &mut collection, Query::Blocks, 0, |stopped_heap| {
            stopped_heap.live(address).is_some()
        });
        live.map_or(-1, c_int::from)
    }

    /// Writes the chain that keeps the block at an address into `text`, as far as it has room. Says how long it is,
    /// bytes; 0: there is no such block, or nothing leads to it.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub fn why(&self, address: usize, text: &mut [u8], frame: Frame) -> Result<usize, Unavailable> {
        let mut collection = self.collection.lock();
        let mut text = Text::new(text);
        with_stopped_heap(self, &mut collection, Query::Chains, frame, |stopped_heap| {
            chain(stopped_heap, address, usize::MAX, &mut text)
        })??;
        text.finish();
        Ok(text.length())
    }

    /// What each sort of root holds alone.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub fn held(&self, frame: Frame) -> Result<Shares, Unavailable> {
        let mut collection = self.collection.lock();
        with_stopped_heap(self, &mut collection, Query::Chains, frame, shares)?
    }

    /// After a collection, if `TITHE_WHY` is set: writes the chain to the log or to standard error, and what roots
    /// hold alone. Says how much that is in all, bytes.
    pub(crate) fn explain(&self, collection: &mut Collection) -> Option<usize> {
        collection.why?;
        let mut task = Task { heap: self, collection, held: None };
        // SAFETY: the context is what the function wants.
        unsafe { with_frame((&raw mut task).cast(), explain) };
        task.held
    }
}

/// What [`explain`] works on.
struct Task<'a> {
    heap: &'a Heap,
    collection: &'a mut Collection,
    held: Option<usize>,
}

/// Links of a chain that are written to the log from each of its ends, and bytes of them in all.
const LOGGED: usize = 32;
const LOGGED_BYTES: usize = 24 << 10;

/// # Safety
/// The context is a [`Task`] that nobody else uses.
unsafe extern "C" fn explain(context: *mut c_void, frame: Frame) {
    // SAFETY: the caller's word.
    let Task { heap, collection, held } = unsafe { &mut *context.cast::<Task<'_>>() };
    let (Some(address), sink) = (collection.why, collection.log) else { return };
    let mut region = Region::new();
    let Some(memory) = region.grow(LOGGED_BYTES) else { return };
    // SAFETY: mapped just now, for this.
    let memory = unsafe { slice::from_raw_parts_mut(memory.as_ptr(), LOGGED_BYTES) };
    let mut text = Text::new(memory);
    let outcome = with_stopped_heap(heap, collection, Query::Chains, frame, |stopped_heap| {
        let live = chain(stopped_heap, address, LOGGED, &mut text)?;
        Ok::<_, Unavailable>((live, shares(stopped_heap)?))
    });
    let Ok(Ok((is_live, shares))) = outcome else {
        return write_line(sink, address, b"cannot be told: a thread does not stop, or there is no memory");
    };
    if text.length() == 0 {
        text.text(if is_live { "no root leads to this block" } else { "no block is handed out here" });
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
    *held = Some(shares.total() as usize);
}

/// Writes the chain to the block at an address, of which no more than `most` links from each end. Says whether there
/// is such a block.
fn chain(
    stopped_heap: &StoppedHeap<'_>,
    address: usize,
    most: usize,
    text: &mut Text<'_>,
) -> Result<bool, Unavailable> {
    let Some(block) = stopped_heap.live(address) else { return Ok(false) };
    let mut tracer = stopped_heap.tracer(block.start);
    // What others hold says more than what the asking thread has at hand.
    for own in [false, true] {
        stopped_heap.roots(&mut |range, source, is_own| {
            if is_own == own {
                // SAFETY: roots are readable, and everybody stands still.
                unsafe { tracer.root(range, source) };
            }
        })?;
        tracer.follow();
        if let Some(last) = tracer.found {
            let (first, length) = tracer.turn(last);
            let mut entry = tracer.entry(first);
            write_root(stopped_heap, entry, text);
            for place in 1..length {
                let next = tracer.entry(entry.link);
                if place == most && length - place > most {
                    text.text("... and on through blocks that are not told: ");
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
            text.text(", asked for at + ");
            text.number(address - entry.block);
            text.text("\n");
            return Ok(true);
        }
    }
    Ok(true)
}

/// Where a chain begins.
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

/// What a word holds, which ends a line.
fn write_target(word: usize, text: &mut Text<'_>) {
    text.text(" -> ");
    // SAFETY: a word that was read, and everybody stands still since.
    text.address(unsafe { (word as *const usize).read_unaligned() });
    text.text("\n");
}

/// What each sort of root holds alone: what is reached by all, less what is reached without it.
fn shares(stopped_heap: &StoppedHeap<'_>) -> Result<Shares, Unavailable> {
    let without = |excluded: &[Source]| {
        let mut tracer = stopped_heap.tracer(0);
        stopped_heap.roots(&mut |range, source, _| {
            if !excluded.contains(&source) {
                // SAFETY: roots are readable, and everybody stands still.
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
        mappings: all - without(&[Source::Mapping, Source::Code, Source::Added])?,
        registers: all - without(&[Source::Registers])?,
    })
}

#[cfg(test)]
mod tests;
