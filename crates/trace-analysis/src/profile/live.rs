//! What is kept of a live object.

use crate::objects::Object;

/// A live object.
#[derive(Debug, Clone, Copy, Default)]
pub struct Live {
    pub size: u64,
    /// Bytes that it had when the window began: they are not counted.
    pub old: u64,
    pub born_ns: u64,
    pub site: u32,
    /// Allocated within the window.
    pub counts: bool,
    pub is_alive: bool,
}

impl Object for Live {
    #[inline(always)]
    fn is_alive(&self) -> bool {
        self.is_alive
    }
}

impl Live {
    /// Bytes that count.
    pub fn bytes(&self) -> u64 {
        self.size.saturating_sub(self.old)
    }
}
