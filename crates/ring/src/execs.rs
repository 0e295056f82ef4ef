//! Notes of calls that replace a process's image or start a process: the tool knows by them of images that never register.
//!
//! Async-signal-safe, and for children of vfork: only atomics and system calls.

use core::ffi::CStr;
use core::sync::atomic::{AtomicU8, Ordering};

use crate::layout::{EXEC_PATH_BYTES, EXECS, Exec, exec_state};
use crate::places::exec;
use crate::rings::{Core, Rings, ThreadWord, stage};
use crate::sys::{self, Errno};

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
    /// An entry of the table. `None`: nobody listens.
    fn exec(&self, index: usize) -> Option<&Exec> {
        let attached = self.attached.load(Ordering::Acquire) == stage::ATTACHED;
        // SAFETY: attached, so the mapping, which stays, begins with a header and has the table, which the tool reserved.
        attached.then(|| unsafe { &*exec(self.mapped_header(), self.geometry(), index) })
    }

    fn note(&self, path: Option<&CStr>, state: u64) -> Noted {
        if self.attached.load(Ordering::Acquire) != stage::ATTACHED {
            return Noted(None);
        }
        let _errno = Errno::keep();
        let own = u64::from(sys::getpid() as u32) << 8;
        // An earlier note of this process is of a call that failed and could not be withdrawn.
        let Some(index) = self.claim(own | exec_state::BEGUN).or_else(|| self.claim(exec_state::FREE)) else {
            // SAFETY: attached.
            let registry = unsafe { &self.mapped_header().registry.0 };
            registry.execs_left_out.fetch_add(1, Ordering::Relaxed);
            return Noted(None);
        };
        let Some(entry) = self.exec(index) else { return Noted(None) };
        let bytes = path.map_or(&b"?"[..], CStr::to_bytes);
        let kept = &bytes[bytes.len().saturating_sub(EXEC_PATH_BYTES)..];
        for (to, from) in entry.path.iter().zip(kept) {
            AtomicU8::store(to, *from, Ordering::Relaxed);
        }
        entry.path_bytes.store(kept.len() as u32, Ordering::Relaxed);
        entry.namespace.store(sys::namespace(), Ordering::Relaxed);
        entry.since_ns.store(sys::now_ns(), Ordering::Relaxed);
        if state != exec_state::CLAIMED {
            entry.who.store(own | state, Ordering::Release);
        }
        Noted(Some(index))
    }

    /// Takes an entry whose word is `who`.
    fn claim(&self, who: u64) -> Option<usize> {
        (0..EXECS).find(|&index| {
            self.exec(index).is_some_and(|entry| {
                entry.who.load(Ordering::Relaxed) == who
                    && entry
                        .who
                        .compare_exchange(who, exec_state::CLAIMED, Ordering::AcqRel, Ordering::Relaxed)
                        .is_ok()
            })
        })
    }

    fn finish(&self, noted: Noted, who: u64) {
        if let Some(entry) = noted.0.and_then(|index| self.exec(index)) {
            entry.who.store(who, Ordering::Release);
        }
    }
}
