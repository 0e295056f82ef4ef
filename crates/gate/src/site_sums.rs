//! What each call site of one recording requested, and what it had alive: a trace read stack by stack.
//!
//! Stacks that are the same to a reader are merged before anything is counted, so that a recursion with a million
//! different stacks takes one row.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use heaptoll_callsites::{Frame, Paths};
use heaptoll_profiles::Measure;
use heaptoll_trace::{Event, EventKind, MEMORY_LIMIT, Memory, Sites};
use heaptoll_trace_analysis::feed::feed;
use heaptoll_trace_analysis::stacks::CallSites;
use heaptoll_trace_analysis::stat::{EACH_OBJECT, Stat, StatFigures};
use heaptoll_trace_analysis::subject::Subject;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use heaptoll_command::failure::Failure;
use heaptoll_command::foreign::{self, ReadProfile};
use heaptoll_command::trace_source;

/// Sites that are distinguished, as many as an analysis keeps; all further ones are one.
const ROWS: usize = (1 << 20) - 1;

/// The figures of one call site.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Sums {
    /// Bytes that its calls requested; of a resize the whole new size.
    pub(super) bytes: u64,
    /// Calls that it made: of allocations and of resizes.
    pub(super) calls: u64,
    /// Bytes of its objects when the program had most bytes alive.
    pub(super) live: u64,
    /// Bytes of its objects that were never freed.
    pub(super) exit: u64,
    /// Of a sampled profile: how far these are estimates.
    pub(super) variance: Variances,
    /// Of a sampled profile: the size of its smallest objects, by call stack.
    pub(super) least_size: Option<f64>,
}

/// The variances of a call site's figures.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Variances {
    pub(super) bytes: f64,
    pub(super) calls: f64,
    pub(super) exit: f64,
}

impl Sums {
    /// Adds those of another.
    pub(super) fn add(&mut self, other: Sums) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.calls = self.calls.saturating_add(other.calls);
        self.live = self.live.saturating_add(other.live);
        self.exit = self.exit.saturating_add(other.exit);
        self.variance.bytes += other.variance.bytes;
        self.variance.calls += other.variance.calls;
        self.variance.exit += other.variance.exit;
        self.least_size = match (self.least_size, other.least_size) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }
}

/// The sites of one build, by their paths.
#[derive(Debug, Default)]
pub(super) struct SiteSums {
    /// By the functions of the stack, from the allocation outward; empty where no stack is known.
    pub(super) rows: HashMap<Box<[u32]>, Sums>,
    /// Different call stacks before they were merged.
    pub(super) stacks: u64,
    /// What makes the sums incomplete.
    pub(super) warnings: Vec<String>,
    /// Whether something of a trace is damaged or missing.
    pub(super) are_damaged: bool,
    /// Which of the figures a profile of another tool has not.
    pub(super) lacks: BTreeSet<Lack>,
    /// The mean distance of samples; none where every byte was counted.
    pub(super) mean_bytes: Option<u64>,
}

/// A figure of call sites that is not known of one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lack {
    /// Bytes requested.
    Bytes,
    /// Calls.
    Calls,
    /// Bytes alive at the peak.
    Live,
    /// Bytes alive at the end.
    Exit,
}

/// The figures and what they are of a profile.
const OF_PROFILE: [(Lack, Measure); 4] = [
    (Lack::Bytes, Measure::AllocatedBytes),
    (Lack::Calls, Measure::AllocatedObjects),
    (Lack::Live, Measure::PeakBytes),
    (Lack::Exit, Measure::EndBytes),
];

