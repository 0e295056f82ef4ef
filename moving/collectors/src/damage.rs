//! An invariant of a heap that does not hold.

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// The invariant, in words.
    pub invariant: &'static str,
}

impl Damage {
    /// An error unless the invariant holds.
    ///
    /// # Errors
    /// It does not.
    pub fn unless(holds: bool, invariant: &'static str) -> Result<(), Damage> {
        if holds { Ok(()) } else { Err(Damage { invariant }) }
    }
}
