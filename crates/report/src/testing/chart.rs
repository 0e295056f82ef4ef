//! A made-up chart: one series of three points with a name that wants escaping, and one with a point that is no number.

use crate::document::{Axis, Chart, Form, Series};

/// The chart, its axes logarithmic where `log`.
pub fn chart(form: Form, log: bool) -> Chart {
    let axis = |title: &str| Axis { title: title.into(), log, names: vec![] };
    let series = |name: &str, points: &[(f64, f64)]| Series {
        name: name.into(),
        points: points.into(),
        ..Series::default()
    };
    Chart {
        title: "Survival".into(),
        caption: "How to read it.".into(),
        form,
        x: axis("age, bytes"),
        y: axis("share"),
        series: vec![
            series("all <b>", &[(0.0, 1.0), (10.0, 0.5), (100.0, 0.25)]),
            series("small", &[(1.0, 0.75), (f64::NAN, 1.0)]),
        ],
    }
}
