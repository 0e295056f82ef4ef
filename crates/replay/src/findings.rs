//! From runs to figures: medians, paired ratios to the baseline, the replay next to the run that was recorded.

use heaptoll_statistics::{ALPHA, Interval, median};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::drift::{Drift, drift};
use crate::job::{Checkpoint, Latencies, Pass, Percentiles, Repetition, Touch};
use crate::program::{Facts, Order};
use crate::study::{Request, Run, Study, Subject};

schemars::labelled!(Findings, "heaptoll-replay/1");

/// The figures of a replay.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Findings {
    /// The trace's file.
    pub trace: String,
    /// Program and arguments that were recorded.
    pub command: Vec<String>,
    /// The manager it ran under.
    pub recorded_manager: String,
    /// What was found while the trace was made ready.
    pub facts: Facts,
    /// Order of threads where time was measured, and where memory was.
    pub time_order: Order,
    /// See `time_order`.
    pub memory_order: Order,
    /// What was done with blocks where time was measured, and where memory was.
    pub time_touch: Touch,
    /// See `time_touch`.
    pub memory_touch: Touch,
    /// Times the trace was replayed in one run.
    pub repetitions: u32,
    /// Copies of the trace, interleaved.
    pub copies: u32,
    /// Runs requested.
    pub runs: u32,
    /// Seed of the order of runs.
    pub seed: u64,
    /// Whether all runs were made.
    pub complete: bool,
    /// The driver's own cost, ns a call; already taken off all that follows.
    pub own_ns: f64,
    /// By manager; the first is the baseline.
    pub rows: Vec<Row>,
    /// The recorded run and its replay, when the manager it ran under is among the rows.
    pub fidelity: Option<Fidelity>,
    /// Doubts about the figures.
    pub warnings: Vec<String>,
}

/// One manager.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// Name.
    pub name: String,
    /// The object that its malloc came from.
    pub served_by: String,
    /// Why there are no figures at all.
    pub refused: Option<String>,
    /// Why there are no figures of time: it is a collector, and how that is known.
    pub collector: Option<String>,
    /// What went wrong, and how often.
    pub failures: Vec<(String, u32)>,
    /// Time.
    pub time: Option<Time>,
    /// Latencies: medians over the runs.
    pub latency: Option<Latencies>,
    /// Memory.
    pub memory: Option<Memory>,
    /// How memory moved over the repetitions.
    pub drift: Option<Drift>,
}

/// Time in the manager.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct Time {
    /// CPU in the manager, s: median.
    pub cpu_s: f64,
    /// ns a call: median.
    pub ns_per_call: f64,
    /// Smallest and largest ns a call.
    pub ns_range: (f64, f64),
    /// To the baseline.
    pub ratio: Option<Interval>,
    /// Page faults of a run: median.
    pub faults: f64,
    /// CPU s in which threads waited for each other, left out: median.
    pub waited_s: f64,
}

/// Memory of the heap.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// Largest resident set of the heap, bytes: median.
    pub peak_rss_bytes: f64,
    /// To the baseline.
    pub ratio: Option<Interval>,
    /// Resident set at the last call, bytes: median.
    pub end_rss_bytes: f64,
    /// Of the resident set, what was there before the first call, bytes: median.
    pub start_bytes: f64,
    /// Largest address space of mappings with blocks, bytes: median; 0 when it could not be seen.
    pub peak_heap_bytes: f64,
    /// Heap high-water from managers that report it, bytes: median.
    #[serde(rename = "told_high_water_bytes")]
    pub reported_high_water_bytes: Option<f64>,
    /// Requested bytes live at most, as the driver counted.
    pub max_live_bytes: u64,
    /// Peak resident set to the most bytes live.
    pub peak_ratio: f64,
    /// Mean over the trace of resident set to live bytes, weighted by bytes allocated.
    pub mean_ratio: Option<f64>,
    /// The process over the first repetition of one run.
    pub checkpoints: Vec<Checkpoint>,
}

