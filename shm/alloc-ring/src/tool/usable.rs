//! The usable sizes of blocks, by size, as the producer last recorded them: it records one only where it changes.

use crate::word::PREDICTED;

/// The table of a ring; 0: none recorded yet.
pub(crate) struct UsableSizes(Box<[u16; PREDICTED]>);

impl UsableSizes {
    pub fn new() -> UsableSizes {
        UsableSizes(Box::new([0; PREDICTED]))
    }

    /// The usable size of a block of this size, of which none is recorded; 0: not known.
    #[inline(always)]
    pub fn predicted(&self, size: u64) -> u64 {
        if (size as usize) < PREDICTED { self.0[size as usize].into() } else { 0 }
    }

    /// The usable size of a block: the recorded one, which the table takes over, or that of the table. The same rule as
    /// the producer's.
    pub fn of(&mut self, size: u64, recorded: Option<u64>) -> u64 {
        let Some(entry) = self.0.get_mut(size as usize) else { return recorded.unwrap_or(0) };
        match recorded {
            Some(usable) => {
                *entry = u16::try_from(usable).unwrap_or(0);
                usable
            }
            None => (*entry).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_size_is_predicted_from_then_on_where_the_table_has_an_entry() {
        let mut sizes = UsableSizes::new();
        assert_eq!((sizes.predicted(100), sizes.of(100, None)), (0, 0));
        assert_eq!(sizes.of(100, Some(112)), 112);
        assert_eq!((sizes.predicted(100), sizes.of(100, None), sizes.predicted(101)), (112, 112, 0));
        assert_eq!(sizes.of(PREDICTED as u64, Some(5000)), 5000);
        assert_eq!((sizes.predicted(PREDICTED as u64), sizes.of(PREDICTED as u64, None)), (0, 0));
        assert_eq!(sizes.of(100, Some(1 << 16)), 1 << 16);
        assert_eq!(sizes.predicted(100), 0, "larger than the table holds");
    }
}
