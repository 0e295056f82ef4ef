//! A program under several managers, compared: the figures that `heaptoll exact locality` shows and writes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::distance::curve::Curve;
use crate::forest::Associative;
use crate::hierarchy::all;
use crate::image::{ImageResult, Levels};
use crate::machine::Machine;
use crate::over_time::Scale;
use crate::placement::{Misses, Parts, other_work};
use crate::simulation::{Accessor, Partial, Split};

/// Points of a curve in each doubling of its size.
const PER_OCTAVE: u32 = 4;
/// Entries of the smallest cache of a curve.
const FEWEST_LINES: u64 = 64;
/// Ways of the caches in which placement is separated over sizes.
pub const PLACEMENT_WAYS: u32 = 8;
/// Memories in which faults are separated, in parts of the pages that the baseline touches.
pub const TIGHT: [(u64, u64); 3] = [(1, 4), (1, 2), (3, 4)];
/// TLBs that are shown, entries.
const TLB: [u64; 5] = [16, 64, 256, 1024, 4096];
/// Most samples of a working set for a graph.
const DRAWN: usize = 512;

/// Misses with one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Lines or pages it holds.
    pub entries: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// By accessor.
    pub by: Split<u64>,
    /// All.
    pub misses: u64,
    /// Lower end of the interval that contains the misses with a probability of 0.95; equal to `high` if they are
    /// counted, not estimated.
    pub low: u64,
    /// Upper end; see `low`.
    pub high: u64,
}

/// What to report besides the curves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StudyOptions {
    /// Fully associative caches, bytes, ascending.
    pub caches: Vec<u64>,
    /// Memories, bytes, besides the [`TIGHT`] ones.
    pub memories: Vec<u64>,
    /// Working sets over this many references of the program: the nearest available. `None`: the shortest that can be
    /// drawn.
    pub window: Option<u64>,
}

/// Facts of a run besides the simulation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunInfo {
    /// The manager, as its row is named.
    pub manager: String,
    /// Its version.
    pub version: String,
    /// Executable and arguments of the process image that the figures describe: the one with the most instructions.
    pub main: Vec<String>,
    /// Process images of the run.
    pub images: usize,
    /// Share of the run's references that the other images made.
    pub others_share: f64,
    /// Instructions of program, allocator, collector.
    pub instructions: [u64; 3],
    /// Loads of program, allocator, collector.
    pub loads: [u64; 3],
    /// Stores of program, allocator, collector.
    pub stores: [u64; 3],
    /// Messages for the user about this run.
    pub warnings: Vec<String>,
    /// Why it is not the whole run, if it is not.
    pub cut_short: Option<String>,
}

/// A level of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LevelMisses {
    /// 1 is the nearest.
    pub level: usize,
    /// Its size.
    pub bytes: u64,
    /// Its ways.
    pub ways: u32,
    /// Its line, bytes.
    pub line: u64,
    /// Misses by accessor; loads and stores separately.
    pub by: Split<crate::hierarchy::Counts>,
    /// All.
    pub misses: u64,
}

/// Misses of one cache by their cause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cause {
    /// Which cache: `32K/8`, `memory 340K`, `stall cycles`.
    pub cache: String,
    /// Its size; 0 for stall cycles.
    pub bytes: u64,
    /// All.
    pub misses: u64,
    /// By cause; sums to all.
    pub parts: Parts,
    /// Excess over the baseline, by cause; sums to the difference of all. `None` for the baseline itself.
    pub more: Option<Parts>,
}

/// Placement separated, if the program was also simulated alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Placement {
    /// In each level of the machine, nearest first.
    pub machine: Vec<Cause>,
    /// In estimated cycles of waiting.
    pub stall_cycles: Cause,
    /// In caches of [`PLACEMENT_WAYS`] ways, ascending.
    pub caches: Vec<Cause>,
    /// Page faults of tight memories, ascending.
    pub memories: Vec<Cause>,
}

/// A window and its working sets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// References of the program.
    pub window: u64,
    /// Windows in the run.
    pub windows: u64,
    /// Lines touched in one, on average.
    pub mean_lines: f64,
    /// Pages.
    pub mean_pages: f64,
}