/// The recorded run and its replay under the same manager.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Fidelity {
    /// The manager.
    pub manager: String,
    /// Largest live bytes when recorded, and replayed.
    pub max_live_bytes: (u64, u64),
    /// Largest heap, bytes.
    pub peak_heap_bytes: Option<(u64, f64)>,
    /// Largest resident set: of the whole process when recorded, of the heap alone replayed, bytes.
    pub peak_rss_bytes: Option<(u64, f64)>,
    /// CPU of the whole process when recorded, in the manager alone replayed, s.
    pub cpu_s: Option<(f64, f64)>,
}

/// The figures of a study.
pub fn findings(request: &Request, study: &Study) -> Findings {
    let own_ns = median(&study.own_ns);
    let (time, memory) = ratios(request, study, own_ns);
    let rows: Vec<Row> = study
        .subjects
        .iter()
        .enumerate()
        .map(|(index, subject)| row(request, study, subject, own_ns, time[index], memory[index]))
        .collect();
    let fidelity = fidelity(request, study, &rows);
    Findings {
        trace: request.trace.display().to_string(),
        command: study.header.command.clone(),
        recorded_manager: study.header.manager.clone(),
        facts: study.facts.clone(),
        time_order: study.orders.0,
        memory_order: study.orders.1,
        time_touch: study.touches.0,
        memory_touch: study.touches.1,
        repetitions: request.repetitions,
        copies: request.copies,
        runs: request.runs,
        seed: request.seed,
        complete: study.complete,
        own_ns,
        warnings: warnings(request, study, &rows),
        rows,
        fidelity,
    }
}

/// Net CPU of a run, ns a call.
fn net_ns(run: &Run, own_ns: f64) -> f64 {
    run.outcome.cpu_ns as f64 / run.outcome.calls.max(1) as f64 - own_ns
}

/// What the manager held before the first call, bytes. May be a little below 0: under the null manager a page more
/// was touched.
fn start_bytes(run: &Run, study: &Study) -> f64 {
    (run.outcome.start_bytes as f64 - study.own_start_bytes as f64).max(0.0)
}

fn peak_rss(run: &Run, study: &Study) -> f64 {
    run.outcome.peak_rss_bytes as f64 + start_bytes(run, study)
}

/// Ratios of time and of peak memory to the baseline, one family of intervals.
fn ratios(request: &Request, study: &Study, own_ns: f64) -> (Vec<Option<Interval>>, Vec<Option<Interval>>) {
    let figure = |subject: &Subject, pass: Pass, number: u32| -> Option<f64> {
        let run = subject.of(pass).find(|run| run.number == number)?;
        let value = if pass == Pass::Memory { peak_rss(run, study) } else { net_ns(run, own_ns) };
        (value > 0.0).then_some(value)
    };
    let Some(base) = study.subjects.first() else { return (vec![], vec![]) };
    let mut series = Vec::new();
    for pass in [Pass::Throughput, Pass::Memory] {
        for subject in &study.subjects {
            let pairs = (0..request.runs)
                .map(|number| Some((figure(subject, pass, number)? / figure(base, pass, number)?).ln()));
            series.push(pairs.collect::<Vec<_>>());
        }
    }
    // The baseline to itself is no comparison.
    let count = study.subjects.len();
    let mut members: Vec<usize> = (0..2 * count).filter(|at| at % count != 0).collect();
    members.retain(|at| series[*at].iter().any(Option::is_some));
    let family: Vec<Vec<Option<f64>>> = members.iter().map(|at| series[*at].clone()).collect();
    let intervals = heaptoll_statistics::paired(&family, ALPHA, request.seed);
    let mut all = vec![None; 2 * count];
    for (at, interval) in members.into_iter().zip(intervals) {
        all[at] = interval;
    }
    let memory = all.split_off(count);
    (all, memory)
}

/// What went wrong, each once, and how often.
pub fn tally(failures: &[String]) -> Vec<(String, u32)> {
    let mut all: Vec<(String, u32)> = Vec::new();
    for failure in failures {
        match all.iter_mut().find(|(what, _)| what == failure) {
            Some((_, count)) => *count += 1,
            None => all.push((failure.clone(), 1)),
        }
    }
    all
}

