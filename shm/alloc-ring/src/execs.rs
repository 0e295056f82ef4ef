//! Notes of calls that replace a process's image or start a process: from them the tool learns of images that never
//! register.
//!
//! Async-signal-safe, and for children of vfork: only atomics and system calls.

use core::ffi::CStr;

use crate::atomic::{AtomicU8, Ordering};
use crate::attachment::{Attachment, stage};
use crate::layout::{EXEC_PATH_BYTES, EXECS, Exec, exec_state};
use crate::pointers::exec;
use crate::sys::{self, Errno};
use crate::wait::wake_tool;

/// How often a process without a free entry for its note waits 1 ms.
const PATIENCE: u32 = 50;

/// A note of a call, which is withdrawn if the call fails. The default is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use]
pub struct ExecNote(Option<usize>);

impl Attachment {
    /// An entry of the table. `None`: nothing is mapped.
    fn entry(&self, index: usize) -> Option<&Exec> {
        let header = self.header.load(Ordering::Acquire);
        // SAFETY: a header that is not null begins the mapping, which stays; callers pass an index below `EXECS`, and
        // the tool has reserved the table's memory.
        (!header.is_null()).then(|| unsafe { &*exec(header, self.geometry(), index) })
    }

    /// Notes a call that begins. None when this process is not attached, or no entry is free.
    pub(crate) fn note(&self, path: Option<&CStr>, state: u64) -> ExecNote {
        if self.stage.load(Ordering::Acquire) != stage::ATTACHED {
            return ExecNote(None);
        }
        let _errno = Errno::keep();
        let own = u64::from(sys::getpid() as u32) << 8;
        let tid = sys::gettid() as u32;
        let mine = |entry: &Exec| entry.tid.load(Ordering::Relaxed) == tid;
        // An earlier note of this thread belongs to a call that failed and could not be withdrawn; notes of other
        // threads belong to calls in progress.
        let before = match state {
            exec_state::BEGUN => self.claim(own | exec_state::BEGUN, own, mine),
            _ => None,
        };
        let Some(index) = before.or_else(|| self.claim_free(own)) else {
            return ExecNote(None);
        };
        let Some(entry) = self.entry(index) else { return ExecNote(None) };
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
            entry.state.store(own | state, Ordering::Release);
        }
        ExecNote(Some(index))
    }

    /// Claims a free entry; waits briefly for the tool to free one. `None`: there was none, which is counted.
    fn claim_free(&self, own: u64) -> Option<usize> {
        // SAFETY: the only caller, `note`, has checked that this process is attached.
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

    /// Frees the note of the exec from which this process comes, since it has registered.
    pub(crate) fn settle_exec(&self, pid: i32, namespace: u64) {
        let state = u64::from(pid as u32) << 8 | exec_state::BEGUN;
        for entry in (0..EXECS).filter_map(|index| self.entry(index)) {
            if entry.state.load(Ordering::Acquire) == state
                && entry.namespace.load(Ordering::Relaxed) == namespace
            {
                let free = exec_state::FREE;
                let _ = entry.state.compare_exchange(state, free, Ordering::AcqRel, Ordering::Relaxed);
            }
        }
    }

    /// Claims an entry that is in `state` and `matches`, for process `own`: when that has died, the tool frees the
    /// entry.
    fn claim(&self, state: u64, own: u64, matches: impl Fn(&Exec) -> bool) -> Option<usize> {
        let claimed = own | exec_state::CLAIMED;
        (0..EXECS).find(|&index| {
            self.entry(index).is_some_and(|entry| {
                entry.state.load(Ordering::Relaxed) == state
                    && matches(entry)
                    && entry
                        .state
                        .compare_exchange(state, claimed, Ordering::AcqRel, Ordering::Relaxed)
                        .is_ok()
            })
        })
    }

    /// Leaves a note's entry in `state`.
    pub(crate) fn finish(&self, note: ExecNote, state: u64) {
        if let Some(entry) = note.0.and_then(|index| self.entry(index)) {
            entry.state.store(state, Ordering::Release);
        }
    }
}
