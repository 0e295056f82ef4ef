//! Messages about a sampled run.

use std::path::{Path, PathBuf};

use heaptoll_preflight::killed_by;
use heaptoll_record::Progress;
use heaptoll_record::sampling::SampledOutcome;
use heaptoll_report::format::{plural, printable, seconds, shell_path};
use heaptoll_units::{number, size_text};

use crate::record::system_calls::{SAMPLER, forbidden};
use heaptoll_command::context::Messages;

/// The status of such a program.
const KILLED_BY_SIGSYS: u8 = 128 + 31;

/// Passes on the messages of a run under way.
pub struct ProgramMessages<'a> {
    /// Where they go.
    pub messages: &'a dyn Messages,
}

impl Progress for ProgramMessages<'_> {
    fn waits_for(&mut self, pids: &[i32]) {
        let names: Vec<String> = pids.iter().take(8).map(i32::to_string).collect();
        self.messages.note(&format!(
            "the program has ended, but process {}, which it started, has not; Ctrl-C ends the run without it",
            names.join(", ")
        ));
    }
}

/// What was sampled, and which command shows it.
pub fn summary(
    outcome: &SampledOutcome,
    written: &[PathBuf],
    output: &Path,
    mean_bytes: u64,
    messages: &dyn Messages,
) {
    if outcome.status == Some(KILLED_BY_SIGSYS) {
        messages.warning(&forbidden("layer", &[SAMPLER]));
    }
    outcome.warnings.iter().for_each(|warning| messages.warning(warning));
    // As a shell states it: a program may end with such a status by itself.
    if let Some(status @ 129..160) = outcome.status {
        let death = killed_by(i32::from(status) - 128);
        messages.warning(&format!("exit status {status}: the program may have been {death}"));
    }
    if outcome.images == 0 {
        messages.error(match outcome.without_file {
            0 => "the layer was not loaded: the program has its own allocator inside, or dropped LD_PRELOAD",
            _ => "no profile is written: the layer was loaded, but could not sample",
        });
        return;
    }
    let Some(first) = written.iter().find(|path| *path == output) else {
        if outcome.processes.is_empty() {
            messages.note(&format!(
                "there is no sample and no profile: less than a few times {} were allocated while sampling was on",
                size_text(mean_bytes)
            ));
        }
        return;
    };
    let samples: u64 = outcome.processes.iter().map(|process| process.total().allocated.samples).sum();
    messages.note(&format!(
        "{}: {} samples in {} s",
        printable(&first.display().to_string()),
        number(samples),
        seconds(outcome.wall.as_secs_f64())
    ));
    if written.len() > 1 {
        messages.note(&format!(
            "and {} of processes that it started or became, in {}; the first belongs to the process that allocated \
             most",
            plural(written.len() - 1, "profile"),
            heaptoll_record::folder_of_others(output).display()
        ));
    }
    messages.note(&format!("as a graph: go tool pprof -http : {}", shell_path(first)));
}
