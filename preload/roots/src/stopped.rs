//! The world while it is stopped: where its words are.

use core::cell::RefCell;
use core::ops::Range;
use core::sync::atomic::Ordering;

use heaptoll_assertions::{assert_expensive, assert_internal};
use heaptoll_runtime::{AbandonCause, SignalMaskGuard};
use heaptoll_stats_page::UnreadPlaces;

use crate::areas::{self, Gatherer};
use crate::buffer::NoMemory;
use crate::exec_gate::Closed;
use crate::handshake::Handshake;
use crate::kernel;
use crate::maps::{self, MapsError};
use crate::own_stack::OwnStack;
use crate::pages::Pages;
use crate::registers::{RED_ZONE, Registers};
use crate::scratch::{ScratchBuffers, ScratchGuard};
use crate::{Origin, Root, RootKinds};

/// Bytes of a word.
const WORD: usize = size_of::<usize>();

/// How many ranges of this crate's own there are at most: buffers, chunks of records, the world.
const OWN: usize = 32;

/// Why roots were not all shown: nothing may be reclaimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootsError {
    /// `/proc/thread-self/maps` cannot be opened or is not understood.
    Maps,
    /// No memory for a list of the mappings.
    NoMemory,
    /// No file descriptor is free to read `/proc/thread-self` with: there may be one at the next stop.
    NoDescriptor,
}

impl RootsError {
    /// The cause to report.
    pub const fn cause(self) -> AbandonCause {
        match self {
            RootsError::Maps => AbandonCause::Roots,
            RootsError::NoMemory => AbandonCause::Memory,
            RootsError::NoDescriptor => AbandonCause::Descriptors,
        }
    }
}

impl From<NoMemory> for RootsError {
    fn from(_: NoMemory) -> RootsError {
        RootsError::NoMemory
    }
}

impl From<MapsError> for RootsError {
    fn from(failure: MapsError) -> RootsError {
        match failure {
            MapsError::NoMemory => RootsError::NoMemory,
            MapsError::NoDescriptor => RootsError::NoDescriptor,
            MapsError::Unreadable => RootsError::Maps,
        }
    }
}

/// All other threads are stopped until this is dropped.
pub struct StoppedWorld<'a> {
    handshake: &'a Handshake,
    /// How many threads the process has, but exempt ones.
    pub(crate) threads: usize,
    /// Where roots are shown.
    own_stack: &'a OwnStack,
    /// Where the world lies, which is no root.
    world: Range<usize>,
    // In this order, after the threads are resumed, they may exec, the buffers are freed and the signals unblocked: a
    // handler that runs then may stop the world itself.
    _closed: Closed<'a>,
    scratch: RefCell<ScratchGuard<'a>>,
    /// To be dropped by the thread that has stopped the others; `None`: it has blocked all signals before.
    _signal_mask: Option<SignalMaskGuard>,
}

