//! Native runs that follow a recording: they show that it is the program's sequence, and that early frees are safe.

use std::path::{Path, PathBuf};
use std::time::Duration;

use heaptoll_experiment::experiment::ProgramInfo;
use heaptoll_experiment::launch::{self, Invocation};
use heaptoll_experiment::runner::{environment_of, page_in};
use heaptoll_launcher::Ended;
use heaptoll_oracle::OracleFile;
use heaptoll_scratch::Scratch;

use super::figures::{Proof, Sequence};
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_runs::preparation::pairing::Machine;

/// The layer's variable.
pub const VARIABLE: &str = "HEAPTOLL_ORACLE";
/// The layer's name on the statistics page.
pub const LAYER: &str = "oracle";
/// Native runs that must follow the sequence, at fixed addresses.
const RUNS: u32 = 2;
/// Bytes of memory that a block takes in a run with pages of its own.
const PAGE: u64 = 4096;

/// How early frees are checked of a program with so many objects at once: by pages, where they fit into half of the memory
/// that is available.
pub fn check_of(most_objects: u64, allocated_bytes: u64, available_bytes: u64) -> Option<&'static str> {
    if most_objects.saturating_mul(PAGE).saturating_add(allocated_bytes / 8) <= available_bytes / 2 {
        Some("pages")
    } else if allocated_bytes <= available_bytes / 2 {
        Some("poison")
    } else {
        None
    }
}

/// What a native run showed.
#[derive(Debug, Clone, PartialEq)]
pub struct NativeRun {
    /// How it ended.
    pub ended: Ended,
    /// SHA-256 of its output.
    pub digest: String,
    /// Allocations that were as recorded.
    pub followed: u64,
    /// The end of its standard error.
    pub error_tail: String,
}

impl NativeRun {
    /// How it differs from the recorded run, if it does.
    pub fn difference(&self, recorded: &OracleFile) -> Option<String> {
        if let Some(line) =
            self.error_tail.lines().find(|line| line.starts_with("heaptoll: the oracle stops: "))
        {
            return Some(line["heaptoll: the oracle stops: ".len()..].to_owned());
        }
        if self.ended != Ended::Exit(recorded.about.status) {
            return Some(format!(
                "it ended by {:?}, and the recorded run with status {}",
                self.ended, recorded.about.status
            ));
        }
        if self.followed != recorded.allocations {
            return Some(format!(
                "it made {} allocations of the {} that were recorded",
                self.followed, recorded.allocations
            ));
        }
        (self.digest != recorded.about.output_sha256)
            .then(|| "its output differs from the recorded run's".into())
    }
}

/// Runs a program natively by its recording.
pub struct Native<'a> {
    /// The program.
    pub program: &'a ProgramInfo,
    /// The recording's file.
    pub file: &'a Path,
    /// What is in it.
    pub recorded: &'a OracleFile,
    /// Time limit of a run.
    pub timeout: Duration,
    /// Places, Ctrl-C, messages.
    pub context: &'a Context<'a>,
}

