//! Colours and symbols of series.

use crate::document::Series;
use crate::html::palette::{CIRCLE, Palette};

/// Hues of the style sheet, then grey.
pub(super) const HUES: [&str; 7] = [
    "var(--hue-0)",
    "var(--hue-1)",
    "var(--hue-2)",
    "var(--hue-3)",
    "var(--hue-4)",
    "var(--hue-5)",
    "var(--hue-base)",
];
/// What must not catch the eye.
pub(super) const MUTED: &str = "var(--muted)";
/// Of failures.
pub(super) const CROSS: &str = "M-5,-5L5,5M-5,5L5,-5";
/// Of published values.
pub(super) const DIAMOND: &str = "M0,-6L6,0L0,6L-6,0Z";
/// In the legend.
pub(super) const PUBLISHED: &str = "published";

/// How one series is drawn.
pub(super) struct Ink {
    /// CSS colour.
    pub(super) color: String,
    /// Symbol of its marks, as an SVG path in a box from -6 to 6.
    pub(super) path: &'static str,
    /// Its hue is that of another series.
    pub(super) again: bool,
}

/// The colour and the symbol of the series at this place.
pub(super) fn ink(index: usize, series: &Series, palette: &Palette) -> Ink {
    match palette.find(&series.name) {
        Some(mark) => Ink { color: mark.color, path: mark.path, again: false },
        None => {
            let color = HUES[index % HUES.len()].to_owned();
            Ink { color, path: CIRCLE, again: index >= HUES.len() }
        }
    }
}
