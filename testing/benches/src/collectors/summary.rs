//! A manager over the baseline: on one program, and as a mean over a group of them.

use heaptoll_experiment::comparison::Metric;
use heaptoll_statistics::{Interval, geometric_mean};

use super::measured::Measured;

/// A few MiB decide nothing on a program of 3 MiB: so much more than glibc costs nothing, KiB.
const FREE_KIB: f64 = 4096.0;

/// Memory over the baseline's, the first 4 MiB of difference not counted: 1 + max(0, ours - base - 4 MiB) / base.
fn excess(ours_kib: f64, base_kib: f64) -> f64 {
    1.0 + (ours_kib - base_kib - FREE_KIB).max(0.0) / base_kib
}

/// A manager's figures over those of the baseline, on one program.
#[derive(Default)]
pub struct Over {
    pub cpu: Option<Interval>,
    pub excess: Option<f64>,
    pub peak: Option<f64>,
    pub mean: Option<f64>,
}

/// A manager on a program.
pub fn over(measured: &Measured, program: &str, manager: &str) -> Over {
    let Some(row) = measured.row(program, manager) else { return Over::default() };
    let ratio = |metric| row.figures.get(&metric).and_then(|figure| figure.ratio);
    let kib = |manager: &str| measured.median(program, manager, Metric::PeakRss);
    // The watched run of a manager that fails may have ended early.
    let mean = |manager: &str| measured.mean_kib(program, manager).filter(|_| row.marks.is_empty());
    Over {
        cpu: ratio(Metric::Cpu),
        excess: kib(manager).zip(kib(&measured.experiment.baseline)).map(|(ours, base)| excess(ours, base)),
        peak: measured.over(manager, kib),
        mean: measured.over(manager, mean),
    }
}

/// A manager over the programs of a group.
pub struct Summary {
    pub manager: String,
    pub programs: u32,
    pub cpu: Option<Interval>,
    pub excess: Option<f64>,
    pub peak: Option<Interval>,
    pub mean: Option<f64>,
    /// The most expensive in CPU, and in excess memory.
    pub worst_cpu: Option<(String, f64)>,
    pub worst_excess: Option<(String, f64)>,
}

impl Summary {
    /// All of them, in the order in which they were requested.
    pub fn of_all(group: &Measured) -> Vec<Summary> {
        group.managers().into_iter().filter_map(|manager| Summary::of(group, manager)).collect()
    }

    fn of(group: &Measured, manager: &str) -> Option<Summary> {
        let overall = group.comparison.overall.iter().find(|row| row.stack == manager)?;
        let all: Vec<(&str, Over)> =
            group.programs().map(|program| (program, over(group, program, manager))).collect();
        let mean = |figure: fn(&Over) -> Option<f64>| {
            geometric_mean(all.iter().filter_map(|(_, over)| figure(over)))
        };
        let worst = |figure: fn(&Over) -> Option<f64>| {
            let found = all.iter().filter_map(|(name, over)| Some((name.to_string(), figure(over)?)));
            found.max_by(|a, b| a.1.total_cmp(&b.1))
        };
        Some(Summary {
            manager: manager.into(),
            programs: overall.programs,
            cpu: overall.cpu,
            excess: mean(|over| over.excess),
            peak: overall.peak_rss,
            mean: mean(|over| over.mean),
            worst_cpu: worst(|over| over.cpu.map(|cpu| cpu.ratio)),
            worst_excess: worst(|over| over.excess),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_four_mebibytes_are_free() {
        assert_eq!(excess(3000.0 + 4096.0, 3000.0), 1.0);
        assert_eq!(excess(1000.0, 3000.0), 1.0);
        assert_eq!(excess(3000.0 + 4096.0 + 1500.0, 3000.0), 1.5);
    }
}
