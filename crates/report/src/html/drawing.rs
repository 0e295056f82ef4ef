//! A document's [`Chart`] as the page draws it: curves with bands, steps, stacks, bars and points with the ends of their
//! intervals, ratios, and published values next to them.

mod amount_axis;
mod appearance;
mod picture;
mod points;
mod ratio_axis;
mod ratios;
mod scales;
mod traces;

use askama::Template;

use super::chart_registry::ChartRegistry;
use super::palette::Palette;
use crate::ReportError;
use crate::document::{Chart, Form, Series};
use crate::format;
use appearance::{HUES, PUBLISHED};
use picture::Picture;
use points::{fitting, shown};

/// A chart's place on the page.
#[derive(Template)]
#[template(path = "items/chart.html")]
pub(super) struct ChartView {
    /// `alone`, or of charts in twos `two` or `wide`.
    pub class: &'static str,
    /// Of the element.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// How to read it.
    pub caption: String,
    /// Names, of those without a mark in the page's own legend.
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
///
/// # Errors
/// `Encode` when it cannot be written as JSON.
pub(super) fn add_chart(
    chart: &Chart,
    registry: &mut ChartRegistry,
) -> Result<Option<ChartView>, ReportError> {
    let picture = picture(chart, &registry.palette);
    if picture.traces.is_empty() {
        return Ok(None);
    }
    let json = serde_json::to_string(&picture)
        .map_err(|error| ReportError::Encode { form: "HTML", detail: error.to_string() })?;
    Ok(Some(ChartView {
        class: "alone",
        id: registry.put(json),
        title: format::printable(&chart.title),
        caption: format::printable(&chart.caption),
        keys: keys(chart, &registry.palette),
    }))
}

/// The chart; without a trace where no point can be shown.
fn picture(chart: &Chart, palette: &Palette) -> Picture {
    match chart.form {
        Form::Ratios => ratios::picture(chart, palette),
        _ => traces::picture(chart, palette),
    }
}

/// The names of what is drawn; none where there is one only, or where the page has a legend of them.
fn keys(chart: &Chart, palette: &Palette) -> Vec<Key> {
    let drawn = |(_, series): &(usize, &Series)| {
        let any = !shown(series, chart).is_empty() || !fitting(&series.published, chart).is_empty();
        any && !series.name.is_empty()
    };
    let key = |(index, series): (usize, &Series)| Key {
        name: format::printable(&series.name),
        color: HUES[index % HUES.len()],
        class: match (chart.form == Form::Bars, index >= HUES.len()) {
            (true, false) => "bar",
            (true, true) => "pale",
            (false, false) => "line",
            (false, true) => "dash",
        },
    };
    let is_known = chart.series.iter().any(|series| palette.find(&series.name).is_some());
    let mut keys: Vec<Key> = match is_known {
        true => vec![],
        false => chart.series.iter().enumerate().filter(drawn).map(key).collect(),
    };
    if chart.series.iter().any(|series| !fitting(&series.published, chart).is_empty()) {
        keys.push(Key { name: PUBLISHED.into(), color: "var(--ink)", class: "published" });
    } else if keys.len() == 1 {
        keys.clear();
    }
    keys
}
