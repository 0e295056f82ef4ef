//! A profile that is read from a file, within a limit of memory, and why that fails.

use heaptoll_profiles::{Builder, Frame, Measure, Profile, Subject};
use heaptoll_units::whole_bytes;
use thiserror::Error;

/// Frames that are kept of a stack.
const DEPTH_MAX: usize = 1024;
/// Bytes that a profile takes of a call, with the tables by which it is built.
const EACH_CALL: u64 = 64;

/// A profile that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadProfile {
    /// The sums.
    pub profile: Profile,
    /// What its reader must know: sampling, what is not in it. Sentences without a full stop.
    pub remarks: Vec<String>,
}

/// Why a file is not read. Sentences to follow the file's name.
#[derive(Debug, Error)]
pub enum ReadError {
    /// It is cut off, damaged, or something else.
    #[error("it is not a complete profile of {format}: {what}; was the file cut off?")]
    Malformed {
        /// The format.
        format: &'static str,
        /// What is wrong.
        what: String,
    },
    /// A version that is not known.
    #[error("it has version {version} of DHAT's format; heaptoll reads version 2 (Valgrind 3.17 and later)")]
    OtherVersion {
        /// The version.
        version: u64,
    },
    /// It is of something else than a heap.
    #[error("it counts {counted}; heaptoll reads only heap profiles: objects or bytes, allocated or in use")]
    NoHeap {
        /// What it counts.
        counted: String,
    },
    /// Values below zero.
    #[error(
        "it has negative values, like a difference of two profiles: give both profiles to `heaptoll diff`"
    )]
    Negative,
    /// Too large.
    #[error("it needs more than the memory limit of {}: allow more with --memory-limit", whole_bytes(*limit_bytes))]
    Memory {
        /// The limit.
        limit_bytes: u64,
    },
}

/// The remark on a profile of samples that are so far apart on average.
pub fn sampled(mean_bytes: u64) -> String {
    format!("it was sampled, once in about {} allocated: its values are estimates", whole_bytes(mean_bytes))
}

/// A profile that is built within a limit of memory.
pub struct Bounded {
    builder: Builder,
    limit_bytes: u64,
    used_bytes: u64,
    frames: usize,
    cut: u64,
}

impl Bounded {
    pub fn new(measures: Vec<Measure>, limit_bytes: u64) -> Bounded {
        Bounded { builder: Builder::new(measures), limit_bytes, used_bytes: 0, frames: 0, cut: 0 }
    }

    pub fn subject(&mut self, subject: Subject) {
        self.builder.subject(subject);
    }

    /// The number of a frame, the same for equal ones.
    pub fn frame(&mut self, frame: Frame) -> Result<u32, ReadError> {
        let texts = frame.function.len() + frame.file.len() + frame.object.len();
        let number = self.builder.frame(frame);
        if number as usize >= self.frames {
            self.frames = number as usize + 1;
            // The builder has it in its list and in its table.
            self.take(2 * (size_of::<Frame>() + texts) as u64)?;
        }
        Ok(number)
    }

    /// Adds values to a stack, innermost first; as many frames of it as are kept.
    pub fn stack(&mut self, frames: impl Iterator<Item = u32>, values: &[u64]) -> Result<(), ReadError> {
        let mut frames = frames;
        let mut kept: Vec<u32> = frames.by_ref().take(DEPTH_MAX).collect();
        if frames.next().is_some() {
            self.cut += 1;
            kept.push(self.frame(Frame { function: "[deeper frames]".into(), ..Frame::default() })?);
        }
        let calls = self.builder.calls();
        self.builder.stack(&kept, values);
        let calls = (self.builder.calls() - calls) as u64;
        self.take(calls * EACH_CALL + 48 + 8 * values.len() as u64)
    }

    fn take(&mut self, bytes: u64) -> Result<(), ReadError> {
        self.used_bytes += bytes;
        match self.used_bytes > self.limit_bytes {
            true => Err(ReadError::Memory { limit_bytes: self.limit_bytes }),
            false => Ok(()),
        }
    }

    pub fn finish(self, mut remarks: Vec<String>) -> ReadProfile {
        if self.cut > 0 {
            remarks.push(format!(
                "{} call stacks have more than {DEPTH_MAX} frames: the rest is left out",
                self.cut
            ));
        }
        ReadProfile { profile: self.builder.finish(), remarks }
    }
}

/// The text without the byte that no frame may have.
pub fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
