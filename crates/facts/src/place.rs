//! Places: where a metric has one of many values.

use heaptoll_units::{count, size_text};

/// The least heap that can be given in bytes: multiples are less.
const PAGE: f64 = 4096.0;

/// What the places of a metric are.
#[derive(Debug, Clone, Copy)]
pub enum Place {
    /// Numbers that someone chose.
    Number,
    /// Bytes.
    Bytes,
    /// KiB.
    Kib,
    /// Instructions.
    Instructions,
    /// One reclamation in this many collections.
    OneIn,
    /// Shares of the pages that a program touches.
    PageShare,
    /// Multiples of the smallest heap; bytes where it is a page or more.
    Heaps,
    /// Collections a run.
    Collections,
}

impl Place {
    /// A place as sentences hold it: `at 2M`.
    pub fn words(self, at: f64) -> String {
        let bytes = |bytes: f64| size_text(bytes.round() as u64);
        match self {
            Place::Number => format!("at {}", plain(at)),
            Place::Bytes => format!("at {}", bytes(at)),
            Place::Kib => format!("at {}", bytes(at * 1024.0)),
            Place::Instructions => format!("at {} instructions", count(at)),
            Place::OneIn => format!("reclaiming at one in {}", plain(at)),
            Place::PageShare => format!("in {} % of its pages", plain(100.0 * at)),
            Place::Heaps if at >= PAGE => format!("in a heap of {}", bytes(at)),
            Place::Heaps => format!("at {} times the smallest heap", plain(at)),
            Place::Collections => format!("at {} collections a run", plain(at)),
        }
    }
}

/// A number that someone chose, as it was written: `4`, `0.75`.
fn plain(number: f64) -> String {
    format!("{}", (number * 1e6).round() / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_written_as_it_was_chosen() {
        assert_eq!(Place::Number.words(4.0), "at 4");
        assert_eq!(Place::PageShare.words(0.07), "in 7 % of its pages");
        assert_eq!(Place::Heaps.words(1.5), "at 1.5 times the smallest heap");
        assert_eq!(Place::Heaps.words(f64::from(16 << 20)), "in a heap of 16M");
    }
}
