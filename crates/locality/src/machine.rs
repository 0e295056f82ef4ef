//! Machines as their data caches: `32K/8,1M/16,32M/16`, or as the kernel reports this machine.
//!
//! A machine here is what [`crate::hierarchy`] simulates: levels of a size, a number of ways and a line, and how long a
//! reference waits for the level that serves it.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Bytes of a line by default.
pub const LINE: u64 = 64;
/// Most levels of a machine.
const LEVELS: usize = 6;
/// The largest cache, bytes; its tags take an eighth of a line.
const LARGEST: u64 = 4 << 30;
/// Cycles that a reference waits when level 2, 3, 4... serves it.
const LEVEL_CYCLES: [u64; LEVELS - 1] = [14, 50, 80, 100, 120];
/// Cycles that a reference waits for memory.
const MEMORY_CYCLES: u64 = 200;

/// One cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Level {
    /// Its size, bytes.
    pub bytes: u64,
    /// Lines that share a set.
    pub ways: u32,
    /// Its line, bytes; a power of two.
    pub line: u64,
}

impl Level {
    /// Number of sets; need not be a power of two (a cache of many slices).
    pub fn sets(&self) -> u64 {
        self.bytes / self.line / u64::from(self.ways)
    }
}

/// Data caches, nearest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// The caches.
    pub levels: Vec<Level>,
    /// Cycles that a reference waits if it is served by level 2, by level 3, ..., by memory: as many values as levels.
    /// The first level serves without a wait.
    pub cycles: Vec<u64>,
}

/// Why a text is no machine. The text comes from the user, so it is quoted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MachineError {
    /// No cache, or too many.
    #[error("`{0}` names {1} caches: name 1 to {LEVELS}, nearest first, as in 32K/8,1M/16,32M/16")]
    Levels(String, usize),
    /// Not `SIZE/WAYS` or `SIZE/WAYS/LINE`.
    #[error(
        "cache `{0}` is not SIZE/WAYS or SIZE/WAYS/LINE, as in 32K/8 or 32K/8/64 (sizes in bytes, or with K, \
         M, G)"
    )]
    Form(String),
    /// A size, way or line out of bounds.
    #[error("cache `{cache}`: {why}")]
    Level {
        /// The text.
        cache: String,
        /// The limit that it violates.
        why: String,
    },
    /// Levels that do not fit together.
    #[error("caches `{0}` and `{1}`: {2}")]
    Order(String, String, &'static str),
    /// Latencies that are no numbers.
    #[error("latency `{0}` is not a number of cycles (0 to 1 000 000)")]
    Cycles(String),
    /// Too few or too many latencies.
    #[error(
        "{given} latencies for {levels} caches: give {levels}, the cycles until level 2, level 3, ..., and at last memory answers"
    )]
    Latencies {
        /// How many were given.
        given: usize,
        /// How many are needed.
        levels: usize,
    },
}

fn level(text: &str) -> Result<Level, MachineError> {
    let form = || MachineError::Form(text.into());
    let words: Vec<&str> = text.split('/').map(str::trim).collect();
    let (bytes, ways, line) = match words[..] {
        [bytes, ways] => (bytes, ways, None),
        [bytes, ways, line] => (bytes, ways, Some(line)),
        _ => return Err(form()),
    };
    let bytes = heaptoll_units::size(bytes).ok_or_else(form)?;
    let ways: u32 = ways.parse().map_err(|_| form())?;
    let line = line.map_or(Some(LINE), heaptoll_units::size).ok_or_else(form)?;
    let refused = |why: String| Err(MachineError::Level { cache: text.into(), why });
    if !line.is_power_of_two() || !(8..=4096).contains(&line) {
        return refused(format!("a line of {line} bytes is not a power of two from 8 to 4096"));
    }
    if !(1..=1024).contains(&ways) {
        return refused(format!("{ways} ways are not within 1 to 1024"));
    }
    if bytes > LARGEST {
        return refused("it is larger than 4G, the largest that is simulated".into());
    }
    let row = line * u64::from(ways);
    if bytes == 0 || !bytes.is_multiple_of(row) {
        return refused(format!("{bytes} bytes are not a multiple of a set ({ways} x {line} = {row} bytes)"));
    }
    Ok(Level { bytes, ways, line })
}

