//! A whole replay: the trace made ready, drivers started for every manager in interleaved random order, what they
//! found kept row by row.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use heaptoll_trace::{Ending, Header, Memory, Sample, tables};
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use crate::error::ReplayError;
use crate::flatten::{EACH_OBJECT, Flattening, flatten};
use crate::job::{Job, Outcome, Pass, Touch};
use crate::program::{Facts, Order, Program};
use crate::source::{FileSource, Source};
use crate::start::{Ended, Stack, Starter};

/// What is requested.
#[derive(Debug, Clone)]
pub struct Request {
    /// The trace.
    pub trace: PathBuf,
    /// The managers; the first is the baseline.
    pub stacks: Vec<Stack>,
    /// Order of threads in every pass; `None`: each thread as fast as it can where time is measured, exact where
    /// memory is.
    pub order: Option<Order>,
    /// What is done with blocks in every pass; `None`: nothing where time is measured, written where memory is.
    pub touch: Option<Touch>,
    /// Runs of each pass under each manager.
    pub runs: u32,
    /// Times the trace is replayed in one run.
    pub repetitions: u32,
    /// Copies of the trace, interleaved.
    pub copies: u32,
    /// Bytes of memory that may be taken to make the trace ready.
    pub memory_limit_bytes: u64,
    /// Seed of the order of runs.
    pub seed: u64,
    /// Longest that a run may take.
    pub timeout: Duration,
    /// The driver.
    pub driver: PathBuf,
    /// The null manager.
    pub null: PathBuf,
}

/// Receives the progress of a study.
pub trait Progress {
    /// A step begins that takes some time.
    fn message(&mut self, what: &str);
    /// `runs` runs are to be made, of `calls` calls each; one under the manager that does nothing takes this long.
    fn begins(&mut self, runs: usize, calls: u64, one: Duration);
    /// A run is over.
    fn ran(&mut self, done: usize, of: usize);
    /// Each manager was run once in each pass, in this time; `left` runs are left.
    fn first_round(&mut self, took: Duration, done: usize, left: usize);
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct Study {
    /// The trace's header.
    pub header: Header,
    /// How the recording ended, when the trace has it.
    pub ending: Option<Ending>,
    /// The recorded process seen from outside.
    pub samples: Vec<Sample>,
    /// What is not as it should be with the trace.
    pub warnings: Vec<String>,
    /// What was found while it was made ready.
    pub facts: Facts,
    /// Order of threads where time was measured, and where memory was.
    pub orders: (Order, Order),
    /// What was done with blocks where time was measured, and where memory was.
    pub touches: (Touch, Touch),
    /// Runs of the null manager: the driver's own cost, ns a call.
    pub own_ns: Vec<f64>,
    /// Anonymous memory of a driver under the null manager before the first call, bytes.
    pub own_start_bytes: u64,
    /// By manager, as requested.
    pub subjects: Vec<Subject>,
    /// Whether all runs were made.
    pub complete: bool,
}

/// One manager.
#[derive(Debug, Clone, Serialize)]
pub struct Subject {
    /// Name in rows.
    pub name: String,
    /// The object that its malloc came from.
    pub served_by: String,
    /// Why nothing was measured at all.
    pub refused: Option<String>,
    /// Whether it is a collector, and how that is known.
    pub collector: Option<String>,
    /// Its good runs.
    pub runs: Vec<Run>,
    /// Its bad runs: what went wrong.
    pub failures: Vec<String>,
    #[serde(skip)]
    in_a_row: u32,
}

/// One good run.
#[derive(Debug, Clone, Serialize)]
pub struct Run {
    /// Number of the repetition of the plan, from 0.
    pub number: u32,
    /// What it measured.
    pub pass: Pass,
    /// What it found.
    pub outcome: Outcome,
    /// Heap high-water from the statistics page, bytes, from managers that report it.
    #[serde(rename = "told_high_water_bytes")]
    pub reported_high_water_bytes: Option<u64>,
}

impl Subject {
    /// The good runs of a pass.
    pub fn of(&self, pass: Pass) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |run| run.pass == pass)
    }
}

/// Runs in which calls are stamped: percentiles of more of them are hardly better.
const LATENCY_RUNS: u32 = 3;
/// A manager that failed so often in a row is not run again.
const GIVE_UP_AFTER: u32 = 2;
/// Checkpoints of a memory run.
pub const CHECKPOINTS: u32 = 200;
/// By how much one copy lags after the one before it: this share of the trace, divided among the copies.
const LAG_SHARE: u64 = 10;