/// A manager.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// The run.
    #[serde(flatten)]
    pub about: RunInfo,
    /// References by accessor.
    pub references: Split<u64>,
    /// References of the program under the baseline: the divisor of rates, the same for all rows.
    pub rate_references: u64,
    /// Relative difference of the program's own references from `main` on to the baseline's, if it is more than 0.1 %
    /// and not a few: then it did other work, and the rows cannot be compared.
    pub other_work: Option<f64>,
    /// Different lines touched.
    pub lines_touched: u64,
    /// Different pages touched.
    pub pages_touched: u64,
    /// Fully associative caches.
    pub fully_associative: Vec<Point>,
    /// The largest of them that was counted on all lines; larger ones are estimated from a sample. `None`: all are
    /// counted.
    pub exact_up_to_bytes: Option<u64>,
    /// Set-associative caches.
    pub associative: Vec<Associative>,
    /// Memories: page faults. An entry is a page, so these are TLBs of every reach too.
    pub memories: Vec<Point>,
    /// Fully associative caches of the sizes requested.
    pub caches_at: Vec<Point>,
    /// Memories of parts of what the baseline touches ([`TIGHT`] and all of it) and of the sizes requested, ascending.
    pub memories_at: Vec<Point>,
    /// TLBs of some numbers of entries.
    pub tlbs_at: Vec<Point>,
    /// The machine's caches.
    pub machine: Vec<LevelMisses>,
    /// Estimated cycles that references wait, by accessor.
    pub stall_cycles: Split<u64>,
    /// Mean working sets of every window.
    pub windows: Vec<Window>,
    /// Working sets over the run, of one window that is the same for all rows.
    pub over_time: Option<Scale>,
    /// The program's misses when it is simulated alone.
    pub alone: Option<Alone>,
    /// Misses by cause.
    pub placement: Option<Placement>,
    /// Why the end of the run was not simulated.
    pub partial: Option<Partial>,
    /// Memory of the simulators, bytes.
    pub simulators_bytes: u64,
}

/// Misses of the program when only its own references are simulated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Alone {
    /// Set-associative caches.
    pub associative: Vec<Associative>,
    /// Memories.
    pub memories: Vec<Point>,
    /// The machine's caches.
    pub machine: Vec<LevelMisses>,
}

/// A program under several managers, the baseline first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Study {
    /// Bytes of a line.
    pub line_bytes: u64,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// The machine simulated level by level.
    pub machine: Machine,
    /// One a manager.
    pub rows: Vec<Row>,
}

fn points(curve: &Curve, fewest: u64) -> Vec<Point> {
    let mut sizes: Vec<u64> = curve.sizes(PER_OCTAVE).into_iter().filter(|size| *size >= fewest).collect();
    // Beyond what is touched a curve is flat; one more point shows it.
    sizes.push((curve.distinct + 1).next_power_of_two().max(fewest));
    sizes.into_iter().map(|entries| point(curve, entries)).collect()
}

/// Misses with this many entries.
fn point(curve: &Curve, entries: u64) -> Point {
    let misses = curve.misses(entries);
    Point {
        entries,
        bytes: entries * curve.entry_bytes,
        by: Split::of(|accessor| misses.by.get(accessor).value),
        misses: misses.total.value,
        low: misses.total.low,
        high: misses.total.high,
    }
}

fn levels(machine: &Machine, levels: &Levels) -> Vec<LevelMisses> {
    let numbered = machine.levels.iter().zip(levels).enumerate();
    numbered
        .map(|(at, (level, by))| LevelMisses {
            level: at + 1,
            bytes: level.bytes,
            ways: level.ways,
            line: level.line,
            by: *by,
            misses: all(by).total(),
        })
        .collect()
}

fn stalls(machine: &Machine, levels: &Levels) -> Split<u64> {
    Split::of(|accessor| {
        let misses: Vec<u64> = levels.iter().map(|level| level.get(accessor).total()).collect();
        u64::try_from(machine.stall_cycles(&misses)).unwrap_or(u64::MAX)
    })
}

/// The finest scale that keeps its samples under all managers and has no more than can be drawn.
fn common_window(result: &[&ImageResult], requested: Option<u64>) -> Option<u64> {
    let kept = |window: u64| {
        result
            .iter()
            .all(|one| one.over_time.iter().any(|scale| scale.window == window && !scale.samples.is_empty()))
    };
    let all = || result.iter().flat_map(|one| &one.over_time);
    let drawable = |scale: &&Scale| kept(scale.window) && scale.samples.len() <= DRAWN;
    match requested {
        None => all().filter(drawable).map(|scale| scale.window).min(),
        Some(requested) => all()
            .map(|scale| scale.window)
            .filter(|window| kept(*window))
            .min_by_key(|w| w.abs_diff(requested)),
    }
}

/// Pages of tight memories for a program that touches this many under the baseline.
pub fn tight(touched: u64) -> impl Iterator<Item = u64> {
    TIGHT.into_iter().map(move |(part, of)| (touched * part / of).max(1))
}

fn cause(cache: String, bytes: u64, misses: Misses, baseline: Option<Misses>) -> Cause {
    let parts = misses.parts();
    Cause {
        cache,
        bytes,
        misses: misses.total(),
        parts,
        more: baseline.map(|one| parts.more_than(one.parts())),
    }
}

