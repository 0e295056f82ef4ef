//! The program's calls: each allocation is compared with the recorded one, and objects are freed when they are due.

use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::fmt::Write;
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use heaptoll_next::stderr_line::StderrLine;
use heaptoll_next::{arena, forward};
use heaptoll_oracle_core::deaths::Deaths;
use heaptoll_oracle_core::difference::{Difference, What};
use heaptoll_oracle_core::pages::Pages;
use heaptoll_oracle_core::pending::Pending;
use heaptoll_oracle_core::reader::Reader;
use heaptoll_oracle_core::sequence::Sequence;
use heaptoll_oracle_core::settings::Point;
use heaptoll_oracle_file::{LARGEST, Section};
use heaptoll_runtime::thread_pointer;
use heaptoll_stats_page::{Writer, WriterKind};

use crate::file::Path;
use crate::loaded::Process;
use crate::start::{State, oracle, state};
use crate::stop::{stop, stop_at, stop_because};

/// The slot in which allocations are counted: as many as were recorded show that the sequence was followed to its end.
static WRITER: Writer = Writer::new(WriterKind::Layer, "oracle");

/// Finds the statistics page.
pub fn attach() {
    let _ = WRITER.slot();
}

/// When objects are freed, with what is needed for it.
pub enum Reclaim {
    /// When the program frees them.
    Free,
    /// At their last use.
    LastUse(Deaths<'static, Path>),
    /// So many bytes after the program freed them.
    Delay(u64, Pending),
    /// When the bytes allocated reach the next multiple.
    Collect(u64, Pending),
    /// Not at all.
    Never,
}

impl Reclaim {
    /// Nothing has been allocated.
    pub fn new(
        point: Point,
        path: Path,
        deaths: Section,
        blocks: &'static [Cell<*mut c_void>],
    ) -> Reclaim {
        match point {
            Point::Free | Point::Record => Reclaim::Free,
            Point::LastUse => Reclaim::LastUse(Deaths::new(Reader::new(path, deaths), blocks)),
            Point::Delay(bytes) => Reclaim::Delay(bytes, Pending::new()),
            Point::Collect(bytes) => Reclaim::Collect(bytes, Pending::new()),
            Point::Never => Reclaim::Never,
        }
    }
}

/// What follows the sequence.
pub struct Oracle {
    /// The thread that allocates.
    pub thread: usize,
    /// The recorded allocations.
    pub sequence: Sequence<'static, Path, Process>,
    /// When objects are freed.
    pub reclaim: Reclaim,
    /// Where blocks are in a run that checks; otherwise they are the manager's.
    pub pages: Option<Pages>,
    /// Bytes requested so far.
    pub allocated: u64,
}

/// Gives a block back.
///
/// # Safety
/// The block is one that `pages` or else the manager gave, and was not given back.
#[inline(always)]
unsafe fn reclaim(pages: &mut Option<Pages>, block: *mut c_void) {
    // SAFETY: the contract of this function.
    match pages {
        None => unsafe { forward::free(block) },
        Some(pages) => unsafe { pages.retire(block) },
    }
}

impl Oracle {
    /// Compares an allocation, frees what is due, and gives the new block. The result's second part is the recorded size
    /// of the object that a `realloc` ends.
    #[inline(always)]
    fn allocate(
        &mut self,
        size: usize,
        align: usize,
        caller: usize,
        resizes: bool,
        make: impl FnOnce() -> *mut c_void,
    ) -> (*mut c_void, u64) {
        if self.thread != thread_pointer() {
            stop_because("a second thread allocates, and the recorded sequence is one thread's");
        }
        let resized = match self.sequence.next(size as u64, caller, resizes) {
            Ok(resized) => resized.unwrap_or(0),
            Err(difference) => stop_at(difference, self.sequence.sites(), size, caller),
        };
        let freed = self.reclaim_due();
        let block = match &mut self.pages {
            None => make(),
            Some(pages) => pages.allocate(size, align, self.sequence.count() - 1),
        };
        if block.is_null() {
            stop_because("the manager refuses memory that it gave when the program was recorded");
        }
        let kept = freed.and_then(|()| match &mut self.reclaim {
            Reclaim::LastUse(deaths) => deaths.keep(block),
            _ => Ok(()),
        });
        if let Err(what) = kept {
            let allocation = self.sequence.count() - 1;
            stop_at(Difference { allocation, what }, self.sequence.sites(), size, caller);
        }
        self.allocated += size as u64;
        WRITER.slot().malloc_calls.store(self.sequence.count(), Relaxed);
        (block, resized)
    }

    #[inline(always)]
    fn reclaim_due(&mut self) -> Result<(), What> {
        let Oracle { pages, reclaim: when, allocated, .. } = self;
        // SAFETY: the blocks come from the table or the queue, which each contain a block once, until it is freed.
        match when {
            Reclaim::Free | Reclaim::Never => {}
            Reclaim::LastUse(deaths) => deaths.before_allocation(|block| unsafe { reclaim(pages, block) })?,
            Reclaim::Delay(_, pending) | Reclaim::Collect(_, pending) => {
                while let Some(block) = pending.due(*allocated) {
                    unsafe { reclaim(pages, block) };
                }
            }
        }
        Ok(())
    }

