//! Threads and processes as the model ends them, in place of `shm/alloc-ring/src/tool/proc.rs`.

use super::map::Map;
use crate::atomic::Ordering;
use crate::world;

/// A process by its number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessIdentity {
    pid: i32,
}

impl ProcessIdentity {
    pub fn from_entry(map: &Map, index: usize) -> ProcessIdentity {
        ProcessIdentity { pid: (map.process(index).state.load(Ordering::Acquire) >> 8) as i32 }
    }

    pub fn from_number(_map: &Map, own_pid: i32, _theirs: u64) -> ProcessIdentity {
        ProcessIdentity { pid: own_pid }
    }

    pub fn pid(&self) -> i32 {
        self.pid
    }

    pub fn was_there(&self) -> bool {
        self.pid > 0
    }

    pub fn foreign(&self) -> bool {
        false
    }

    pub fn runs(&self) -> bool {
        !world::has_ended(self.pid)
    }

    pub fn thread_runs(&self, tid: i32) -> bool {
        !world::has_ended(tid)
    }
}

pub(crate) fn parent(_pid: i32) -> Option<i32> {
    None
}
