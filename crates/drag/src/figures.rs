//! The results for a process image, as serialised to JSON.

use std::collections::HashMap;

use heaptoll_callsites::{Rows, Sum};
use heaptoll_profiles::Profile;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::drag::{Drag, Reuse};
use crate::group::{self, Group};
use crate::pointers::Pointers;
use crate::space::Space;
use crate::stamp::Clock;
use crate::timeline::Interval;

/// Most sites listed; those with less drag are summed.
const SITES: usize = 500;
/// A collector counts as reclaiming at a free if it allocated at least this part of the reused blocks again without a
/// collection in between: the program may have hidden the addresses of a few from it.
const RECLAIMS_AT_FREE: f64 = 0.01;

/// All results for one process image.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figures {
    /// Clock at the end: instructions of the program itself.
    pub instructions: u64,
    /// Clock at the end: bytes allocated.
    pub bytes_allocated: u64,
    /// References by owner.
    pub references: References,
    /// All objects.
    pub all: GroupFigures,
    /// Most requested bytes alive at once.
    pub most_bytes: u64,
    /// By size class, rising; a resized object counts with its last size.
    pub classes: Vec<GroupFigures>,
    /// By call site, most drag and void first; empty without sites.
    pub sites: Vec<GroupFigures>,
    /// The sum of sites that are not listed.
    pub other_sites: Option<GroupFigures>,
    /// Bytes by phase over time.
    pub over_time: OverTime,
    /// Results under a collector.
    pub collector: Option<CollectorFigures>,
    /// Stores of pointers, if they were requested.
    pub pointers: Option<PointerFigures>,
    /// Frees and reallocs of unknown blocks: allocated before a fork, or by other means than the malloc family.
    pub unknown_frees: u64,
    /// Objects at addresses where no program has memory.
    pub unplaced: u64,
}

/// Data references.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct References {
    /// The program's.
    pub program: u64,
    /// Of these, those into objects.
    pub program_in_objects: u64,
    /// The malloc family's.
    pub allocator: u64,
    /// Collections'.
    pub collector: u64,
}

/// Objects of a size class or call site, or all.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupFigures {
    /// `33 to 64`, a call site; `all`.
    pub name: String,
    /// For a call site: all frames of the stack with the most drag and void, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<String>,
    /// For a call site: number of call stacks that read as `name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stacks: Option<u64>,
    /// All objects.
    pub all: Sum,
    /// Those never touched.
    pub never_touched: Sum,
    /// Those that existed at the end of the process.
    pub not_freed: Sum,
    /// Those that the program did not free and the collector reclaimed.
    pub reclaimed: Sum,
    /// Those whose end was not seen: they count as ended when their address was allocated again.
    pub lost: Sum,
    /// Bytes x instructions, by phase.
    pub space_instructions: Space,
    /// Bytes x bytes allocated, by phase.
    pub space_bytes: Space,
    /// The part of objects that existed at the end.
    pub not_freed_space_instructions: Space,
    /// The same on the clock of bytes.
    pub not_freed_space_bytes: Space,
}

impl GroupFigures {
    fn new(name: String, frames: Vec<String>, group: &Group) -> GroupFigures {
        GroupFigures {
            name,
            frames,
            stacks: None,
            all: group.all,
            never_touched: group.void,
            not_freed: group.kept,
            reclaimed: group.reclaimed,
            lost: group.lost,
            space_instructions: *group.spaces.on(Clock::Instructions),
            space_bytes: *group.spaces.on(Clock::Bytes),
            not_freed_space_instructions: *group.kept_spaces.on(Clock::Instructions),
            not_freed_space_bytes: *group.kept_spaces.on(Clock::Bytes),
        }
    }

    /// Its space-time on a clock.
    pub fn space(&self, clock: Clock) -> &Space {
        match clock {
            Clock::Instructions => &self.space_instructions,
            Clock::Bytes => &self.space_bytes,
        }
    }

    /// The space-time of objects that existed at the end.
    pub fn not_freed_space(&self, clock: Clock) -> &Space {
        match clock {
            Clock::Instructions => &self.not_freed_space_instructions,
            Clock::Bytes => &self.not_freed_space_bytes,
        }
    }
}

/// Curves, by clock.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverTime {
    /// Over instructions of the program.
    pub instructions: Vec<Interval>,
    /// Over bytes allocated.
    pub bytes: Vec<Interval>,
}

impl OverTime {
    /// On a clock.
    pub fn on(&self, clock: Clock) -> &[Interval] {
        match clock {
            Clock::Instructions => &self.instructions,
            Clock::Bytes => &self.bytes,
        }
    }
}

/// How a collector treated freed blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CollectorFigures {
    /// Collections that it announced.
    pub collections: u64,
    /// Whether it reclaims a block when it is freed, as observed: then no freed block waits for it.
    pub reclaims_at_free: bool,
    /// The observation.
    pub freed_blocks: Reuse,
}

/// Stores of pointers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PointerFigures {
    /// Number of stores.
    #[serde(flatten)]
    pub stores: Pointers,
    /// The program's stores of pointers to younger objects into older ones, per 1000 of its instructions.
    pub older_to_younger_per_1000_instructions: f64,
    /// All stores of pointers by the program, per 1000 of its instructions.
    pub program_per_1000_instructions: f64,
}

