//! `heaptoll lab delay`: time and memory by the size of the quarantine.

use heaptoll_experiments::delay::Delay;

use super::cell_writer::CellWriter;
use super::reading::Reading;
use crate::definition::Step;

/// Estimates with the command's own intervals.
pub fn reading(found: &Delay, step: &Step) -> Reading {
    let mut reading = Reading::default();
    for curve in &found.curves {
        let mut writer = CellWriter {
            step: &step.id,
            program: &curve.program,
            manager: &curve.manager,
            cells: &mut reading.cells,
        };
        writer.ratio("layer_time_ratio", None, curve.layer.cpu);
        for point in &curve.points {
            let at = Some(point.size_bytes as f64);
            writer.ratio("time_ratio", at, point.over_no_delay.cpu);
            writer.ratio("space_ratio", at, point.over_no_delay.peak_rss);
        }
    }
    reading
}

#[cfg(test)]
mod tests {
    use heaptoll_experiments::delay::{Curve, Point, Ratios};

    use super::super::testing::{interval, number, one, step};
    use super::*;
    use crate::definition::StepKind;

    #[test]
    fn delays_are_read_by_size_and_the_layer_apart() {
        let ratios =
            |cpu: f64| Ratios { cpu: Some(interval(cpu, 8)), wall: None, peak_rss: Some(interval(1.2, 8)) };
        let point = |size_bytes: u64, over_no_delay: Ratios| Point {
            size_bytes,
            good: 8,
            medians: None,
            over_no_delay,
        };
        let curve = Curve {
            program: "cfrac".into(),
            manager: "tcmalloc".into(),
            plain: None,
            layer: ratios(1.06),
            points: vec![point(1, Ratios::default()), point(2_097_152, ratios(1.41))],
        };
        let found = Delay { sizes_bytes: vec![], managers: vec![], curves: vec![curve], means: vec![] };
        let cells = reading(&found, &step(StepKind::Delay)).cells;
        assert_eq!(number(one(&cells, "time_ratio", Some(2_097_152.0))), 1.41);
        assert_eq!(number(one(&cells, "space_ratio", Some(2_097_152.0))), 1.2);
        assert_eq!(number(one(&cells, "layer_time_ratio", None)), 1.06);
        assert!(cells.iter().all(|cell| cell.program == "cfrac" && cell.manager == "tcmalloc"));
        assert!(cells.iter().all(|cell| cell.at != Some(1.0)), "a size has no ratio to itself");
    }
}
