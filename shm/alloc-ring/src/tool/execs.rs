//! Images that should have registered and did not.
//!
//! The layer notes a call that replaces its process's image, or starts a process, before the call. The resulting image
//! registers when it is loaded, unless the layer is not loaded into it: it has no `LD_PRELOAD`, is linked statically,
//! or has privileges of its own.

use std::collections::HashMap;
use std::path::PathBuf;

use super::arrival::{Arrival, path};
use super::map::Map;
use super::proc::ProcessIdentity;
use crate::atomic::Ordering;
use crate::layout::{EXECS, exec_state};

/// An image that has not registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unregistered {
    /// The file that the call named, or the end of its path.
    pub path: PathBuf,
    /// Its process number, as the tool sees it; 0 unknown.
    pub pid: i32,
}

/// Which images have registered, and which should have.
#[derive(Debug, Default)]
pub(crate) struct Execs {
    /// When the newest image of a process registered, ns, and how many images had before, by namespace and the process
    /// number there.
    arrived: HashMap<(u64, i32), (u64, u64)>,
    /// Images that have registered.
    images: u64,
    /// Entries whose processes were dead at the last poll: an image that registered before its process died has arrived
    /// since.
    dead: HashMap<usize, u64>,
    polls: u32,
}

/// Maximum number of arrivals kept; beyond it, the older half is dropped. The table of notes is much shorter.
const ARRIVALS: usize = 1 << 14;
/// Every how many polls processes are checked for being alive.
const SELDOM: u32 = 10;

impl Execs {
    /// Records images that have registered.
    pub fn arrived(&mut self, map: &Map, found: &[Arrival]) {
        for arrival in found {
            let process = map.process(arrival.index);
            let own_pid = (process.state.load(Ordering::Relaxed) >> 8) as i32;
            let namespace = process.namespace.load(Ordering::Relaxed);
            let began_ns = process.started_ns.load(Ordering::Relaxed);
            self.arrived.insert((namespace, own_pid), (began_ns, self.images));
            self.images += 1;
        }
        if self.arrived.len() > ARRIVALS {
            let newer = self.images.saturating_sub(ARRIVALS as u64 / 2);
            self.arrived.retain(|_, &mut (_, number)| number >= newer);
        }
        heaptoll_assertions::assert_internal!(
            self.arrived.len() <= ARRIVALS,
            "arrivals are kept in bounded number"
        );
    }

    /// Images that have not registered and cannot any more; with `all`, all that have not.
    pub fn unregistered(&mut self, map: &Map, all: bool) -> Vec<Unregistered> {
        let mut found = Vec::new();
        self.polls = self.polls.wrapping_add(1);
        let checks_liveness = all || self.polls.is_multiple_of(SELDOM);
        for index in 0..EXECS {
            let exec = map.exec(index);
            let state = exec.state.load(Ordering::Acquire);
            if state == exec_state::FREE {
                continue;
            }
            if state & 255 <= exec_state::CLAIMED {
                if checks_liveness {
                    self.free_dead(map, index, state);
                }
                continue;
            }
            let (own_pid, namespace) = ((state >> 8) as i32, exec.namespace.load(Ordering::Relaxed));
            let since_ns = exec.since_ns.load(Ordering::Relaxed);
            let has_arrived = self.arrived.get(&(namespace, own_pid)).is_some_and(|&(at, _)| at >= since_ns);
            let without = state & 255 == exec_state::WITHOUT;
            if has_arrived && !without {
                self.free(map, index, state);
                continue;
            }
            if !(without || checks_liveness) {
                continue;
            }
            let at = ProcessIdentity::from_number(map, own_pid, namespace);
            if without || all || self.dead.get(&index) == Some(&state) {
                found.push(Unregistered { path: path(&exec.path, &exec.path_bytes), pid: at.pid() });
                self.free(map, index, state);
            } else if !at.runs() {
                self.dead.insert(index, state);
            }
        }
        found
    }

    /// Frees an entry whose process has died while it filled it in, or while it started another process.
    fn free_dead(&mut self, map: &Map, index: usize, state: u64) {
        // The namespace is written just after the number: a process that is suspended between the two may lose its
        // note.
        let namespace = map.exec(index).namespace.load(Ordering::Relaxed);
        if ProcessIdentity::from_number(map, (state >> 8) as i32, namespace).runs() {
            self.dead.remove(&index);
        } else if self.dead.get(&index) == Some(&state) {
            self.free(map, index, state);
            map.freed();
        } else {
            self.dead.insert(index, state);
        }
    }

    /// Frees an entry, if it is still the one that was read.
    fn free(&mut self, map: &Map, index: usize, state: u64) {
        self.dead.remove(&index);
        let _ = map.exec(index).state.compare_exchange(
            state,
            exec_state::FREE,
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::shared::{Options, Shared};

    /// A corrupted program may write any amount of numbers into the process table.
    #[test]
    fn arrivals_are_kept_in_bounded_number_the_newest_ones() {
        let options = Options { rings: 1, ring_log2: 7, block_log2: 6, processes: 1, ..Options::default() };
        let shared = Shared::create(&options).expect("a file can be made");
        let arrival = Arrival {
            index: 0,
            image: 0,
            pid: 1,
            parent_pid: 1,
            forked: false,
            exe: PathBuf::new(),
            manager: PathBuf::new(),
            started_ns: 0,
            was_there: false,
        };
        let mut execs = Execs::default();
        let last = 3 * ARRIVALS as u64;
        for number in 1..=last {
            shared.map.process(0).state.store(number << 8 | 1, Ordering::Relaxed);
            execs.arrived(&shared.map, std::slice::from_ref(&arrival));
            assert!(execs.arrived.len() <= ARRIVALS);
        }
        assert!(execs.arrived.contains_key(&(0, last as i32)) && !execs.arrived.contains_key(&(0, 1)));
    }
}
