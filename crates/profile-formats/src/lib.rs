//! Profiles in the formats of other viewers, a file a format. Each writer takes a [`Profile`] and nothing else that was
//! measured; what a format has no place for is left out. Heap profiles of pprof, DHAT, jemalloc and gperftools, of whatever
//! program, are [`read`] too.
//!
//! Names come from the program under measurement. Each writer escapes what its format gives a meaning to.

mod bounded;
mod callgrind;
mod dhat;
mod firefox;
mod folded;
mod format;
mod heap_text;
mod line;
mod perfetto;
mod pprof;
mod pprof_fields;
mod read;
mod speedscope;
#[cfg(test)]
mod testing;

use std::io::{self, Write};

use heaptoll_profiles::{Profile, Tracks};

pub use bounded::{ReadError, ReadProfile};
pub use format::{Choice, Count, Format, Instant};
pub use heap_text::{Mapped, Names};
pub use read::{Kind, kind, read};

/// Writes a profile. `tracks` is what a timeline shows next to it.
///
/// # Errors
/// `out` refuses.
pub fn write(
    format: Format,
    profile: &Profile,
    tracks: &Tracks,
    choice: Choice,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Pprof => pprof::write(profile, choice.instant, out),
        Format::Firefox => firefox::write(profile, tracks, out),
        Format::Folded => folded::write(profile, choice, out),
        Format::Dhat => dhat::write(profile, out),
        Format::Callgrind => callgrind::write(profile, choice.instant, out),
        Format::Speedscope => speedscope::write(profile, choice, out),
        Format::Perfetto => perfetto::write(profile, tracks, choice.instant, out),
    }
}
