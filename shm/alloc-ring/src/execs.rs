//! Notes of calls that replace a process's image or start a process: the tool knows by them of images that never register.
//!
//! Async-signal-safe, and for children of vfork: only atomics and system calls.

use core::ffi::CStr;
use core::sync::atomic::{AtomicU8, Ordering};

use crate::layout::{EXEC_PATH_BYTES, EXECS, Exec, exec_state};
use crate::places::exec;
use crate::rings::{Core, Rings, ThreadWord, stage};
use crate::sys::{self, Errno};
use crate::wait::wake_tool;

/// How often a process without an entry for its note waits for a ms.
const PATIENCE: u32 = 50;

/// A note, to be withdrawn when the call has failed. The default is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use]
pub struct Noted(Option<usize>);

impl<W: ThreadWord> Rings<W> {
    /// This process is about to become another image, by executing `path`.
    pub fn exec_begins(&self, path: Option<&CStr>) -> Noted {
        self.core().note(path, exec_state::BEGUN)
    }

    /// This process is about to start another, whose number [`Rings::started`] says afterwards.
    pub fn start_begins(&self, path: Option<&CStr>) -> Noted {
        self.core().note(path, exec_state::CLAIMED)
    }

    /// This process starts another without the variables that load the layer.
    pub fn starts_without_layer(&self, path: &CStr) {
        let _ = self.core().note(Some(path), exec_state::WITHOUT);
    }

    /// The call has failed: all is as it was. Keeps `errno`.
    pub fn withdraw(&self, noted: Noted) {
        self.core().finish(noted, exec_state::FREE);
    }

    /// The process was started, as number `pid`.
    pub fn started(&self, noted: Noted, pid: i32) {
        self.core().finish(noted, u64::from(pid as u32) << 8 | exec_state::BEGUN);
    }
}

impl Core {
    /// An entry of the table. `None`: nothing is mapped.
    fn entry(&self, index: usize) -> Option<&Exec> {
        let header = self.header.load(Ordering::Acquire);
        // SAFETY: the mapping, which stays, begins with a header and has the table, which the tool reserved.
        (!header.is_null()).then(|| unsafe { &*exec(header, self.geometry(), index) })
    }

    fn note(&self, path: Option<&CStr>, state: u64) -> Noted {
        if self.attached.load(Ordering::Acquire) != stage::ATTACHED {
            return Noted(None);
        }
        let _errno = Errno::keep();
        let own = u64::from(sys::getpid() as u32) << 8;
        let tid = sys::gettid() as u32;
        let mine = |entry: &Exec| entry.tid.load(Ordering::Relaxed) == tid;
        // An earlier note of this thread is of a call that failed and could not be withdrawn; those of others are of calls
        // under way.
        let before = match state {
            exec_state::BEGUN => self.claim(own | exec_state::BEGUN, own, mine),
            _ => None,
        };
        let Some(index) = before.or_else(|| self.claim_free(own)) else {
            return Noted(None);
        };
        let Some(entry) = self.entry(index) else { return Noted(None) };
        let bytes = path.map_or(&b"?"[..], CStr::to_bytes);
        let kept = &bytes[bytes.len().saturating_sub(EXEC_PATH_BYTES)..];
        for (to, from) in entry.path.iter().zip(kept) {
            AtomicU8::store(to, *from, Ordering::Relaxed);
        }
        entry.path_bytes.store(kept.len() as u32, Ordering::Relaxed);
        entry.namespace.store(sys::namespace(), Ordering::Relaxed);
        entry.since_ns.store(sys::now_ns(), Ordering::Relaxed);
        entry.tid.store(tid, Ordering::Relaxed);
        if state != exec_state::CLAIMED {
            entry.who.store(own | state, Ordering::Release);
        }
        Noted(Some(index))
    }

    /// Takes a free entry; waits a little for the tool to make one free. `None`: it is counted that there was none.
    fn claim_free(&self, own: u64) -> Option<usize> {
        // SAFETY: asked by `note`, which has seen that this process is attached.
        let header = unsafe { self.mapped_header() };
        for _ in 0..PATIENCE {
            let found = self.claim(exec_state::FREE, own, |_| true);
            if found.is_some() {
                return found;
            }
            wake_tool(header);
            let freed = &header.registry.0.freed;
            sys::futex_wait(freed, freed.load(Ordering::Relaxed), 1_000_000);
        }
        header.registry.0.execs_left_out.fetch_add(1, Ordering::Relaxed);
        None
    }

    /// This process has registered: the note of the exec that it came of has done its work.
    pub(crate) fn settle_exec(&self, pid: i32, namespace: u64) {
        let who = u64::from(pid as u32) << 8 | exec_state::BEGUN;
        for entry in (0..EXECS).filter_map(|index| self.entry(index)) {
            if entry.who.load(Ordering::Acquire) == who
                && entry.namespace.load(Ordering::Relaxed) == namespace
            {
                let free = exec_state::FREE;
                let _ = entry.who.compare_exchange(who, free, Ordering::AcqRel, Ordering::Relaxed);
            }
        }
    }

    /// Takes an entry whose word is `who`, and which is one `of` those wanted, for process `own`: when that has died, the
    /// tool frees it.
    fn claim(&self, who: u64, own: u64, of: impl Fn(&Exec) -> bool) -> Option<usize> {
        let claimed = own | exec_state::CLAIMED;
        (0..EXECS).find(|&index| {
            self.entry(index).is_some_and(|entry| {
                entry.who.load(Ordering::Relaxed) == who
                    && of(entry)
                    && entry.who.compare_exchange(who, claimed, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            })
        })
    }

    fn finish(&self, noted: Noted, who: u64) {
        if let Some(entry) = noted.0.and_then(|index| self.entry(index)) {
            entry.who.store(who, Ordering::Release);
        }
    }
}
