//! Growing arrays in mappings of their own: what is kept while the world is stopped cannot lie in the heap that is
//! collected.

use core::ffi::CStr;
use core::ops::Range;

use heaptoll_assertions::assert_internal;

use crate::kernel::{self, PAGE};

/// What the mappings are called in `/proc/self/maps`, on kernels that keep names.
const NAME: &CStr = c"heaptoll roots";

/// The system gave no memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoMemory;

/// Maps zeroed memory, `bytes` a multiple of [`PAGE`].
pub fn map(bytes: usize) -> Result<usize, NoMemory> {
    map_at(0, bytes)
}

/// The same at this address, if the place is free.
pub fn map_at(place: usize, bytes: usize) -> Result<usize, NoMemory> {
    assert_internal!(bytes > 0 && bytes.is_multiple_of(PAGE), "whole pages are mapped");
    let access = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let kind = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
    // SAFETY: a new anonymous mapping that replaces nothing.
    let made = unsafe { kernel::call(libc::SYS_mmap, [place, bytes, access, kind, usize::MAX, 0]) };
    let made = made.map_err(|_| NoMemory)?;
    // A kernel that keeps no names returns an error; nothing depends on the name.
    // SAFETY: the name is a string and the range the new mapping.
    let _ = unsafe {
        let name = NAME.as_ptr() as usize;
        kernel::call(
            libc::SYS_prctl,
            [libc::PR_SET_VMA as usize, libc::PR_SET_VMA_ANON_NAME as usize, made, bytes, name, 0],
        )
    };
    Ok(made)
}

/// A vector of plain values: any pattern of bits, zero included, must be a value of `T`.
#[derive(Debug)]
pub struct Buffer<T: Copy> {
    start: *mut T,
    length: usize,
    capacity: usize,
}

// SAFETY: the memory belongs to the buffer alone.
unsafe impl<T: Copy + Send> Send for Buffer<T> {}

impl<T: Copy> Buffer<T> {
    /// Nothing yet.
    pub const fn new() -> Buffer<T> {
        Buffer { start: core::ptr::null_mut(), length: 0, capacity: 0 }
    }

    /// Makes the capacity at least `capacity` values. What was written to [`Buffer::capacity_mut`] is kept too.
    ///
    /// # Errors
    /// [`NoMemory`]; nothing has changed.
    pub fn reserve(&mut self, capacity: usize) -> Result<(), NoMemory> {
        if capacity <= self.capacity {
            return Ok(());
        }
        let wanted = capacity.max(self.capacity * 2).checked_mul(size_of::<T>()).ok_or(NoMemory)?;
        let bytes = wanted.checked_next_multiple_of(PAGE).ok_or(NoMemory)?;
        let made = map(bytes)? as *mut T;
        if self.capacity > 0 {
            // SAFETY: the new mapping is larger than the old one, and does not overlap it.
            unsafe { core::ptr::copy_nonoverlapping(self.start, made, self.capacity) };
        }
        self.unmap();
        self.start = made;
        self.capacity = bytes / size_of::<T>();
        assert_internal!(self.capacity >= capacity, "a buffer that has grown has what was reserved");
        assert_internal!(self.range().len() == bytes, "a buffer unmaps what it has mapped");
        Ok(())
    }

    /// Appends a value.
    ///
    /// # Errors
    /// [`NoMemory`]; nothing has changed.
    pub fn push(&mut self, value: T) -> Result<(), NoMemory> {
        if self.length == self.capacity {
            self.reserve(self.length + 1)?;
        }
        assert_internal!(self.length < self.capacity, "what is pushed has a place in the buffer");
        // SAFETY: `length` is less than `capacity`: `reserve` has grown the buffer if it was full.
        unsafe { self.start.add(self.length).write(value) };
        self.length += 1;
        Ok(())
    }

    /// Takes the last value out.
    pub fn pop(&mut self) -> Option<T> {
        self.length = self.length.checked_sub(1)?;
        assert_internal!(self.length < self.capacity, "what is popped was pushed");
        // SAFETY: `push` has written the value at this index, which is below the old length.
        Some(unsafe { self.start.add(self.length).read() })
    }

    /// Puts a value at a place, before what is there.
    ///
    /// # Errors
    /// [`NoMemory`]; nothing has changed.
    pub fn insert(&mut self, at: usize, value: T) -> Result<(), NoMemory> {
        self.push(value)?;
        assert_internal!(at < self.length, "a value is inserted among the values, or after the last");
        self.as_mut_slice()[at..].rotate_right(1);
        Ok(())
    }

