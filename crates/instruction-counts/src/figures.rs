//! The results for a process image: plain values, which serialise.

use std::collections::BTreeMap;

use heaptoll_reftrace::{Clock, Owner, Routine};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::class::SizeClass;
use crate::costs::Costs;
use crate::group::{Group, group};
use crate::phases::Phases;
use crate::tally::{CallCosts, Classes, Tally};

/// Instructions and data references.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Instructions {
    /// Instructions executed.
    pub instructions: u64,
    /// Loads.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
}

impl From<Clock> for Instructions {
    fn from(clock: Clock) -> Instructions {
        Instructions { instructions: clock.instructions, loads: clock.loads, stores: clock.stores }
    }
}

impl Instructions {
    fn plus(self, other: Instructions) -> Instructions {
        Instructions {
            instructions: self.instructions + other.instructions,
            loads: self.loads + other.loads,
            stores: self.stores + other.stores,
        }
    }
}

/// Instructions by the owner that executed them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Owners {
    /// The program itself: the application instructions.
    pub program: Instructions,
    /// Routines of the malloc family, but for collections.
    pub allocator: Instructions,
    /// Collections that were announced, and threads that the manager started.
    pub collector: Instructions,
}

/// Calls and their instructions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Calls that ended.
    pub calls: u64,
    /// Their instructions, collections included.
    pub instructions: u64,
    /// Those of them that collections took.
    pub collector_instructions: u64,
}

impl Counts {
    fn plus(self, other: Counts) -> Counts {
        Counts {
            calls: self.calls + other.calls,
            instructions: self.instructions + other.instructions,
            collector_instructions: self.collector_instructions + other.collector_instructions,
        }
    }

    fn per_call(self) -> Option<f64> {
        ratio(self.instructions, self.calls)
    }
}

/// The counts of each group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Groups {
    /// A block from nothing.
    pub allocate: Counts,
    /// A freed block.
    pub free: Counts,
    /// A block moved or resized.
    pub resize: Counts,
    /// A query of a block's size.
    #[serde(rename = "ask")]
    pub query: Counts,
}

impl Groups {
    fn of(&mut self, group: Group) -> &mut Counts {
        match group {
            Group::Allocate => &mut self.allocate,
            Group::Free => &mut self.free,
            Group::Resize => &mut self.resize,
            Group::Query => &mut self.query,
        }
    }
}

/// What may be summed over process images; the published tables follow from it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Amounts {
    /// All instructions and references, by owner.
    pub owners: Owners,
    /// Calls by what they are for.
    pub groups: Groups,
    /// Blocks made from nothing, `realloc(NULL, n)` included.
    pub objects: u64,
    /// Bytes requested for them when they were made.
    pub object_bytes: u64,
    /// Collections that were announced.
    pub collections: u64,
    /// What they executed, by the phases that were announced.
    #[serde(default)]
    pub phases: Phases,
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn hundredths(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| 100.0 * part as f64 / whole as f64)
}

impl Amounts {
    /// The sum.
    pub fn plus(self, other: Amounts) -> Amounts {
        let (a, b) = (self, other);
        Amounts {
            owners: Owners {
                program: a.owners.program.plus(b.owners.program),
                allocator: a.owners.allocator.plus(b.owners.allocator),
                collector: a.owners.collector.plus(b.owners.collector),
            },
            groups: Groups {
                allocate: a.groups.allocate.plus(b.groups.allocate),
                free: a.groups.free.plus(b.groups.free),
                resize: a.groups.resize.plus(b.groups.resize),
                query: a.groups.query.plus(b.groups.query),
            },
            objects: a.objects + b.objects,
            object_bytes: a.object_bytes + b.object_bytes,
            collections: a.collections + b.collections,
            phases: a.phases.plus(b.phases),
        }
    }

    /// All instructions.
    pub fn instructions(&self) -> u64 {
        let owners = &self.owners;
        owners.program.instructions + owners.allocator.instructions + owners.collector.instructions
    }

    /// Allocation instructions: the allocator's and the collector's.
    pub fn allocation(&self) -> u64 {
        self.owners.allocator.instructions + self.owners.collector.instructions
    }

    /// The published tables' figures.
    pub fn tables(&self) -> Tables {
        let groups = &self.groups;
        let all = self.instructions();
        Tables {
            instructions_per_malloc: groups.allocate.per_call(),
            instructions_per_free: groups.free.per_call(),
            instructions_per_realloc: groups.resize.per_call(),
            instructions_per_object: ratio(self.allocation(), self.objects),
            percent_of_application: hundredths(self.allocation(), self.owners.program.instructions),
            percent_in_malloc: hundredths(groups.allocate.instructions, all),
            percent_in_free: hundredths(groups.free.instructions + groups.resize.instructions, all),
            percent_in_collector: hundredths(self.owners.collector.instructions, all),
        }
    }
}

