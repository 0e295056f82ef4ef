//! A page of curves: for each program how much one cost falls when another is allowed to rise. A collector is such a
//! curve over its heap sizes, an allocator a point next to it.

use askama::Template;
use plotly::Plot;
use plotly::Scatter;
use plotly::common::{Line, Marker, Mode};

use super::chart_registry::{ChartRegistry, ChartSlot};
use super::charts::{self, plot_text};
use super::engine;
use super::palette::Palette;
use super::views::{Chip, Fact};
use crate::{ReportError, format};

/// One setting of a curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Across.
    pub x: f64,
    /// Up.
    pub y: f64,
    /// The setting, in words.
    pub setting: String,
}

/// The settings of one manager, joined in the order given.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// The manager.
    pub name: String,
    /// Its settings; a manager without any is one point.
    pub points: Vec<Point>,
}

/// The curves of one program.
#[derive(Debug, Clone, PartialEq)]
pub struct Curves {
    /// The program.
    pub program: String,
    /// What it shows, in a sentence.
    pub verdict: String,
    /// The first has the colour of a baseline; a name has the same colour in all charts of a page.
    pub curves: Vec<Curve>,
}

/// The page.
#[derive(Debug, Clone, PartialEq)]
pub struct CurvesPage {
    /// Headline.
    pub title: String,
    /// How to read it, sentences.
    pub notes: Vec<String>,
    /// Name and value: machine, plan.
    pub facts: Vec<(String, String)>,
    /// Label of the horizontal axis, with its unit.
    pub x_title: String,
    /// Label of the vertical axis, with its unit.
    pub y_title: String,
    /// One chart each.
    pub programs: Vec<Curves>,
    /// The command that makes the page again.
    pub command: String,
}

#[derive(Template)]
#[template(path = "curves.html")]
struct Filled {
    title: String,
    version: &'static str,
    style: &'static str,
    script: &'static str,
    engine: String,
    charts: String,
    notes: Vec<String>,
    legend: Vec<Chip>,
    programs: Vec<Section>,
    x_title: String,
    y_title: String,
    facts: Vec<Fact>,
    command: String,
}

struct Section {
    id: String,
    name: String,
    verdict: String,
    chart: Option<ChartSlot>,
    rows: Vec<(Chip, String, String, String)>,
}

/// A page that needs nothing but itself, like [`super::render`]'s.
///
/// # Errors
/// `Encode` when the page cannot be put together.
pub fn render(page: &CurvesPage) -> Result<String, ReportError> {
    let names = page.programs.iter().flat_map(|program| &program.curves).map(|curve| curve.name.as_str());
    let palette = Palette::of_names(names);
    let mut registry = ChartRegistry::default();
    let programs = page
        .programs
        .iter()
        .enumerate()
        .map(|(index, program)| section(index, program, page, &palette, &mut registry))
        .collect();
    let filled = Filled {
        title: format::printable(&page.title),
        version: env!("CARGO_PKG_VERSION"),
        style: include_str!("../../templates/style.css"),
        script: engine::SCRIPT,
        engine: engine::packed()?,
        charts: registry.json(),
        notes: page.notes.iter().map(|note| format::printable(note)).collect(),
        legend: palette.names().map(|name| Chip::of(name, &palette)).collect(),
        programs,
        x_title: format::printable(&page.x_title),
        y_title: format::printable(&page.y_title),
        facts: page.facts.iter().map(|(name, text)| Fact::new(name, text)).collect(),
        command: format::printable(&page.command),
    };
    filled.render().map_err(|error| ReportError::Encode { form: "HTML", detail: error.to_string() })
}