    /// Takes some values out.
    pub fn remove(&mut self, range: Range<usize>) {
        let length = self.length;
        assert_internal!(range.start <= range.end && range.end <= length, "what is removed was pushed");
        self.as_mut_slice().copy_within(range.end..length, range.start);
        self.length -= range.len();
    }

    /// Forgets all values.
    pub fn clear(&mut self) {
        self.length = 0;
    }

    /// The values.
    pub fn as_slice(&self) -> &[T] {
        if self.capacity == 0 {
            return &[];
        }
        assert_internal!(self.length <= self.capacity, "a buffer has no more values than its capacity");
        // SAFETY: `push` has written the first `length` values.
        unsafe { core::slice::from_raw_parts(self.start, self.length) }
    }

    /// The values.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        if self.capacity == 0 {
            return &mut [];
        }
        assert_internal!(self.length <= self.capacity, "a buffer has no more values than its capacity");
        // SAFETY: `push` has written the first `length` values.
        unsafe { core::slice::from_raw_parts_mut(self.start, self.length) }
    }

    /// The whole capacity: values that were written, or zero.
    pub fn capacity_mut(&mut self) -> &mut [T] {
        if self.capacity == 0 {
            return &mut [];
        }
        // SAFETY: mapped memory begins as zero, which is a value of `T`.
        unsafe { core::slice::from_raw_parts_mut(self.start, self.capacity) }
    }

    /// The addresses it occupies.
    pub fn range(&self) -> Range<usize> {
        let start = self.start as usize;
        start..start + (self.capacity * size_of::<T>()).next_multiple_of(PAGE)
    }

    fn unmap(&mut self) {
        let range = self.range();
        if !range.is_empty() {
            // SAFETY: the mapping is this buffer's own and is not used after.
            let _ = unsafe { kernel::call(libc::SYS_munmap, [range.start, range.len(), 0, 0, 0, 0]) };
        }
    }
}

impl<T: Copy> Default for Buffer<T> {
    fn default() -> Buffer<T> {
        Buffer::new()
    }
}

impl<T: Copy> Drop for Buffer<T> {
    fn drop(&mut self) {
        self.unmap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[derive(Debug, Clone)]
    enum Step {
        Push(u64),
        Pop,
        Insert(usize, u64),
        Remove(usize, usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => any::<u64>().prop_map(Step::Push),
            1 => Just(Step::Pop),
            2 => (any::<usize>(), any::<u64>()).prop_map(|(at, value)| Step::Insert(at, value)),
            1 => (any::<usize>(), any::<usize>()).prop_map(|(from, to)| Step::Remove(from, to)),
        ]
    }

    proptest! {
        #[test]
        fn it_is_a_vector(steps in prop::collection::vec(step(), 1..2000)) {
            let (mut list, mut model) = (Buffer::new(), Vec::new());
            for step in steps {
                match step {
                    Step::Push(value) => {
                        prop_assert_eq!(list.push(value), Ok(()));
                        model.push(value);
                    }
                    Step::Pop => prop_assert_eq!(list.pop(), model.pop()),
                    Step::Insert(at, value) => {
                        let at = at % (model.len() + 1);
                        prop_assert_eq!(list.insert(at, value), Ok(()));
                        model.insert(at, value);
                    }
                    Step::Remove(from, to) => {
                        let (from, to) = (from % (model.len() + 1), to % (model.len() + 1));
                        let range = from.min(to)..from.max(to);
                        list.remove(range.clone());
                        model.drain(range);
                    }
                }
                prop_assert_eq!(list.as_slice(), &model[..]);
            }
        }
    }

    #[test]
    fn values_survive_growth() {
        let mut buffer = Buffer::new();
        assert!(buffer.as_slice().is_empty() && buffer.range().is_empty());
        for value in 0..100_000_usize {
            buffer.push(value).expect("memory");
        }
        assert!(buffer.as_slice().iter().copied().eq(0..100_000));
        assert!(buffer.range().contains(&(&raw const buffer.as_slice()[99_999] as usize)));
        buffer.clear();
        assert!(buffer.as_slice().is_empty());
    }

    #[test]
    fn more_than_there_is_is_refused_and_nothing_is_lost() {
        let mut buffer = Buffer::new();
        buffer.push(7_u64).expect("memory");
        assert_eq!(buffer.reserve(usize::MAX / 8), Err(NoMemory));
        assert_eq!(buffer.reserve(usize::MAX), Err(NoMemory));
        assert_eq!(buffer.as_slice(), [7]);
    }

    #[test]
    fn unused_capacity_is_zero() {
        let mut buffer = Buffer::<u8>::new();
        buffer.reserve(10).expect("memory");
        assert_eq!(buffer.capacity_mut(), [0; PAGE]);
    }
}