    /// The program frees an object.
    ///
    /// # Safety
    /// The block is live.
    #[inline(always)]
    unsafe fn free(&mut self, block: *mut c_void) {
        let Oracle { pages, reclaim: when, allocated, .. } = self;
        let added = match when {
            // SAFETY: by this function's contract the block is live.
            Reclaim::Free => return unsafe { reclaim(pages, block) },
            Reclaim::LastUse(_) | Reclaim::Never => return,
            Reclaim::Delay(bytes, pending) => pending.add(block, allocated.saturating_add(*bytes)),
            Reclaim::Collect(bytes, pending) => {
                pending.add(block, (*allocated / *bytes + 1).saturating_mul(*bytes))
            }
        };
        if added.is_err() {
            stop_because("it has no memory for its queue of freed blocks");
        }
    }
}

/// Allocates a block: by the sequence, or as the program does without this layer.
#[inline(always)]
pub fn allocate(
    size: usize,
    align: usize,
    caller: usize,
    make: impl FnOnce() -> *mut c_void,
) -> *mut c_void {
    match state() {
        State::Follow if size as u64 <= LARGEST => {
            // SAFETY: the state is `Follow`; other threads are refused before they change anything.
            unsafe { (*oracle()).allocate(size, align, caller.wrapping_sub(1), false, make).0 }
        }
        _ => make(),
    }
}

/// Frees a block: when the oracle frees it, or now.
///
/// # Safety
/// As for C's `free`.
#[inline(always)]
pub unsafe fn free(block: *mut c_void) {
    if block.is_null() || arena::owns(block) {
        return;
    }
    match state() {
        // SAFETY: the state is `Follow`; by this function's contract the block is live.
        State::Follow => unsafe { (*oracle()).free(block) },
        State::Abandoned => {}
        // SAFETY: by this function's contract the block is live, and it is the manager's.
        _ => unsafe { forward::free(block) },
    }
}

/// Resizes a block: an allocation, a copy and a free, where the sequence is followed.
///
/// # Safety
/// As for C's `realloc`.
pub unsafe fn reallocate(block: *mut c_void, size: usize, caller: usize) -> *mut c_void {
    if block.is_null() {
        return allocate(size, 16, caller, move || forward::malloc(size));
    }
    let state = state();
    if state == State::Forward || size as u64 > LARGEST {
        // SAFETY: the contract of `forward::realloc` is that of this function; blocks are the manager's.
        return unsafe { forward::realloc(block, size) };
    }
    // SAFETY: by this function's contract the block is live; the copy stays within both blocks, whose sizes are the
    // recorded ones: the sequence is the recorded one so far. In an abandoned child the old block is one of `pages`.
    unsafe {
        if size == 0 {
            free(block);
            return ptr::null_mut();
        }
        let (moved, old) = if state == State::Abandoned {
            (forward::malloc(size), abandoned_size(block))
        } else {
            (*oracle()).allocate(size, 16, caller.wrapping_sub(1), true, move || forward::malloc(size))
        };
        if moved.is_null() {
            return moved;
        }
        ptr::copy_nonoverlapping(block.cast::<u8>(), moved.cast(), size.min(old as usize));
        free(block);
        moved
    }
}

/// Bytes of a block in a child of a run that checks: of one of its parent's, or of the manager's.
unsafe fn abandoned_size(block: *mut c_void) -> u64 {
    // SAFETY: the state is `Abandoned`, so the oracle was made; a block with an owner is one of its pages'.
    unsafe {
        match &(*oracle()).pages {
            Some(pages) if pages.owner(block as usize).is_some() => pages.size(block) as u64,
            _ => forward::usable_size(block) as u64,
        }
    }
}

/// Bytes that may be used.
///
/// # Safety
/// `block` is null or live.
pub unsafe fn usable_size(block: *mut c_void) -> usize {
    let state = state();
    if !block.is_null() && (state == State::Follow || state == State::Abandoned) {
        // SAFETY: the state says that the oracle was made; a block with an owner is one of its pages'.
        unsafe {
            if let Some(pages) = &(*oracle()).pages
                && pages.owner(block as usize).is_some()
            {
                return pages.size(block);
            }
        }
    }
    // SAFETY: the contract of `forward::usable_size` is that of this function.
    unsafe { forward::usable_size(block) }
}

/// Reports an access to a freed object, with its allocation, in place of a bare SIGSEGV.
pub fn report_touches() {
    // SAFETY: all zeroes are a valid sigaction; the handler has the type that SA_SIGINFO requires.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = touched as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGSEGV, &action, ptr::null_mut());
    }
}

unsafe extern "C" fn touched(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel passes the information of a SIGSEGV; the handler is installed after the oracle is made.
    unsafe {
        let address = (*info).si_addr() as usize;
        let oracle = &*oracle();
        if let Some(owner) = oracle.pages.as_ref().and_then(|pages| pages.owner(address)) {
            let mut line = StderrLine::new();
            let _ = write!(
                line,
                "the oracle stops: the object of allocation {owner} was touched after it was freed, between allocations {} and {}",
                oracle.sequence.count().saturating_sub(1),
                oracle.sequence.count()
            );
            stop(line);
        }
        // The program's own: it happens again, with the default action.
        libc::signal(signal, libc::SIG_DFL);
    }
}
