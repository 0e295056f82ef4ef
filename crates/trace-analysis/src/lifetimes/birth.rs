//! The allocation of a live object, kept until its age is known, in 32 bytes.

use crate::objects::{MAX_SIZE, Object};

/// A slot: of a live object, or of none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Birth {
    /// Byte clock just after its allocation.
    pub clock: u64,
    /// Time of its allocation, ns.
    pub time_ns: u64,
    /// Requested bytes, 48 bits; above them whether there is an object.
    size: u64,
    /// Site that allocated it.
    pub site: u32,
    /// Thread that allocated it.
    pub thread: u32,
}

const ALIVE: u64 = 1 << 48;

impl Object for Birth {
    #[inline(always)]
    fn is_alive(&self) -> bool {
        self.size & ALIVE != 0
    }
}

impl Birth {
    /// A new object of at most [`MAX_SIZE`] bytes.
    #[inline(always)]
    pub fn new(clock: u64, time_ns: u64, size: u64, site: u32, thread: u32) -> Birth {
        debug_assert!(size <= MAX_SIZE);
        Birth { clock, time_ns, size: size | ALIVE, site, thread }
    }

    /// Requested bytes: the last size, where it was resized.
    #[inline(always)]
    pub fn size(&self) -> u64 {
        self.size & MAX_SIZE
    }

    /// Sets another size, at most [`MAX_SIZE`].
    #[inline(always)]
    pub fn resize(&mut self, size: u64) {
        debug_assert!(size <= MAX_SIZE);
        self.size = size | ALIVE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_takes_32_bytes() {
        assert_eq!(size_of::<Birth>(), 32);
        assert!(!Birth::default().is_alive());
        let mut birth = Birth::new(1, 2, 0, 3, 4);
        assert!(birth.is_alive() && birth.size() == 0);
        birth.resize(MAX_SIZE);
        assert!(birth.is_alive() && birth.size() == MAX_SIZE);
    }
}
