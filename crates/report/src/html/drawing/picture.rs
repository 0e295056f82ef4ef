//! A chart as the page's script draws it (`templates/charts.js`): what is where, in the units of the axes.

use serde::Serialize;

/// A chart.
#[derive(Debug, Serialize)]
pub(super) struct Picture {
    /// px.
    pub height: usize,
    pub x: Scale,
    pub y: Scale,
    /// A note is of all traces at a place rather than of the nearest point.
    pub together: bool,
    /// Heights between which the ground is shaded.
    pub shaded: Vec<(f64, f64)>,
    /// Where a line stands upright.
    pub upright: Option<f64>,
    /// From the back to the front.
    pub traces: Vec<Trace>,
}

/// An axis.
#[derive(Debug, Serialize)]
pub(super) struct Scale {
    pub title: String,
    pub log: bool,
    /// The ticks name places rather than amounts.
    pub named: bool,
    pub ends: (f64, f64),
    /// Places and labels.
    pub ticks: Vec<(f64, String)>,
}

/// Points that are drawn alike.
#[derive(Debug, Serialize)]
pub(super) struct Trace {
    pub name: String,
    /// CSS colour.
    pub color: String,
    #[serde(flatten)]
    pub shape: Shape,
    pub points: Vec<(f64, f64)>,
    /// Ends of each point's interval upwards; empty for none. Those that are not finite reach to the end of the axis.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub up: Vec<(f64, f64)>,
    /// The same across.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub across: Vec<(f64, f64)>,
    /// Half of the width of the caps of intervals, px.
    pub cap: f64,
    /// What pointing at each point shows; empty for its figures, `None` where nothing is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<Vec<String>>,
}

/// How points are drawn.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase", tag = "shape")]
pub(super) enum Shape {
    /// `dash` as in SVG. With `step` a value holds until the next point.
    Line { width: f64, dash: &'static str, step: bool },
    /// Between the points and as many heights of `base`.
    Area { base: Vec<f64>, opacity: f64, step: bool },
    /// A symbol a point, its path from -6 to 6. `hollow` is drawn in outline; `pale` are faint, as many as points or none.
    Marks { path: &'static str, size: f64, hollow: bool, opacity: f64, pale: Vec<bool> },
    /// From `offset` on, in the units of the axis.
    Bars { offset: f64, width: f64, opacity: f64 },
}

impl Trace {
    /// Without intervals; pointing at a point shows its figures.
    pub fn new(name: &str, color: &str, shape: Shape, points: Vec<(f64, f64)>) -> Trace {
        let (name, color) = (crate::format::printable(name), color.to_owned());
        Trace { name, color, shape, points, up: vec![], across: vec![], cap: 0.0, notes: Some(vec![]) }
    }

    /// Pointing at it shows nothing.
    pub fn silent(self) -> Trace {
        Trace { notes: None, ..self }
    }

    /// What the axis across must have a place for.
    pub fn xs(&self) -> impl Iterator<Item = f64> {
        let ends = self.across.iter().flat_map(|ends| [ends.0, ends.1]);
        self.points.iter().map(|point| point.0).chain(ends)
    }

    /// What the axis upwards must have a place for.
    pub fn ys(&self) -> impl Iterator<Item = f64> {
        let base: &[f64] = if let Shape::Area { base, .. } = &self.shape { base } else { &[] };
        let ends = self.up.iter().flat_map(|ends| [ends.0, ends.1]);
        self.points.iter().map(|point| point.1).chain(ends).chain(base.iter().copied())
    }
}
