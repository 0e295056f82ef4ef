//! Growing lists in mappings of their own: the layer can ask nobody's malloc for memory.

use core::arch::asm;
use core::ffi::CStr;
use core::ops::Range;

const PAGE: usize = 4096;
/// What the mappings are called in `/proc/PID/maps`, on kernels that keep names: collectors behind or in front leave
/// them out.
const NAME: &CStr = c"heaptoll sweep";

/// The system gave no memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoMemory;

/// Any system call; negative is a negated `errno`. Made directly: the layer exports `mmap` itself, and must not change
/// `errno`.
///
/// # Safety
/// As the call's own conditions.
#[inline(always)]
pub unsafe fn system_call(number: i64, arguments: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the convention of x86_64 Linux; rcx and r11 are the kernel's. What the call does is the caller's word.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") arguments[0],
            in("rsi") arguments[1],
            in("rdx") arguments[2],
            in("r10") arguments[3],
            in("r8") arguments[4],
            in("r9") arguments[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Maps zeroed memory, whole pages.
fn map(bytes: usize) -> Result<usize, NoMemory> {
    let access = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let kind = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
    // SAFETY: a new anonymous mapping that replaces nothing; the name is a string. A kernel that keeps no names refuses,
    // and nobody depends on it.
    unsafe {
        let made = system_call(libc::SYS_mmap, [0, bytes, access, kind, usize::MAX, 0]);
        if made < 0 {
            return Err(NoMemory);
        }
        let name = [
            libc::PR_SET_VMA as usize,
            libc::PR_SET_VMA_ANON_NAME as usize,
            made as usize,
            bytes,
            NAME.as_ptr() as usize,
            0,
        ];
        system_call(libc::SYS_prctl, name);
        Ok(made as usize)
    }
}

/// A list of plain values: any pattern of bits, zero included, must be a value of `T`.
#[derive(Debug)]
pub struct List<T: Copy> {
    start: *mut T,
    length: usize,
    capacity: usize,
}

// SAFETY: the memory belongs to the list alone.
unsafe impl<T: Copy + Send> Send for List<T> {}

impl<T: Copy> List<T> {
    /// Nothing yet.
    pub const fn new() -> List<T> {
        List { start: core::ptr::null_mut(), length: 0, capacity: 0 }
    }

    /// Makes room for `capacity` values in all.
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
        if self.length > 0 {
            // SAFETY: the new mapping is larger than the old one, and does not overlap it.
            unsafe { core::ptr::copy_nonoverlapping(self.start, made, self.length) };
        }
        self.unmap();
        self.start = made;
        self.capacity = bytes / size_of::<T>();
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
        // SAFETY: there is room.
        unsafe { self.start.add(self.length).write(value) };
        self.length += 1;
        Ok(())
    }

    /// Takes the last value out.
    pub fn pop(&mut self) -> Option<T> {
        self.length = self.length.checked_sub(1)?;
        // SAFETY: it was written.
        Some(unsafe { self.start.add(self.length).read() })
    }

    /// Puts a value at a place, before what is there.
    ///
    /// # Errors
    /// [`NoMemory`]; nothing has changed.
    pub fn insert(&mut self, at: usize, value: T) -> Result<(), NoMemory> {
        self.push(value)?;
        self.as_mut_slice()[at..].rotate_right(1);
        Ok(())
    }

    /// Takes some values out.
    pub fn remove(&mut self, range: Range<usize>) {
        let length = self.length;
        self.as_mut_slice().copy_within(range.end..length, range.start);
        self.length -= range.len();
    }

    /// Forgets all values.
    pub fn clear(&mut self) {
        self.length = 0;
    }

    /// Forgets all values and gives their memory back.
    pub fn release(&mut self) {
        self.unmap();
        *self = List::new();
    }

    /// The values.
    pub fn as_slice(&self) -> &[T] {
        if self.capacity == 0 {
            return &[];
        }
        // SAFETY: so many values have been written.
        unsafe { core::slice::from_raw_parts(self.start, self.length) }
    }

    /// The values.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        if self.capacity == 0 {
            return &mut [];
        }
        // SAFETY: so many values have been written.
        unsafe { core::slice::from_raw_parts_mut(self.start, self.length) }
    }

    /// The addresses it occupies.
    pub fn range(&self) -> Range<usize> {
        let start = self.start as usize;
        start..start + (self.capacity * size_of::<T>()).next_multiple_of(PAGE)
    }

    fn unmap(&mut self) {
        let range = self.range();
        if !range.is_empty() {
            // SAFETY: the mapping is this list's own and is not used after.
            unsafe { system_call(libc::SYS_munmap, [range.start, range.len(), 0, 0, 0, 0]) };
        }
    }
}

impl<T: Copy> Default for List<T> {
    fn default() -> List<T> {
        List::new()
    }
}

// A list does not unmap itself when it is dropped: those that there are live in statics. Tests call `release`.

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
            let (mut list, mut model) = (List::new(), Vec::new());
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
            list.release();
            prop_assert!(list.as_slice().is_empty() && list.range().is_empty());
        }
    }

    #[test]
    fn more_than_there_is_is_refused_and_nothing_is_lost() {
        let mut list = List::new();
        assert_eq!(list.push(7_u64), Ok(()));
        assert_eq!(list.reserve(usize::MAX / 8), Err(NoMemory));
        assert_eq!(list.as_slice(), [7]);
        list.release();
    }
}
