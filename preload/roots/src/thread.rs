//! A record per thread: whether a stop was requested, whether it has stopped, and its registers when it did.
//!
//! Records are never unmapped and never move: a signal may be delivered long after the collection that sent it was
//! aborted, and its handler reads the record then.

use core::cell::UnsafeCell;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, Ordering};

use heaptoll_assertions::assert_internal;

use crate::buffer::{self, NoMemory};
use crate::kernel::PAGE;
use crate::registers::Registers;

/// How far a thread has come in one stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Phase {
    /// To stop, and has not yet.
    Requested = 1,
    /// Is stopped in the handler until the world's epoch changes.
    Stopped = 2,
    /// Has ended.
    Gone = 3,
}

impl Phase {
    /// The state of a record that is in this phase of the stop of `epoch`.
    pub const fn of(self, epoch: u32) -> u32 {
        epoch << 2 | self as u32
    }
}

/// One thread, as the collector knows it.
#[repr(C, align(64))]
pub struct Record {
    /// The thread; 0: the record is free.
    pub tid: AtomicI32,
    /// A [`Phase`] of an epoch. The collector stores the request, the thread that it has stopped; a thread that is too
    /// late finds another epoch.
    pub state: AtomicU32,
    /// A signal is sent and its handler has not begun: no need for another.
    pub pending: AtomicBool,
    /// But it could not be sent yet.
    pub unsent: AtomicBool,
    /// Never requested to stop: a main thread that has ended while others go on, which stays listed, or a worker of the
    /// kernel.
    pub skipped: AtomicBool,
    /// The last epoch in which the thread was listed.
    pub seen: AtomicU32,
    registers: UnsafeCell<Registers>,
}

// SAFETY: the thread itself writes the registers before it sets `state` to stopped, and the collector reads them after.
unsafe impl Sync for Record {}

impl Record {
    /// Saves the registers of the thread that the record belongs to.
    ///
    /// # Safety
    /// Called by that thread, in the handler of the signal, which is not interrupted by itself.
    pub unsafe fn save_registers(&self, registers: Registers) {
        // SAFETY: the thread is the only one to write, and no thread reads before `state` is [`Phase::Stopped`].
        unsafe { self.registers.get().write(registers) };
    }

    /// The registers, if the thread is stopped in `epoch`.
    pub fn registers(&self, epoch: u32) -> Option<&Registers> {
        if self.state.load(Ordering::Acquire) != Phase::Stopped.of(epoch) {
            return None;
        }
        // SAFETY: the thread wrote them before it changed the state, and writes no more until it is resumed.
        Some(unsafe { &*self.registers.get() })
    }
}

const _: () = {
    // A phase fits below the epoch; records of different threads share no line of the processor's cache.
    assert!((Phase::Gone as u32) < 4 && Phase::Requested.of(1) != Phase::Requested.of(2));
    assert!(align_of::<Record>() == 64 && size_of::<Record>().is_multiple_of(64));
};

/// Records of the first chunk; each further chunk doubles the number.
const FIRST: u32 = 64;
const CHUNKS: usize = 17;

/// All records: chunks that stay where they are.
#[derive(Debug)]
pub struct Records {
    chunks: [AtomicPtr<Record>; CHUNKS],
    /// Records that have ever been used.
    count: AtomicU32,
}

impl Records {
    pub const fn new() -> Records {
        Records {
            chunks: [const { AtomicPtr::new(core::ptr::null_mut()) }; CHUNKS],
            count: AtomicU32::new(0),
        }
    }

    /// The chunk of a record and the place in it.
    const fn place(index: u32) -> (usize, usize) {
        let number = index + FIRST;
        let chunk = number.ilog2() - FIRST.ilog2();
        (chunk as usize, (number - (FIRST << chunk)) as usize)
    }

    /// Bytes of a chunk.
    const fn bytes(chunk: usize) -> usize {
        ((FIRST as usize) << chunk) * size_of::<Record>()
    }

    /// A record by its number, if there is one.
    pub fn get(&self, index: u32) -> Option<&Record> {
        if index >= self.count.load(Ordering::Acquire) {
            return None;
        }
        let (chunk, at) = Self::place(index);
        assert_internal!(at * size_of::<Record>() < Self::bytes(chunk), "a record lies in its chunk");
        let chunk = self.chunks.get(chunk)?.load(Ordering::Acquire);
        assert_internal!(!chunk.is_null(), "the chunk of a record that is counted is mapped");
        // SAFETY: `add` maps the chunks of all records below `count`, and never unmaps them; zeroed memory is a free
        // record.
        unsafe { chunk.add(at).as_ref() }
    }

