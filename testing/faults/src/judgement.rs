//! What a test's output shows of a seeded fault: found by its assertion, or how it was missed.

use std::fmt;

/// How a seeded fault was missed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missed {
    /// The sources with it do not compile: it is no defect that anyone could make.
    DoesNotCompile(String),
    /// No test has a name with the filter.
    NoTest,
    /// The test passes.
    Passed,
    /// Another assertion failed first.
    OtherAssertion(String),
    /// The test saw a wrong result, or the process died, before any assertion.
    WrongResult(String),
    /// The test did not end.
    Hung,
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missed::DoesNotCompile(error) => write!(f, "does not compile: {error}"),
            Missed::NoTest => write!(f, "no test has this name"),
            Missed::Passed => write!(f, "the test passes"),
            Missed::OtherAssertion(name) => write!(f, "another assertion finds it: {name}"),
            Missed::WrongResult(result) => write!(f, "a wrong result comes first: {result}"),
            Missed::Hung => write!(f, "the test does not end"),
        }
    }
}

/// The end of `cargo test`.
#[derive(Debug, Clone, Copy)]
pub struct Output<'a> {
    pub succeeded: bool,
    /// It was ended because it took too long.
    pub timed_out: bool,
    pub stdout: &'a str,
    pub stderr: &'a str,
}

/// Judges the end of a test of sources with a fault that `assertion` must find. `is_assertion` knows the names of all
/// assertions.
///
/// # Errors
/// How the fault was missed.
pub fn judge(output: Output<'_>, assertion: &str, is_assertion: &dyn Fn(&str) -> bool) -> Result<(), Missed> {
    if output.stderr.contains("error: could not compile") {
        let error = output.stderr.lines().find(|line| line.starts_with("error"));
        return Err(Missed::DoesNotCompile(error.unwrap_or_default().to_owned()));
    }
    match first_panic(output.stderr) {
        Some(message) if message == assertion => return Ok(()),
        Some(message) if is_assertion(message) => return Err(Missed::OtherAssertion(message.to_owned())),
        Some(message) => return Err(Missed::WrongResult(message.to_owned())),
        None => {}
    }
    if output.timed_out {
        return Err(Missed::Hung);
    }
    if !output.succeeded {
        let last = output.stderr.lines().rev().find(|line| !line.trim().is_empty());
        return Err(Missed::WrongResult(last.unwrap_or("no output").trim().to_owned()));
    }
    if output.stdout.lines().any(|line| line.starts_with("running ") && !line.starts_with("running 0 ")) {
        return Err(Missed::Passed);
    }
    Err(Missed::NoTest)
}

/// What a heap's `check` prints before the invariant that does not hold.
const DAMAGE: &str = "this does not hold: ";

/// The first line of the first panic's message, less what stands before an invariant.
fn first_panic(stderr: &str) -> Option<&str> {
    let mut lines = stderr.lines();
    lines.find(|line| line.contains("thread ") && line.contains(" panicked at "))?;
    let message = lines.next()?.trim_end();
    Some(message.strip_prefix(DAMAGE).unwrap_or(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASSERTION: &str = "lists of spans end";
    const PANIC: &str = "\
thread 'spans::tests::one' (71) panicked at src/spans.rs:9:5:
lists of spans end
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
";

    fn judged(succeeded: bool, stdout: &str, stderr: &str) -> Result<(), Missed> {
        let output = Output { succeeded, timed_out: false, stdout, stderr };
        judge(output, ASSERTION, &|name| [ASSERTION, "the count is right"].contains(&name))
    }

    #[test]
    fn the_first_panic_decides() {
        let later = "thread 'other' (72) panicked at src/x.rs:1:1:\nassertion `left == right` failed\n";
        assert_eq!(judged(false, "running 1 test\n", PANIC), Ok(()));
        assert_eq!(judged(false, "running 1 test\n", &format!("{PANIC}\n{later}")), Ok(()));
        let wrong = Missed::WrongResult("assertion `left == right` failed".into());
        assert_eq!(judged(false, "running 1 test\n", &format!("{later}\n{PANIC}")), Err(wrong));
    }

    #[test]
    fn an_assertion_that_a_dying_process_prints_has_found_it() {
        assert_eq!(judged(false, "", &format!("{PANIC}error: test failed (signal: 6, SIGABRT)")), Ok(()));
    }

    #[test]
    fn an_invariant_that_a_check_names_has_found_it() {
        let checked = PANIC.replace(ASSERTION, &format!("this does not hold: {ASSERTION}"));
        assert_eq!(judged(false, "running 1 test\n", &checked), Ok(()));
    }

    #[test]
    fn another_assertion_is_not_a_wrong_result() {
        let other = PANIC.replace(ASSERTION, "the count is right");
        let missed = Missed::OtherAssertion("the count is right".into());
        assert_eq!(judged(false, "running 1 test\n", &other), Err(missed));
    }

    #[test]
    fn what_fails_without_a_panic_is_a_wrong_result() {
        let missed = Missed::WrongResult("process didn't exit successfully (signal: 11, SIGSEGV)".into());
        let stderr = "error: test failed\n  process didn't exit successfully (signal: 11, SIGSEGV)\n\n";
        assert_eq!(judged(false, "running 1 test\n", stderr), Err(missed));
    }

    #[test]
    fn a_test_that_passes_is_not_one_that_does_not_exist() {
        assert_eq!(judged(true, "running 1 test\ntest one ... ok\n", ""), Err(Missed::Passed));
        assert_eq!(judged(true, "running 0 tests\n", ""), Err(Missed::NoTest));
        assert_eq!(judged(true, "running 0 tests\nrunning 2 tests\n", ""), Err(Missed::Passed));
    }

    #[test]
    fn what_does_not_compile_is_known_by_its_first_error() {
        let stderr = "warning: x\nerror[E0425]: cannot find value\nerror: could not compile `heaptoll-x`\n";
        let missed = Missed::DoesNotCompile("error[E0425]: cannot find value".into());
        assert_eq!(judged(false, "", stderr), Err(missed));
    }

    #[test]
    fn a_test_that_hangs_without_a_panic_is_reported_as_such() {
        let output = |stderr| Output { succeeded: false, timed_out: true, stdout: "running 1 test", stderr };
        assert_eq!(judge(output(""), ASSERTION, &|_| false), Err(Missed::Hung));
        assert_eq!(judge(output(PANIC), ASSERTION, &|_| false), Ok(()));
    }
}
