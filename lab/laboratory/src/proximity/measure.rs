//! The runs: how much a program allocates, then each collector at each period, the periods interleaved in random order.

use std::path::PathBuf;
use std::time::Instant;

use heaptoll_event_log::EventsFile;
use heaptoll_experiment::experiment::ProgramInfo;
use heaptoll_experiment::manager::Manager;
use heaptoll_launcher::Ended;
use heaptoll_statistics::ALPHA;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::distance::{Distances, Marked, Span, distances};
use super::figures::{Program, Scale, Stack};
use super::groups::{Shape, group, normalise};
use super::java_pauses;
use super::portions::{Series, portions, series};
use super::selection;
use heaptoll_command::collector_options;
use heaptoll_command::context::Progress;
use heaptoll_command::failure::Failure;
use heaptoll_runs::attempt::{Attempt, Runs, Set};
use heaptoll_runs::preparation::estimate::Estimate;

/// The variable that names the file of events.
const VARIABLE: &str = "HEAPTOLL_EVENTS";
/// Bytes that a run's events may take; the file is sparse.
const LIMIT: u64 = 2 << 30;

/// The measurements of each program.
pub struct Plan<'a> {
    /// How runs are made.
    pub runs: Runs<'a>,
    /// Managers by name.
    pub known: &'a [Manager],
    /// Collectors.
    pub stacks: &'a [Manager],
    /// Whether they are Java's.
    pub java: bool,
    /// Collections a run.
    pub collections: &'a [u64],
    /// Groups.
    pub shape: Shape,
    /// Whether the processor time of requests is recorded.
    pub cpu: bool,
    /// Progress.
    pub progress: &'a dyn Progress,
}

/// A run with its events.
struct EventRun {
    attempt: Attempt,
    distances: Distances,
    collections: u64,
    pause_ns: u64,
    requests: u64,
    lost: u64,
    unreported: bool,
    /// Bytes that Java's virtual machines allocated while requests went on.
    allocated: u64,
    /// Why their logs could not be read.
    unreadable: Option<String>,
}

