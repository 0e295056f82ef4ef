//! What heaptoll adds to every invocation, measured and not assumed: the launcher against a bare fork and exec.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::interrupt::Interrupt;
use crate::launch::{self, Invocation, LaunchError};
use heaptoll_statistics::median;

/// Rounds; the median is taken, so a few slow ones do no harm.
const ROUNDS: usize = 7;

/// Median seconds that one invocation through the launcher takes longer than fork, exec and wait of the same command,
/// and the KiB by which the launcher's peak exceeds what the program itself sees as its peak. `None` when the user
/// cancels.
///
/// # Errors
/// The launcher or `grep` cannot be run.
pub fn measure(launcher: &Path, interrupt: &Interrupt) -> Result<Option<(f64, i64)>, LaunchError> {
    // A program that reads its own high-water mark and prints it.
    let words = ["grep", "VmHWM:", "/proc/self/status"];
    let invocation = Invocation { command: words.map(Into::into).to_vec(), ..Invocation::default() };
    let mut times = Vec::new();
    let mut memory = Vec::new();
    for _ in 0..ROUNDS {
        if interrupt.is_set() {
            return Ok(None);
        }
        let begun = Instant::now();
        Command::new(words[0]).args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::piped()).output()?;
        let bare = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        let finished = launch::run(launcher, &invocation, interrupt)?;
        times.push(begun.elapsed().as_secs_f64() - bare);
        let output = String::from_utf8_lossy(&finished.output_head).into_owned();
        if let Some(own) = output.split_ascii_whitespace().nth(1).and_then(|word| word.parse::<f64>().ok()) {
            memory.push(finished.usage.peak_rss_kib as f64 - own);
        }
    }
    // A round that was cut short is no measurement.
    Ok((!interrupt.is_set()).then(|| (median(&times), median(&memory) as i64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_called_off_is_not_measured() {
        let interrupt = Interrupt::default();
        interrupt.set();
        assert!(matches!(measure(Path::new("/nonexistent/launch"), &interrupt), Ok(None)));
    }
}
