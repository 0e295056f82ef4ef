//! The collectors that a replay may run under, by name: MMTk's plans and our own.

use heaptoll_graph_replay::collectors::{COLLECTORS, Collector as Own};
use heaptoll_graph_replay::error::Error;
use heaptoll_graph_replay::program::Program;
use heaptoll_graph_replay::replay::replay;
use heaptoll_graph_replay::settings::Settings;
use heaptoll_graph_replay::world::World;
use heaptoll_moving_answers::Replayed;

use crate::mutator::Mutator;
use crate::plan::{PLANS, Plan};

/// A collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collector {
    /// One of MMTk.
    Mmtk(Plan),
    /// One of our own.
    Own(Own),
}

/// All of them.
pub fn all() -> impl Iterator<Item = Collector> {
    PLANS.into_iter().map(Collector::Mmtk).chain(COLLECTORS.into_iter().map(Collector::Own))
}

impl Collector {
    /// The collector of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn named(name: &str) -> Result<Collector, Error> {
        all().find(|collector| collector.name() == name).ok_or_else(|| Error::Plan {
            name: name.escape_debug().to_string(),
            known: all().map(Collector::name).collect::<Vec<_>>().join(", "),
        })
    }

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Collector::Mmtk(plan) => plan.name,
            Collector::Own(own) => own.name(),
        }
    }

    /// Whether it ever collects.
    pub const fn collects(self) -> bool {
        match self {
            Collector::Mmtk(plan) => plan.collects,
            Collector::Own(_) => true,
        }
    }

    /// Replays a program. Once a process, since MMTk can be made once. Only MMTk has threads of its own.
    ///
    /// # Errors
    /// MMTk refuses the settings; the system has no memory for the heap.
    pub fn replay(self, program: &Program, settings: &Settings, threads: usize) -> Result<Replayed, Error> {
        match self {
            Collector::Mmtk(plan) => {
                let mut heap = Mutator::begin(plan, threads, World::new(program.handles(), settings))?;
                Ok(replay(program, plan.name, &mut heap))
            }
            Collector::Own(own) => own.replay(program, settings),
        }
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_moving_answers::plans::{NAMES, NO_COLLECTION, OWN};

    use super::*;

    #[test]
    fn the_tool_knows_the_same_collectors() {
        assert!(all().map(Collector::name).eq(NAMES.into_iter().chain(OWN)));
        let never = all().filter(|collector| !collector.collects()).map(Collector::name);
        assert!(never.eq([NO_COLLECTION]));
    }

    #[test]
    fn collectors_are_found_by_name_and_others_are_refused_with_the_known_ones() {
        for collector in all() {
            assert_eq!(Collector::named(collector.name()).ok(), Some(collector));
        }
        let message =
            Collector::named("g1").map_or_else(|error| error.to_string(), |one| one.name().to_string());
        assert!(message.contains("no plan g1"), "{message}");
        assert!(message.contains("semispace") && message.contains("treadmill"), "{message}");
    }
}
