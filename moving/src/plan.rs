//! The plans: collectors of MMTk that a replay may run under. [`crate::collector`] finds them by name.

use mmtk::AllocationSemantics;
use mmtk::util::options::PlanSelector;

/// A collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Its name on the command line.
    pub name: &'static str,
    /// MMTk's.
    pub selector: PlanSelector,
    /// Where objects are allocated.
    pub semantics: AllocationSemantics,
    /// Whether it ever collects.
    pub collects: bool,
}

const fn plan(name: &'static str, selector: PlanSelector) -> Plan {
    Plan { name, selector, semantics: AllocationSemantics::Default, collects: true }
}

/// All of them.
pub const PLANS: [Plan; 9] = [
    Plan { collects: false, ..plan("nogc", PlanSelector::NoGC) },
    plan("semispace", PlanSelector::SemiSpace),
    plan("gencopy", PlanSelector::GenCopy),
    plan("genimmix", PlanSelector::GenImmix),
    plan("immix", PlanSelector::Immix),
    // The switch of MMTk's default space is one of the build. Its space for objects that must not move is the same
    // Immix space, which is made not to.
    Plan { semantics: AllocationSemantics::NonMoving, ..plan("immix,moving=off", PlanSelector::Immix) },
    plan("stickyimmix", PlanSelector::StickyImmix),
    plan("markcompact", PlanSelector::MarkCompact),
    plan("marksweep", PlanSelector::MarkSweep),
];
