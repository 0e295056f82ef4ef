//! The result of `heaptoll trace lifetimes`, as it goes into JSON.

use heaptoll_callsites::{Sum, WholeFrame};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ages::Ages;
pub use super::clock::Clock;
pub use super::groups::By;
pub use super::nursery::NurseryFigures;
use crate::subject::Subject;

/// Curves keep a point when the fraction fell by this much since the last.
const STEP: f64 = 0.0005;

schemars::labelled!(LifetimeFigures, "heaptoll-lifetimes/1");

/// Everything that `heaptoll trace lifetimes` reports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LifetimeFigures {
    /// The process that was analysed.
    pub subject: Subject,
    /// Events read.
    pub events: u64,
    /// Ages in time below this are not distinguished: the distance of time stamps, ns.
    pub time_resolution_ns: u64,
    /// All objects made. Bytes are their last sizes.
    pub all: Sum,
    /// Objects that were never freed: alive at the end of the trace.
    pub still_live: Sum,
    /// Objects that were freed past the layer, at an unknown time: taken as freed when their address was seen again.
    /// They are among all.
    pub lost: u64,
    /// The byte clock at the end.
    pub clock_bytes: u64,
    /// Survival of all objects, by clock.
    pub survival: Vec<Survival>,
    /// The key of `groups`.
    pub by: By,
    /// Survival by group: sizes rising, sites and threads with the most bytes first.
    pub groups: Vec<GroupFigures>,
    /// The groups that have no entry of their own, merged; none when all are in `groups`.
    pub other_groups: Option<GroupFigures>,
    /// Number of those groups.
    pub other_groups_count: u64,
    /// Never-freed objects by call site, most bytes first; empty when the trace has no sites.
    pub still_live_by_site: Vec<StillLive>,
    /// Simulated nurseries of a generational collector.
    pub nurseries: Vec<NurseryFigures>,
    /// Events that contradict those before them, in a damaged trace.
    pub misfits: u64,
}

/// How long objects live, on one clock. Objects never freed count as surviving every age.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Survival {
    /// The clock; ages are bytes, ns or instructions.
    pub clock: Clock,
    /// From these ages on only these fractions are still live. Before the first point all are.
    pub curve: Vec<CurvePoint>,
    /// Shares that ended before given ages. Exact.
    pub younger: Vec<Younger>,
    /// Age before which half of the objects ended; none when fewer ever did. To a sixteenth.
    pub median_age: Option<u64>,
    /// Age before which nine tenths of the objects ended.
    pub age_90: Option<u64>,
    /// Age before which objects with half of the bytes ended.
    pub median_age_by_bytes: Option<u64>,
    /// Age before which objects with nine tenths of the bytes ended.
    pub age_90_by_bytes: Option<u64>,
}

/// A point of a survival curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurvePoint {
    /// Age.
    pub age: u64,
    /// Fraction of objects that reach this age, 0 to 1.
    pub objects: f64,
    /// The same weighted with their bytes.
    pub bytes: f64,
}

/// Shares that ended before an age.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Younger {
    /// Age.
    pub age: u64,
    /// Share of objects, 0 to 1.
    pub objects: f64,
    /// The same weighted with their bytes.
    pub bytes: f64,
}

/// One size class, call site or thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupFigures {
    /// `33 to 64`, a call stack, a thread.
    pub name: String,
    /// Largest size of the class, or number of the site or thread; none for merged groups. Of call stacks that read
    /// alike the number of one.
    pub key: Option<u64>,
    /// By site: how many call stacks read as `name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stacks: Option<u64>,
    /// By site: all frames of that one, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<WholeFrame>,
    /// Its objects.
    pub all: Sum,
    /// Those never freed.
    pub still_live: Sum,
    /// Survival by clock.
    pub survival: Vec<Survival>,
}

/// The never-freed objects of call stacks that read alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StillLive {
    /// Number of the one that left most bytes.
    pub site: u32,
    /// Their text.
    pub name: String,
    /// Number of them.
    pub stacks: u64,
    /// All frames of the one that left most bytes, innermost first.
    pub stack: Vec<WholeFrame>,
    /// Objects and bytes.
    pub held: Sum,
}

impl Survival {
    /// Survival of objects with these ages, and of others that are still live.
    pub(super) fn new(clock: Clock, ages: &Ages, all: Sum) -> Survival {
        let quantile = |q: f64, weight: fn(&Sum) -> u64| {
            let whole = weight(&all);
            if whole == 0 { None } else { ages.age_at(whole as f64 * q, weight) }
        };
        Survival {
            clock,
            curve: curve(ages, all),
            younger: clock
                .thresholds()
                .iter()
                .map(|&age| {
                    let (objects, bytes) = ages.younger_than(age);
                    Younger { age, objects: part(objects, all.objects), bytes: part(bytes, all.bytes) }
                })
                .collect(),
            median_age: quantile(0.5, |sum| sum.objects),
            age_90: quantile(0.9, |sum| sum.objects),
            median_age_by_bytes: quantile(0.5, |sum| sum.bytes),
            age_90_by_bytes: quantile(0.9, |sum| sum.bytes),
        }
    }

    /// Share of objects and of bytes that ended before one of the clock's threshold ages.
    pub fn younger_than(&self, age: u64) -> Option<Younger> {
        self.younger.iter().copied().find(|younger| younger.age == age)
    }
}

fn curve(ages: &Ages, all: Sum) -> Vec<CurvePoint> {
    let mut points: Vec<CurvePoint> = Vec::new();
    let mut kept = CurvePoint { age: 0, objects: 1.0, bytes: 1.0 };
    let mut skipped = None;
    let mut ended = Sum::default();
    for bin in ages.bins() {
        ended = ended.plus(bin.ended);
        let point = CurvePoint {
            age: bin.to,
            objects: 1.0 - part(ended.objects as f64, all.objects),
            bytes: 1.0 - part(ended.bytes as f64, all.bytes),
        };
        if kept.objects - point.objects >= STEP || kept.bytes - point.bytes >= STEP {
            points.push(point);
            kept = point;
            skipped = None;
        } else {
            skipped = Some(point);
        }
    }
    points.extend(skipped);
    points
}

fn part(part: f64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part / whole as f64 }
}