/// The figures of the published tables. A dash (`null`) where the divisor is zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tables {
    /// Detlefs, Dosser & Zorn 1994, Table IV: instructions of a call that makes a block from nothing, collections
    /// included.
    pub instructions_per_malloc: Option<f64>,
    /// Table V: of a call that frees one.
    pub instructions_per_free: Option<f64>,
    /// Of a call that resizes one.
    pub instructions_per_realloc: Option<f64>,
    /// Table VI: all allocation instructions over objects made.
    pub instructions_per_object: Option<f64>,
    /// Table VII: all allocation instructions over the application's, per cent.
    pub percent_of_application: Option<f64>,
    /// Zorn 1992, Table 2: of all instructions in calls that make blocks, per cent.
    pub percent_in_malloc: Option<f64>,
    /// In calls that free or resize, as there, per cent.
    pub percent_in_free: Option<f64>,
    /// In collections and the manager's threads, per cent; those made in calls are in the two above too.
    pub percent_in_collector: Option<f64>,
}

/// Instructions of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpreadFigures {
    /// All instructions over calls.
    pub mean: f64,
    /// Half of the calls took no more.
    pub p50: u64,
    /// Nine in ten took no more.
    pub p90: u64,
    /// 99 in a hundred took no more.
    pub p99: u64,
    /// The most expensive call.
    pub max: u64,
}

/// Calls of one size class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassFigures {
    /// The class of the requested size.
    pub class: SizeClass,
    /// Calls that ended.
    pub calls: u64,
    /// Their cost, collections included.
    pub cost: Instructions,
    /// Instructions of it that collections took.
    pub collector_instructions: u64,
    /// Its distribution over calls.
    pub per_call: SpreadFigures,
}

/// Calls of one routine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoutineFigures {
    /// The name in output.
    pub routine: String,
    /// What it is for.
    pub group: Group,
    /// Calls that ended.
    pub calls: u64,
    /// Calls that returned no block although bytes were requested.
    pub failed_calls: u64,
    /// Calls without a block as argument.
    pub null_calls: u64,
    /// Calls with an unknown block as argument.
    pub unknown_calls: u64,
    /// Calls left by `longjmp` or the like; they are in no other figure but the next.
    pub abandoned_calls: u64,
    /// The cost of those.
    pub abandoned_instructions: u64,
    /// The cost of the calls, collections included.
    pub cost: Instructions,
    /// Instructions of it that collections took.
    pub collector_instructions: u64,
    /// Its distribution over calls.
    pub per_call: SpreadFigures,
    /// By size.
    pub classes: Vec<ClassFigures>,
}

/// Calls by size, all routines of a group together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BySize {
    /// Those that make a block from nothing.
    pub allocate: Vec<ClassFigures>,
    /// Those that free one, by its requested size.
    pub free: Vec<ClassFigures>,
    /// Those that resize one, by the new size.
    pub resize: Vec<ClassFigures>,
}

/// The heap at its largest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeapFigures {
    /// Most bytes of the heap's mappings that were readable or writable.
    pub high_water_bytes: u64,
    /// Most bytes of pages that a block was ever placed in and that were still readable or writable.
    pub pages_with_blocks_bytes: u64,
    /// Most bytes that were requested and not freed.
    pub most_live_bytes: u64,
    /// Most blocks that were not freed.
    pub most_live_objects: u64,
    /// Detlefs, Dosser & Zorn 1994, Table X: pages with blocks over live bytes.
    pub expansion: Option<f64>,
}

/// All figures of a process image.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figures {
    /// What may be summed over process images.
    #[serde(flatten)]
    pub amounts: Amounts,
    /// The published tables' figures.
    pub tables: Tables,
    /// The program's instructions before its `main`: the loader's and the constructors', the manager's too. `null`
    /// where the image has no `main` of its own (a child of fork) or none was seen.
    pub startup_instructions: Option<u64>,
    /// The heap at its largest.
    pub heap: HeapFigures,
    /// Threads that were started, the manager's own included.
    pub threads_started: u64,
    /// Those of them that the manager started: the collector owns what they execute.
    pub manager_threads_started: u64,
    /// Calls that had not ended when the image did.
    pub unfinished_calls: u64,
    /// Routines that were called.
    pub routines: Vec<RoutineFigures>,
    /// Routines of a group together, in the classes of [`SizeClass`].
    pub by_size: BySize,
    /// The same in one class a doubling.
    pub by_doubling: BySize,
}