impl SiteSums {
    /// Adds the sites of a trace, as if its recording had ended at `until_ns` from its beginning.
    ///
    /// # Errors
    /// It is no trace, has no call stacks, cannot be read, or needs more memory.
    pub(super) fn add(&mut self, trace: &Path, until_ns: u64, paths: &mut Paths) -> Result<(), Failure> {
        if let Some(found) = foreign::profile(trace, MEMORY_LIMIT)? {
            return self.add_profile(trace, until_ns, &found, paths);
        }
        let tables = heaptoll_trace::tables(trace).map_err(trace_source::refused)?;
        if !tables.header.sites {
            return Err(Failure::Usage(format!(
                "{} has no call stacks: record the program again with --sites",
                trace.display()
            )));
        }
        let numbered = Numbered::of(&tables.sites.unwrap_or_default(), paths);
        self.stacks += numbered.stacks;
        if numbered.further > 0 {
            self.warnings.push(format!(
                "{}: {} call sites beyond the first {ROWS} are shown as one",
                trace.display(),
                numbered.further
            ));
        }
        let (figures, requests) = sums(trace, until_ns, &numbered.rows)?;
        self.are_damaged |= !figures.subject.is_whole();
        let warnings = figures.subject.warnings.iter().cloned();
        let holes = figures.subject.gaps.iter().map(|hole| hole.why.clone());
        self.warnings.extend(warnings.chain(holes).map(|why| format!("{}: {why}", trace.display())));
        let mut sums = vec![Sums::default(); numbered.paths.len()];
        for (sum, (calls, bytes)) in sums.iter_mut().zip(requests) {
            (sum.calls, sum.bytes) = (calls, bytes);
        }
        for site in &figures.sites {
            if let Some(sum) = sums.get_mut(site.site as usize) {
                (sum.live, sum.exit) = (site.at_peak.bytes, site.at_exit.bytes);
            }
        }
        for (path, sum) in numbered.paths.into_iter().zip(sums) {
            self.rows.entry(path).or_default().add(sum);
        }
        Ok(())
    }
}

impl SiteSums {
    /// Adds the sites of another tool's profile.
    ///
    /// # Errors
    /// It has no times, so it cannot end earlier.
    fn add_profile(
        &mut self,
        file: &Path,
        until_ns: u64,
        found: &ReadProfile,
        paths: &mut Paths,
    ) -> Result<(), Failure> {
        if until_ns != u64::MAX {
            return Err(Failure::Usage(format!(
                "{} is a profile of sums, without the times of events: --between has no meaning for it",
                file.display()
            )));
        }
        let profile = &found.profile;
        let remarks = found.remarks.iter().map(|remark| format!("{}: {remark}", file.display()));
        self.warnings.extend(remarks);
        let lines: Vec<String> = profile.frames().iter().map(line).collect();
        let frames = profile.frames().iter().zip(&lines);
        let steps = paths.steps(frames.map(|(frame, line)| Frame {
            function: &frame.function,
            line,
            object: &frame.object,
            offset: frame.offset,
        }));
        let columns = OF_PROFILE.map(|(lack, measure)| {
            let column = profile.column(measure);
            self.lacks.extend(column.is_none().then_some(lack));
            column
        });
        let (mean_bytes, end_objects) = (profile.subject.sampled_bytes, profile.column(Measure::EndObjects));
        self.mean_bytes = self.mean_bytes.max(mean_bytes);
        for stack in profile.stacks() {
            self.stacks += u64::from(stack.call.is_some());
            let frames: Vec<u32> =
                profile.path(stack.call).map(|call| profile.calls()[call as usize].frame).collect();
            let value = |column: Option<usize>| column.map_or(0, |column| stack.values[column]);
            let [bytes, calls, live, exit] = columns.map(value);
            let (of_calls, of_bytes) = variances(calls, bytes, mean_bytes);
            let (_, of_exit) = variances(value(end_objects), exit, mean_bytes);
            let variance = Variances { bytes: of_bytes, calls: of_calls, exit: of_exit };
            let row = self.rows.entry(paths.path(&steps, &frames)).or_default();
            let least_size = (calls > 0).then(|| bytes as f64 / calls as f64);
            row.add(Sums { bytes, calls, live, exit, variance, least_size });
        }
        Ok(())
    }
}

/// The variances of estimated objects and of their bytes. Samples are `mean_bytes` apart on average, and every object is
/// taken to have the mean size.
pub(super) fn variances(objects: u64, bytes: u64, mean_bytes: Option<u64>) -> (f64, f64) {
    let Some(mean_bytes) = mean_bytes.filter(|_| objects > 0) else { return (0.0, 0.0) };
    let size = bytes as f64 / objects as f64;
    let sampled = -(-size / mean_bytes as f64).exp_m1();
    // Objects without bytes are never sampled.
    let each = if sampled > 0.0 { (1.0 - sampled) / sampled } else { 0.0 };
    (objects as f64 * each, bytes as f64 * size * each)
}