fn row(
    request: &Request,
    study: &Study,
    subject: &Subject,
    own_ns: f64,
    time_ratio: Option<Interval>,
    memory_ratio: Option<Interval>,
) -> Row {
    Row {
        name: subject.name.clone(),
        served_by: subject.served_by.clone(),
        refused: subject.refused.clone(),
        collector: subject.collector.clone(),
        failures: tally(&subject.failures),
        time: time(subject, own_ns, time_ratio),
        latency: latency(subject),
        memory: memory(study, subject, memory_ratio),
        drift: (request.repetitions > 1).then(|| drifts(study, subject)).flatten(),
    }
}

fn time(subject: &Subject, own_ns: f64, ratio: Option<Interval>) -> Option<Time> {
    let runs: Vec<&Run> = subject.of(Pass::Throughput).collect();
    let calls = runs.first()?.outcome.calls as f64;
    let of = |figure: &dyn Fn(&Run) -> f64| runs.iter().map(|run| figure(run)).collect::<Vec<f64>>();
    let net = of(&|run| net_ns(run, own_ns));
    Some(Time {
        cpu_s: median(&net) * calls / 1e9,
        ns_per_call: median(&net),
        ns_range: (
            net.iter().copied().fold(f64::INFINITY, f64::min),
            net.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        ),
        ratio,
        faults: median(&of(&|run| (run.outcome.minor_faults + run.outcome.major_faults) as f64)),
        waited_s: median(&of(&|run| run.outcome.waited_ns as f64 / 1e9)),
    })
}

fn latency(subject: &Subject) -> Option<Latencies> {
    let all: Vec<&Latencies> =
        subject.of(Pass::Latency).filter_map(|run| run.outcome.latency.as_ref()).collect();
    all.first()?;
    let of = |kind: fn(&Latencies) -> &Percentiles| {
        let middle = |figure: fn(&Percentiles) -> f64| {
            median(&all.iter().map(|one| figure(kind(one))).collect::<Vec<f64>>())
        };
        Percentiles {
            calls: all.first().map_or(0, |one| kind(one).calls),
            mean: middle(|one| one.mean),
            p50: middle(|one| one.p50),
            p90: middle(|one| one.p90),
            p99: middle(|one| one.p99),
            p99_9: middle(|one| one.p99_9),
            p99_99: middle(|one| one.p99_99),
            max: middle(|one| one.max),
        }
    };
    Some(Latencies {
        allocate: of(|one| &one.allocate),
        resize: of(|one| &one.resize),
        free: of(|one| &one.free),
        clock_ns: median(&all.iter().map(|one| one.clock_ns).collect::<Vec<f64>>()),
    })
}

fn memory(study: &Study, subject: &Subject, ratio: Option<Interval>) -> Option<Memory> {
    let runs: Vec<&Run> = subject.of(Pass::Memory).collect();
    let first = runs.first()?;
    let of = |figure: &dyn Fn(&Run) -> f64| median(&runs.iter().map(|run| figure(run)).collect::<Vec<f64>>());
    let start = of(&|run| start_bytes(run, study));
    let reported: Vec<f64> =
        runs.iter().filter_map(|run| run.reported_high_water_bytes).map(|bytes| bytes as f64).collect();
    let mut checkpoints: Vec<Checkpoint> =
        first.outcome.checkpoints.iter().filter(|one| one.repetition == 0).copied().collect();
    // What the manager held before the first call is the heap's, too.
    checkpoints.iter_mut().for_each(|one| one.rss_bytes += start as u64);
    let peak = of(&|run| peak_rss(run, study));
    let max_live_bytes = first.outcome.max_live_bytes;
    Some(Memory {
        peak_rss_bytes: peak,
        ratio,
        end_rss_bytes: of(&|run| {
            run.outcome.repetitions.last().map_or(0.0, |last| last.end_rss_bytes as f64)
                + start_bytes(run, study)
        }),
        start_bytes: start,
        peak_heap_bytes: of(&|run| run.outcome.peak_heap_bytes as f64),
        reported_high_water_bytes: (!reported.is_empty()).then(|| median(&reported)),
        max_live_bytes,
        peak_ratio: peak / (max_live_bytes.max(1)) as f64,
        mean_ratio: mean_ratio(&checkpoints),
        checkpoints,
    })
}

