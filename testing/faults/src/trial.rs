//! A trial of one fault: it is seeded, its test is run, the output is judged, the source is as before.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::Error;
use crate::judgement::{self, Missed, Output};
use crate::list::{Fault, Workspace};
use crate::sources::Sources;

/// How long building and running one test may take, s. A fault may make a test run for ever.
const PATIENCE_S: u32 = 600;
/// The exit status of timeout(1) when the time is over.
const TIMED_OUT: i32 = 124;
/// Variables that would build the copy in another way than the tests.
const REMOVED: [&str; 5] =
    ["RUSTC_WORKSPACE_WRAPPER", "CLIPPY_ARGS", "RUSTFLAGS", "CARGO_TARGET_DIR", "RUST_BACKTRACE"];

/// The result of one trial.
#[derive(Debug)]
pub struct Trial {
    pub outcome: Result<(), Missed>,
    pub time: Duration,
    /// What the test wrote to standard error.
    pub stderr: String,
}

/// Tries a fault.
///
/// # Errors
/// The copy cannot be written, or cargo not run. A fault that is missed is no error.
pub fn run(sources: &Sources, fault: &Fault) -> Result<Trial, Error> {
    let started = Instant::now();
    let text = sources.read(&fault.file)?;
    let Ok(changed) = fault.apply(&text) else {
        let outcome = Err(Missed::DoesNotCompile("the text to replace does not occur once".to_owned()));
        return Ok(Trial { outcome, time: started.elapsed(), stderr: String::new() });
    };
    sources.write(&fault.file, &changed)?;
    let mut output = command(sources, fault).output();
    // The compiler's incremental state does not always survive sources that change and change back.
    if output.as_ref().is_ok_and(|output| is_compilers_own_error(&output.stderr)) {
        output = command(sources, fault).output();
    }
    sources.write(&fault.file, &text)?;
    let output = output.map_err(|source| Error::Run { program: "timeout", source })?;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let judged = Output {
        succeeded: output.status.success(),
        timed_out: output.status.code() == Some(TIMED_OUT),
        stdout: &String::from_utf8_lossy(&output.stdout),
        stderr: &stderr,
    };
    let outcome = judgement::judge(judged, &fault.assertion, &|name| is_assertion(sources, fault, name));
    Ok(Trial { outcome, time: started.elapsed(), stderr })
}

fn is_compilers_own_error(stderr: &[u8]) -> bool {
    String::from_utf8_lossy(stderr).contains("internal compiler error")
}

/// `cargo test` of the fault's test, with a time limit.
fn command(sources: &Sources, fault: &Fault) -> Command {
    let mut command = Command::new("timeout");
    command.arg("--kill-after=10").arg(PATIENCE_S.to_string());
    command.args(["cargo", "test", "--locked", "--offline", "--manifest-path"]);
    command.arg(sources.path(Path::new(fault.workspace.manifest())));
    command.arg("--target-dir").arg(sources.target().join(fault.workspace.name()));
    command.args(["-p", &fault.package]);
    for feature in &fault.features {
        command.args(["--features", feature]);
    }
    match &fault.binary {
        Some(binary) => command.args(["--test", binary]),
        None => command.arg("--lib"),
    };
    command.args(["--", "--nocapture", "--test-threads=1", &fault.test]);
    REMOVED.iter().for_each(|variable| {
        command.env_remove(variable);
    });
    // Random inputs are the same each time, and those that fail are not written to a file.
    command.env("PROPTEST_RNG_SEED", "1").env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true");
    // The first input that fails is enough.
    command.env("PROPTEST_MAX_SHRINK_ITERS", "0");
    command.current_dir(sources.path(Path::new(match fault.workspace {
        Workspace::Root => "",
        Workspace::Preload => "preload",
        Workspace::Moving => "moving",
    })));
    command
}

/// Whether a message is the name of an assertion: a text in the file with the fault, or in another of its folder.
fn is_assertion(sources: &Sources, fault: &Fault, message: &str) -> bool {
    let quoted = format!("\"{message}\"");
    let Some(folder) = fault.file.parent() else { return false };
    let Ok(entries) = std::fs::read_dir(sources.path(folder)) else { return false };
    entries
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok())
        .any(|text| text.contains(&quoted))
}