/// Free memory, bytes.
pub fn available() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
    kib.map_or(u64::MAX, |kib| kib * 1024)
}

struct Trace {
    header: Header,
    ending: Option<Ending>,
    samples: Vec<Sample>,
}

/// Makes a program of a trace.
fn prepare(request: &Request, events: Option<u64>, order: Order) -> Result<Program, ReplayError> {
    let (path, copies) = (&request.trace, request.copies);
    let each_object_bytes = EACH_OBJECT as u64 * u64::from(copies.max(1));
    let memory = Memory { limit_bytes: request.memory_limit_bytes, each_object_bytes };
    let open = || FileSource::open(path, memory).map(|source| Box::new(source) as Box<dyn Source>);
    let sources = (0..copies.max(1)).map(|_| open()).collect::<Result<Vec<_>, _>>()?;
    let all = events.map(|events| events.saturating_mul(u64::from(copies)));
    let how = Flattening {
        order,
        copies,
        lag: events.unwrap_or(0) / LAG_SHARE / u64::from(copies.max(1)),
        mark_every: all.map_or(4096, |all| all / u64::from(CHECKPOINTS)).max(1),
        mark_after: None,
        most_in_memory: available() / 4,
    };
    flatten(sources, &how)
}

/// Whether the machine can hold it.
pub(crate) fn fits(program: &Program, touches: bool, available: u64) -> Result<(), ReplayError> {
    let slots = u64::from(program.index.slots);
    let table = slots * if program.index.generations { 24 } else { 16 };
    if table > available / 2 {
        return Err(ReplayError::TableTooLarge {
            slots,
            needed_mib: table >> 20,
            available_mib: available >> 20,
        });
    }
    if touches && program.facts.max_live_bytes > available - table {
        return Err(ReplayError::LiveTooLarge {
            live_mib: program.facts.max_live_bytes >> 20,
            available_mib: available >> 20,
        });
    }
    Ok(())
}

/// Replays a trace.
///
/// # Errors
/// Nothing can be replayed: see [`ReplayError`]. A manager that fails is no error, and neither is an interrupt: the
/// study records both.
pub fn study(
    request: &Request,
    interrupt: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Study, ReplayError> {
    for (what, path) in [("the replay driver", &request.driver), ("the null manager", &request.null)] {
        if !path.is_file() {
            return Err(ReplayError::Missing { what, path: path.clone() });
        }
    }
    let found = tables(&request.trace)?;
    let mut warnings = found.warnings.clone();
    let trace = Trace { header: found.header, ending: found.ending, samples: found.samples };
    let events = trace.ending.as_ref().map(|ending| ending.events).filter(|events| *events > 0);
    progress.message("reading the trace");
    let memory_order = request.order.unwrap_or(Order::Exact);
    let memory_program = prepare(request, events, memory_order)?;
    let facts = memory_program.facts.clone();
    if facts.calls == 0 {
        let trace = request.trace.display().to_string();
        return Err(ReplayError::Empty { trace, skipped: facts.skipped() });
    }
    let time_order = request.order.unwrap_or(Order::PerThread);
    let time_program = if facts.threads > 1 && time_order != memory_order {
        Some(prepare(request, events, time_order)?)
    } else {
        None
    };
    let touches = (request.touch.unwrap_or(Touch::None), request.touch.unwrap_or(Touch::Write));
    for program in [Some(&memory_program), time_program.as_ref()].into_iter().flatten() {
        fits(program, touches.1 != Touch::None, available())?;
    }
    warnings.extend(found.gaps.iter().map(|gap| format!("the trace has a gap: {}", gap.why)));
    let read = facts.calls + facts.skipped();
    if let Some(missing) = events.and_then(|events| events.checked_sub(read)).filter(|missing| *missing > 0)
        && request.copies <= 1
    {
        warnings.push(format!(
            "{missing} recorded events are unreadable (`heaptoll trace stat` shows where): the rest is replayed"
        ));
    }
    if trace.ending.is_none() && warnings.is_empty() {
        warnings.push("the trace was cut off: later calls are not replayed".into());
    }
    let mut study = Study {
        header: trace.header,
        ending: trace.ending,
        samples: trace.samples,
        warnings,
        facts,
        orders: (time_order, memory_order),
        touches,
        own_ns: Vec::new(),
        own_start_bytes: 0,
        subjects: request.stacks.iter().map(subject).collect(),
        complete: false,
    };
    let starter = Starter { driver: request.driver.clone(), interrupt, timeout: request.timeout };
    let runner = StudyRunner {
        request,
        starter,
        null: Stack { name: "null".into(), preload: vec![request.null.clone()], environment: vec![] },
        time: time_program.as_ref().unwrap_or(&memory_program),
        memory: &memory_program,
    };
    if runner.probe(&mut study, progress)? && runner.measure_own_start(&mut study)? {
        study.complete = runner.measure(&mut study, interrupt, progress)?;
    }
    Ok(study)
}

fn subject(stack: &Stack) -> Subject {
    Subject {
        name: stack.name.clone(),
        served_by: String::new(),
        refused: None,
        collector: None,
        runs: vec![],
        failures: vec![],
        in_a_row: 0,
    }
}

/// One run of the plan.
#[derive(Debug, Clone, Copy)]
struct Cell {
    /// Index of the manager; `None` is the null manager.
    stack: Option<usize>,
    pass: Pass,
    number: u32,
    padding: u32,
}

struct StudyRunner<'a> {
    request: &'a Request,
    starter: Starter<'a>,
    null: Stack,
    time: &'a Program,
    memory: &'a Program,
}

