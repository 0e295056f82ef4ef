//! How far estimates are from what a program holds, over many runs.

use heaptoll_statistics::median;

use super::held::Held;

/// Sites whose error counts hold this share of what is in use, or more.
pub const SHARE: f64 = 0.05;
/// The largest sites, of which a profile should have most.
const TOP: usize = 10;

/// What the profiles of one profiler and rate came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Accuracy {
    /// Of each large site in each run, the error over what it holds.
    errors: Vec<f64>,
    /// Of each run, the share of the largest sites that are among the profile's largest.
    found: Vec<f64>,
    /// Of each run, the sum of all sites over what it is, less 1.
    sums: Vec<f64>,
}

impl Accuracy {
    /// Adds a run.
    pub fn add(&mut self, exact: &Held, estimate: &Held) {
        let total = exact.total();
        for (site, bytes) in exact.sites.iter().filter(|(_, bytes)| **bytes >= SHARE * total) {
            let estimated = estimate.sites.get(site).copied().unwrap_or(0.0);
            self.errors.push((estimated / bytes - 1.0).abs());
        }
        let largest = exact.largest(TOP);
        let estimated = estimate.largest(TOP);
        let found = largest.iter().filter(|(site, _)| estimated.iter().any(|(other, _)| other == site));
        self.found.push(found.count() as f64 / largest.len().max(1) as f64);
        self.sums.push(estimate.total() / total - 1.0);
    }

    /// The cells of its row: median and worst error, share of the largest found, bias of the sum with its standard error.
    pub fn cells(&self) -> [String; 4] {
        let percent = |share: f64| {
            let share = 100.0 * share;
            if share < 9.95 { format!("{share:.1} %") } else { format!("{share:.0} %") }
        };
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let bias = mean(&self.sums);
        let spread = self.sums.iter().map(|sum| (sum - bias).powi(2)).sum::<f64>();
        let runs = self.sums.len() as f64;
        let bias = match self.sums.len() {
            0 | 1 => format!("{:+.1} %", 100.0 * bias),
            _ => format!("{:+.1} ± {:.1} %", 100.0 * bias, 100.0 * (spread / (runs - 1.0) / runs).sqrt()),
        };
        let worst = self.errors.iter().copied().fold(0.0, f64::max);
        [percent(median(&self.errors)), percent(worst), percent(mean(&self.found)), bias]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(sites: &[(&str, f64)]) -> Held {
        Held { sites: sites.iter().map(|(name, bytes)| (vec![(*name).to_owned()], *bytes)).collect() }
    }

    #[test]
    fn errors_are_those_of_large_sites_and_a_missing_one_is_wholly_wrong() {
        let exact = held(&[("a", 600.0), ("b", 380.0), ("small", 20.0)]);
        let mut accuracy = Accuracy::default();
        accuracy.add(&exact, &held(&[("a", 660.0), ("other", 240.0)]));
        let mut errors = accuracy.errors.clone();
        errors.sort_by(f64::total_cmp);
        assert!((errors[0] - 0.1).abs() < 1e-9 && errors[1] == 1.0 && errors.len() == 2);
        assert!((accuracy.found[0] - 1.0 / 3.0).abs() < 1e-9);
        assert_eq!(accuracy.cells(), ["55 %", "100 %", "33 %", "-10.0 %"]);
        accuracy.add(&exact, &exact);
        assert_eq!(accuracy.cells()[2..], ["67 %", "-5.0 ± 5.0 %"]);
    }
}
