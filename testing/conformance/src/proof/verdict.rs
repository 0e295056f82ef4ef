//! The verdict on the end of a case.

use crate::process::{End, Ending};

/// The outcome of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// All held.
    Holds,
    /// It does not apply to this manager.
    NotApplicable,
    /// It does not hold: how the process ended, and its output.
    Fails(String),
}

impl Verdict {
    /// The verdict on an end.
    pub fn of(end: &End) -> Verdict {
        match end.ending {
            Ending::Status(0) => Verdict::Holds,
            Ending::Status(77) => Verdict::NotApplicable,
            ending => {
                let lines: Vec<&str> = end.stderr.lines().chain(end.stdout.lines()).take(12).collect();
                Verdict::Fails(format!("{ending} after {} ms: {}", end.took.as_millis(), lines.join(" / ")))
            }
        }
    }
}

/// The blocks made unreachable at once, and those of them that a collection kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Blocks.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Blocks that were kept.
    pub kept_objects: u64,
    /// Their bytes.
    pub kept_bytes: u64,
}

/// The measurements that a stress case noted on its standard output.
pub fn measurements(stdout: &str) -> Vec<Dropped> {
    let one = |line: &str| {
        let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        match numbers[..] {
            [objects, bytes, kept_objects, kept_bytes] if line.starts_with("note: dropped ") => {
                Some(Dropped { objects, bytes, kept_objects, kept_bytes })
            }
            _ => None,
        }
    };
    stdout.lines().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_are_read_from_the_output_of_a_case() {
        let stdout = "note: heap 3 bytes\nnote: dropped 10 objects 2000 bytes, kept 1 objects 48 bytes\nnote: 1 2 3 4\n";
        let expected = Dropped { objects: 10, bytes: 2000, kept_objects: 1, kept_bytes: 48 };
        assert_eq!(measurements(stdout), [expected]);
        assert_eq!(measurements("note: dropped 10 objects 2000 bytes\n"), []);
    }
}
