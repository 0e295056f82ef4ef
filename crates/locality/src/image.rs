//! One process image heard by all simulators at once: what `heaptoll locality` knows of it.

use heaptoll_reference::{Event, Owner, Reference, Sink};

use crate::hierarchy::Hierarchy;
use crate::machine::Machine;
use crate::over_time::{OverTime, Scale};
use crate::placement::Misses;
use crate::simulation::{BadSettings, Profile, Settings, Simulation, Split};

/// What is simulated; settings that can be, see [`Plan::new`].
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    settings: Settings,
    machine: Machine,
    alone: bool,
}

/// Hears an image.
#[derive(Debug)]
pub struct Listener {
    mixed: Simulation,
    hierarchy: Hierarchy,
    over_time: OverTime,
    alone: Option<(Simulation, Hierarchy)>,
}

/// What was heard of an image.
#[derive(Debug, Clone)]
pub struct Heard {
    /// Curves and caches, all references.
    pub profile: Profile,
    /// References, and those that miss each level of the machine, nearest first; loads and stores apart.
    pub machine: Levels,
    /// Working sets, the shortest window first.
    pub over_time: Vec<Scale>,
    /// Lines and pages touched while working sets were followed.
    pub footprint: (u64, u64),
    /// Whether memory ran out for working sets before the end.
    pub over_time_partial: bool,
    /// The program alone.
    pub alone: Option<(Profile, Levels)>,
}

/// What a machine's levels missed.
pub type Levels = Vec<Split<crate::hierarchy::Counts>>;

impl Plan {
    /// `settings` for all references; the caches of `machine` level by level; `alone`: whether the program is heard alone
    /// as well, which tells placement apart.
    ///
    /// # Errors
    /// A setting that nothing can be simulated with.
    pub fn new(settings: Settings, machine: Machine, alone: bool) -> Result<Plan, BadSettings> {
        settings.check()?;
        Ok(Plan { settings, machine, alone })
    }

    /// What hears the program alone: what placement is told apart in. The fully associative curve is left out, for it is
    /// the dearest and, of long runs, a sample.
    fn settings_alone(&self) -> Settings {
        Settings { lines: false, sampling: None, ..self.settings.clone() }
    }
}

fn simulation(settings: &Settings) -> Simulation {
    match Simulation::new(settings) {
        Ok(simulation) => simulation,
        Err(error) => unreachable!("a plan is made of settings that were checked: {error}"),
    }
}

impl Listener {
    /// Of an image that begins.
    pub fn new(plan: &Plan) -> Listener {
        let settings = &plan.settings;
        let alone = || (simulation(&plan.settings_alone()), Hierarchy::new(&plan.machine));
        Listener {
            mixed: simulation(settings),
            hierarchy: Hierarchy::new(&plan.machine),
            over_time: OverTime::new(settings.line_bytes, settings.page_bytes, settings.memory_limit),
            alone: plan.alone.then(alone),
        }
    }

    /// What was heard until now.
    pub fn heard(self) -> Heard {
        Heard {
            profile: self.mixed.finish(),
            machine: self.hierarchy.misses(),
            over_time: self.over_time.scales(),
            footprint: self.over_time.footprint(),
            over_time_partial: self.over_time.is_partial(),
            alone: self.alone.map(|(simulation, hierarchy)| (simulation.finish(), hierarchy.misses())),
        }
    }
}

impl Sink for Listener {
    fn references(&mut self, owner: Owner, references: &[Reference]) {
        self.mixed.references(owner, references);
        self.hierarchy.references(owner, references);
        self.over_time.references(owner, references);
        if owner == Owner::Program
            && let Some((simulation, hierarchy)) = &mut self.alone
        {
            simulation.references(owner, references);
            hierarchy.references(owner, references);
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        let Event::Kernel { owner, address, length, store } = *event else { return };
        self.mixed.kernel(address, length);
        self.hierarchy.system(address, length, store);
        self.over_time.stretch(owner, address, length);
        if owner == Owner::Program
            && let Some((simulation, hierarchy)) = &mut self.alone
        {
            simulation.kernel(address, length);
            hierarchy.system(address, length, store);
        }
    }
}

impl Heard {
    /// Different lines touched.
    pub fn lines_touched(&self) -> u64 {
        self.profile.lines.as_ref().map_or(self.footprint.0, |curve| curve.distinct)
    }

