//! `heaptoll lab reclamation`: time and memory by when objects are freed.

use heaptoll_facts::{Comparative, FactWriter, Facts, Metric, Place, Value};
use heaptoll_oracle::{FreePoint, Live};

use super::figures::{Alive, Curve, Reclamation, Row};

/// When objects are freed; `delay` and `collect` at bytes.
const POINTS: [&str; 5] = ["last_use", "unreachable", "delay", "collect", "never"];

/// Estimates with the command's own intervals; requested bytes alive are exact; faults are of medians, without an interval.
/// Everything is over the program's own free.
impl Comparative for Reclamation {
    const METRICS: &'static [Metric] = &[
        Metric::time("layer_time_ratio", "CPU time of the oracle's own free over the manager alone"),
        Metric::time("_time_ratio", "CPU time over the program's own free; `delay` and `collect` at bytes")
            .of(&POINTS)
            .at(Place::Bytes),
        Metric::count("_space_ratio", "the same of peak resident memory").of(&POINTS).at(Place::Bytes),
        Metric::count("_faults_ratio", "the same of page faults, of medians").of(&POINTS).at(Place::Bytes),
        Metric::count("_live_peak_ratio", "the same of most requested bytes alive")
            .of(&POINTS)
            .at(Place::Bytes),
        Metric::count("_live_ratio", "the same of requested bytes alive on average")
            .of(&POINTS)
            .at(Place::Bytes),
    ];

    fn facts(&self) -> Facts {
        let mut facts = Facts::default();
        for curve in &self.curves {
            let mut writer = facts.of(&curve.program, &curve.manager);
            writer.ratio("layer_time_ratio", None, curve.layer.cpu);
            let live = |point| live(self, &curve.program, point);
            for row in &curve.rows {
                put(&mut writer, row, faults(curve), [live(row.point), live(FreePoint::Free)]);
            }
        }
        facts
    }
}

/// The figures of one point; `faults` and the second `live` are of the program's own free.
fn put(writer: &mut FactWriter<'_>, row: &Row, faults: Option<f64>, live: [Option<Live>; 2]) {
    let Some((name, at)) = place(row.point) else { return };
    let metric = |what: &str| format!("{name}_{what}_ratio");
    writer.ratio(&metric("time"), at, row.over_free.cpu);
    writer.ratio(&metric("space"), at, row.over_free.peak_rss);
    let own = row.medians.map(|medians| medians.minor_faults);
    if let (Some(own), Some(faults)) = (own, faults.filter(|faults| *faults > 0.0)) {
        writer.put(&metric("faults"), at, Value::Single(own / faults));
    }
    if let [Some(live), Some(free)] = live {
        let mut exact =
            |what: &str, bytes: u64, of: u64| writer.exact(&metric(what), at, bytes as f64 / of as f64);
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
    let of = |alive: &&Alive| alive.program == program && alive.point == point;
    found.alive.iter().find(of).map(|alive| alive.live)
}

#[cfg(test)]
mod tests {
    use heaptoll_facts::testing::{assert_exact, interval, measured, number, one};

    use super::*;
    use crate::reclamation::Medians;
    use heaptoll_experiment::comparison::Ratios;

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
        let facts = measured(&study());
        let mebibyte = Some(f64::from(1 << 20));
        assert_eq!(number(one(&facts, "last_use_time_ratio", None)), 1.05);
        assert_eq!(number(one(&facts, "last_use_space_ratio", None)), 0.9);
        assert_eq!(number(one(&facts, "last_use_faults_ratio", None)), 0.5);
        assert_exact(&facts, "mimalloc3", "last_use_live_ratio", None, 0.75);
        assert_eq!(number(one(&facts, "unreachable_time_ratio", None)), 1.07);
        assert_eq!(number(one(&facts, "delay_time_ratio", mebibyte)), 1.3);
        assert_eq!(number(one(&facts, "collect_time_ratio", mebibyte)), 1.2);
        assert_eq!(number(one(&facts, "never_faults_ratio", None)), 9.0);
        assert_eq!(number(one(&facts, "layer_time_ratio", None)), 1.02);
    }
}
