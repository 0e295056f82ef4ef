//! How charts look: colours, symbols, layout and what hovering shows.

use plotly::common::{Anchor, Font, Label, MarkerSymbol, Orientation};
use plotly::layout::{BarMode, DragMode, HoverMode, Layout, Legend, Margin};

use crate::document::Series;
use crate::format;
use crate::html::palette::Palette;

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
/// In the legend.
pub(super) const PUBLISHED: &str = "published";
/// Lines of the grid.
pub(super) const GRID: &str = "var(--line)";

/// How one series is drawn.
pub(super) struct Ink {
    /// CSS colour.
    pub(super) color: String,
    /// Symbol of its marks.
    pub(super) symbol: MarkerSymbol,
    /// Its hue is that of another series.
    pub(super) again: bool,
}

/// The colour and the symbol of the series at this place.
pub(super) fn ink(index: usize, series: &Series, palette: &Palette) -> Ink {
    match palette.find(&series.name) {
        Some(mark) => Ink { color: mark.color, symbol: mark.symbol, again: false },
        None => Ink {
            color: HUES[index % HUES.len()].to_owned(),
            symbol: MarkerSymbol::Circle,
            again: index >= HUES.len(),
        },
    }
}

/// What is alike in all charts.
pub(super) fn layout(height: usize) -> Layout {
    let label = Label::new().background_color("var(--raised)").border_color(GRID);
    Layout::new()
        .height(height)
        .auto_size(true)
        .show_legend(false)
        .margin(margin(8))
        .paper_background_color("rgba(0,0,0,0)")
        .plot_background_color("rgba(0,0,0,0)")
        .font(Font::new().family("var(--font)").size(12).color("var(--ink)"))
        .bar_mode(BarMode::Group)
        .hover_mode(HoverMode::Closest)
        .hover_label(label.font(Font::new().color("var(--ink)")))
        // Dragging would take the scrolling of a phone away.
        .drag_mode(DragMode::False)
}

/// The layout of a chart with its names in it.
pub(super) fn with_legend(height: usize) -> Layout {
    let legend = Legend::new().orientation(Orientation::Horizontal).y(1.02).y_anchor(Anchor::Bottom);
    let legend = legend.font(Font::new().size(12).color("var(--ink)"));
    layout(height).show_legend(true).legend(legend).margin(margin(40))
}

fn margin(top: usize) -> Margin {
    Margin::new().left(8).right(14).top(top).bottom(14).auto_expand(true)
}

/// Text for plotly, which reads a little HTML of its own.
pub(super) fn plot_text(text: &str) -> String {
    format::printable(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('%', "&#37;")
}

/// The name of a series over what hovering over its points shows.
pub(super) fn head(series: &Series) -> String {
    let name = plot_text(&series.name);
    if name.is_empty() { name } else { format!("<b>{name}</b><br>") }
}

/// What hovering over the points shows: their labels, or their figures by `template`.
pub(super) fn hovers(series: &Series, template: &str) -> Vec<String> {
    match series.labels.is_empty() {
        true => vec![format!("{}{template}<extra></extra>", head(series))],
        false => {
            let label = |text: &String| {
                let lines: Vec<String> = text.split('\n').map(plot_text).collect();
                format!("{}{}<extra></extra>", head(series), lines.join("<br>"))
            };
            series.labels.iter().map(label).collect()
        }
    }
}
