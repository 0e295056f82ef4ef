//! `heaptoll lab reclamation`: time and memory by when objects are freed.

use heaptoll_experiments::reclamation::{Curve, Reclamation, Row};
use heaptoll_oracle::{FreePoint, Live};

use super::cell_writer::CellWriter;
use super::reading::Reading;
use crate::definition::Step;
use crate::figures::Value;

/// Estimates with the command's own intervals; requested bytes alive are exact; faults are of medians, without an interval.
/// Everything is over the program's own free.
pub fn reading(found: &Reclamation, step: &Step) -> Reading {
    let mut reading = Reading::default();
    for curve in &found.curves {
        let mut writer = CellWriter {
            step: &step.id,
            program: &curve.program,
            manager: &curve.manager,
            cells: &mut reading.cells,
        };
        writer.ratio("layer_time_ratio", None, curve.layer.cpu);
        let live = |point| live(found, &curve.program, point);
        for row in &curve.rows {
            put(&mut writer, row, faults(curve), [live(row.point), live(FreePoint::Free)]);
        }
    }
    reading
}

/// The figures of one point; `faults` and the second `live` are of the program's own free.
fn put(writer: &mut CellWriter<'_>, row: &Row, faults: Option<f64>, live: [Option<Live>; 2]) {
    let Some((name, at)) = place(row.point) else { return };
    let metric = |what: &str| format!("{name}_{what}_ratio");
    writer.ratio(&metric("time"), at, row.over_free.cpu);
    writer.ratio(&metric("space"), at, row.over_free.peak_rss);
    let own = row.medians.map(|medians| medians.minor_faults);
    if let (Some(own), Some(faults)) = (own, faults.filter(|faults| *faults > 0.0)) {
        writer.put(&metric("faults"), at, Value::Single(own / faults));
    }
    if let [Some(live), Some(free)] = live {
        let mut exact = |what: &str, bytes: u64, of: u64| {
            if of > 0 {
                writer.put(&metric(what), at, Value::Exact(bytes as f64 / of as f64));
            }
        };
        exact("live_peak", live.peak_bytes, free.peak_bytes);
        exact("live", live.mean_bytes, free.mean_bytes);
    }
}

/// What the metrics of a point begin with, and its place; `None` for the program's own free.
fn place(point: FreePoint) -> Option<(&'static str, Option<f64>)> {
    match point {
        FreePoint::Free => None,
        FreePoint::LastUse => Some(("last_use", None)),
        FreePoint::Unreachable => Some(("unreachable", None)),
        FreePoint::Delay(bytes) => Some(("delay", Some(bytes as f64))),
        FreePoint::Collect(bytes) => Some(("collect", Some(bytes as f64))),
        FreePoint::Never => Some(("never", None)),
    }
}

/// Page faults with the program's own free.
fn faults(curve: &Curve) -> Option<f64> {
    let free = curve.rows.iter().find(|row| row.point == FreePoint::Free)?;
    Some(free.medians?.minor_faults)
}

fn live(found: &Reclamation, program: &str, point: FreePoint) -> Option<Live> {
    let of =
        |alive: &&heaptoll_experiments::reclamation::Alive| alive.program == program && alive.point == point;
    found.alive.iter().find(of).map(|alive| alive.live)
}

#[cfg(test)]
mod tests {
    use heaptoll_experiments::reclamation::{Alive, Medians, Ratios};

    use super::super::testing::{assert_exact, interval, number, one, step};
    use super::*;
    use crate::definition::StepKind;
    use crate::figures::is_metric;

    fn row(point: FreePoint, cpu: Option<f64>, minor_faults: f64) -> Row {
        let over_free =
            Ratios { cpu: cpu.map(|cpu| interval(cpu, 8)), wall: None, peak_rss: Some(interval(0.9, 8)) };
        let medians = Some(Medians { minor_faults, ..Medians::default() });
        Row { point, good: 8, medians, over_free }
    }

    fn study() -> Reclamation {
        let curve = Curve {
            program: "cfrac".into(),
            manager: "mimalloc3".into(),
            plain: None,
            layer: Ratios { cpu: Some(interval(1.02, 8)), wall: None, peak_rss: None },
            rows: vec![
                row(FreePoint::LastUse, Some(1.05), 50.0),
                row(FreePoint::Unreachable, Some(1.07), 60.0),
                row(FreePoint::Free, None, 100.0),
                row(FreePoint::Delay(1 << 20), Some(1.3), 200.0),
                row(FreePoint::Collect(1 << 20), Some(1.2), 150.0),
                row(FreePoint::Never, Some(1.5), 900.0),
            ],
        };
        let alive = |point, mean_bytes| Alive {
            program: "cfrac".into(),
            point,
            live: Live { peak_bytes: 2 * mean_bytes, mean_bytes },
        };
        Reclamation {
            points: vec![],
            managers: vec![],
            curves: vec![curve],
            means: vec![],
            alive: vec![alive(FreePoint::LastUse, 75), alive(FreePoint::Free, 100)],
        }
    }

    #[test]
    fn points_are_read_over_the_programs_own_free() {
        let cells = reading(&study(), &step(StepKind::Reclamation)).cells;
        let mebibyte = Some(f64::from(1 << 20));
        assert_eq!(number(one(&cells, "last_use_time_ratio", None)), 1.05);
        assert_eq!(number(one(&cells, "last_use_space_ratio", None)), 0.9);
        assert_eq!(number(one(&cells, "last_use_faults_ratio", None)), 0.5);
        assert_exact(&cells, "mimalloc3", "last_use_live_ratio", None, 0.75);
        assert_eq!(number(one(&cells, "unreachable_time_ratio", None)), 1.07);
        assert_eq!(number(one(&cells, "delay_time_ratio", mebibyte)), 1.3);
        assert_eq!(number(one(&cells, "collect_time_ratio", mebibyte)), 1.2);
        assert_eq!(number(one(&cells, "never_faults_ratio", None)), 9.0);
        assert_eq!(number(one(&cells, "layer_time_ratio", None)), 1.02);
    }

    #[test]
    fn every_cell_is_of_a_metric_that_studies_can_name() {
        let cells = reading(&study(), &step(StepKind::Reclamation)).cells;
        assert!(cells.iter().all(|cell| is_metric(StepKind::Reclamation, &cell.metric)), "{cells:#?}");
    }
}