    /// Different pages touched.
    pub fn pages_touched(&self) -> u64 {
        self.profile.pages.as_ref().map_or(self.footprint.1, |curve| curve.distinct)
    }

    /// Misses of the associative cache of so many sets and ways, in the mix and alone.
    pub fn associative(&self, sets: u64, ways: u32) -> Option<Misses> {
        let (alone, _) = self.alone.as_ref()?;
        Some(Misses {
            mixed: self.profile.associative(sets, ways)?.misses,
            alone: alone.associative(sets, ways)?.misses,
        })
    }

    /// Misses of a level of the machine (0 is the nearest), in the mix and alone.
    pub fn level(&self, level: usize) -> Option<Misses> {
        let (_, alone) = self.alone.as_ref()?;
        let of = |levels: &Levels| levels.get(level).map(crate::hierarchy::all);
        Some(Misses { mixed: of(&self.machine)?, alone: of(alone)? })
    }

    /// Faults of a memory of so many pages, in the mix and alone.
    pub fn pages(&self, pages: u64) -> Option<Misses> {
        let (alone, _) = self.alone.as_ref()?;
        let of = |profile: &Profile| {
            let misses = profile.pages.as_ref()?.misses(pages);
            Some(Split::of(|maker| misses.by.get(maker).value))
        };
        Some(Misses { mixed: of(&self.profile)?, alone: of(alone)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(alone: bool) -> Plan {
        Plan::new(Settings::default(), Machine::usual(), alone).expect("a plan")
    }

    fn walk(from: u64, bytes: u64) -> Vec<Reference> {
        (0..bytes / 8).map(|word| Reference::new(from + word * 8, 8, word % 2 == 0)).collect()
    }

    /// The program goes round in 24 KiB; its allocator walks over as much in between.
    fn heard(alone: bool) -> Heard {
        let mut listener = Listener::new(&plan(alone));
        for _ in 0..4 {
            listener.references(Owner::Program, &walk(1 << 20, 24 << 10));
            listener.references(Owner::Allocator, &walk(1 << 24, 24 << 10));
        }
        for owner in [Owner::Program, Owner::Allocator] {
            listener.event(&Event::Kernel { owner, address: 1 << 28, length: 640, store: true });
        }
        listener.heard()
    }

    #[test]
    fn the_program_alone_fits_where_the_mix_does_not() {
        let heard = heard(true);
        let level = heard.level(0).expect("heard alone");
        // 384 lines each; together they are 48 KiB and go round in 32 KiB of 8 ways.
        assert_eq!((level.alone.program, level.alone.system), (384, 10));
        assert_eq!((level.mixed.program, level.mixed.allocator, level.mixed.system), (1536, 1536, 10));
        assert_eq!(level.parts().pollution, 3 * 384);
        let same = heard.associative(64, 8).expect("simulated");
        assert_eq!(same, level, "the first level is the associative cache of its size");
        let faults = heard.pages(6).expect("simulated");
        assert_eq!((faults.alone.program, faults.mixed.program), (6, 24));
    }

    #[test]
    fn alone_is_not_simulated_where_it_is_not_asked_for() {
        let heard = heard(false);
        assert_eq!((heard.level(0), heard.associative(64, 8), heard.pages(6)), (None, None, None));
        assert_eq!(heard.profile.references.program, 4 * 3072);
        assert_eq!(heard.over_time.len(), 0, "the run is shorter than a window");
    }
}
