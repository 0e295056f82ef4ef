//! Files of other tools that commands are given: what they are, and what can be done with them. Heap profiles are read
//! as what they are, sums by call stack; a recording of heaptrack becomes a trace by `heaptoll trace import`.

mod addresses;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::SystemTime;

pub use heaptoll_profile_formats::{Kind as ProfileKind, ReadProfile};
use heaptoll_profile_formats::{ReadError, kind as profile_kind, read};
use heaptoll_record::heaptrack::{is_damage, is_heaptrack, unpack};
use heaptoll_units::whole_bytes;
use thiserror::Error;

use crate::failure::Failure;

/// The first bytes, unpacked, which show what a file is.
pub const FIRST: u64 = 64 << 10;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A recording of heaptrack: events.
    Heaptrack,
    /// A heap profile: sums.
    Profile(ProfileKind),
}

impl Kind {
    /// What it is, in words.
    pub fn in_words(self) -> String {
        match self {
            Kind::Heaptrack => "a recording of heaptrack".to_owned(),
            Kind::Profile(kind) => format!("a heap profile of {}", kind.name()),
        }
    }
}

/// Why a file of another tool is not what a command needs.
#[derive(Debug, Error)]
pub enum ForeignError {
    /// A profile where events are needed.
    #[error(
        "{name} is {}: sums of call stacks, without events. `heaptoll trace export {name} --to FORMAT` (html, pprof, \
         speedscope, ...) and `heaptoll diff {name} OTHER` read it. For events, record the program with `heaptoll record --sites`",
        .kind.in_words()
    )]
    NoEvents {
        /// The file.
        name: String,
        /// What it is.
        kind: Kind,
    },
    /// Heaptrack's, before it was imported.
    #[error(
        "{name} is a recording of heaptrack: `heaptoll trace import {name}` makes a trace that this command reads"
    )]
    NotImported {
        /// The file.
        name: String,
    },
    /// A profile that cannot be read.
    #[error("cannot read {name}: {source}")]
    Profile {
        /// The file.
        name: String,
        /// Why.
        source: ReadError,
    },
    /// A compressed profile whose compression is damaged.
    #[error("cannot read {name}: it is cut off or damaged ({source})")]
    Damaged {
        /// The file.
        name: String,
        /// The library's reason.
        source: io::Error,
    },
    /// Larger than memory may be.
    #[error("{name} is larger than the memory limit of {}: allow more with --memory-limit", whole_bytes(*.limit_bytes))]
    TooLarge {
        /// The file.
        name: String,
        /// The limit.
        limit_bytes: u64,
    },
}

impl From<ForeignError> for Failure {
    fn from(error: ForeignError) -> Failure {
        Failure::Refused(Box::new(error))
    }
}

/// What these first bytes, unpacked, are of.
pub fn kind_of(first: &[u8]) -> Option<Kind> {
    match is_heaptrack(first) {
        true => Some(Kind::Heaptrack),
        false => profile_kind(first).map(Kind::Profile),
    }
}

/// What a file is; none where it is something else, no file, or cannot be read: the command that opens it finds why.
pub fn kind(path: &Path) -> Option<Kind> {
    // The first bytes of a pipe would be lost.
    if !path.metadata().is_ok_and(|found| found.is_file()) {
        return None;
    }
    let mut first = Vec::new();
    let unpacked = unpack(File::open(path).ok()?).ok()?;
    // What is damaged later is recognised by what comes before.
    let _ = unpacked.read.take(FIRST).read_to_end(&mut first);
    kind_of(&first)
}

/// The error for a file that is no trace but another tool's; none where it is not that either.
pub fn no_trace(name: &str) -> Option<ForeignError> {
    let name = name.to_owned();
    Some(match kind(Path::new(&name))? {
        Kind::Heaptrack => ForeignError::NotImported { name },
        kind @ Kind::Profile(_) => ForeignError::NoEvents { name, kind },
    })
}

/// The heap profile in a file; none where the file is something else.
///
/// # Errors
/// It is one and cannot be read, or needs more memory.
pub fn profile(path: &Path, limit_bytes: u64) -> Result<Option<ReadProfile>, Failure> {
    let Some(Kind::Profile(kind)) = kind(path) else { return Ok(None) };
    let name = path.display().to_string();
    let damaged = |source: io::Error| {
        let name = name.clone();
        match is_damage(&source) {
            true => Failure::from(ForeignError::Damaged { name, source }),
            false => Failure::Refused(Box::new(heaptoll_trace::TraceError::System {
                action: "read",
                name,
                source,
            })),
        }
    };
    let file = File::open(path).map_err(damaged)?;
    let written_at = file.metadata().and_then(|about| about.modified()).unwrap_or_else(|_| SystemTime::now());
    let unpacked = unpack(file).map_err(damaged)?;
    let mut bytes = Vec::new();
    unpacked.read.take(limit_bytes.saturating_add(1)).read_to_end(&mut bytes).map_err(damaged)?;
    if bytes.len() as u64 > limit_bytes {
        return Err(ForeignError::TooLarge { name, limit_bytes }.into());
    }
    let found = read(kind, &bytes, limit_bytes, &mut |mapped, addresses| {
        addresses::frames(mapped, addresses, written_at)
    });
    found.map(Some).map_err(|source| ForeignError::Profile { name, source }.into())
}
