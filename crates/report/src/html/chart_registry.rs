//! The charts of a page, gathered while its parts are made: they stand in one script element, apart from the elements in
//! which they are drawn.

use std::collections::BTreeMap;

use plotly::Plot;

/// The charts of a page by the id of their element.
#[derive(Default)]
pub(super) struct ChartRegistry {
    charts: BTreeMap<String, String>,
}

/// An element of the page in which a chart will be drawn.
pub(super) struct ChartSlot {
    /// Id of the element.
    pub(super) id: String,
    /// What the chart shows.
    pub(super) title: &'static str,
    /// How to read it.
    pub(super) caption: &'static str,
    /// Takes the whole width.
    pub(super) wide: bool,
}

impl ChartRegistry {
    /// Keeps a chart and returns its slot; nothing where there is no chart.
    pub(super) fn put(
        &mut self,
        plot: Option<Plot>,
        title: &'static str,
        caption: &'static str,
    ) -> Option<ChartSlot> {
        let id = format!("chart-{}", self.charts.len());
        self.charts.insert(id.clone(), plot?.to_json());
        Some(ChartSlot { id, title, caption, wide: false })
    }

    /// Whether the page has no chart.
    pub(super) fn is_empty(&self) -> bool {
        self.charts.is_empty()
    }

    /// All charts as a JSON object that may stand inside a script element.
    pub(super) fn json(&self) -> String {
        let entries: Vec<String> =
            self.charts.iter().map(|(id, chart)| format!("\"{id}\":{chart}")).collect();
        // `<` could end the element, and these two end a line in older script engines.
        format!("{{{}}}", entries.join(",\n"))
            .replace('<', "\\u003c")
            .replace('\u{2028}', "\\u2028")
            .replace('\u{2029}', "\\u2029")
    }
}
