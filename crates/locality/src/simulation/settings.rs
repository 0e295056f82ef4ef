//! The settings of a simulation.

use std::ops::RangeInclusive;

use crate::sampled::Sampling;

/// The settings of a simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Bytes of a cache line: a power of two, 8 to 4096.
    pub line_bytes: u64,
    /// Bytes of a page: a power of two, at least a line, at most 1 GiB.
    pub page_bytes: u64,
    /// Whether to make the curve of fully associative caches of every size.
    pub lines: bool,
    /// Set counts of the associative caches, as powers of two (5..=14: 32 to 16384 sets), each simulated with 1 to
    /// [`WAYS`](crate::forest::WAYS) ways. At most 20. `None`: no associative caches.
    pub sets: Option<RangeInclusive<u32>>,
    /// Whether to make the curve of pages.
    pub pages: bool,
    /// Sampling of the lines in caches larger than [`Sampling::exact_lines`]. `None`: all results are exact.
    pub sampling: Option<Sampling>,
    /// Bytes that the simulators may take. When they need more the simulation ends; its profile covers what came
    /// before, and is marked.
    pub memory_limit: u64,
}

impl Default for Settings {
    /// Lines of 64 bytes, pages of 4096, 32 to 16384 sets, all results exact, 4 GiB.
    fn default() -> Settings {
        Settings {
            line_bytes: 64,
            page_bytes: 4096,
            lines: true,
            sets: Some(5..=14),
            pages: true,
            sampling: None,
            memory_limit: 4 << 30,
        }
    }
}

/// A setting that cannot be simulated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadSettings {
    /// Not a power of two from 8 to 4096.
    Line(u64),
    /// Not a power of two from a line to 1 GiB.
    Page(u64),
    /// No sets, or more than two to the 20th.
    Sets(RangeInclusive<u32>),
    /// A sampling shift that is not 1 to 16, or fewer exact lines than 16.
    Sampling(Sampling),
}

impl std::fmt::Display for BadSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BadSettings::Line(bytes) => {
                write!(f, "a line of {bytes} bytes: lines are powers of two from 8 to 4096 bytes")
            }
            BadSettings::Page(bytes) => {
                write!(f, "a page of {bytes} bytes: pages are powers of two from one line to 1 GiB")
            }
            BadSettings::Sets(sets) => {
                write!(
                    f,
                    "2^{} to 2^{} sets: give a range that is not empty and ends at 2^20 or before",
                    sets.start(),
                    sets.end()
                )
            }
            BadSettings::Sampling(sampling) => write!(
                f,
                "sampling one line in 2^{} beyond {} lines: the power is 1 to 16, exact are at least 16 lines",
                sampling.shift, sampling.exact_lines
            ),
        }
    }
}

impl std::error::Error for BadSettings {}

impl Settings {
    /// # Errors
    /// The first setting that cannot be simulated.
    pub fn check(&self) -> Result<(), BadSettings> {
        if !self.line_bytes.is_power_of_two() || !(8..=4096).contains(&self.line_bytes) {
            return Err(BadSettings::Line(self.line_bytes));
        }
        if !self.page_bytes.is_power_of_two() || !(self.line_bytes..=1 << 30).contains(&self.page_bytes) {
            return Err(BadSettings::Page(self.page_bytes));
        }
        if let Some(sets) = &self.sets
            && (sets.is_empty() || *sets.end() > 20)
        {
            return Err(BadSettings::Sets(sets.clone()));
        }
        if let Some(sampling) = &self.sampling
            && (!(1..=16).contains(&sampling.shift) || sampling.exact_lines < 16)
        {
            return Err(BadSettings::Sampling(*sampling));
        }
        Ok(())
    }
}
