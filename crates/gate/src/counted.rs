//! Exact counts of both builds: three runs under the tracer, as many at once as processors and memory permit.
//!
//! The third is the base again, with another environment and other addresses: what it counts differently depends on
//! addresses or on chance, and no limit can be put on it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use heaptoll_experiment::launch::Invocation;
use heaptoll_experiment::runner::environment_of;
use heaptoll_instruction_counts::{Requested, Requests, SizeClass};
use heaptoll_reftrace::Owner;
use heaptoll_reftrace_host::{
    FunctionCount, Image, ImageEnding, Options, Traced, TracedImage, Tracer, trace_with,
};
use heaptoll_scratch::Scratch;
use serde::{Deserialize, Serialize};

use super::followed::Followed;
use super::metric::Metric;
use super::subject::Subject;
use heaptoll_command::context::Context;
use heaptoll_runs::preparation::pairing;
use heaptoll_runs::traced::{Cell, LIMIT_S, half_seen, outcome_of, remarks_of};

/// The addresses of the third run are off by these pages, no power of two.
const SHIFT_PAGES: u32 = 1237;
/// Bytes that its environment is longer.
const PADDING: usize = 2112;
/// The time limit of a traced run: this time, and this multiple of an untraced run.
const LEAST_LIMIT_S: f64 = 60.0;
const SLOWDOWN: f64 = 400.0;
/// Memory that a traced run takes besides twice the program's, bytes: the tracer, its translations, its rings.
const TRACER_BYTES: u64 = 256 << 20;

/// What one traced run counted.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Counts {
    /// By metric; without those of the malloc family where none of its routines was recognised.
    pub metrics: BTreeMap<Metric, u64>,
    /// Requests by size class; in no file.
    #[serde(skip)]
    pub sizes: BTreeMap<SizeClass, Requested>,
    /// Instructions of each function, with the name of its process image; in no file.
    #[serde(skip)]
    pub functions: Vec<(String, FunctionCount)>,
    /// Process images.
    pub images: usize,
    /// Reasons to doubt the counts.
    pub remarks: Vec<String>,
    /// The program's own allocator, where that is followed.
    pub own: Option<String>,
    /// Why the calls of the program's allocator are not counted.
    pub unseen: Option<String>,
}

/// The three runs, each with its counts or the reason why it has none.
#[derive(Serialize, Deserialize)]
pub struct Counted {
    /// The base.
    pub base: Result<Counts, String>,
    /// The new build.
    pub new: Result<Counts, String>,
    /// The base under other addresses.
    pub again: Result<Counts, String>,
    /// The tracer, as text.
    pub tracer: String,
}

/// Makes the three runs; `meanwhile` runs on this thread while they do.
pub fn count<T>(
    subject: &Subject,
    followed: &[Followed; 2],
    tracer: &Tracer,
    context: &Context,
    meanwhile: impl FnOnce() -> T,
) -> (Counted, T) {
    let jobs = [(0, 0), (1, 0), (0, SHIFT_PAGES)];
    let next = Mutex::new(jobs.iter().enumerate().collect::<Vec<_>>());
    let results: [Mutex<Result<Counts, String>>; 3] =
        std::array::from_fn(|_| Mutex::new(Err("it was not made".into())));
    let instructions = AtomicU64::new(0);
    let work = || {
        while let Some((at, (stack, shift))) =
            next.lock().ok().and_then(|mut jobs| (!jobs.is_empty()).then(|| jobs.remove(0)))
        {
            let found = one(subject, (*stack, &followed[*stack]), *shift, tracer, context, &instructions);
            if let Ok(mut place) = results[at].lock() {
                *place = found;
            }
        }
    };
    let done = std::thread::scope(|scope| {
        let start = |_| std::thread::Builder::new().spawn_scoped(scope, work).ok();
        let all: Vec<_> = (0..at_once(subject.together_bytes)).filter_map(start).collect();
        let done = meanwhile();
        if all.is_empty() {
            work();
        }
        let progress = context.messages.progress(None);
        while all.iter().any(|one| !one.is_finished()) {
            let millions = instructions.load(Relaxed) as f64 / 1e6;
            progress
                .set_text(&format!("{}: counting, {millions:.0} million instructions", subject.program.name));
            std::thread::sleep(Duration::from_millis(50));
        }
        done
    });
    let [base, new, again] = results.map(|result| match result.into_inner() {
        Ok(result) => result,
        Err(_) => Err("its thread failed".into()),
    });
    (
        Counted { base, new, again, tracer: format!("heaptoll's tracer on Valgrind {}", tracer.version()) },
        done,
    )
}

/// Runs at once: three where there are several processors, which then share them, and memory for them.
fn at_once(together_bytes: u64) -> usize {
    let machine = pairing::Machine::now();
    let each = TRACER_BYTES.saturating_add(together_bytes.saturating_mul(2));
    let fit = usize::try_from(machine.available_bytes / 2 / each).unwrap_or(1);
    if machine.processors < 2 { 1 } else { fit.clamp(1, 3) }
}

