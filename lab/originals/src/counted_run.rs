//! A run of a program under the counting layer.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use heaptoll_stats_page::{StatsPage, WriterKind};

use crate::Refusal;

/// The longest a run may take. Those of the recipes take four seconds of a processor at most, which others may share.
const LIMIT: Duration = Duration::from_secs(300);
/// Writers that a page has slots for.
const SLOTS: u32 = 64;

/// What a program did in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Calls of malloc and calloc.
    pub objects: u64,
    /// Calls of realloc that resize a block.
    pub resizes: u64,
    /// Bytes that all these requested.
    pub bytes: u64,
}

/// Runs a program to its end. Gives its output and what it called.
///
/// # Errors
/// It cannot be run, fails, or is not counted.
pub(crate) fn run(
    binary: &Path,
    arguments: &[String],
    environment: &BTreeMap<String, String>,
    stdin: Option<&Path>,
    layer: &Path,
    scratch: &Path,
) -> Result<(Vec<u8>, Counts), Refusal> {
    let page = scratch.join("counts");
    let output = scratch.join("output");
    let _ = fs::remove_file(&page);
    let failed = |problem: String| Refusal::Run { problem };
    let page =
        StatsPage::create(&page, SLOTS).map_err(|error| failed(format!("cannot be counted: {error}")))?;
    let file = File::create(&output).map_err(Refusal::system(format!("write {}", output.display())))?;
    let input = match stdin {
        None => Stdio::null(),
        Some(path) => File::open(path).map_err(Refusal::system(format!("read {}", path.display())))?.into(),
    };
    let mut command = Command::new(binary);
    command.args(arguments).current_dir(scratch).stdin(input).stdout(file).stderr(Stdio::null());
    command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C").envs(environment);
    command.env("LD_PRELOAD", layer).env("HEAPTOLL_STATS", page.path());
    let status = within(&mut command, LIMIT).map_err(Refusal::system(format!("run {}", binary.display())))?;
    match status {
        None => return Err(failed(format!("takes longer than {} s", LIMIT.as_secs()))),
        Some(status) if !status.success() => return Err(failed(format!("ends with {status}"))),
        Some(_) => {}
    }
    let slots = page.read().map_err(|error| failed(format!("cannot be counted: {error}")))?;
    let mut counts = Counts { objects: 0, resizes: 0, bytes: 0 };
    for slot in slots.iter().filter(|slot| slot.kind == WriterKind::Layer) {
        counts.objects += slot.malloc_calls;
        counts.resizes += slot.realloc_calls;
        counts.bytes += slot.requested_bytes;
    }
    let printed = fs::read(&output).map_err(Refusal::system(format!("read {}", output.display())))?;
    Ok((printed, counts))
}

/// Waits for a command to end, and kills it when it takes longer than `limit`: `None`.
fn within(command: &mut Command, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let mut child = command.spawn()?;
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begin.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
