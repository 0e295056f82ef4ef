//! Wall time of recorded programs over plain ones, run by run in random order. heaptoll's own start and end are in it.

use heaptoll_catalog::Size;
use heaptoll_statistics::paired;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::commands::{plain, recorded};
use crate::installation::{Installation, scratch};
use crate::table::print_figure;
use crate::{Error, child};

/// Program, options, and the target ratio.
const CASES: [(&str, &[&str], f64); 4] =
    [("cfrac", &[], 1.6), ("cfrac", &["--sites"], 3.0), ("gawk", &[], 1.15), ("perl", &[], 1.15)];

/// Measures all cases.
///
/// # Errors
/// A program is missing or ends badly.
pub fn run(n: usize, seed: u64) -> Result<(), Error> {
    let installation = Installation::find()?;
    let folder = scratch()?;
    let trace = folder.path().join("trace");
    let programs: Vec<_> =
        CASES.iter().map(|(name, ..)| installation.program(name, Size::Full)).collect::<Result<_, _>>()?;
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let mut logs: Vec<Vec<Option<f64>>> = vec![Vec::new(); CASES.len()];
    // The first round warms files and is not counted.
    for round in 0..=n {
        let mut order: Vec<(usize, bool)> =
            (0..CASES.len()).flat_map(|case| [(case, false), (case, true)]).collect();
        order.shuffle(&mut dice);
        let mut seconds = vec![[0.0; 2]; CASES.len()];
        for (case, is_recorded) in order {
            let mut command = match is_recorded {
                true => recorded(&programs[case], &trace, CASES[case].1)?,
                false => plain(&programs[case])?,
            };
            seconds[case][usize::from(is_recorded)] = child::run(&mut command)?.wall_s;
        }
        for (case, [plain, recorded]) in seconds.into_iter().enumerate().filter(|_| round > 0) {
            logs[case].push(Some((recorded / plain).ln()));
        }
    }
    for (case, interval) in paired(&logs, 0.05, seed).into_iter().enumerate() {
        let (name, options, target) = CASES[case];
        let what = format!("wall time of record {} {name}, over plain", options.join(" ")).replace("  ", " ");
        let interval = interval.ok_or_else(|| Error::Unexpected("-n is too small: give 2 or more".into()))?;
        let figure = format!("{:.2} ({:.2}-{:.2})", interval.ratio, interval.low, interval.high);
        print_figure(&what, figure, &format!("<= {target}"), interval.ratio <= target);
    }
    Ok(())
}
