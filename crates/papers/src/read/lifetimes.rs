//! Survival by age: `heaptoll trace lifetimes` of one recording.

use heaptoll_trace_analysis::lifetimes::Clock;
use heaptoll_trace_reports::lifetimes::Figures;

use super::cell_writer::CellWriter;
use super::reading::Reading;
use crate::definition::Step;

/// Exact cells of one program under one manager. At the ages of the command's tables shares are counted; between them
/// the curve's are.
pub fn reading(found: &Figures, step: &Step, program: &str, manager: &str) -> Reading {
    let mut reading = Reading::default();
    let mut writer = CellWriter { step: &step.id, program, manager, cells: &mut reading.cells };
    let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    writer.exact("objects", Some(found.all.objects as f64));
    writer.exact("bytes", Some(found.all.bytes as f64));
    writer.exact("never_freed", share(found.still_live.objects, found.all.objects));
    writer.exact("never_freed_bytes", share(found.still_live.bytes, found.all.bytes));
    for survival in found.survival.iter().filter(|survival| survival.clock == Clock::Bytes) {
        let exact = |age: u64| survival.younger.iter().any(|point| point.age == age);
        let mut points: Vec<(u64, f64, f64)> = survival
            .younger
            .iter()
            .map(|point| (point.age, 1.0 - point.objects, 1.0 - point.bytes))
            .collect();
        let curve = survival.curve.iter().filter(|point| !exact(point.age));
        points.extend(curve.map(|point| (point.age, point.objects, point.bytes)));
        points.sort_by_key(|point| point.0);
        for (age, objects, bytes) in points {
            writer.exact_at("surviving", age as f64, objects);
            writer.exact_at("surviving_bytes", age as f64, bytes);
        }
    }
    reading
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_exact, lifetimes, step};
    use super::*;
    use crate::definition::StepKind;

    #[test]
    fn shares_survive_what_is_not_younger() {
        let found = lifetimes();
        let cells = reading(&found, &step(StepKind::Lifetimes), "cfrac", "glibc").cells;
        let younger = found.survival[0].younger[1].objects;
        assert_exact(&cells, "glibc", "surviving", Some(10_240.0), 1.0 - younger);
        assert_exact(&cells, "glibc", "surviving", Some(1.0), 0.9438991361475846);
        assert_exact(&cells, "glibc", "objects", None, 333_043.0);
        assert_exact(&cells, "glibc", "never_freed", None, 1.0 / 333_043.0);
    }

    #[test]
    fn fewer_survive_a_longer_age_and_each_age_is_there_once() {
        let cells = reading(&lifetimes(), &step(StepKind::Lifetimes), "cfrac", "glibc").cells;
        let mut last = (0.0, 1.0);
        for cell in cells.iter().filter(|cell| cell.metric == "surviving") {
            let (Some(at), crate::figures::Value::Exact(share)) = (cell.at, &cell.value) else {
                panic!("{cell:?}")
            };
            // The curve between the counted ages is within a bin of its histogram.
            assert!(at > last.0 && *share <= last.1 + 1e-3, "{at}: {share} after {last:?}");
            last = (at, *share);
        }
        assert!(last.0 > 0.0);
    }
}
