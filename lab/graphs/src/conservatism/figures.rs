//! Figures of `heaptoll lab conservatism`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What leads to an object that is never touched again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Cause {
    /// An object that the program uses later leads to it: any collector that goes by pointers keeps it.
    UsedObjects,
    /// Only registers.
    Registers,
    /// Only stacks.
    Stacks,
    /// Registers and stacks, and nothing else.
    RegistersAndStacks,
    /// Only writable data of the program and its libraries.
    StaticData,
    /// Only other mappings.
    Mappings,
    /// Roots of several kinds, static data or mappings among them.
    Several,
}

impl Cause {
    /// All of them, in order of their numbers.
    pub const ALL: [Cause; 7] = [
        Cause::UsedObjects,
        Cause::Registers,
        Cause::Stacks,
        Cause::RegistersAndStacks,
        Cause::StaticData,
        Cause::Mappings,
        Cause::Several,
    ];
}

/// Which interior pointers a collector honours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InteriorRule {
    /// Those in registers and on stacks; elsewhere pointers to the start of an object only.
    OnStacks,
    /// None.
    Nowhere,
}

impl InteriorRule {
    /// All of them.
    pub const ALL: [InteriorRule; 2] = [InteriorRule::OnStacks, InteriorRule::Nowhere];
}

/// An amount over the root points.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Level {
    /// Mean, each point with the weight of the bytes allocated since the one before it.
    pub mean_bytes: f64,
    /// The mean over that of all bytes not freed.
    pub of_live: f64,
    /// The most at one point.
    pub peak_bytes: u64,
    /// Bytes allocated until that point.
    pub peak_clock_bytes: u64,
    /// All bytes not freed at that point.
    pub peak_live_bytes: u64,
}

/// How long what is kept stays until the program's own free.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UntilFree {
    /// Bytes allocated from the root point to the free, mean over the bytes that are freed; none where none is.
    pub mean_bytes: Option<f64>,
    /// Share of the bytes that the program never frees.
    pub never_freed: f64,
}

/// What one cause keeps of what is never touched again.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CauseFigures {
    /// The cause.
    pub cause: Cause,
    /// What it keeps.
    pub kept: Level,
    /// Of that, what was unreachable at an earlier root point, and not touched since.
    pub again: Level,
    /// How long.
    pub until_free: UntilFree,
}

/// What a collector frees that honours fewer interior pointers, of what is reachable over all of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InteriorFigures {
    /// Which it honours.
    pub rule: InteriorRule,
    /// Objects never touched again.
    pub unused: Level,
    /// Objects that the program touches later: it would be broken.
    pub used: Level,
}

/// Objects and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Count {
    /// Objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Bytes allocated between two points, over objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distance {
    /// Mean.
    pub mean_bytes: f64,
    /// Half of the objects have no more; to two digits.
    pub median_bytes: u64,
    /// Nine of ten have no more; to two digits.
    pub percentile_90_bytes: u64,
}

/// Unreachability and the program's own free.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndFigures {
    /// Freed by the program.
    pub freed: Count,
    /// Of these, unreachable at a root point before the free, and from then on.
    pub before: Count,
    /// By how much at least: from that root point to the free.
    pub before_by: Distance,
    /// Of the others: words of other objects that were not freed led to it at its free.
    pub pointed: Count,
    /// Of the others: reachable at the last root point before the free.
    pub undecided: Count,
    /// From that root point to the free.
    pub undecided_within: Distance,
    /// Of the others: lived at no root point.
    pub between: Count,
    /// Ended by `realloc`, or its end was not seen.
    pub otherwise: Count,
    /// Never freed.
    pub never_freed: Count,
    /// Of these, unreachable at the last root point.
    pub lost: Count,
    /// Objects whose end is not in the trace; they are taken as used to its end.
    pub unknown: u64,
}

/// The heap at a root point, bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PointFigures {
    /// Allocated until then.
    pub clock_bytes: u64,
    /// Not freed.
    pub live_bytes: u64,
    /// Touched later.
    pub used_bytes: u64,
    /// Touched later, or led to by objects that are.
    pub required_bytes: u64,
    /// Reachable from the roots.
    pub reachable_bytes: u64,
    /// The least that conservatism keeps.
    pub at_least_bytes: u64,
    /// The most that conservatism keeps.
    pub at_most_bytes: u64,
}

schemars::labelled!(ConservatismFigures, "heaptoll-conservatism/1");

/// All figures.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConservatismFigures {
    /// Whether something of the trace is damaged or missing.
    #[serde(skip)]
    pub is_damaged: bool,
    /// The command, as it was recorded.
    pub command: Vec<String>,
    /// The manager.
    pub manager: String,
    /// How the program ended; none when the trace is cut.
    pub ended: Option<String>,
    /// Objects, and their bytes.
    pub objects: u64,
    /// See `objects`.
    pub bytes: u64,
    /// Root points without figures: not whole, or after missing events.
    pub left_out: u64,
    /// Not freed.
    pub live: Level,
    /// Touched later.
    pub used: Level,
    /// Touched later, or led to by objects that are: any collector that goes by pointers keeps it.
    pub required: Level,
    /// Reachable from the roots.
    pub reachable: Level,
    /// Touched later, and not reachable: pointers to it are not in the graph.
    pub hidden: Level,
    /// The least that conservatism keeps: what was unreachable before.
    pub at_least: Level,
    /// The most that conservatism keeps: what no object that is used later leads to, and what was unreachable before.
    pub at_most: Level,
    /// What is reachable and never touched again, by what leads to it. Each object is in one row.
    pub causes: Vec<CauseFigures>,
    /// What interior pointers keep.
    pub interior: Vec<InteriorFigures>,
    /// Unreachability and free.
    pub ends: EndFigures,
    /// Root points, in order.
    pub points: Vec<PointFigures>,
    /// Damage and omissions.
    pub warnings: Vec<String>,
}