fn section(
    index: usize,
    program: &Curves,
    page: &CurvesPage,
    palette: &Palette,
    registry: &mut ChartRegistry,
) -> Section {
    let mut chart = registry.put(
        chart(program, page, palette),
        "CPU against memory",
        "Lower and further left is cheaper.",
    );
    if let Some(chart) = &mut chart {
        chart.wide = true;
    }
    let rows = program.curves.iter().flat_map(|curve| {
        curve.points.iter().map(|point| {
            let figure = |value: f64| format::significant(value);
            let chip = Chip::of(&curve.name, palette);
            (chip, format::printable(&point.setting), figure(point.x), figure(point.y))
        })
    });
    Section {
        id: format!("program-{index}"),
        name: format::printable(&program.program),
        verdict: format::printable(&program.verdict),
        chart,
        rows: rows.collect(),
    }
}

fn chart(program: &Curves, page: &CurvesPage, palette: &Palette) -> Option<Plot> {
    let all = || program.curves.iter().flat_map(|curve| &curve.points);
    all().next()?;
    let mut plot = charts::plot();
    for curve in program.curves.iter().filter(|curve| !curve.points.is_empty()) {
        let mark = palette.mark(&curve.name);
        let hovers = curve.points.iter().map(|point| {
            format!(
                "<b>{}</b> {}<br>{} {}<br>{} {}<extra></extra>",
                plot_text(&curve.name),
                plot_text(&point.setting),
                plot_text(&page.x_title),
                format::significant(point.x),
                plot_text(&page.y_title),
                format::significant(point.y)
            )
        });
        let (xs, ys) = curve.points.iter().map(|point| (point.x, point.y)).unzip();
        let joined = if curve.points.len() > 1 { Mode::LinesMarkers } else { Mode::Markers };
        plot.add_trace(
            Scatter::<f64, f64>::new(xs, ys)
                .mode(joined)
                .name(plot_text(&curve.name))
                .line(Line::new().width(1.5).color(mark.color.clone()))
                .marker(Marker::new().size(9).symbol(mark.symbol).color(mark.color))
                .hover_template_array(hovers.collect()),
        );
    }
    let (xs, ys): (Vec<f64>, Vec<f64>) = all().map(|point| (point.x, point.y)).unzip();
    let layout = charts::layout(360)
        .x_axis(charts::spread_axis(&page.x_title, &xs))
        .y_axis(charts::spread_axis(&page.y_title, &ys));
    plot.set_layout(layout);
    Some(plot)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> CurvesPage {
        let point = |x, y, setting: &str| Point { x, y, setting: setting.into() };
        let curve = |name: &str, points: Vec<Point>| Curve { name: name.into(), points };
        CurvesPage {
            title: "Collectors".into(),
            notes: vec!["A <note>.".into()],
            facts: vec![("Machine".into(), "two cores".into())],
            x_title: "peak RSS, MiB".into(),
            y_title: "CPU, s".into(),
            programs: vec![Curves {
                program: "make</script>".into(),
                verdict: "below at 2 of 2 points".into(),
                curves: vec![
                    curve("glibc", vec![point(200.0, 1.8, "")]),
                    curve("ours", vec![point(250.5, 2.25, "headroom 30 %"), point(400.0, 1.9, "100 %")]),
                ],
            }],
            command: "heaptoll-collectors curve".into(),
        }
    }

    #[test]
    fn a_page_holds_charts_and_their_figures_and_no_markup_of_others() {
        let html = render(&page()).expect("a page");
        for figure in ["headroom 30 %", "250.5", "2.250", "below at 2 of 2 points", "A &#60;note&#62;."] {
            assert!(html.contains(figure), "{figure}");
        }
        assert!(!html.contains("make</script>"));
        assert_eq!(html.matches("<script").count(), 3);
        assert!(html.contains("\"chart-0\":{") && html.contains("id=\"chart-0\""));
        for needle in ["src=", "<link", "url("] {
            assert!(!html.contains(needle), "{needle}");
        }
    }

    #[test]
    fn a_program_without_a_point_has_no_chart() {
        let mut empty = page();
        empty.programs[0].curves.clear();
        assert!(!render(&empty).expect("a page").contains("id=\"chart-0\""));
    }
}
