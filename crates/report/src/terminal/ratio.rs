//! A ratio as text and colour: tables of experiments, exact counts and pairs show them alike.

use heaptoll_statistics::Interval;

use super::style::Tone;
use crate::format;

/// A ratio with its interval, on one line or two.
pub(super) fn ratio_text(interval: &Interval, split: bool) -> String {
    let text = format::interval(interval);
    if split { text.replacen(' ', "\n", 1) } else { text }
}

/// The colour of a claim.
pub(super) fn tone(interval: &Interval) -> Tone {
    match interval.differs {
        false => Tone::Dim,
        true if interval.ratio < 1.0 => Tone::Good,
        true => Tone::Bad,
    }
}
