//! Servers for hours: those of all stacks are up at once and loaded in turns, so that the hours are the same for all and
//! do not add up; after each load the memory of its server is read.

use std::time::{Duration, Instant};

use heaptoll_scratch::Scratch;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use regex_lite::Regex;

use crate::experiment::{Experiment, ProgramInfo, ServeInfo};
use crate::launch::{Invocation, Running};
use crate::observation::{Phase, ServeFigures};
use crate::plan::Cell;
use crate::runner::{RunContext, RunError, prepare};
use crate::{sampler, serve};

/// What one server did in all the time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Soaked {
    /// Its stack.
    pub stack: String,
    /// After each load.
    pub loads: Vec<SoakLoad>,
    /// Why it has no more of them.
    pub trouble: Option<String>,
}

/// A server after one of its loads.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SoakLoad {
    /// Seconds since all servers were ready.
    pub at_s: f64,
    /// Resident memory of its processes.
    pub rss_kib: u64,
    /// What the load and the burst reported.
    pub figures: ServeFigures,
}

/// A server that is up, and what must live as long.
struct Up {
    soaked: Soaked,
    running: Running,
    loads: Vec<Invocation>,
    _scratch: Scratch,
}

/// Runs the servers of a program for so long. A server that dies, or whose load fails, has no more loads; the others go
/// on. `each` gets the seconds so far after each load. With Ctrl-C it ends early.
///
/// # Errors
/// The launcher's own failures, or no scratch folder.
pub fn soak(
    experiment: &Experiment,
    program: &ProgramInfo,
    info: &ServeInfo,
    length: Duration,
    context: &RunContext,
    each: &mut dyn FnMut(f64),
) -> Result<Vec<Soaked>, RunError> {
    let mut up = Vec::new();
    let mut ended = Vec::new();
    for stack in (0..experiment.stacks.len()).filter(|&at| experiment.stacks[at].program == program.name) {
        match start(experiment, program, info, stack, context)? {
            Ok(server) => up.push(server),
            Err(soaked) => ended.push(soaked),
        }
    }
    let mut rng = ChaCha8Rng::seed_from_u64(experiment.settings.seed);
    let begun = Instant::now();
    while !up.is_empty() && begun.elapsed() < length && !context.interrupt.is_set() {
        up.shuffle(&mut rng);
        for server in &mut up {
            if context.interrupt.is_set() {
                break;
            }
            load(server, info, begun, context)?;
            each(begun.elapsed().as_secs_f64());
        }
        for server in up.extract_if(.., |server| server.soaked.trouble.is_some()) {
            serve::stop_cleanly(&server.running, serve::stop_signal(info));
            ended.push(server.soaked);
        }
    }
    for server in up {
        serve::stop_cleanly(&server.running, serve::stop_signal(info));
        server.running.wait()?;
        ended.push(server.soaked);
    }
    let place = |soaked: &Soaked| experiment.stacks.iter().position(|stack| stack.name == soaked.stack);
    ended.sort_by_key(place);
    Ok(ended)
}

/// Starts a server and waits until it is ready; of one that never is, why.
fn start(
    experiment: &Experiment,
    program: &ProgramInfo,
    info: &ServeInfo,
    at: usize,
    context: &RunContext,
) -> Result<Result<Up, Soaked>, RunError> {
    let stack = &experiment.stacks[at];
    let cell = Cell { stack: at, phase: Phase::Warmup, repetition: 0, env_padding: 0 };
    let (mut invocation, scratch, _page) = prepare(experiment, &cell, program, stack, context)?;
    let each_load = invocation.timeout;
    // The limit is of a run, and this is many.
    invocation.timeout = Duration::MAX;
    let ready = Regex::new(&info.ready)?;
    let soaked = Soaked { stack: stack.name.clone(), ..Soaked::default() };
    Ok(match serve::start_ready(&context.launcher, &invocation, info, &ready, &context.interrupt)? {
        Ok(running) => {
            let loads = program.loads_in(info, scratch.path()).into_iter();
            let loads = loads
                .map(|command| Invocation { command, timeout: each_load, ..Invocation::default() })
                .collect();
            Ok(Up { soaked, running, loads, _scratch: scratch })
        }
        Err(why) => Err(Soaked { trouble: Some(why), ..soaked }),
    })
}

/// Loads a server once, and reads its memory.
fn load(server: &mut Up, info: &ServeInfo, begun: Instant, context: &RunContext) -> Result<(), RunError> {
    let mut figures = ServeFigures::default();
    let Some(pid) = server.running.pid() else { return Ok(()) };
    let failure =
        serve::drive(&context.launcher, pid, &server.loads, info, &context.interrupt, &mut figures)?;
    if context.interrupt.is_set() {
        return Ok(());
    }
    let rss_kib = sampler::resident_kib(pid);
    match (rss_kib, failure) {
        (None, _) => server.soaked.trouble = Some("died under load".into()),
        (Some(_), Some(failure)) => server.soaked.trouble = Some(failure),
        (Some(rss_kib), None) => {
            // Reports of hours are not kept.
            figures.load_report.clear();
            server.soaked.loads.push(SoakLoad { at_s: begun.elapsed().as_secs_f64(), rss_kib, figures });
        }
    }
    Ok(())
}