impl<'a> StoppedWorld<'a> {
    pub(crate) fn new(
        handshake: &'a Handshake,
        own_stack: &'a OwnStack,
        closed: Closed<'a>,
        scratch: ScratchGuard<'a>,
        world: Range<usize>,
        signal_mask: Option<SignalMaskGuard>,
    ) -> StoppedWorld<'a> {
        let scratch = RefCell::new(scratch);
        StoppedWorld {
            handshake,
            threads: 0,
            own_stack,
            world,
            _closed: closed,
            scratch,
            _signal_mask: signal_mask,
        }
    }

    /// How many threads the process has, the calling one included; exempt threads are not.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Shows every range of words of these kinds that may hold a pointer, but those of `left_out`. Ranges may overlap (a thread's
    /// vector registers are saved on its stack), and stay readable until the world is resumed.
    ///
    /// Shown are, of all kinds, the registers of all threads; what only the kernel holds; and the pages that hold
    /// something of all mappings that can be written, or are readable and shared, anonymous or of a file without a name; of
    /// stacks too, below their pointers and above. Left out: the frames of the stop itself, what the kernel or a device
    /// provides, mappings named `[anon:heaptoll...`, and the working memory of this crate, the stack on which `visit` is
    /// called included.
    ///
    /// # Errors
    /// [`RootsError`]: not everything was shown.
    pub fn roots(
        &self,
        kinds: RootKinds,
        left_out: &[Range<usize>],
        visit: &mut dyn FnMut(Root),
    ) -> Result<(), RootsError> {
        let mut left_out = left_out.iter().map(|range| (range.start, range.end));
        self.own_stack.run(None, || self.show(kinds, &mut left_out, visit))?
    }

    /// As [`StoppedWorld::roots`], with what is left out as start and end.
    ///
    /// # Errors
    /// As [`StoppedWorld::roots`].
    pub fn roots_except(
        &self,
        kinds: RootKinds,
        left_out: &[(usize, usize)],
        visit: &mut dyn FnMut(Root),
    ) -> Result<(), RootsError> {
        self.own_stack.run(None, || self.show(kinds, &mut left_out.iter().copied(), visit))?
    }

    /// Shows the parts of a range that can be accessed, as of the roots that were shown last: a program may take the
    /// access to pages of its blocks.
    pub fn accessible(&self, range: Range<usize>, visit: &mut dyn FnMut(Range<usize>)) {
        let scratch = self.scratch.borrow();
        let Ok(()) = areas::subtract(range, scratch.no_access.as_slice(), &mut |part| {
            visit(part);
            Ok::<(), core::convert::Infallible>(())
        });
    }

    #[inline(never)]
    fn show(
        &self,
        kinds: RootKinds,
        left_out: &mut dyn Iterator<Item = (usize, usize)>,
        visit: &mut dyn FnMut(Root),
    ) -> Result<(), RootsError> {
        let mut scratch = self.scratch.borrow_mut();
        let ScratchBuffers { text, entries, areas, no_access, caller, held, .. } = &mut **scratch;
        // SAFETY: `run` has made this thread leave its stack: no other uses the buffers of a world that is stopped.
        unsafe { caller.take_saved(self.own_stack.left(), self.own_stack.alternate()) };
        let mut gatherer = Gatherer::new(areas, no_access);
        maps::read(text, &mut |line| {
            held.unread.add(UnreadPlaces::of_mapping(line.name));
            gatherer.take(&line)
        })?;
        areas::note(areas.as_mut_slice(), caller.stack_pointer);
        registers(caller, visit);
        let mut pending = caller.pending;
        let epoch = self.handshake.epoch();
        assert_internal!(epoch & 1 == 1, "roots are shown while the world is stopped");
        assert_expensive!(
            self.handshake.records.iter().filter(|(_, record)| record.registers(epoch).is_some()).count() + 1
                == self.threads,
            "as many threads are shown as were stopped"
        );
        for (_, record) in self.handshake.records.iter() {
            if let Some(thread) = record.registers(epoch) {
                areas::note(areas.as_mut_slice(), thread.stack_pointer);
                registers(thread, visit);
                pending |= thread.pending;
            }
        }
        if kinds.kernel {
            let range = held.read(pending, text, entries)?;
            if !range.is_empty() {
                visit(Root { range, origin: Origin::Kernel });
            }
        }
        let own = self.handshake.records.ranges().chain([self.world.clone(), self.own_stack.range()]);
        let stopped = self.handshake.records.iter().filter_map(|(_, record)| record.registers(epoch));
        let handlers = stopped.map(|thread| (thread.handler.start, thread.handler.end));
        scratch.mappings(kinds, own, &mut left_out.chain(handlers), visit)
    }

    /// Places in use by the program that no collection can read, and that were noticed until the roots were shown last.
    pub fn unread(&self) -> UnreadPlaces {
        self.scratch.borrow().held.unread
    }

    /// Shows the thread pointers of all threads that were stopped, not the caller's: thread-local storage lies at fixed
    /// distances from them. One that is unknown is not shown.
    pub fn thread_pointers(&self, visit: &mut dyn FnMut(usize)) {
        let epoch = self.handshake.epoch();
        for (_, record) in self.handshake.records.iter() {
            if let Some(registers) = record.registers(epoch)
                && registers.thread_pointer != 0
            {
                visit(registers.thread_pointer);
            }
        }
    }

    /// The thread in whose registers or on whose stack a word lies, of those that [`StoppedWorld::roots`] has shown
    /// last. `None`: no thread's. Callers use it to describe where a pointer is.
    pub fn thread_of(&self, word: usize) -> Option<i32> {
        let scratch = self.scratch.borrow();
        let epoch = self.handshake.epoch();
        let others =
            self.handshake.records.iter().filter_map(|(_, record)| {
                Some((record.tid.load(Ordering::Relaxed), record.registers(epoch)?))
            });
        let threads = core::iter::once((kernel::thread(), &scratch.caller)).chain(others);
        let area = scratch.areas.as_slice().iter().find(|area| (area.start..area.end).contains(&word));
        let mut nearest = None;
        for (tid, registers) in threads {
            if whereabouts(registers).contains(&word) || registers.vector.contains(&word) {
                return Some(tid);
            }
            let pointer = registers.stack_pointer;
            if area.is_some_and(|area| (area.start..area.end).contains(&pointer))
                && pointer <= word.saturating_add(RED_ZONE)
                && nearest.is_none_or(|(_, other)| other < pointer)
            {
                nearest = Some((tid, pointer));
            }
        }
        nearest.map(|(tid, _)| tid)
    }
}

