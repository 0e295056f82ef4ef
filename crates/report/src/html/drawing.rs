//! A document's [`Chart`] as plotly draws it: curves with bands, steps, stacks, bars and points with the ends of their
//! intervals, ratios, and published values next to them.

mod amount_axis;
mod appearance;
mod axes;
mod points;
mod ratio_axis;
mod ratios;
mod traces;

use plotly::configuration::DisplayModeBar;
use plotly::{Configuration, Plot};

use super::chart_registry::ChartRegistry;
use super::palette::Palette;
use crate::document::{Chart, Form, Series};
use crate::format;
use appearance::{HUES, PUBLISHED};
use points::{fitting, shown};

/// Where the names of the series stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    /// In the chart.
    Inside,
    /// Next to it, on the page.
    Outside,
}

/// A slot for a chart on the page.
pub(super) struct DrawingSlot {
    /// Of the element.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// How to read it.
    pub caption: String,
    /// Names that stand on the page; empty where they are inside.
    pub keys: Vec<Key>,
}

/// A name in a legend on the page.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Key {
    /// Name.
    pub name: String,
    /// CSS colour.
    pub color: &'static str,
    /// `bar`, `pale`, `line`, `dash` or `published`: a class of the style sheet.
    pub class: &'static str,
}

/// Adds a chart to the registry; `None` without a point that can be shown.
pub(super) fn add_chart(chart: &Chart, names: Names, registry: &mut ChartRegistry) -> Option<DrawingSlot> {
    let plot = plot(chart, names, &registry.palette)?;
    Some(DrawingSlot {
        id: registry.put(&plot),
        title: format::printable(&chart.title),
        caption: format::printable(&chart.caption),
        keys: if names == Names::Outside { keys(chart) } else { vec![] },
    })
}

/// The names of what is drawn; none where there is one only.
fn keys(chart: &Chart) -> Vec<Key> {
    let drawn = |(_, series): &(usize, &Series)| {
        let any = !shown(series, chart).is_empty() || !fitting(&series.published, chart).is_empty();
        any && !series.name.is_empty()
    };
    let mut keys: Vec<Key> = chart
        .series
        .iter()
        .enumerate()
        .filter(drawn)
        .map(|(index, series)| Key {
            name: format::printable(&series.name),
            color: HUES[index % HUES.len()],
            class: match (chart.form == Form::Bars, index >= HUES.len()) {
                (true, false) => "bar",
                (true, true) => "pale",
                (false, false) => "line",
                (false, true) => "dash",
            },
        })
        .collect();
    let published = chart.series.iter().any(|series| !fitting(&series.published, chart).is_empty());
    if published {
        keys.push(Key { name: PUBLISHED.into(), color: "var(--ink)", class: "published" });
    }
    if keys.len() > 1 { keys } else { vec![] }
}

/// The chart; `None` without a point that can be shown.
fn plot(chart: &Chart, names: Names, palette: &Palette) -> Option<Plot> {
    let mut plot = Plot::new();
    plot.set_configuration(
        Configuration::new().responsive(true).display_mode_bar(DisplayModeBar::False).display_logo(false),
    );
    let layout = match chart.form {
        Form::Ratios => ratios::draw(chart, palette, &mut plot),
        _ => traces::draw(chart, has_names(chart, names, palette), palette, &mut plot),
    };
    plot.set_layout(layout?);
    Some(plot)
}

/// Whether the names of the series stand in the chart: not those that the page has a legend of.
fn has_names(chart: &Chart, names: Names, palette: &Palette) -> bool {
    let unknown = |series: &&Series| !series.name.is_empty() && palette.find(&series.name).is_none();
    let is_known = chart.series.iter().any(|series| palette.find(&series.name).is_some());
    let published = chart.series.iter().any(|series| !fitting(&series.published, chart).is_empty());
    let named = chart.series.iter().filter(unknown).count() > 1 && !is_known;
    names == Names::Inside && (named || published)
}