impl StudyRunner<'_> {
    fn job(&self, pass: Pass, touch: Touch, null: bool) -> (&Program, Job) {
        let program = if pass == Pass::Memory { self.memory } else { self.time };
        let job = Job {
            pass,
            touch,
            repetitions: self.request.repetitions,
            checkpoints: CHECKPOINTS,
            null,
            ledger: None,
            index: program.index.clone(),
        };
        (program, job)
    }

    /// Reads every manager's identity. False: interrupted.
    fn probe(&self, study: &mut Study, progress: &mut dyn Progress) -> Result<bool, ReplayError> {
        for (stack, subject) in self.request.stacks.iter().zip(&mut study.subjects) {
            progress.message(&format!("probing {}", stack.name));
            let (program, mut job) = self.job(Pass::Probe, Touch::None, false);
            job.index = crate::program::Index::default();
            match self.starter.run(stack, program, &job, 0)? {
                Ended::Interrupted => return Ok(false),
                Ended::Failed(why) => subject.refused = Some(why),
                Ended::Done(outcome, _) => {
                    let file = Path::new(&outcome.served_by).file_name().unwrap_or_default();
                    if !stack.preload.is_empty() && file.to_string_lossy().starts_with("libc.so") {
                        subject.refused =
                            Some("malloc still comes from the C library; is it a manager?".into());
                    }
                    subject.served_by = outcome.served_by;
                    subject.collector = outcome.collector;
                }
            }
        }
        Ok(true)
    }

    /// What a driver takes before its first call. False: interrupted.
    fn measure_own_start(&self, study: &mut Study) -> Result<bool, ReplayError> {
        let (program, mut job) = self.job(Pass::Memory, study.touches.1, true);
        job.repetitions = 0;
        match self.starter.run(&self.null, program, &job, 0)? {
            Ended::Done(outcome, _) => study.own_start_bytes = outcome.start_bytes,
            Ended::Failed(why) => return Err(ReplayError::OwnCost(why)),
            Ended::Interrupted => return Ok(false),
        }
        Ok(true)
    }

    /// All cells of a repetition come before the next one's, in a fresh random order.
    fn plan(&self, study: &Study) -> Vec<Cell> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.request.seed);
        let mut plan = Vec::new();
        for number in 0..self.request.runs {
            let mut cells = Vec::new();
            let mut add = |stack, pass| cells.push(Cell { stack, pass, number, padding: 0 });
            add(None, Pass::Throughput);
            for (index, subject) in study.subjects.iter().enumerate() {
                if subject.refused.is_some() {
                    continue;
                }
                add(Some(index), Pass::Memory);
                if subject.collector.is_none() {
                    add(Some(index), Pass::Throughput);
                    if number < LATENCY_RUNS {
                        add(Some(index), Pass::Latency);
                    }
                }
            }
            cells.shuffle(&mut rng);
            for cell in &mut cells {
                cell.padding = rng.random_range(0..4096);
            }
            plan.extend(cells);
        }
        plan
    }

    /// Makes all runs. False: interrupted.
    fn measure(
        &self,
        study: &mut Study,
        interrupt: &AtomicBool,
        progress: &mut dyn Progress,
    ) -> Result<bool, ReplayError> {
        let plan = self.plan(study);
        let begun = Instant::now();
        if !self.null_run(study, 0)? {
            return Ok(false);
        }
        // It is no repetition of the plan.
        study.own_ns.clear();
        progress.begins(plan.len(), study.facts.calls * u64::from(self.request.repetitions), begun.elapsed());
        let begun = Instant::now();
        for (done, cell) in plan.iter().enumerate() {
            if done > 0 && (cell.number, plan[done - 1].number) == (1, 0) {
                progress.first_round(begun.elapsed(), done, plan.len() - done);
            }
            if interrupt.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let given_up = cell.stack.is_some_and(|index| study.subjects[index].in_a_row >= GIVE_UP_AFTER);
            if !given_up {
                let name = cell.stack.map_or("nothing", |index| &study.subjects[index].name);
                progress.message(&format!("{} under {name}", cell.pass.as_str()));
                if !self.cell(study, cell)? {
                    return Ok(false);
                }
            }
            progress.ran(done + 1, plan.len());
        }
        Ok(true)
    }

    /// What the driver itself takes. False: interrupted.
    fn null_run(&self, study: &mut Study, padding: u32) -> Result<bool, ReplayError> {
        // What the null manager hands out is not meant to be touched.
        let (program, job) = self.job(Pass::Throughput, Touch::None, true);
        match self.starter.run(&self.null, program, &job, padding)? {
            Ended::Done(outcome, _) => {
                study.own_ns.push(outcome.cpu_ns as f64 / outcome.calls.max(1) as f64);
            }
            Ended::Failed(why) => return Err(ReplayError::OwnCost(why)),
            Ended::Interrupted => return Ok(false),
        }
        Ok(true)
    }

    fn cell(&self, study: &mut Study, cell: &Cell) -> Result<bool, ReplayError> {
        let Some(index) = cell.stack else {
            return self.null_run(study, cell.padding);
        };
        let subject = &mut study.subjects[index];
        let touch = match (cell.pass, &subject.collector) {
            // That a collector took nothing that is in use is seen by its contents alone.
            (Pass::Memory, Some(_)) => Touch::All,
            (Pass::Memory, None) => study.touches.1,
            _ => study.touches.0,
        };
        let (program, job) = self.job(cell.pass, touch, false);
        match self.starter.run(&self.request.stacks[index], program, &job, cell.padding)? {
            Ended::Interrupted => return Ok(false),
            Ended::Failed(why) => {
                subject.failures.push(why);
                subject.in_a_row += 1;
            }
            Ended::Done(outcome, reported_high_water_bytes) => {
                subject.in_a_row = 0;
                let (number, pass) = (cell.number, cell.pass);
                subject.runs.push(Run { number, pass, outcome: *outcome, reported_high_water_bytes });
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_trace::{Event, EventKind};

    use super::*;
    use crate::source::Calls;

    fn program(sizes: &[u64]) -> Program {
        let event = |(slot, size): (usize, &u64)| Event {
            kind: EventKind::Malloc,
            moved: false,
            align_log2: 0,
            thread: 0,
            slot: slot as u32,
            site: 0,
            size: *size,
            usable: 0,
            time_ns: 0,
            latency_ns: 0,
        };
        let events: Vec<Event> = sizes.iter().enumerate().map(event).collect();
        flatten(vec![Box::new(Calls::new(&events))], &Flattening::default()).expect("a program")
    }

    #[test]
    fn what_the_machine_has_no_memory_for_is_refused_before_it_is_tried() {
        let program = program(&[1 << 40, 1]);
        assert!(matches!(
            fits(&program, true, 1 << 30),
            Err(ReplayError::LiveTooLarge { live_mib: 1048576, .. })
        ));
        assert!(fits(&program, false, 1 << 30).is_ok());
        assert!(fits(&program, true, 1 << 41).is_ok());
        let error = fits(&program, false, 16).expect_err("a table of 32 bytes");
        assert!(matches!(error, ReplayError::TableTooLarge { slots: 2, .. }), "{error}");
    }
}