fn placement(
    machine: &Machine,
    page: u64,
    result: &ImageResult,
    baseline: &ImageResult,
    is_baseline: bool,
) -> Option<Placement> {
    let (alone, alone_levels) = result.alone.as_ref()?;
    let other = |misses: Option<Misses>| if is_baseline { None } else { misses };
    let of_level = |(at, level): (usize, &crate::machine::Level)| {
        let name = format!("{}/{}", heaptoll_units::size_text(level.bytes), level.ways);
        Some(cause(name, level.bytes, result.level(at)?, other(baseline.level(at))))
    };
    let waits = |one: &ImageResult| {
        let (_, alone) = one.alone.as_ref()?;
        Some(Misses { mixed: stalls(machine, &one.machine), alone: stalls(machine, alone) })
    };
    debug_assert_eq!(alone_levels.len(), machine.levels.len());
    let ways = alone.associative.iter().filter(|cache| cache.ways == PLACEMENT_WAYS);
    let of_cache = |cache: &Associative| {
        let (sets, ways) = (cache.sets, cache.ways);
        let name = format!("{}/{ways}", heaptoll_units::size_text(cache.bytes));
        Some(cause(
            name,
            cache.bytes,
            result.associative(sets, ways)?,
            other(baseline.associative(sets, ways)),
        ))
    };
    let of_memory = |pages: u64| {
        let name = format!("memory {}", heaptoll_units::size_text(pages * page));
        Some(cause(name, pages * page, result.pages(pages)?, other(baseline.pages(pages))))
    };
    Some(Placement {
        machine: machine.levels.iter().enumerate().filter_map(of_level).collect(),
        stall_cycles: cause("stall cycles".into(), 0, waits(result)?, other(waits(baseline))),
        caches: ways.filter_map(of_cache).collect(),
        memories: tight(baseline.pages_touched()).filter_map(of_memory).collect(),
    })
}

/// Compares runs; the first is the baseline. `None` without any.
pub fn study(machine: &Machine, runs: &[(RunInfo, ImageResult)], options: &StudyOptions) -> Option<Study> {
    let (_, baseline) = runs.first()?;
    let (line, page) = (baseline.profile.line_bytes, baseline.profile.page_bytes);
    let own = baseline.profile.references.program;
    let window = common_window(&runs.iter().map(|(_, result)| result).collect::<Vec<_>>(), options.window);
    let touched = baseline.pages_touched();
    let mut memories_at: Vec<u64> = tight(touched).chain([touched]).collect();
    memories_at.extend(options.memories.iter().map(|bytes| bytes / page));
    memories_at.sort_unstable();
    memories_at.dedup();
    let at = |curve: Option<&Curve>, sizes: &mut dyn Iterator<Item = u64>| -> Vec<Point> {
        curve.map_or(vec![], |curve| sizes.map(|entries| point(curve, entries)).collect())
    };
    let rows = runs.iter().enumerate().map(|(index, (about, result))| {
        let profile = &result.profile;
        let lines = profile.lines.as_ref();
        let memories = |curve: &Option<Curve>| curve.as_ref().map_or(vec![], |curve| points(curve, 1));
        Row {
            about: about.clone(),
            references: profile.references,
            rate_references: own,
            other_work: {
                let (expected, made) = baseline.work(result);
                other_work(expected, made)
            },
            lines_touched: result.lines_touched(),
            pages_touched: result.pages_touched(),
            fully_associative: lines.map_or(vec![], |curve| points(curve, FEWEST_LINES)),
            exact_up_to_bytes: lines.and_then(Curve::exact_up_to).map(|lines| lines * line),
            associative: profile.associative.clone(),
            memories: memories(&profile.pages),
            caches_at: at(lines, &mut options.caches.iter().map(|bytes| bytes / line)),
            memories_at: at(profile.pages.as_ref(), &mut memories_at.iter().copied()),
            tlbs_at: at(profile.pages.as_ref(), &mut TLB.into_iter()),
            machine: levels(machine, &result.machine),
            stall_cycles: stalls(machine, &result.machine),
            windows: result
                .over_time
                .iter()
                .map(|scale| Window {
                    window: scale.window,
                    windows: scale.windows,
                    mean_lines: scale.mean_lines,
                    mean_pages: scale.mean_pages,
                })
                .collect(),
            over_time: result.over_time.iter().find(|scale| Some(scale.window) == window).cloned(),
            alone: result.alone.as_ref().map(|(profile, own)| Alone {
                associative: profile.associative.clone(),
                memories: memories(&profile.pages),
                machine: levels(machine, own),
            }),
            placement: placement(machine, page, result, baseline, index == 0),
            partial: profile.partial,
            simulators_bytes: profile.memory_bytes
                + result.alone.as_ref().map_or(0, |(profile, _)| profile.memory_bytes),
        }
    });
    Some(Study { line_bytes: line, page_bytes: page, machine: machine.clone(), rows: rows.collect() })
}

impl Row {
    /// Misses for each thousand references that the program made under the baseline: the same thousand under every
    /// manager, so rates compare as counts do.
    pub fn per_thousand(&self, misses: u64) -> f64 {
        misses as f64 * 1000.0 / self.rate_references.max(1) as f64
    }

    /// Share of all references that this accessor made.
    pub fn share(&self, accessor: Accessor) -> f64 {
        *self.references.get(accessor) as f64 / self.references.total().max(1) as f64
    }

    /// An associative cache of this size and number of ways.
    pub fn associative(&self, bytes: u64, ways: u32) -> Option<&Associative> {
        self.associative.iter().find(|cache| cache.bytes == bytes && cache.ways == ways)
    }
}
