//! A bar on standard error that shows how many steps are done, what runs now, and figures above it, if any; hidden where that is no terminal.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar of this many steps.
pub fn of_steps(steps: u64) -> ProgressBar {
    let bar = ProgressBar::new(steps);
    if let Ok(style) = ProgressStyle::with_template("{prefix}{bar:30} {pos}/{len}  {msg}") {
        bar.set_style(style);
    }
    bar
}
