//! Axes with the page's colours.

use plotly::common::{Font, Title};
use plotly::layout::{Axis as PlotAxis, AxisType};

use super::amount_axis;
use super::appearance::{GRID, plot_text};
use crate::document::Axis;

/// What must not catch the eye.
pub(super) const MUTED: &str = "var(--muted)";

/// The axis, with ticks for these values.
pub(super) fn axis(axis: &Axis, values: impl Iterator<Item = f64>) -> PlotAxis {
    let drawn = plain(&plot_text(&axis.title));
    if axis.log {
        let drawn = drawn.type_(AxisType::Log);
        return match amount_axis::ticks(values) {
            Some((places, labels)) => drawn.tick_values(places).tick_text(labels),
            None => drawn,
        };
    }
    if axis.names.is_empty() {
        return drawn;
    }
    let places = (0..axis.names.len()).map(|place| place as f64).collect();
    drawn.tick_values(places).tick_text(axis.names.iter().map(|name| plot_text(name)).collect())
}

/// An axis with this title.
pub(super) fn plain(title: &str) -> PlotAxis {
    PlotAxis::new()
        .title(Title::with_text(title).font(Font::new().size(12).color(MUTED)))
        .auto_margin(true)
        .grid_color(GRID)
        .zero_line(false)
        .line_color(GRID)
        .show_line(true)
        .tick_color(GRID)
        .fixed_range(true)
        .n_ticks(6)
}