impl Plan<'_> {
    /// Makes all measurements of one program. What was measured until Ctrl-C is in `into`.
    ///
    /// # Errors
    /// Ctrl-C, the program does not work or marks no requests, or heaptoll's own machinery failed.
    pub fn measure(&self, program: &ProgramInfo, into: &mut Program) -> Result<(), Failure> {
        self.progress.set_text(&format!("{}: how much it allocates", program.name));
        let begun = Instant::now();
        let first = self.first(program)?;
        self.announce(program, begun.elapsed().as_secs_f64());
        into.requested_bytes = first.0;
        let measured = self.stacks(program, &first, into);
        let scales = || into.stacks.iter().flat_map(|stack| &stack.scales);
        let shown: Vec<&[Series]> = scales().map(|scale| scale.series.as_slice()).collect();
        let found = portions(&shown, ALPHA, self.runs.protocol.seed);
        let scales = into.stacks.iter_mut().flat_map(|stack| &mut stack.scales);
        scales.zip(found).for_each(|(scale, found)| scale.stretches = found);
        measured
    }

    /// Announces how long the program will take, where that is long; `run_s` is what a run without a collector took.
    fn announce(&self, program: &ProgramInfo, run_s: f64) {
        let (stacks, settings) = (self.stacks.len(), self.collections.len());
        let runs = stacks * settings * self.runs.protocol.repetitions as usize;
        let estimate = Estimate {
            what: format!(
                "{}: {runs} runs to make ({stacks} stacks, {settings} numbers of collections, {} runs of each)",
                program.name, self.runs.protocol.repetitions
            ),
            seconds: runs as f64 * run_s,
            at_least: true,
            provided: "a run takes what the first one took, which had no collections".into(),
        };
        if let Some(words) = estimate.sentence() {
            self.runs.context.messages.note(&words);
        }
    }

    fn stacks(
        &self,
        program: &ProgramInfo,
        first: &(u64, Option<String>),
        into: &mut Program,
    ) -> Result<(), Failure> {
        for stack in self.stacks {
            if self.runs.context.interrupt.is_set() {
                return Err(Failure::Interrupted);
            }
            into.stacks.push(self.stack(program, stack, first)?);
        }
        Ok(())
    }

    /// Bytes that the program requests in a run, and its output where it is a program's.
    fn first(&self, program: &ProgramInfo) -> Result<(u64, Option<String>), Failure> {
        let layers = [self.runs.context.places.layer("events"), self.runs.context.places.layer("count")];
        let of_java = self.stacks.first().filter(|_| self.java);
        let environment = match of_java {
            Some(stack) => {
                let period = format!("every={}", java_pauses::FIRST_PERIOD);
                collector_options::with(self.known, stack, &period)?.environment
            }
            None => vec![],
        };
        let run_events = self.run_events(program, Set { preload: layers.into(), environment }, 0)?;
        let under = of_java
            .map_or("glibc and without a collector".into(), |stack| format!("{} and glibc", stack.name));
        let wrong = |why: String| Failure::NothingToCompare(format!("{} under {under}: {why}", program.name));
        if let Some(why) = self.failed(program, &run_events.attempt, None) {
            return Err(wrong(why));
        }
        if let Some(why) = run_events.unreadable {
            return Err(wrong(why));
        }
        if run_events.requests == 0 {
            return Err(wrong(format!(
                "it marks no requests: include heaptoll_events.h and call heaptoll_event_begin and heaptoll_event_end \
                 around each, or take one of {} (docs/questions/events.md)",
                selection::PROGRAMS.join(", ")
            )));
        }
        // Of several processes each counts its own period, so the one that allocates most decides.
        let of_c = || run_events.attempt.most(|slot| slot.requested_bytes);
        match if self.java { run_events.allocated } else { of_c() } {
            0 if self.java => Err(wrong(format!(
                "its virtual machine collects less than twice while requests go on, with a young generation of {} MiB; \
                 give it more requests",
                java_pauses::FIRST_PERIOD >> 20
            ))),
            0 => Err(wrong("it allocates nothing, so there is nothing to collect".into())),
            bytes => Ok((bytes, program.serve.is_none().then_some(run_events.attempt.finished.digest))),
        }
    }

    /// Why a run is not counted, if it is not.
    fn failed(&self, program: &ProgramInfo, attempt: &Attempt, digest: Option<&String>) -> Option<String> {
        if program.serve.is_some() {
            return attempt.served_badly.clone();
        }
        match attempt.finished.ended {
            Ended::Exit(status) if status == self.runs.protocol.expect_status => match digest {
                Some(digest) if *digest != attempt.finished.digest => Some("wrong output".into()),
                _ => None,
            },
            _ => Some(attempt.ending(self.runs.protocol.timeout_s)),
        }
    }

    /// One run under the events layer. The layer is preloaded into a server's load, too: its requests are a client's.
    fn run_events(&self, program: &ProgramInfo, mut set: Set, run: u32) -> Result<EventRun, Failure> {
        let no_scratch = |error| Failure::Run(heaptoll_experiment::runner::RunError::Scratch(error));
        let folder = heaptoll_scratch::Scratch::make().map_err(no_scratch)?;
        let path = folder.path().join("heaptoll-run.events");
        let create = if self.cpu { EventsFile::create_with_cpu } else { EventsFile::create };
        let events = create(&path, LIMIT).map_err(|error| Failure::Trouble(Box::new(error)))?;
        let file = (VARIABLE.to_owned(), events.path().display().to_string());
        set.environment.push(file.clone());
        let layer: PathBuf = self.runs.context.places.layer("events");
        if !set.preload.contains(&layer) {
            set.preload.insert(0, layer.clone());
        }
        let load = Set { preload: vec![layer], environment: vec![file] };
        let attempt = self.runs.attempt_with_load(program, &set, &load)?;
        let mut processes = events.read().map_err(|error| Failure::Trouble(Box::new(error)))?;
        let (logs, unreadable) = match crate::java::logs(attempt.scratch.path()) {
            Ok(logs) => (logs, None),
            Err(why) => (vec![], Some(why.to_string())),
        };
        java_pauses::add_pauses(&mut processes, &logs);
        let allocated = java_pauses::allocated(&processes, &logs);
        let lost = events.lost().map_err(|error| Failure::Trouble(Box::new(error)))?;
        let mut run_events = EventRun {
            attempt,
            distances: Distances::default(),
            collections: 0,
            pause_ns: 0,
            requests: 0,
            lost: lost.requests + lost.collections,
            unreported: false,
            allocated,
            unreadable,
        };
        let spans_of = |process: &heaptoll_event_log::ProcessEvents| -> Vec<Span> {
            let of =
                |one: &heaptoll_event_log::Collection| Span { start_ns: one.start_ns, end_ns: one.end_ns };
            process.collections.iter().map(of).collect()
        };
        let everywhere: Vec<Span> = processes.iter().flat_map(&spans_of).collect();
        for process in &processes {
            // A client's requests wait for a server's collections; a program's for its own.
            let own = spans_of(process);
            // Java's log has those of the start as well, which have no requests around them.
            let times = java_pauses::span(process).filter(|_| self.java);
            let counts =
                |span: &&Span| times.is_none_or(|(from, to)| from < span.end_ns && span.start_ns < to);
            run_events.collections += own.iter().filter(counts).count() as u64;
            run_events.pause_ns +=
                own.iter().filter(counts).map(|span| span.end_ns - span.start_ns).sum::<u64>();
            run_events.unreported |= process.unobserved > 0;
            run_events.requests += process.requests.len() as u64;
            let marked = |request: &heaptoll_event_log::Request| Marked {
                span: Span { start_ns: request.start_ns, end_ns: request.end_ns },
                cpu_ns: request.cpu_ns,
            };
            let requests: Vec<Marked> = process.requests.iter().map(marked).collect();
            let collections = if program.serve.is_some() { &everywhere } else { &own };
            let found = distances(&requests, collections, run);
            run_events.distances.whole.extend(found.whole);
            run_events.distances.interrupted.extend(found.interrupted);
            run_events.distances.before_first += found.before_first;
            run_events.distances.within += found.within;
        }
        Ok(run_events)
    }

    fn stack(
        &self,
        program: &ProgramInfo,
        stack: &Manager,
        first: &(u64, Option<String>),
    ) -> Result<Stack, Failure> {
        let mut row = Stack {
            stack: stack.name.clone(),
            scales: vec![],
            fastest_mean_ns: None,
            fastest_median_ns: None,
            refused: None,
        };
        let proven = match self.runs.proven(program, stack)? {
            Ok(set) => set,
            Err(why) => {
                self.progress
                    .advance(self.collections.len() as u64 * u64::from(self.runs.protocol.repetitions));
                row.refused = Some(why);
                return Ok(row);
            }
        };
        let mut cells: Vec<(Scale, Set, Vec<Distances>)> = Vec::new();
        for &aimed_at in self.collections {
            let every =
                (first.0 / aimed_at.max(1)).max(if self.java { java_pauses::LEAST_PERIOD } else { 1 });
            let set = collector_options::with(self.known, stack, &selection::options(stack, every))?;
            let set = Set { preload: proven.preload.clone(), environment: set.environment };
            cells.push((Scale::new(aimed_at, every), set, vec![]));
        }
        let mut rng = ChaCha8Rng::seed_from_u64(self.runs.protocol.seed);
        'all: for repetition in 0..self.runs.protocol.repetitions {
            let mut order: Vec<usize> = (0..cells.len()).collect();
            order.shuffle(&mut rng);
            for at in order {
                let (scale, set, runs) = &mut cells[at];
                self.progress.set_text(&format!(
                    "{} under {}, {} collections, run {}",
                    program.name,
                    stack.name,
                    scale.aimed_at,
                    repetition + 1
                ));
                // A lasting failure would only take the same time again.
                if scale.failures.len() < 2 || !runs.is_empty() {
                    match self.run_events(program, set.clone(), repetition) {
                        Ok(run_events) => self.count(program, run_events, first.1.as_ref(), scale, runs),
                        // What there is, is shown; the command sees that it was cancelled.
                        Err(Failure::Interrupted) if cells.iter().any(|(_, _, runs)| !runs.is_empty()) => {
                            break 'all;
                        }
                        Err(failure) => return Err(failure),
                    }
                }
                self.progress.advance(1);
            }
        }
        for (mut scale, _, runs) in cells {
            scale.grouped = group(&runs, self.shape);
            scale.series = series(&runs, scale.grouped.cap_ns);
            row.scales.push(scale);
        }
        row.scales.sort_by_key(|scale| scale.aimed_at);
        let all: Vec<_> = row.scales.iter().map(|scale| &scale.grouped).collect();
        row.fastest_mean_ns = normalise(&all, |group| group.mean_ns);
        row.fastest_median_ns = normalise(&all, |group| group.median_ns);
        Ok(row)
    }

    fn count(
        &self,
        program: &ProgramInfo,
        run_events: EventRun,
        digest: Option<&String>,
        scale: &mut Scale,
        runs: &mut Vec<Distances>,
    ) {
        if let Some(why) = self.failed(program, &run_events.attempt, digest) {
            scale.failures.push(why);
            return;
        }
        if let Some(why) = run_events.unreadable {
            scale.failures.push(why);
            return;
        }
        if run_events.collections == 0 {
            scale.failures.push(match run_events.unreported {
                true => "its collections were reported to another process".into(),
                false => "no collection was reported".into(),
            });
            return;
        }
        scale.collections.push(run_events.collections);
        scale.pause_ns += run_events.pause_ns;
        scale.requests += run_events.distances.whole.len() as u64;
        scale.interrupted += run_events.distances.interrupted.len() as u64 + run_events.distances.within;
        scale.before_first += run_events.distances.before_first;
        scale.lost += run_events.lost;
        runs.push(run_events.distances);
    }
}
