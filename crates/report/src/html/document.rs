//! A [`Document`] as a page that needs nothing but itself, like an experiment's.

use askama::Template;
use plotly::common::{Fill, Font, HoverInfo, Line, LineShape, Mode, Orientation};
use plotly::layout::{Axis as PlotAxis, AxisType, BarMode, HoverMode, Legend, Margin};
use plotly::{Bar, Plot, Scatter};

use super::amount_axis;
use super::charts::{self, plot_text};
use super::views::Fact;
use super::{Place, Shelf, engine};
use crate::document::{Axis, Chart, Document, Form, Item, Series};
use crate::{ReportError, format};

/// More points than a line of this width can show are thinned, keeping lows and highs.
const POINTS: usize = 1000;
/// Hues of the style sheet, then grey.
const HUES: [&str; 7] = [
    "var(--hue-0)",
    "var(--hue-1)",
    "var(--hue-2)",
    "var(--hue-3)",
    "var(--hue-4)",
    "var(--hue-5)",
    "var(--hue-base)",
];

#[derive(Template)]
#[template(path = "document.html")]
struct Filled {
    title: String,
    subtitle: String,
    warnings: Vec<String>,
    version: &'static str,
    style: &'static str,
    script: &'static str,
    engine: String,
    charts: String,
    sections: Vec<SectionView>,
    facts: Vec<Fact>,
    command: String,
}

struct SectionView {
    id: String,
    title: String,
    text: Vec<String>,
    items: Vec<ItemView>,
}

struct ItemView {
    table: Option<TableView>,
    place: Option<PlaceView>,
}

struct TableView {
    caption: String,
    columns: Vec<(String, bool)>,
    /// Whether any column has a heading.
    named: bool,
    /// Each cell with whether it is a figure; the first is the row's heading.
    rows: Vec<Vec<(String, bool)>>,
    notes: Vec<String>,
}

struct PlaceView {
    id: String,
    title: String,
    caption: String,
}

/// Renders a document as one page.
///
/// # Errors
/// `Encode` when the page cannot be put together.
pub fn render(document: &Document) -> Result<String, ReportError> {
    let mut shelf = Shelf::default();
    let sections = document.sections.iter().enumerate().map(|(index, section)| {
        let items = section.items.iter().map(|item| match item {
            Item::Table(table) => ItemView { table: Some(table_view(table)), place: None },
            Item::Chart(chart) => ItemView { table: None, place: place(chart, &mut shelf) },
        });
        SectionView {
            id: format!("section-{index}"),
            title: format::printable(&section.title),
            text: section.text.iter().map(|text| format::printable(text)).collect(),
            items: items.collect(),
        }
    });
    let sections = sections.collect();
    let filled = Filled {
        title: format::printable(&document.title),
        subtitle: format::printable(&document.subtitle),
        warnings: document.warnings.iter().map(|text| format::printable(text)).collect(),
        version: env!("CARGO_PKG_VERSION"),
        style: include_str!("../../templates/style.css"),
        script: include_str!("../../templates/page.js"),
        engine: engine::packed()?,
        charts: shelf.json(),
        sections,
        facts: document.facts.iter().map(|(name, text)| Fact::new(name, text)).collect(),
        command: format::printable(&document.command),
    };
    filled.render().map_err(|error| ReportError::Encode { form: "HTML", detail: error.to_string() })
}

fn table_view(table: &crate::document::Table) -> TableView {
    let figures = |at: usize| table.columns.get(at).is_some_and(|column| column.figures);
    TableView {
        caption: format::printable(&table.caption),
        columns: table
            .columns
            .iter()
            .map(|column| (format::printable(&column.title), column.figures))
            .collect(),
        named: table.columns.iter().any(|column| !column.title.is_empty()),
        rows: table
            .rows
            .iter()
            .map(|row| {
                row.iter().enumerate().map(|(at, cell)| (format::printable(cell), figures(at))).collect()
            })
            .collect(),
        notes: table.notes.iter().map(|note| format::printable(note)).collect(),
    }
}

fn place(chart: &Chart, shelf: &mut Shelf) -> Option<PlaceView> {
    let Place { id, .. } = shelf.put(plot(chart), "", "")?;
    Some(PlaceView { id, title: format::printable(&chart.title), caption: format::printable(&chart.caption) })
}