/// The frames of a trace or a profile, without their lines.
///
/// # Errors
/// It is neither, or cannot be read.
pub(super) fn frames(trace: &Path, each: &mut dyn FnMut(Frame)) -> Result<(), Failure> {
    let line = "";
    if let Some(found) = foreign::profile(trace, MEMORY_LIMIT)? {
        for frame in found.profile.frames() {
            each(Frame { function: &frame.function, line, object: &frame.object, offset: frame.offset });
        }
        return Ok(());
    }
    let tables = heaptoll_trace::tables(trace).map_err(trace_source::refused)?;
    for frame in tables.sites.iter().flat_map(|sites| &sites.frames) {
        each(Frame { function: &frame.function, line, object: &frame.object, offset: frame.offset });
    }
    Ok(())
}

/// `file:line` of a frame.
fn line(frame: &heaptoll_profiles::Frame) -> String {
    match frame.line {
        0 => frame.file.clone(),
        line => format!("{}:{line}", frame.file),
    }
}

/// The call stacks of a trace, each with the number of its path. Number 0 is that of unknown stacks.
struct Numbered {
    /// By the trace's number of the stack.
    rows: Vec<u32>,
    /// By number.
    paths: Vec<Box<[u32]>>,
    stacks: u64,
    /// Stacks that have no number of their own.
    further: u64,
}

impl Numbered {
    fn of(sites: &Sites, paths: &mut Paths) -> Numbered {
        let steps = paths.steps(sites.frames.iter().map(|frame| Frame {
            function: &frame.function,
            line: &frame.line,
            object: &frame.object,
            offset: frame.offset,
        }));
        let mut all = Numbered {
            rows: Vec::with_capacity(sites.sites.len()),
            paths: vec![[].into()],
            stacks: 0,
            further: 0,
        };
        let mut numbers: HashMap<Box<[u32]>, u32> = HashMap::from([([].into(), 0)]);
        for site in &sites.sites {
            let path = paths.path(&steps, &site.frames);
            all.stacks += u64::from(!site.frames.is_empty());
            let number = match numbers.get(&path) {
                Some(&number) => number,
                None if all.paths.len() >= ROWS => {
                    all.further += 1;
                    0
                }
                None => {
                    let number = all.paths.len() as u32;
                    all.paths.push(path.clone());
                    numbers.insert(path, number);
                    number
                }
            };
            all.rows.push(number);
        }
        all
    }
}

/// The figures of a trace up to a time, whose events have the numbers of paths in the place of their stacks; and calls and requested
/// bytes by number.
fn sums(trace: &Path, until_ns: u64, rows: &[u32]) -> Result<(StatFigures, Vec<(u64, u64)>), Failure> {
    let memory = Memory { limit_bytes: MEMORY_LIMIT, each_object_bytes: EACH_OBJECT as u64 };
    let reader = trace_source::open(trace, memory)?;
    let mut stat = Stat::new(false, true);
    let mut requests: Vec<(u64, u64)> = Vec::new();
    let mut events: Vec<Event> = Vec::new();
    let tables = feed(reader, |batch| {
        events.clear();
        for event in batch.events.iter().take_while(|event| event.time_ns < until_ns) {
            let row = rows.get(event.site as usize).copied().unwrap_or(0);
            if event.kind.allocates() || event.kind == EventKind::Realloc {
                add(&mut requests, row as usize, event.size);
            }
            events.push(Event { site: row, ..*event });
        }
        if batch.after_exit {
            stat.exit_begins();
        }
        stat.events(&events);
    })
    .map_err(trace_source::refused)?;
    let subject = Subject::new(&tables, stat.time_ns());
    let no_names = Sites::default();
    Ok((stat.figures(subject, &[], &mut CallSites::new(&no_names, 1)), requests))
}

fn add(requests: &mut Vec<(u64, u64)>, row: usize, bytes: u64) {
    if requests.len() <= row {
        requests.resize(row + 1, (0, 0));
    }
    let (calls, sum) = &mut requests[row];
    (*calls, *sum) = (*calls + 1, sum.saturating_add(bytes));
}
