//! The plans: collectors of MMTk that a replay may run under.

use mmtk::AllocationSemantics;
use mmtk::util::options::PlanSelector;

use crate::error::Error;

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

impl Plan {
    /// The plan of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn named(name: &str) -> Result<Plan, Error> {
        PLANS.iter().find(|plan| plan.name == name).copied().ok_or_else(|| Error::Plan {
            name: name.escape_debug().to_string(),
            known: PLANS.map(|plan| plan.name).join(", "),
        })
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_moving_answers::plans::{NAMES, NO_COLLECTION};

    use super::*;

    #[test]
    fn plans_are_found_by_name_and_others_are_refused_with_the_known_ones() {
        assert_eq!(Plan::named("gencopy").map(|plan| plan.selector).ok(), Some(PlanSelector::GenCopy));
        let message = Plan::named("g1").map_or_else(|error| error.to_string(), |plan| plan.name.to_string());
        assert!(message.contains("no plan g1") && message.contains("semispace"), "{message}");
    }

    #[test]
    fn the_tool_knows_the_same_plans() {
        assert_eq!(PLANS.map(|plan| plan.name), NAMES);
        let never = PLANS.iter().filter(|plan| !plan.collects).map(|plan| plan.name);
        assert!(never.eq([NO_COLLECTION]));
    }
}
