//! `heaptoll lab delay`: time and memory by the size of the quarantine.

use heaptoll_facts::{Comparative, Facts, Metric, Place};

use super::figures::Delay;

/// Estimates with the command's own intervals.
impl Comparative for Delay {
    const METRICS: &'static [Metric] = &[
        Metric::time("time_ratio", "CPU time at bytes of quarantine over that at one byte").at(Place::Bytes),
        Metric::count("space_ratio", "peak resident memory at bytes of quarantine over that at one byte")
            .at(Place::Bytes),
        Metric::time("layer_time_ratio", "CPU time with a quarantine of one byte over that without one"),
    ];

    fn facts(&self) -> Facts {
        let mut facts = Facts::default();
        for curve in &self.curves {
            let mut writer = facts.of(&curve.program, &curve.manager);
            writer.ratio("layer_time_ratio", None, curve.layer.cpu);
            for point in &curve.points {
                let at = Some(point.size_bytes as f64);
                writer.ratio("time_ratio", at, point.over_no_delay.cpu);
                writer.ratio("space_ratio", at, point.over_no_delay.peak_rss);
            }
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_facts::testing::{interval, measured, number, one};

    use super::*;
    use crate::delay::{Curve, Point};
    use heaptoll_experiment::comparison::Ratios;

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
        let facts = measured(&found);
        assert_eq!(number(one(&facts, "time_ratio", Some(2_097_152.0))), 1.41);
        assert_eq!(number(one(&facts, "space_ratio", Some(2_097_152.0))), 1.2);
        assert_eq!(number(one(&facts, "layer_time_ratio", None)), 1.06);
        assert!(facts.iter().all(|fact| fact.program == "cfrac" && fact.manager == "tcmalloc"));
        assert!(facts.iter().all(|fact| fact.at != Some(1.0)), "a size has no ratio to itself");
    }
}