/// The chart; `None` without a point that can be shown.
fn plot(chart: &Chart) -> Option<Plot> {
    let mut plot = charts::plot();
    let mut any = false;
    for (index, series) in chart.series.iter().enumerate() {
        let points = shown(series, chart);
        if points.is_empty() {
            continue;
        }
        any = true;
        let color = HUES[index % HUES.len()];
        let name = plot_text(&series.name);
        let (xs, ys): (Vec<f64>, Vec<f64>) = points.into_iter().unzip();
        let label = if name.is_empty() { String::new() } else { format!("<b>{name}</b><br>") };
        if chart.form == Form::Bars {
            let hover = format!("{label}%{{x}}: %{{y:,.4~g}}<extra></extra>");
            let bar = Bar::new(xs, ys).name(name).hover_template(hover);
            plot.add_trace(bar.marker(plotly::common::Marker::new().color(color)));
            continue;
        }
        let hover = format!("{label}%{{x:,.4~g}}: %{{y:,.4~g}}<extra></extra>");
        // After the hues are used up a dash tells lines apart.
        let mut line = Line::new().width(1.8).color(color);
        if index >= HUES.len() {
            line = line.dash(plotly::common::DashType::Dash);
        }
        if chart.form != Form::Lines {
            line = line.shape(LineShape::Hv);
        }
        if let Some(outline) = band(series, chart) {
            let (xs, ys): (Vec<f64>, Vec<f64>) = outline.into_iter().unzip();
            let area = Scatter::new(xs, ys).mode(Mode::Lines).fill(Fill::ToSelf).fill_color(color);
            let area = area.line(Line::new().width(0.0).color(color)).opacity(BAND);
            plot.add_trace(area.show_legend(false).hover_info(HoverInfo::Skip));
        }
        let mut scatter = Scatter::new(xs, ys).name(name).hover_template(hover);
        if chart.form == Form::Stacked {
            line = line.width(0.6);
            scatter = scatter.stack_group("all").fill(Fill::ToNextY).fill_color(color);
        }
        plot.add_trace(scatter.mode(Mode::Lines).line(line));
    }
    let named = chart.series.iter().filter(|series| !series.name.is_empty()).count() > 1;
    let hover = if chart.form == Form::Stacked { HoverMode::XUnified } else { HoverMode::Closest };
    let legend =
        Legend::new().orientation(Orientation::Horizontal).y(1.02).y_anchor(plotly::common::Anchor::Bottom);
    let points = || chart.series.iter().flat_map(|series| shown(series, chart));
    let layout = charts::layout(if named { 420 } else { 320 })
        .show_legend(named)
        .legend(legend.font(Font::new().size(12).color("var(--ink)")))
        .margin(Margin::new().left(8).right(14).top(if named { 40 } else { 8 }).bottom(14).auto_expand(true))
        .bar_mode(BarMode::Group)
        .hover_mode(hover)
        .x_axis(axis(&chart.x, points().map(|point| point.0)))
        .y_axis(axis(&chart.y, points().map(|point| point.1)));
    plot.set_layout(layout);
    any.then_some(plot)
}

