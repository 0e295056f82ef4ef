//! The figures of `heaptoll leaks`.

use heaptoll_callsites::{Sum, WholeFrame};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::growth::Rise;
use crate::subject::Subject;

/// Objects that were live when `exit` began, by kind. Where it did not begin: at the end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Kinds {
    /// Definitely lost: nothing leads to them.
    pub definite: Sum,
    /// Indirectly lost: only lost objects lead to them.
    pub indirect: Sum,
    /// Possibly lost: only chains with an interior pointer lead to them.
    pub possible: Sum,
    /// Reachable by pointers to starts of objects.
    pub reachable: Sum,
    /// Of the reachable ones, those that the program did not touch in the second half of the run, in bytes allocated.
    pub idle: Sum,
    /// Of these, those that it never touched.
    pub untouched: Sum,
    /// Of no known kind: those of a plain trace, and those after whose allocation events are missing.
    pub unjudged: Sum,
    /// Of all kinds, those that the program freed after `exit` had begun.
    pub freed_after_exit: Sum,
}

impl Kinds {
    /// All that was live when `exit` began.
    pub fn live_at_exit(&self) -> Sum {
        self.definite.plus(self.indirect).plus(self.possible).plus(self.reachable).plus(self.unjudged)
    }

    /// All that was never freed, not even after that.
    pub fn never_freed(&self) -> Sum {
        self.live_at_exit().minus(self.freed_after_exit)
    }

    pub(super) fn plus(&self, other: &Kinds) -> Kinds {
        Kinds {
            definite: self.definite.plus(other.definite),
            indirect: self.indirect.plus(other.indirect),
            possible: self.possible.plus(other.possible),
            reachable: self.reachable.plus(other.reachable),
            idle: self.idle.plus(other.idle),
            untouched: self.untouched.plus(other.untouched),
            unjudged: self.unjudged.plus(other.unjudged),
            freed_after_exit: self.freed_after_exit.plus(other.freed_after_exit),
        }
    }
}

/// What call stacks that read alike never freed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SiteLeaks {
    /// Their text.
    pub name: String,
    /// Number of them.
    pub stacks: u64,
    /// All frames of the one with the most bytes, innermost first.
    pub stack: Vec<WholeFrame>,
    /// Their objects.
    pub kinds: Kinds,
    /// Objects of any site that are indirectly lost with the definitely lost ones of this: only these lead to them.
    pub led: Sum,
    /// The share of the run, in bytes allocated, since the idle objects were touched last: their mean by bytes.
    pub idle_share: Option<f64>,
}

impl SiteLeaks {
    /// Definitely lost objects with what is lost through them.
    pub fn lost(&self) -> Sum {
        self.kinds.definite.plus(self.led)
    }
}

/// Call stacks that read alike, whose live bytes rise over the whole run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Growing {
    /// Their text.
    pub name: String,
    /// All frames of one of them, innermost first.
    pub stack: Vec<WholeFrame>,
    /// What was live of them before the last frees.
    pub at_end: Sum,
    /// How it rises.
    pub rise: Rise,
}

/// Call stacks that read alike, which have more in the last third of the run than in the first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GrownMost {
    /// Their text.
    pub name: String,
    /// The mean of the least live bytes in the parts of the first third; where all live bytes rise beneath waves, in the
    /// first third of their troughs.
    pub first_third_bytes: u64,
    /// The same mean in the last third.
    pub last_third_bytes: u64,
}

impl GrownMost {
    /// By how much they grew.
    pub fn bytes(&self) -> u64 {
        self.last_third_bytes.saturating_sub(self.first_third_bytes)
    }
}

/// Call stacks that read alike, of which much was freed from the last frees on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FreedLast {
    /// Their text.
    pub name: String,
    /// What of them was live before the last frees, and freed then.
    pub freed: Sum,
}

/// Call stacks that read alike, whose live bytes rise at the start of the run and then stay.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Filled {
    /// Their text.
    pub name: String,
    /// Their least live bytes in the last part of the run.
    pub bytes: u64,
    /// The share of the time until which they rise.
    pub until_share: f64,
}

/// What the C library keeps for itself, which no program can free.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeptSite {
    /// Its function that allocated.
    pub caller: String,
    /// The text of the call stacks.
    pub name: String,
    /// Their objects.
    pub kinds: Kinds,
}

/// What suppressions left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Suppressed {
    /// Call stacks of which something was never freed.
    pub stacks: u64,
    /// Their objects.
    pub kinds: Kinds,
}

impl LeakFigures {
    /// All that the C library keeps for itself.
    pub fn kept_by_library(&self) -> Sum {
        self.kept.iter().fold(Sum::default(), |sum, site| sum.plus(site.kinds.never_freed()))
    }
}

schemars::labelled!(LeakFigures, "heaptoll-leaks/1");

/// All figures.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LeakFigures {
    /// The process image.
    pub subject: Subject,
    /// Whether the trace has pointers: without them nothing is known of kinds.
    pub pointers: bool,
    /// Whether the trace has call stacks.
    pub sites: bool,
    /// Objects allocated, and their bytes. A realloc makes no other object; what it adds counts.
    pub allocated: Sum,
    /// Bytes allocated in the run.
    pub clock_bytes: u64,
    /// Bytes allocated until the root point at which kinds were decided; none where there is none.
    pub judged_at_bytes: Option<u64>,
    /// Whether the program went on after it.
    pub goes_on: bool,
    /// All that was never freed, is not suppressed, and is not the C library's own.
    pub kinds: Kinds,
    /// By call site: most bytes lost first, then possibly lost, idle, of unknown kind, reachable.
    pub rows: Vec<SiteLeaks>,
    /// Sites that are not listed.
    pub other_rows: u64,
    /// Call sites that grow, steepest first.
    pub growing: Vec<Growing>,
    /// How all live bytes rise, without the C library's own and the suppressed ones; none where they do not over the whole
    /// run.
    pub rise_of_all: Option<Rise>,
    /// The call sites with the largest increase from the first third of the run to the last, five at most.
    pub grown_most: Vec<GrownMost>,
    /// What was freed from the last frees on, until the end or `exit`: growth is judged before it.
    pub freed_last: Sum,
    /// The call sites of most bytes that were live before that and freed then, three at most.
    #[serde(default)]
    pub freed_last_sites: Vec<FreedLast>,
    /// Time of the run until the last frees, s; none where the trace has no time.
    pub time_s: Option<f64>,
    /// The run is too short to see growth.
    pub is_short: bool,
    /// The largest of the call sites that would grow by bytes allocated, but rose only at the start.
    pub filled: Option<Filled>,
    /// What the C library keeps for itself, most bytes first: in no other sum, and no leak.
    pub kept: Vec<KeptSite>,
    /// What suppressions left out.
    pub suppressed: Suppressed,
    /// Events that name objects that are not there.
    pub misfits: u64,
}