impl FromStr for Machine {
    type Err = MachineError;

    fn from_str(text: &str) -> Result<Machine, MachineError> {
        let words: Vec<&str> = text.split(',').map(str::trim).collect();
        if text.trim().is_empty() || words.len() > LEVELS {
            let number = if text.trim().is_empty() { 0 } else { words.len() };
            return Err(MachineError::Levels(text.into(), number));
        }
        let levels = words.iter().map(|word| level(word)).collect::<Result<Vec<Level>, MachineError>>()?;
        for (at, pair) in levels.windows(2).enumerate() {
            let wrong = |why| Err(MachineError::Order(words[at].into(), words[at + 1].into(), why));
            if pair[1].bytes < pair[0].bytes {
                return wrong("the further one is smaller; name the nearest first");
            }
            if pair[1].line < pair[0].line {
                return wrong("the further one has the shorter line, so no fill would fill a whole line");
            }
        }
        Ok(Machine::of(levels))
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, level) in self.levels.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(f, "{comma}{}/{}", heaptoll_units::size_text(level.bytes), level.ways)?;
            if level.line != LINE {
                write!(f, "/{}", level.line)?;
            }
        }
        Ok(())
    }
}

impl Machine {
    fn of(levels: Vec<Level>) -> Machine {
        let mut cycles = LEVEL_CYCLES[..levels.len() - 1].to_vec();
        cycles.push(MEMORY_CYCLES);
        Machine { levels, cycles }
    }

    /// A current machine, for systems whose kernel reports none: 32K/8, 1M/16, 32M/16.
    pub fn usual() -> Machine {
        let level = |bytes, ways| Level { bytes, ways, line: LINE };
        Machine::of(vec![level(32 << 10, 8), level(1 << 20, 16), level(32 << 20, 16)])
    }

    /// This machine, as its kernel reports it; `None` if the report cannot be simulated.
    pub fn at_hand() -> Option<Machine> {
        Machine::read_sysfs(Path::new("/sys/devices/system/cpu/cpu0/cache"))
    }

    /// Reads a folder `cache` of sysfs.
    fn read_sysfs(folder: &Path) -> Option<Machine> {
        let mut levels: Vec<(u64, Level)> = Vec::new();
        for index in 0..16 {
            let cache = folder.join(format!("index{index}"));
            let attribute = |name: &str| {
                std::fs::read_to_string(cache.join(name)).ok().map(|text| text.trim().to_owned())
            };
            let Some(kind) = attribute("type") else { break };
            if kind == "Instruction" {
                continue;
            }
            let number = |name: &str| attribute(name)?.parse::<u64>().ok();
            let line = number("coherency_line_size")?;
            let bytes = heaptoll_units::size(&attribute("size")?)?;
            // sysfs states fully associative as 0 ways.
            let ways = match number("ways_of_associativity")? {
                0 => bytes.checked_div(line)?,
                ways => ways,
            };
            let text = format!("{bytes}/{ways}/{line}");
            levels.push((number("level")?, level(&text).ok()?));
        }
        levels.sort_by_key(|(number, _)| *number);
        let text: Vec<String> = levels
            .iter()
            .map(|(_, level)| format!("{}/{}/{}", level.bytes, level.ways, level.line))
            .collect();
        // Through the parser of the user's text, which checks that levels fit together.
        text.join(",").parse().ok()
    }

    /// With other latencies: `14,50,200` for three levels.
    ///
    /// # Errors
    /// [`MachineError::Cycles`], [`MachineError::Latencies`].
    pub fn with_latencies(mut self, text: &str) -> Result<Machine, MachineError> {
        let numbers = text.split(',').map(|word| {
            let number: Option<u64> = word.trim().parse().ok();
            number.filter(|cycles| *cycles <= 1_000_000).ok_or_else(|| MachineError::Cycles(word.into()))
        });
        let cycles = numbers.collect::<Result<Vec<u64>, MachineError>>()?;
        if cycles.len() != self.levels.len() {
            return Err(MachineError::Latencies { given: cycles.len(), levels: self.levels.len() });
        }
        self.cycles = cycles;
        Ok(self)
    }