fn axis(axis: &Axis, values: impl Iterator<Item = f64>) -> PlotAxis {
    let drawn = charts::axis(&plot_text(&axis.title));
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

/// How much of its colour the band around a line has.
const BAND: f64 = 0.18;

/// The outline of a series' band: along its upper ends and back along the lower ones.
fn band(series: &Series, chart: &Chart) -> Option<Vec<(f64, f64)>> {
    let fits = |axis: &Axis, value: f64| value.is_finite() && (!axis.log || value > 0.0);
    let ends: Vec<(f64, f64, f64)> = series
        .points
        .iter()
        .zip(&series.band)
        .filter(|((x, _), (low, high))| fits(&chart.x, *x) && fits(&chart.y, *low) && fits(&chart.y, *high))
        .map(|((x, _), (low, high))| (charts::rounded(*x), charts::rounded(*low), charts::rounded(*high)))
        .collect();
    let upper = ends.iter().map(|(x, _, high)| (*x, *high));
    let lower = ends.iter().rev().map(|(x, low, _)| (*x, *low));
    (chart.form == Form::Lines && ends.len() > 1).then(|| upper.chain(lower).collect())
}

/// The points of a series that can be shown, thinned where there are too many; stacks only together, so they stay whole.
fn shown(series: &Series, chart: &Chart) -> Vec<(f64, f64)> {
    let fits = |axis: &Axis, value: f64| value.is_finite() && (!axis.log || value > 0.0);
    let points: Vec<(f64, f64)> = series
        .points
        .iter()
        .filter(|(x, y)| fits(&chart.x, *x) && fits(&chart.y, *y))
        .map(|&(x, y)| (charts::rounded(x), charts::rounded(y)))
        .collect();
    if chart.form == Form::Stacked || points.len() <= POINTS {
        return points;
    }
    charts::thinned_points(&points, POINTS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Column, Section, Table};

    fn chart(form: Form, log: bool) -> Chart {
        let axis = |title: &str| Axis { title: title.into(), log, names: vec![] };
        Chart {
            title: "Survival".into(),
            caption: "How to read it.".into(),
            form,
            x: axis("age, bytes"),
            y: axis("share"),
            series: vec![
                Series {
                    name: "all <b>".into(),
                    points: vec![(0.0, 1.0), (10.0, 0.5), (100.0, 0.25)],
                    ..Series::default()
                },
                Series {
                    name: "small".into(),
                    points: vec![(1.0, 0.75), (f64::NAN, 1.0)],
                    ..Series::default()
                },
            ],
        }
    }

    fn document(items: Vec<Item>) -> Document {
        Document {
            title: "t </script>".into(),
            warnings: vec!["cut & short".into()],
            sections: vec![Section { title: "One".into(), text: vec!["Text.".into()], items }],
            facts: vec![("Machine".into(), "two cores".into())],
            command: "heaptoll stat x".into(),
            ..Document::default()
        }
    }

    #[test]
    fn a_page_holds_tables_and_charts_and_no_markup_of_others() {
        let table = Table {
            caption: "by kind".into(),
            columns: vec![
                Column { title: "kind".into(), figures: false },
                Column { title: "calls".into(), figures: true },
            ],
            rows: vec![vec!["<img>".into(), "1,200".into()]],
            notes: vec!["a note".into()],
        };
        let forms = [Form::Lines, Form::Steps, Form::Stacked, Form::Bars];
        let charts = forms.iter().map(|form| Item::Chart(chart(*form, false)));
        let page = render(&document(charts.chain([Item::Table(table)]).collect())).expect("a page");
        for text in ["1,200", "a note", "cut &#38; short", "two cores", "heaptoll stat x", "id=\"chart-3\""] {
            assert!(page.contains(text), "{text}");
        }
        assert!(!page.contains("<img>") && !page.contains("t </script>"));
        assert_eq!(page.matches("<script").count(), 3);
        for needle in ["src=", "<link", "url("] {
            assert!(!page.contains(needle), "{needle}");
        }
    }

    #[test]
    fn a_logarithmic_axis_leaves_out_what_it_cannot_show() {
        let chart = chart(Form::Steps, true);
        assert_eq!(shown(&chart.series[0], &chart), [(10.0, 0.5), (100.0, 0.25)]);
        assert_eq!(shown(&chart.series[1], &chart), [(1.0, 0.75)]);
    }

    #[test]
    fn the_band_of_a_line_runs_along_its_upper_ends_and_back_along_the_lower() {
        let mut banded = chart(Form::Lines, false);
        banded.series[0].band = vec![(0.9, 1.1), (0.4, 0.6), (0.2, f64::INFINITY)];
        let outline = band(&banded.series[0], &banded).expect("two points have ends");
        assert_eq!(outline, [(0.0, 1.1), (10.0, 0.6), (10.0, 0.4), (0.0, 0.9)]);
        assert_eq!(band(&banded.series[1], &banded), None);
        let page = render(&document(vec![Item::Chart(banded.clone())])).expect("a page");
        assert!(page.contains("toself"));
        banded.form = Form::Bars;
        assert_eq!(band(&banded.series[0], &banded), None);
    }

    #[test]
    fn a_chart_without_a_point_has_no_place() {
        let mut empty = chart(Form::Lines, false);
        empty.series.clear();
        assert!(!render(&document(vec![Item::Chart(empty)])).expect("a page").contains("id=\"chart-0\""));
    }

    #[test]
    fn long_lines_are_thinned_and_keep_their_peak() {
        let mut long = chart(Form::Lines, false);
        long.series[0].points =
            (0..50_000).map(|i| (f64::from(i), if i == 4711 { 9.0 } else { 1.0 })).collect();
        let kept = shown(&long.series[0], &long);
        assert!(kept.len() <= POINTS + 1 && kept.contains(&(4711.0, 9.0)), "{}", kept.len());
    }
}