    /// All records with their numbers, free ones too.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Record)> {
        (0..self.count.load(Ordering::Acquire)).filter_map(|index| Some((index, self.get(index)?)))
    }

    /// The record of a thread, a free or a new one if it has none yet. The search begins at `hint` and goes round:
    /// threads are listed in the same order each time. Returns the number.
    pub fn of(&self, tid: i32, hint: u32) -> Result<u32, NoMemory> {
        assert_internal!(tid > 0, "a record belongs to a thread");
        let count = self.count.load(Ordering::Acquire);
        let mut free = None;
        for step in 0..count {
            let index = (hint + step) % count;
            if let Some(record) = self.get(index) {
                match record.tid.load(Ordering::Relaxed) {
                    0 => free = free.or(Some(index)),
                    owner if owner == tid => return Ok(index),
                    _ => {}
                }
            }
        }
        let index = match free {
            Some(index) => index,
            None => self.add()?,
        };
        if let Some(record) = self.get(index) {
            assert_internal!(record.tid.load(Ordering::Relaxed) == 0, "a record is taken when it is free");
            record.pending.store(false, Ordering::Relaxed);
            record.unsent.store(false, Ordering::Relaxed);
            record.skipped.store(false, Ordering::Relaxed);
            record.state.store(0, Ordering::Relaxed);
            record.tid.store(tid, Ordering::Release);
        }
        Ok(index)
    }

    fn add(&self) -> Result<u32, NoMemory> {
        let index = self.count.load(Ordering::Acquire);
        let (chunk, _) = Self::place(index);
        let slot = self.chunks.get(chunk).ok_or(NoMemory)?;
        if slot.load(Ordering::Acquire).is_null() {
            slot.store(
                buffer::map(Self::bytes(chunk).next_multiple_of(PAGE))? as *mut Record,
                Ordering::Release,
            );
        }
        self.count.store(index + 1, Ordering::Release);
        Ok(index)
    }

    /// Whether all records are free: for assertions.
    pub fn is_free(&self) -> bool {
        self.iter().all(|(_, record)| record.tid.load(Ordering::Relaxed) == 0)
    }

    /// Whether no two records belong to the same thread: for assertions.
    pub fn has_each_thread_once(&self) -> bool {
        let tid = |record: &Record| record.tid.load(Ordering::Relaxed);
        self.iter().filter(|(_, record)| tid(record) != 0).all(|(index, record)| {
            self.iter().all(|(other, another)| other == index || tid(another) != tid(record))
        })
    }

    /// Frees the records of all threads that were not listed in `epoch`.
    pub fn forget_unseen(&self, epoch: u32) {
        for (_, record) in self.iter() {
            if record.seen.load(Ordering::Relaxed) != epoch {
                record.tid.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Frees all records.
    pub fn forget_all(&self) {
        for (_, record) in self.iter() {
            record.tid.store(0, Ordering::Relaxed);
            record.seen.store(0, Ordering::Relaxed);
        }
    }

    /// The addresses that the chunks occupy.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> + Clone {
        self.chunks.iter().enumerate().filter_map(|(chunk, slot)| {
            let start = slot.load(Ordering::Acquire) as usize;
            (start != 0).then(|| start..start + Self::bytes(chunk).next_multiple_of(PAGE))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_contiguous_within_chunks_and_each_is_used_once() {
        let mut expected = (0, 0);
        for index in 0..10_000 {
            assert_eq!(Records::place(index), expected, "record {index}");
            expected.1 += 1;
            if expected.1 == (FIRST as usize) << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
    }

    #[test]
    fn a_thread_keeps_its_record_and_records_of_the_gone_are_used_again() {
        let records = Records::new();
        let mut hint = 0;
        for tid in 1..=1000 {
            hint = records.of(tid, hint).expect("memory") + 1;
        }
        for tid in (1..=1000).step_by(2) {
            let index = records.of(tid, 0).expect("memory");
            assert_eq!(index, tid as u32 - 1);
            records.get(index).expect("the record").seen.store(5, Ordering::Relaxed);
        }
        records.forget_unseen(5);
        for tid in 2001..=2500 {
            let index = records.of(tid, 0).expect("memory");
            assert!(index < 1000 && index % 2 == 1, "record {index}");
        }
        assert_eq!(records.of(3000, 17).expect("memory"), 1000);
        assert!(records.get(1001).is_none());
        assert_eq!(records.iter().count(), 1001);
        let first = records.get(0).expect("the record");
        assert!(records.ranges().next().expect("a chunk").contains(&(core::ptr::from_ref(first) as usize)));
    }
}