/// Options for the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FigureOptions {
    /// The clock by which sites are sorted.
    pub clock: Clock,
    /// Whether call sites were recorded.
    pub sites: bool,
    /// Frames of a call site that the tracer recorded at most.
    pub depth: usize,
    /// Whether stores of pointers were recorded.
    pub pointers: bool,
    /// Number of frames of the program's own code that name a site.
    pub frames: usize,
}

/// Call stacks that read alike.
#[derive(Default)]
struct Site {
    /// The stack with the most drag and void.
    number: u32,
    /// The drag and void of that stack.
    most_idle: u128,
    stacks: u64,
    sum: Group,
}

impl Drag {
    /// Ends every object that is left, and sums up.
    pub fn figures(self, options: FigureOptions) -> Figures {
        self.figures_and_stacks(options).0
    }

    /// The same, and the objects by call stack where these were recorded.
    pub fn figures_and_stacks(mut self, options: FigureOptions) -> (Figures, Option<Profile>) {
        self.finish();
        let figures = self.ended(options);
        let stacks = options.sites.then(|| self.stacks(options.clock, options.depth));
        (figures, stacks)
    }

    /// What is summed up when all objects have ended.
    fn ended(&mut self, options: FigureOptions) -> Figures {
        let collector = self.manager.collector.then(|| {
            let blocks = self.reuse;
            let given_out = blocks.by_free.objects + blocks.after_collection.objects;
            let part = blocks.by_free.objects as f64 / given_out.max(1) as f64;
            let reclaims_at_free = part >= RECLAIMS_AT_FREE;
            CollectorFigures { collections: self.collections, reclaims_at_free, freed_blocks: blocks }
        });
        let waits = collector.is_some_and(|collector| !collector.reclaims_at_free);
        let seen = |group: &Group| if waits { *group } else { group.without_waiting() };
        let [instructions, bytes_allocated] = self.now.0;
        let mut intervals = |clock: Clock| {
            let mut intervals = self.curves.0[clock as usize].intervals(self.now[clock]);
            if !waits {
                intervals.iter_mut().for_each(|interval| interval.unreclaimed_bytes = 0.0);
            }
            intervals
        };
        let over_time =
            OverTime { instructions: intervals(Clock::Instructions), bytes: intervals(Clock::Bytes) };
        let classes = self.groups.classes.iter().enumerate().filter(|(_, group)| group.all.objects > 0);
        let classes = classes.map(|(class, group)| {
            let name = match group::borders(class) {
                (from, to) if from == to => from.to_string(),
                (from, to) => format!("{from} to {to}"),
            };
            GroupFigures::new(name, Vec::new(), &seen(group))
        });
        let classes = classes.collect();
        let (sites, other_sites) = match options.sites {
            true => self.by_site(options, seen),
            false => (Vec::new(), None),
        };
        let [program, allocator, collections] = self.references_by_owner;
        let per_1000 = |stores: u64| stores as f64 * 1000.0 / instructions.max(1) as f64;
        Figures {
            instructions,
            bytes_allocated,
            references: References {
                program,
                program_in_objects: self.hits,
                allocator,
                collector: collections,
            },
            all: GroupFigures::new("all".into(), Vec::new(), &seen(&self.groups.all())),
            most_bytes: self.most_bytes,
            classes,
            sites,
            other_sites,
            over_time,
            collector,
            pointers: options.pointers.then(|| PointerFigures {
                stores: self.pointers,
                older_to_younger_per_1000_instructions: per_1000(self.pointers.program.older_to_younger),
                program_per_1000_instructions: per_1000(self.pointers.program.all),
            }),
            unknown_frees: self.unknown,
            unplaced: self.unplaced,
        }
    }

    fn by_site(
        &self,
        options: FigureOptions,
        seen: impl Fn(&Group) -> Group,
    ) -> (Vec<GroupFigures>, Option<GroupFigures>) {
        let idle = |group: &Group| group.spaces.on(options.clock).idle();
        let mut rows = Rows::new(options.frames);
        let mut merged: HashMap<usize, Site> = HashMap::new();
        let groups = self.groups.sites.iter().enumerate();
        for (number, group) in groups.filter(|(_, group)| group.all.objects > 0) {
            let (number, group) = (number as u32, seen(group));
            let site = merged.entry(self.sites.row(number, &mut rows)).or_default();
            if site.stacks == 0 || idle(&group) > site.most_idle {
                (site.number, site.most_idle) = (number, idle(&group));
            }
            site.stacks += 1;
            site.sum = site.sum.plus(&group);
        }
        let mut sites: Vec<(usize, Site)> = merged.into_iter().collect();
        sites.sort_by_key(|(_, site)| (std::cmp::Reverse(idle(&site.sum)), site.number));
        let rest = sites.split_off(sites.len().min(SITES));
        let others = rest.iter().fold(seen(&self.groups.others), |sum, (_, site)| sum.plus(&site.sum));
        let listed = sites.iter().map(|(row, site)| GroupFigures {
            stacks: Some(site.stacks),
            ..GroupFigures::new(rows.name(*row), self.sites.frames(site.number), &site.sum)
        });
        let others = (others.all.objects > 0)
            .then(|| GroupFigures::new(format!("{} others", rest.len()), Vec::new(), &others));
        (listed.collect(), others)
    }
}