impl Native<'_> {
    /// Whether native runs make the recorded allocations.
    ///
    /// # Errors
    /// A run cannot be made, or Ctrl-C.
    pub fn sequence(&self) -> Result<Sequence, Failure> {
        let mut differences = Vec::new();
        for _ in 0..RUNS {
            differences.push(self.run("free", "off", true)?.difference(self.recorded));
        }
        let (Some(first), true) =
            (differences[0].clone(), differences.iter().all(|one| *one == differences[0]))
        else {
            let differs = differences.into_iter().flatten().next();
            let why = "runs differ among themselves, for instance by time, process number or random numbers";
            return Ok(Sequence { runs: RUNS, differs: differs.map(|first| format!("{first}; {why}")) });
        };
        // Both differ alike at the same addresses. Do addresses decide?
        let elsewhere = self.run("free", "off", false)?.difference(self.recorded);
        let why = if elsewhere.as_ref() == Some(&first) {
            "every native run differs there from the traced run: perhaps in what the program reads from the \
             system, its files, or the processor's features"
        } else {
            "at other addresses it differs elsewhere: the program allocates by the order of addresses, or by \
             hashes of them"
        };
        Ok(Sequence { runs: RUNS + 1, differs: Some(format!("{first}; {why}")) })
    }

    /// Whether no object is touched after its last recorded use. Points of unreachability are followed, too.
    ///
    /// # Errors
    /// A run cannot be made, or Ctrl-C.
    pub fn proof(&self) -> Result<Proof, Failure> {
        let proof = self.proof_at("last-use", self.recorded.about.most_objects)?;
        if self.recorded.about.unreachable.is_none() || proof.fails.is_some() {
            return Ok(proof);
        }
        let later = self.proof_at("unreachable", self.recorded.most_reachable())?;
        let fails = later.fails.map(|why| format!("freed when they cannot be reached any more: {why}"));
        Ok(Proof { fails, ..proof })
    }

    /// Runs the program with its objects, so many at once at the most, freed at a point.
    fn proof_at(&self, point: &str, most_objects: u64) -> Result<Proof, Failure> {
        let available = Machine::now().available_bytes;
        let Some(how) = check_of(most_objects, self.recorded.about.allocated_bytes, available) else {
            let why = "not enough memory to use each block only once; give the program less to do".to_owned();
            return Ok(Proof { how: "none".into(), fails: Some(why) });
        };
        let run = self.run(point, how, true)?;
        if run.difference(self.recorded).is_none() {
            // No memory was used twice. A program may compare addresses of objects that it does not touch any more: that
            // shows only where they are reused.
            let reused = self.run(point, "off", true)?.difference(self.recorded);
            let fails = reused.map(|why| format!("with memory reused after that point: {why}"));
            return Ok(Proof { how: how.into(), fails });
        }
        let by_addresses = |difference: String| match difference.starts_with("allocation ") {
            // Freed as the program frees, over the C library's malloc, it made the recorded allocations.
            true => format!(
                "{difference}; with blocks elsewhere it makes other allocations, so it depends on their \
                 addresses"
            ),
            false => difference,
        };
        Ok(Proof { how: how.into(), fails: run.difference(self.recorded).map(by_addresses) })
    }

    /// One run: objects are freed at `point` and checked by `check`.
    fn run(&self, point: &str, check: &str, fixed_addresses: bool) -> Result<NativeRun, Failure> {
        if self.context.interrupt.is_set() {
            return Err(Failure::Interrupted);
        }
        let scratch = heaptoll_runs::traced::scratch_folder()?;
        let (page, variable) = page_in(&scratch).map_err(Failure::Run)?;
        let shown = self.context.messages.progress(None);
        shown.set_text(&format!("{}: a native run with point={point}, check={check}", self.program.name));
        let finished = launch::run(
            &self.context.places.launcher(),
            &Invocation { fixed_addresses, ..self.invocation(&scratch, point, check, variable) },
            self.context.interrupt,
        )
        .map_err(|error| Failure::Run(error.into()))?;
        if self.context.interrupt.is_set() {
            return Err(Failure::Interrupted);
        }
        let slots = page.read().unwrap_or_default();
        let followed = slots.iter().filter(|slot| slot.writer == LAYER).map(|slot| slot.malloc_calls).max();
        Ok(NativeRun {
            ended: finished.ended,
            digest: finished.digest,
            followed: followed.unwrap_or(0),
            error_tail: finished.error_tail,
        })
    }

    fn invocation(
        &self,
        scratch: &Scratch,
        point: &str,
        check: &str,
        variable: (String, String),
    ) -> Invocation {
        let mut environment = environment_of(self.program, scratch.path());
        let value = format!("point={point},check={check},file={}", self.file.display());
        environment.extend([(VARIABLE.into(), value), variable]);
        Invocation {
            command: self.program.command_in(scratch.path()),
            environment,
            preload: vec![self.context.places.layer(LAYER)],
            stdin: self.program.stdin.as_ref().map(PathBuf::from),
            timeout: self.timeout,
            ..Invocation::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_oracle::About;

    use super::*;

    fn recorded() -> OracleFile {
        OracleFile {
            allocations: 10,
            objects: vec![],
            about: About { output_sha256: "d".into(), ..About::default() },
        }
    }

    fn run() -> NativeRun {
        NativeRun { ended: Ended::Exit(0), digest: "d".into(), followed: 10, error_tail: String::new() }
    }

    #[test]
    fn a_run_differs_by_the_layers_message_its_end_its_allocations_or_its_output() {
        let difference = |run: NativeRun| run.difference(&recorded());
        assert_eq!(difference(run()), None);
        let stopped = "x\nheaptoll: the oracle stops: allocation 3 is of 8 bytes\n";
        let stopped = NativeRun { ended: Ended::Exit(93), error_tail: stopped.into(), ..run() };
        assert_eq!(difference(stopped).as_deref(), Some("allocation 3 is of 8 bytes"));
        assert!(difference(NativeRun { ended: Ended::Signal(11), ..run() }).is_some());
        assert!(difference(NativeRun { followed: 9, ..run() }).is_some());
        assert!(difference(NativeRun { digest: "e".into(), ..run() }).is_some());
    }

    #[test]
    fn pages_are_chosen_where_they_fit_and_poison_where_only_that_does() {
        assert_eq!(check_of(1000, 1 << 20, 16 << 30), Some("pages"));
        assert_eq!(check_of(3_000_000, 1 << 30, 16 << 30), Some("poison"));
        assert_eq!(check_of(3_000_000, 100 << 30, 16 << 30), None);
    }
}
