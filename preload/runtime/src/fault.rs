//! The tests' faults: memory that the system is made to refuse.

use crate::Message;

/// The N of "every Nth request for memory fails", as `HEAPTOLL_FAIL_EVERY` sets it; 0: none. Ends the process where the
/// variable is no number. Called at start, when no thread changes the environment.
pub fn fail_every() -> u64 {
    let Some(variable) = heaptoll_process::environment::variable(c"HEAPTOLL_FAIL_EVERY") else { return 0 };
    match variable.to_str().ok().and_then(|text| text.parse().ok()) {
        Some(every) => every,
        None => Message::new()
            .text("HEAPTOLL_FAIL_EVERY is not a number: every Nth request for memory fails (0: none)")
            .abort(),
    }
}
