//! Objects and bytes, counted together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Objects and requested bytes of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sum {
    /// Objects.
    pub objects: u64,
    /// Requested bytes: of a resized object its last size.
    pub bytes: u64,
}

impl Sum {
    /// Adds an object.
    #[inline(always)]
    pub fn add(&mut self, bytes: u64) {
        self.objects += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// An object changes its size.
    #[inline(always)]
    pub fn resize(&mut self, old: u64, new: u64) {
        self.bytes = self.bytes.saturating_sub(old).saturating_add(new);
    }

    /// Both sums together.
    pub fn plus(self, other: Sum) -> Sum {
        Sum { objects: self.objects + other.objects, bytes: self.bytes.saturating_add(other.bytes) }
    }

    /// What one sum has more than another.
    pub fn minus(self, other: Sum) -> Sum {
        Sum {
            objects: self.objects.saturating_sub(other.objects),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}
