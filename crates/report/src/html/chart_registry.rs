//! The charts of a page, gathered while its parts are made: they stand in one script element, apart from the elements in
//! which they are drawn.

use std::collections::BTreeMap;

use super::palette::Palette;

/// The charts of a page by the id of their element.
#[derive(Default)]
pub(super) struct ChartRegistry {
    charts: BTreeMap<String, String>,
    flames: usize,
    mosaics: usize,
    /// Names with colours and symbols of their own.
    pub(super) palette: Palette,
}

impl ChartRegistry {
    /// No charts yet.
    pub(super) fn new(palette: Palette) -> ChartRegistry {
        ChartRegistry { palette, ..ChartRegistry::default() }
    }

    /// Keeps a chart, which is JSON, and returns the id of its element.
    pub(super) fn put(&mut self, picture: String) -> String {
        let id = format!("chart-{}", self.charts.len());
        self.charts.insert(id.clone(), picture);
        id
    }

    /// The id of the next flame graph, whose data stand in its element.
    pub(super) fn flame(&mut self) -> String {
        self.flames += 1;
        format!("flame-{}", self.flames - 1)
    }

    /// The id of the next mosaic.
    pub(super) fn mosaic(&mut self) -> String {
        self.mosaics += 1;
        format!("mosaic-{}", self.mosaics - 1)
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
