//! Objects that are kept whatever the program frees: for a run in which no block is given back, so that what leads to an
//! object shows beyond its free, too. What was allocated before `main` is freed as the program does.

/// Which objects are kept.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Kept {
    pub is_on: bool,
    /// The first of them, once `main` has begun.
    from: Option<u64>,
}

impl Kept {
    /// The first object of `main` has this number.
    pub fn main_begins(&mut self, number: u64) {
        if self.is_on {
            self.from.get_or_insert(number);
        }
    }

    /// Whether the object of this number is kept.
    pub fn has(self, number: u64) -> bool {
        self.from.is_some_and(|from| number >= from)
    }
}
