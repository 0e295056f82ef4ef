//! Confidence intervals of ratios that hold for a whole table at once, intervals by Student's t, the median, the
//! geometric mean, and the trend of a series.
//!
//! A crate of its own because the intervals of one table take thousands of sign flips: only this is compiled at full
//! optimisation.

mod flips;
mod geometric_mean;
mod groups;
mod interval;
mod intervals;
mod largest;
mod median;
mod median_interval;
mod over_programs;
pub mod student;
mod trend;
mod trimmed;
mod verdict;

pub use geometric_mean::geometric_mean;
pub use interval::{Interval, State};
pub use intervals::{ALPHA, FEWEST_PAIRS, paired, unpaired};
pub use median::median;
pub use median_interval::{at_least, median_interval};
pub use over_programs::over_programs;
pub use trend::{Trend, trend};
pub use verdict::{NO_DIFFERENCE, NOT_DECIDED, TOO_FEW, claim, verdict};