/// Shows the registers of a thread.
fn registers(thread: &Registers, visit: &mut dyn FnMut(Root)) {
    assert_internal!(
        thread.general.contains(&thread.stack_pointer),
        "the stack pointer is one of the registers that are shown"
    );
    let general = thread.general.as_ptr_range();
    for range in [general.start as usize..general.end as usize, thread.vector.clone()] {
        if !range.is_empty() {
            visit(Root { range, origin: Origin::Registers });
        }
    }
}

impl ScratchBuffers {
    /// Shows what the areas of these kinds hold. `own` are ranges of this crate besides the buffers.
    fn mappings(
        &mut self,
        kinds: RootKinds,
        own: impl Iterator<Item = Range<usize>>,
        left_out: &mut dyn Iterator<Item = (usize, usize)>,
        visit: &mut dyn FnMut(Root),
    ) -> Result<(), RootsError> {
        self.left_out.clear();
        for range in left_out {
            self.left_out.push(range)?;
        }
        // The buffer is grown before the addresses of all buffers are read.
        self.left_out.reserve(self.left_out.as_slice().len() + OWN)?;
        let mut ranges = [const { 0..0 }; OWN];
        for (place, range) in ranges.iter_mut().zip(self.ranges().chain(own)) {
            *place = range;
        }
        assert_internal!(ranges[OWN - 1].is_empty(), "all ranges of this crate's own have a place");
        for range in &ranges {
            self.left_out.push((range.start, range.end))?;
        }
        let kept = areas::in_order(self.left_out.as_mut_slice());
        let ScratchBuffers { areas, page_buffers, left_out, .. } = self;
        let left_out = left_out.as_slice().get(..kept).unwrap_or_default();
        let mut pages = Pages::open(page_buffers)?;
        for (at, area) in areas.as_slice().iter().enumerate().filter(|(_, area)| kinds.have(area.origin)) {
            areas::subtract(area.start..area.end, left_out, &mut |piece| {
                if pages.begins_at(piece.start) {
                    pages.reach = areas::reach(&areas.as_slice()[at..], piece.start, left_out);
                }
                pages.present(piece, area.kind, &mut |found| {
                    let range = found.start.next_multiple_of(WORD)..found.end & !(WORD - 1);
                    if !range.is_empty() {
                        assert_internal!(
                            area.start <= range.start && range.end <= area.end,
                            "a root lies in its area"
                        );
                        assert_expensive!(
                            left_out.iter().all(|&(start, end)| range.end <= start || end <= range.start),
                            "no root lies in what is left out"
                        );
                        visit(Root { range, origin: area.origin });
                    }
                })
            })?;
        }
        Ok(())
    }
}

/// The addresses that a value occupies.
pub(crate) fn whereabouts<T>(value: &T) -> Range<usize> {
    let start = core::ptr::from_ref(value) as usize;
    start..start + size_of::<T>()
}

impl Drop for StoppedWorld<'_> {
    fn drop(&mut self) {
        self.handshake.resume();
    }
}
