//! Reading cachegrind's profiles: the totals of one run, with the caches that it simulated.
//!
//! What cachegrind counts differs from a processor's own counters, which matters for a comparison: an instruction that
//! loads and stores the same bytes is one read; a reference over two lines touches both and is at most one miss; the
//! last level is shared with instructions and accessed only on misses of the first; what the kernel reads and writes in
//! system calls is not counted (Valgrind 3.19, cachegrind/cg_main.c and cg_sim.c).

use std::path::Path;

use crate::error::Error;

/// A cache that cachegrind simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cache {
    /// Bytes.
    pub size: u64,
    /// Bytes a line.
    pub line: u64,
    /// Lines a set.
    pub ways: u64,
}

/// Reads or writes of data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct References {
    /// How many.
    pub made: u64,
    /// Of them missed the first level.
    pub first_misses: u64,
    /// Of these missed the last level.
    pub last_misses: u64,
}

impl References {
    /// Reads and writes together.
    pub fn plus(self, other: References) -> References {
        References {
            made: self.made + other.made,
            first_misses: self.first_misses + other.first_misses,
            last_misses: self.last_misses + other.last_misses,
        }
    }
}

/// What one run came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// Instructions executed.
    pub instructions: u64,
    /// Instructions' misses of the last level.
    pub instruction_last_misses: u64,
    /// Reads, instructions that read and write among them.
    pub reads: References,
    /// Writes.
    pub writes: References,
    /// The first level for data.
    pub first: Cache,
    /// The last level.
    pub last: Cache,
}

/// Understands a profile that was made with `--cache-sim=yes`.
///
/// # Errors
/// [`Error::Profile`] when a line that must be there is not, or holds no figures.
pub fn parse(path: &Path, text: &str) -> Result<Profile, Error> {
    let wrong = |reason: String| Error::Profile { path: path.to_path_buf(), reason };
    let line = |start: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(start));
        found.ok_or_else(|| wrong(format!("there is no line that starts with `{start}`")))
    };
    let (events, summary) = (line("events:")?, line("summary:")?);
    let names: Vec<&str> = events.split_whitespace().collect();
    let totals: Vec<&str> = summary.split_whitespace().collect();
    let total = |event: &str| {
        let at = names.iter().position(|name| *name == event);
        let at = at.ok_or_else(|| wrong(format!("it does not count {event}; was --cache-sim=yes given?")))?;
        // Zeroes at the end of a line are left out.
        totals.get(at).map_or(Ok(0), |figure| figure.parse::<u64>()).map_err(|error| wrong(error.to_string()))
    };
    let references = |made: &str, first: &str, last: &str| {
        Ok::<_, Error>(References {
            made: total(made)?,
            first_misses: total(first)?,
            last_misses: total(last)?,
        })
    };
    let cache = |start: &str| {
        let text = line(start)?;
        // `32768 B, 64 B, 8-way associative`, or `direct-mapped` in place of the last.
        let mut parts = text.split(',').map(|part| {
            let part = part.trim();
            let digits = part.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
            match part {
                "direct-mapped" => Some(1),
                _ => digits.parse::<u64>().ok(),
            }
        });
        match (parts.next().flatten(), parts.next().flatten(), parts.next().flatten()) {
            (Some(size), Some(line), Some(ways)) => Ok(Cache { size, line, ways }),
            _ => Err(wrong(format!("`{start}{text}` is not understood"))),
        }
    };
    Ok(Profile {
        instructions: total("Ir")?,
        instruction_last_misses: total("ILmr")?,
        reads: references("Dr", "D1mr", "DLmr")?,
        writes: references("Dw", "D1mw", "DLmw")?,
        first: cache("desc: D1 cache:")?,
        last: cache("desc: LL cache:")?,
    })
}

/// Reads a profile.
///
/// # Errors
/// [`Error::File`], and as [`parse`].
pub fn read(path: &Path) -> Result<Profile, Error> {
    let text =
        std::fs::read_to_string(path).map_err(|source| Error::File { path: path.to_path_buf(), source })?;
    parse(path, &text)
}

/// A cache in the notation of cachegrind's options: bytes, ways, bytes a line.
pub fn option(cache: Cache) -> String {
    format!("{},{},{}", cache.size, cache.ways, cache.line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILE: &str = "desc: I1 cache:         65536 B, 64 B, 16-way associative\n\
        desc: D1 cache:         49152 B, 64 B, 12-way associative\n\
        desc: LL cache:         8388608 B, 64 B, direct-mapped\n\
        cmd: /bin/true\nevents: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw \nfl=./a.c\nfn=main\n1 2 1 1 2\n\
        summary: 127757 1073 1072 29401 1152 1015 10266 336 311\n";

    #[test]
    fn totals_and_caches_are_read() {
        let profile = parse(Path::new("x"), PROFILE).unwrap();
        assert_eq!((profile.instructions, profile.instruction_last_misses), (127_757, 1_072));
        let reads = References { made: 29_401, first_misses: 1_152, last_misses: 1_015 };
        assert_eq!(profile.reads, reads);
        let both = profile.reads.plus(profile.writes);
        assert_eq!((both.made, both.first_misses, both.last_misses), (39_667, 1_488, 1_326));
        assert_eq!(profile.first, Cache { size: 49_152, line: 64, ways: 12 });
        assert_eq!(profile.last, Cache { size: 8 << 20, line: 64, ways: 1 });
        assert_eq!(option(profile.first), "49152,12,64");
    }

    #[test]
    fn zeroes_at_the_end_of_the_summary_may_be_missing() {
        let short = PROFILE.replace(" 10266 336 311\n", "\n");
        assert_eq!(parse(Path::new("x"), &short).unwrap().writes, References::default());
    }

    #[test]
    fn what_is_not_there_is_named() {
        let without = |line: &str| {
            PROFILE.lines().filter(|have| !have.starts_with(line)).collect::<Vec<_>>().join("\n")
        };
        for line in ["events:", "summary:", "desc: D1 cache:"] {
            let error = parse(Path::new("a/profile"), &without(line)).unwrap_err().to_string();
            assert!(error.contains("a/profile") && error.contains(line), "{error}");
        }
        let uncached = PROFILE.replace(" D1mr", "");
        let error = parse(Path::new("x"), &uncached).unwrap_err().to_string();
        assert!(error.contains("D1mr") && error.contains("--cache-sim=yes"), "{error}");
        let odd = PROFILE.replace("12-way associative", "of an unknown kind");
        assert!(parse(Path::new("x"), &odd).is_err());
    }
}