/// Resident bytes to live ones, each integrated over the byte clock.
fn mean_ratio(checkpoints: &[Checkpoint]) -> Option<f64> {
    let (mut resident, mut live) = (0.0, 0.0);
    for pair in checkpoints.windows(2) {
        let bytes = pair[1].clock_bytes.saturating_sub(pair[0].clock_bytes) as f64;
        resident += bytes * pair[1].rss_bytes as f64;
        live += bytes * pair[1].live_bytes as f64;
    }
    (live > 0.0).then_some(resident / live)
}

fn drifts(study: &Study, subject: &Subject) -> Option<Drift> {
    let runs: Vec<&Run> = subject.of(Pass::Memory).collect();
    let length = runs.iter().map(|run| run.outcome.repetitions.len()).min()?;
    let at = |number: usize, figure: fn(&Repetition) -> u64| {
        let of = |run: &&Run| figure(&run.outcome.repetitions[number]) as f64 + start_bytes(run, study);
        median(&runs.iter().map(of).collect::<Vec<f64>>()) as u64
    };
    let repetitions = (0..length)
        .map(|number| Repetition {
            high_water_bytes: at(number, |one| one.high_water_bytes),
            end_rss_bytes: at(number, |one| one.end_rss_bytes),
            freed_rss_bytes: at(number, |one| one.freed_rss_bytes),
        })
        .collect();
    let cpus = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    Some(drift(repetitions, cpus * (256 << 10)))
}

fn fidelity(request: &Request, study: &Study, rows: &[Row]) -> Option<Fidelity> {
    let ending = study.ending.as_ref()?;
    if request.copies > 1 || request.repetitions > 1 || study.header.manager.is_empty() {
        return None;
    }
    let recorded = &study.header.manager;
    let at = request.stacks.iter().position(|stack| {
        // Layers change what a manager does: a stack is known by its name alone.
        let is_object = matches!(&stack.preload[..], [object] if object.display().to_string() == *recorded);
        stack.name == *recorded || is_object
    })?;
    let row = &rows[at];
    let memory = row.memory.as_ref()?;
    Some(Fidelity {
        manager: row.name.clone(),
        max_live_bytes: (ending.max_live_bytes, memory.max_live_bytes),
        peak_heap_bytes: ending
            .peak_heap_bytes
            .filter(|bytes| *bytes > 0 && memory.peak_heap_bytes > 0.0)
            .map(|bytes| (bytes, memory.peak_heap_bytes)),
        peak_rss_bytes: ending.peak_rss_kib.map(|kib| (kib * 1024, memory.peak_rss_bytes)),
        cpu_s: ending.cpu_s.zip(row.time.map(|time| time.cpu_s)),
    })
}

fn warnings(request: &Request, study: &Study, rows: &[Row]) -> Vec<String> {
    let mut all = study.warnings.clone();
    let facts = &study.facts;
    let mut count = |number: u64, one: &str, many: &str| {
        if number > 0 {
            all.push(if number == 1 { format!("1 {one}") } else { format!("{number} {many}") });
        }
    };
    count(
        facts.unknown,
        "call was left out: its object was made in a gap of the trace",
        "calls were left out: their objects were made in a gap of the trace",
    );
    count(
        facts.overtaken,
        "object was freed late: its free is in a gap of the trace",
        "objects were freed late: their frees are in a gap of the trace",
    );
    count(
        facts.foreign,
        "call was left out: the trace does not know its block",
        "calls were left out: the trace does not know their blocks",
    );
    if study.orders.1 == Order::Exact {
        for row in rows {
            let counted = row.memory.as_ref().map(|memory| memory.max_live_bytes);
            if let Some(counted) = counted.filter(|counted| *counted != facts.max_live_bytes) {
                all.push(format!(
                    "under {} the driver counted at most {counted} live bytes, but the trace has {}: a defect of \
                     heaptoll, please report it",
                    row.name, facts.max_live_bytes
                ));
            }
        }
    }
    if (request.runs as usize) < heaptoll_statistics::FEWEST_PAIRS && request.stacks.len() > 1 {
        all.push(format!(
            "fewer than {} runs: the brackets are ranges, and no difference is claimed",
            heaptoll_statistics::FEWEST_PAIRS
        ));
    }
    all
}
