//! What a chart shows: plain figures, how they are drawn, and how to read them.

/// Curves, steps, stacked areas, bars, points or ratios.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// How to read it.
    pub caption: String,
    /// Form.
    pub form: Form,
    /// Across.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// In the order of the legend; of stacked areas, from the bottom.
    pub series: Vec<Series>,
}

/// Form of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Straight lines between points.
    Lines,
    /// A value holds until the next point.
    Steps,
    /// Lines on top of each other, filled.
    Stacked,
    /// A bar a point.
    Bars,
    /// A mark a point.
    Points,
    /// Marks, joined in their order by straight lines.
    Joined,
    /// A mark with its interval a point: x is a ratio, y the place 0, 1, 2... from the top, which `y.names` name. Pale
    /// where the interval holds 1.
    Ratios,
}

/// An axis.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Axis {
    /// Label with unit.
    pub title: String,
    /// Logarithmic; points at 0 or below are left out.
    pub log: bool,
    /// Names of the places 0, 1, 2... of bars and ratios; empty for numbers.
    pub names: Vec<String>,
}

impl Axis {
    /// An even axis of numbers.
    pub fn even(title: &str) -> Axis {
        Axis { title: title.into(), ..Axis::default() }
    }

    /// A logarithmic axis.
    pub fn log(title: &str) -> Axis {
        Axis { log: true, ..Axis::even(title) }
    }

    /// An axis of amounts: logarithmic where one of them, above 20 times the least, would press all others flat, as a
    /// manager that frees nothing does.
    pub fn spread(title: &str, values: impl IntoIterator<Item = f64>) -> Axis {
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        for value in values.into_iter().filter(|value| *value > 0.0) {
            (least, most) = (least.min(value), most.max(value));
        }
        match most <= 20.0 * least {
            true => Axis::even(title),
            false => Axis::log(&format!("{title} (logarithmic)")),
        }
    }
}

/// One curve.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    /// In the legend; has its own colour and symbol where the document's palette has the name.
    pub name: String,
    /// x and y.
    pub points: Vec<(f64, f64)>,
    /// Lower and upper end of each point's interval, of ratios those of x, else of y; as many as points, empty for none.
    pub band: Vec<(f64, f64)>,
    /// Of ratios, whether each shows a difference; as many as points.
    pub claimed: Vec<bool>,
    /// The same across, of points.
    pub across: Vec<(f64, f64)>,
    /// What hovering over a point shows, as many as points; empty for its figures.
    pub labels: Vec<String>,
    /// Published values that ours are compared with, drawn next to them.
    pub published: Vec<(f64, f64)>,
    /// What its points are, where they are not the chart's main figures.
    pub role: Role,
}

impl Series {
    /// A curve without intervals and labels.
    pub fn of(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.into(), points, ..Series::default() }
    }
}

/// What the points of a series are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Role {
    /// Figures of the chart.
    #[default]
    Figures,
    /// Points of other series, joined by dotted steps without marks.
    Frontier,
    /// Failures: crosses.
    Failures,
}