fn one(
    subject: &Subject,
    (side, followed): (usize, &Followed),
    shift: u32,
    tracer: &Tracer,
    context: &Context,
    instructions: &AtomicU64,
) -> Result<Counts, String> {
    let stack = subject.stacks[side];
    let scratch = Scratch::make().map_err(|error| format!("no scratch folder can be made: {error}"))?;
    let mut environment = environment_of(subject.program, scratch.path());
    environment.extend(stack.environment.iter().cloned());
    // The variable is there in every run: one more would itself be work for the program.
    environment.push(("HEAPTOLL_PADDING".into(), "x".repeat(if shift == 0 { 0 } else { PADDING })));
    let invocation = Invocation {
        command: stack.command_in(subject.program, scratch.path()),
        environment,
        preload: stack.preload.iter().map(PathBuf::from).collect(),
        directory: stack.directory().map(Path::to_path_buf),
        stdin: subject.program.stdin.as_ref().map(PathBuf::from),
        timeout: Duration::from_secs_f64(limit_s(subject)),
        ..Invocation::default()
    };
    let symbols = followed.follow.symbols.clone();
    let options = Options { functions: true, shift_pages: shift, symbols, ..Options::default() };
    let mut before = 0;
    let traced = trace_with(
        tracer,
        &context.places.launcher(),
        &invocation,
        &options,
        context.interrupt,
        |_: &Image| Requests::new(),
        |progress| {
            instructions.fetch_add(progress.instructions.saturating_sub(before), Relaxed);
            before = progress.instructions;
        },
    );
    let traced = traced.map_err(|error| error.to_string())?;
    let (ended, expect_status) = (traced.finished.ended, subject.protocol.expect_status);
    let outcome = outcome_of(ended, expect_status, limit_s(subject), context.interrupt);
    let follow = followed.follow.clone();
    let cell = Cell { follow, ..Cell::alone(subject.program, stack.clone()) };
    let remarks = remarks_of(&cell, &traced, &outcome);
    if !outcome.is_ok() || !traced.is_whole() {
        return Err(remarks.first().cloned().unwrap_or_else(|| "its trace is incomplete".into()));
    }
    let unseen = followed.unseen.clone().or_else(|| half_seen(&followed.follow, &traced));
    let own = followed.follow.own.as_ref().map(|own| own.name.clone());
    Ok(Counts { own, ..counts(traced, remarks, unseen) })
}

/// The time limit of a traced run, s: what the slowest programs under it take, so that one that waits for something there
/// does not hold the gate up.
fn limit_s(subject: &Subject) -> f64 {
    let timeout_s = subject.protocol.timeout_s;
    timeout_s.max(LEAST_LIMIT_S + SLOWDOWN * subject.run_s).min(LIMIT_S.max(timeout_s))
}

fn counts(traced: Traced<Requests>, remarks: Vec<String>, unseen: Option<String>) -> Counts {
    let images = &traced.images;
    let sum = |of: &dyn Fn(&TracedImage<Requests>) -> u64| images.iter().map(of).fold(0, u64::saturating_add);
    let mut metrics = BTreeMap::from([(Metric::Instructions, sum(&TracedImage::instructions))]);
    // A program whose manager was not recognised is not counted by half.
    let unseen = unseen.or_else(|| {
        let calls = sum(&|image| image.calls.allocations);
        (calls == 0).then(|| "no call that makes a block was recorded".to_owned())
    });
    if unseen.is_none() {
        let totals = traced.totals();
        let in_malloc = [Owner::Allocator, Owner::Collector].map(|owner| totals[owner as usize].instructions);
        metrics.extend([
            (Metric::MallocInstructions, in_malloc[0].saturating_add(in_malloc[1])),
            (Metric::Allocations, sum(&|image| image.sink.total().calls)),
            (Metric::Frees, sum(&|image| image.sink.frees())),
            (Metric::Bytes, sum(&|image| image.sink.total().bytes)),
            (Metric::Live, sum(&|image| image.sink.most_live_bytes())),
            (Metric::Exit, sum(&live_at_exit)),
        ]);
    }
    let mut sizes: BTreeMap<SizeClass, Requested> = BTreeMap::new();
    let counted = images.iter().filter(|_| unseen.is_none());
    for (class, requested) in counted.flat_map(|image| image.sink.by_class()) {
        let entry = sizes.entry(*class).or_default();
        *entry = entry.plus(*requested);
    }
    let functions = |image: &TracedImage<Requests>| {
        let name = image.image.name().to_owned();
        image.functions.iter().map(|one| (name.clone(), one.clone())).collect::<Vec<_>>()
    };
    Counts {
        metrics,
        sizes,
        functions: images.iter().flat_map(functions).collect(),
        images: images.len(),
        remarks,
        own: None,
        unseen,
    }
}

/// Bytes live where an image ends; what it holds when another one replaces it is not left behind by the program.
fn live_at_exit(image: &TracedImage<Requests>) -> u64 {
    match image.ending {
        ImageEnding::Ended(_) => image.sink.live_bytes(),
        _ => 0,
    }
}
