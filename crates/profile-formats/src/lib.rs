//! Profiles in the formats of other viewers, a file a format. Each writer takes a [`Profile`] and nothing else that was
//! measured; what a format has no place for is left out.
//!
//! Names come from the program under measurement. Each writer escapes what its format gives a meaning to.

mod callgrind;
mod dhat;
mod firefox;
mod folded;
mod format;
mod line;
mod perfetto;
mod pprof;
mod speedscope;
#[cfg(test)]
mod testing;

use std::io::{self, Write};

use heaptoll_profiles::{Profile, Tracks};

pub use format::{Count, Format, Moment};

/// What is chosen of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// When the live objects are counted, in formats that have one figure for them.
    pub moment: Moment,
    /// The figure, in formats that have one.
    pub count: Count,
}

/// Writes a profile. `tracks` is what a timeline shows beside it.
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
        Format::Pprof => pprof::write(profile, choice.moment, out),
        Format::Firefox => firefox::write(profile, tracks, out),
        Format::Folded => folded::write(profile, choice, out),
        Format::Dhat => dhat::write(profile, out),
        Format::Callgrind => callgrind::write(profile, choice.moment, out),
        Format::Speedscope => speedscope::write(profile, choice, out),
        Format::Perfetto => perfetto::write(profile, tracks, choice.moment, out),
    }
}