fn spread(costs: &CallCosts) -> SpreadFigures {
    let spread = &costs.spread;
    SpreadFigures {
        mean: ratio(costs.cost.instructions, spread.calls()).unwrap_or_default(),
        p50: spread.percentile(50),
        p90: spread.percentile(90),
        p99: spread.percentile(99),
        max: spread.max(),
    }
}

fn class_figures(class: SizeClass, costs: &CallCosts) -> ClassFigures {
    ClassFigures {
        class,
        calls: costs.spread.calls(),
        cost: costs.cost.into(),
        collector_instructions: costs.collector,
        per_call: spread(costs),
    }
}

/// The classes of all routines of a group, each counted in the class to which `coarse` maps it.
fn merged_classes(tallies: &[Tally], which: Group, coarse: fn(SizeClass) -> SizeClass) -> Vec<ClassFigures> {
    let mut classes: BTreeMap<SizeClass, CallCosts> = BTreeMap::new();
    let mut add = |some: &Classes| {
        some.iter().for_each(|(class, costs)| classes.entry(coarse(class)).or_default().merge(costs));
    };
    for (routine, tally) in Routine::ALL.into_iter().zip(tallies) {
        if group(routine) == which {
            add(&tally.proper);
        }
        if which == Group::Allocate {
            add(&tally.making);
        }
    }
    classes.iter().map(|(class, costs)| class_figures(*class, costs)).collect()
}

fn by_size(tallies: &[Tally], coarse: fn(SizeClass) -> SizeClass) -> BySize {
    BySize {
        allocate: merged_classes(tallies, Group::Allocate, coarse),
        free: merged_classes(tallies, Group::Free, coarse),
        resize: merged_classes(tallies, Group::Resize, coarse),
    }
}

impl Costs {
    /// The figures. `totals` are the decoder's, by owner: they include what was executed outside of calls.
    pub fn figures(&self, totals: [Clock; 3]) -> Figures {
        let mut groups = Groups::default();
        let mut routines = Vec::new();
        for (routine, tally) in Routine::ALL.into_iter().zip(&self.tallies) {
            let classes = tally.classes();
            let sum = classes.sum();
            if sum.spread.calls() == 0 && tally.odd.abandoned == 0 {
                continue;
            }
            for (group, classes) in [(group(routine), &tally.proper), (Group::Allocate, &tally.making)] {
                let (counts, sum) = (groups.of(group), classes.sum());
                *counts = counts.plus(Counts {
                    calls: sum.spread.calls(),
                    instructions: sum.cost.instructions,
                    collector_instructions: sum.collector,
                });
            }
            routines.push(RoutineFigures {
                routine: routine.name().to_owned(),
                group: group(routine),
                calls: sum.spread.calls(),
                failed_calls: tally.odd.failed,
                null_calls: tally.odd.null,
                unknown_calls: tally.odd.unknown,
                abandoned_calls: tally.odd.abandoned,
                abandoned_instructions: tally.abandoned.instructions,
                cost: sum.cost.into(),
                collector_instructions: sum.collector,
                per_call: spread(&sum),
                classes: classes.iter().map(|(class, costs)| class_figures(class, costs)).collect(),
            });
        }
        let of = |owner: Owner| Instructions::from(totals[owner as usize]);
        let amounts = Amounts {
            owners: Owners {
                program: of(Owner::Program),
                allocator: of(Owner::Allocator),
                collector: of(Owner::Collector),
            },
            groups,
            objects: self.objects,
            object_bytes: self.bytes,
            collections: self.collections,
            phases: self.phases,
        };
        let (pages, most_live) = (self.heap.pages.most_bytes, self.blocks.most_bytes);
        Figures {
            amounts,
            tables: amounts.tables(),
            startup_instructions: self.before_main,
            heap: HeapFigures {
                high_water_bytes: self.heap.high_water(),
                pages_with_blocks_bytes: pages,
                most_live_bytes: most_live,
                most_live_objects: self.blocks.most_blocks,
                expansion: ratio(pages, most_live),
            },
            threads_started: self.threads,
            manager_threads_started: self.manager_threads,
            unfinished_calls: self.unfinished(),
            routines,
            by_size: by_size(&self.tallies, |class| class),
            by_doubling: by_size(&self.tallies, SizeClass::doubling),
        }
    }
}