    /// Cycles that references wait, one after the other, if this many missed in each level (nearest first).
    pub fn stall_cycles(&self, misses: &[u64]) -> u128 {
        let served = |level: usize| {
            // A level further away serves what the next one misses too.
            misses
                .get(level)
                .copied()
                .unwrap_or(0)
                .saturating_sub(misses.get(level + 1).copied().unwrap_or(0))
        };
        let waits = self.cycles.iter().enumerate();
        waits.map(|(level, cycles)| u128::from(served(level)) * u128::from(*cycles)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        text.parse::<Machine>().expect_err(text).to_string()
    }

    #[test]
    fn a_machine_is_read_and_written() {
        let machine: Machine = "32K/8, 1M/16,32M/16/128".parse().expect("a machine");
        let sets: Vec<u64> = machine.levels.iter().map(Level::sets).collect();
        assert_eq!(sets, [64, 1024, 16384]);
        assert_eq!(machine.to_string(), "32K/8,1M/16,32M/16/128");
        assert_eq!(machine.cycles, [14, 50, 200]);
        assert_eq!("32K/8,1M/16,32M/16".parse(), Ok(Machine::usual()));
        // Three slices of five megabytes: the number of sets is no power of two.
        let odd: Machine = "48K/12,15M/20".parse().expect("a machine");
        assert_eq!(odd.levels[1].sets(), 12288);
    }

    #[test]
    fn what_is_no_machine_is_refused_and_quoted() {
        assert!(refused("").contains("names 0 caches"));
        assert!(refused("1K/1,2K/1,4K/1,8K/1,16K/1,32K/1,64K/1").contains("names 7 caches"));
        for text in ["32K", "32K/8/64/1", "K/8", "32X/8", "-1/8", "32K/eight", "32K//64", "32K/8,"] {
            assert!(refused(text).contains("SIZE/WAYS"), "{text}: {}", refused(text));
        }
        assert!(refused("32K/0").contains("0 ways"));
        assert!(refused("32K/8/48").contains("not a power of two"));
        assert!(refused("32K/7").contains("7 x 64 = 448"));
        assert!(refused("0/8").contains("not a multiple of a set"));
        assert!(refused("8G/16").contains("larger than"));
        assert!(refused("99999999999999999999G/16").contains("SIZE/WAYS"));
        assert!(refused("1M/16,32K/8").contains("smaller; name the nearest first"));
        assert!(refused("32K/8/128,1M/16").contains("shorter line"));
    }

    #[test]
    fn latencies_are_one_a_level() {
        let with = |text: &str| Machine::usual().with_latencies(text);
        assert_eq!(with("10, 40,300").map(|machine| machine.cycles), Ok(vec![10, 40, 300]));
        assert!(with("10,40").is_err_and(|error| error.to_string().contains("2 latencies for 3 caches")));
        assert!(with("10,forty,300").is_err_and(|error| error.to_string().contains("`forty`")));
    }

    #[test]
    fn a_reference_waits_for_the_level_that_serves_it() {
        // 100 miss level 1; of those 30 miss level 2; of those 10 miss level 3.
        assert_eq!(Machine::usual().stall_cycles(&[100, 30, 10]), 70 * 14 + 20 * 50 + 10 * 200);
    }

    #[test]
    fn caches_are_read_as_sysfs_lists_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let caches = [
            ("1", "Data", "48K", "12"),
            ("1", "Instruction", "64K", "16"),
            ("2", "Unified", "2048K", "16"),
            ("3", "Unified", "491520K", "16"),
        ];
        for (index, (level, kind, size, ways)) in caches.into_iter().enumerate() {
            let cache = folder.path().join(format!("index{index}"));
            std::fs::create_dir(&cache).expect("a folder");
            let facts = [
                ("level", level),
                ("type", kind),
                ("size", size),
                ("ways_of_associativity", ways),
                ("coherency_line_size", "64"),
            ];
            for (name, value) in facts {
                std::fs::write(cache.join(name), format!("{value}\n")).expect("a file");
            }
        }
        let machine = Machine::read_sysfs(folder.path()).expect("a machine");
        assert_eq!(machine.to_string(), "48K/12,2M/16,480M/16");
        assert_eq!(Machine::read_sysfs(Path::new("/nowhere")), None);
    }
}
