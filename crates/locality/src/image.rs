//! All simulators over one process image: the basis of `heaptoll exact locality`.

use heaptoll_reftrace::{Event, Owner, Reference, Sink};

use crate::hierarchy::Hierarchy;
use crate::machine::Machine;
use crate::over_time::{OverTime, Scale};
use crate::placement::Misses;
use crate::simulation::{Accessor, BadSettings, Profile, Settings, Simulation, Split};

/// `heaptoll_event_kind` and `heaptoll_phase` of include/heaptoll.h.
const COLLECTION_END: u32 = 2;
const PHASE: u32 = 3;
const SWEEP: u64 = 4;

/// What to simulate; [`Plan::new`] has checked the settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    settings: Settings,
    machine: Machine,
    alone: bool,
}

/// The sink that simulates an image.
#[derive(Debug)]
pub struct ImageSimulator {
    mixed: Simulation,
    hierarchy: Hierarchy,
    over_time: OverTime,
    alone: Option<(Simulation, Hierarchy)>,
    line_bytes: u64,
    /// Buffer for references that the sieve passes.
    sifted: Vec<Reference>,
    before_main: Option<u64>,
    /// Whether the collection that runs sweeps.
    sweeps: bool,
}

/// The results for an image.
#[derive(Debug, Clone)]
pub struct ImageResult {
    /// Curves and caches, all references.
    pub profile: Profile,
    /// References, and those that miss each level of the machine, nearest first; loads and stores separately.
    pub machine: Levels,
    /// Working sets, the shortest window first.
    pub over_time: Vec<Scale>,
    /// Lines and pages touched while working sets were counted.
    pub footprint: (u64, u64),
    /// Whether memory ran out for working sets before the end.
    pub over_time_partial: bool,
    /// Results of the program alone.
    pub alone: Option<(Profile, Levels)>,
    /// References of the program before its `main`, the loader's and the constructors'; `None` if no `main` was seen.
    pub before_main: Option<u64>,
}

/// Misses of a machine's levels.
pub type Levels = Vec<Split<crate::hierarchy::Counts>>;

impl Plan {
    /// `settings` for all references; the caches of `machine` level by level; `alone`: whether the program is also
    /// simulated alone, which separates placement.
    ///
    /// # Errors
    /// A setting that cannot be simulated.
    pub fn new(settings: Settings, machine: Machine, alone: bool) -> Result<Plan, BadSettings> {
        settings.check()?;
        Ok(Plan { settings, machine, alone })
    }

    /// Settings for the program alone: those caches by which placement is separated. The fully associative curve is
    /// left out: it is the most expensive and, in long runs, a sample.
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

impl ImageSimulator {
    /// A simulator for an image that begins.
    pub fn new(plan: &Plan) -> ImageSimulator {
        let settings = &plan.settings;
        let alone = || (simulation(&plan.settings_alone()), Hierarchy::new(&plan.machine));
        ImageSimulator {
            mixed: simulation(settings),
            hierarchy: Hierarchy::new(&plan.machine),
            over_time: OverTime::new(settings.line_bytes, settings.page_bytes, settings.memory_limit),
            alone: plan.alone.then(alone),
            line_bytes: settings.line_bytes,
            sifted: Vec::new(),
            before_main: None,
            sweeps: false,
        }
    }

    /// Simulates references within one window of the program's time.
    fn simulate(&mut self, owner: Owner, references: &[Reference]) {
        let accessor = match owner {
            Owner::Collector if self.sweeps => Accessor::Sweeper,
            owner => owner.into(),
        };
        self.sifted.clear();
        self.mixed.sift(accessor, references, &mut self.sifted);
        if self.hierarchy.can_be_sifted(self.line_bytes, self.mixed.sieve_sets()) {
            self.hierarchy.sifted(accessor, references, &self.sifted);
        } else {
            self.hierarchy.references(accessor, references);
        }
        if self.over_time.sifted(owner, references.len() as u64, &self.sifted) {
            self.mixed.forget();
        }
    }

    /// The results so far.
    pub fn finish(self) -> ImageResult {
        ImageResult {
            profile: self.mixed.finish(),
            machine: self.hierarchy.misses(),
            over_time: self.over_time.scales(),
            footprint: self.over_time.footprint(),
            over_time_partial: self.over_time.is_partial(),
            alone: self.alone.map(|(simulation, hierarchy)| (simulation.finish(), hierarchy.misses())),
            before_main: self.before_main,
        }
    }
}

impl Sink for ImageSimulator {
    fn references(&mut self, owner: Owner, references: &[Reference]) {
        let mut rest = references;
        while !rest.is_empty() {
            let most = if owner == Owner::Program { self.over_time.left() as usize } else { rest.len() };
            let (these, others) = rest.split_at(most.min(rest.len()));
            self.simulate(owner, these);
            rest = others;
        }
        if owner == Owner::Program
            && let Some((simulation, hierarchy)) = &mut self.alone
        {
            if hierarchy.can_be_sifted(self.line_bytes, simulation.sieve_sets()) {
                self.sifted.clear();
                simulation.sift(owner, references, &mut self.sifted);
                hierarchy.sifted(owner, references, &self.sifted);
            } else {
                simulation.references(owner, references);
                hierarchy.references(owner, references);
            }
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        if let Event::Main { before } = event {
            let before = before[Owner::Program as usize];
            self.before_main = Some(before.loads + before.stores);
        }
        match *event {
            Event::Announced { kind: PHASE, value, .. } => self.sweeps = value == SWEEP,
            Event::Announced { kind: COLLECTION_END, .. } => self.sweeps = false,
            _ => {}
        }
        let Event::Kernel { owner, address, length, store } = *event else { return };
        self.mixed.kernel(address, length);
        self.hierarchy.system(address, length, store);
        self.over_time.kernel(owner, address, length);
        if owner == Owner::Program
            && let Some((simulation, hierarchy)) = &mut self.alone
        {
            simulation.kernel(address, length);
            hierarchy.system(address, length, store);
        }
    }
}

impl ImageResult {
    /// The program's own references in this run and in another; from `main` on if both have recorded it.
    pub fn work(&self, other: &ImageResult) -> (u64, u64) {
        let (own, others) = (self.profile.references.program, other.profile.references.program);
        match (self.before_main, other.before_main) {
            (Some(before), Some(before_other)) => {
                (own.saturating_sub(before), others.saturating_sub(before_other))
            }
            _ => (own, others),
        }
    }

    /// Different lines touched.
    pub fn lines_touched(&self) -> u64 {
        self.profile.lines.as_ref().map_or(self.footprint.0, |curve| curve.distinct)
    }

    /// Different pages touched.
    pub fn pages_touched(&self) -> u64 {
        self.profile.pages.as_ref().map_or(self.footprint.1, |curve| curve.distinct)
    }

    /// Misses of the associative cache of these sets and ways, in the mix and alone.
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

    /// Faults in a memory of this many pages, in the mix and alone.
    pub fn pages(&self, pages: u64) -> Option<Misses> {
        let (alone, _) = self.alone.as_ref()?;
        let of = |profile: &Profile| {
            let misses = profile.pages.as_ref()?.misses(pages);
            Some(Split::of(|accessor| misses.by.get(accessor).value))
        };
        Some(Misses { mixed: of(&self.profile)?, alone: of(alone)? })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plan(alone: bool) -> Plan {
        Plan::new(Settings::default(), Machine::usual(), alone).expect("a plan")
    }

    fn walk(from: u64, bytes: u64) -> Vec<Reference> {
        (0..bytes / 8).map(|word| Reference::new(from + word * 8, 8, word % 2 == 0)).collect()
    }

    /// The program walks 24 KiB in a loop; its allocator walks as much in between.
    fn result(alone: bool) -> ImageResult {
        let mut simulator = ImageSimulator::new(&plan(alone));
        for _ in 0..4 {
            simulator.references(Owner::Program, &walk(1 << 20, 24 << 10));
            simulator.references(Owner::Allocator, &walk(1 << 24, 24 << 10));
        }
        for owner in [Owner::Program, Owner::Allocator] {
            simulator.event(&Event::Kernel { owner, address: 1 << 28, length: 640, store: true });
        }
        simulator.finish()
    }

    #[test]
    fn what_a_collection_sweeps_is_not_what_it_marks() {
        let mut simulator = ImageSimulator::new(&plan(false));
        let announced =
            |kind, value| Event::Announced { kind, value, clock: heaptoll_reftrace::Clock::default() };
        for (event, words) in [(announced(1, 1), 2), (announced(PHASE, 3), 5), (announced(PHASE, SWEEP), 7)] {
            simulator.event(&event);
            simulator.references(Owner::Collector, &walk(1 << 24, words * 8));
        }
        simulator.references(Owner::Allocator, &walk(1 << 24, 8));
        simulator.event(&announced(PHASE, 5));
        simulator.references(Owner::Collector, &walk(1 << 24, 3 * 8));
        simulator.event(&announced(PHASE, SWEEP));
        simulator.event(&announced(COLLECTION_END, 0));
        simulator.references(Owner::Collector, &walk(1 << 24, 8));
        let references = simulator.finish().profile.references;
        assert_eq!((references.collector, references.sweeper, references.allocator), (11, 7, 1));
        assert_eq!((references.collections(), references.total()), (18, 19));
    }

    #[test]
    fn the_program_alone_fits_where_the_mix_does_not() {
        let result = result(true);
        let level = result.level(0).expect("simulated alone");
        // 384 lines each; together they are 48 KiB and cycle through 32 KiB of 8 ways.
        assert_eq!((level.alone.program, level.alone.system), (384, 10));
        assert_eq!((level.mixed.program, level.mixed.allocator, level.mixed.system), (1536, 1536, 10));
        assert_eq!(level.parts().pollution, 3 * 384);
        let same = result.associative(64, 8).expect("simulated");
        assert_eq!(same, level, "the first level is the associative cache of its size");
        let faults = result.pages(6).expect("simulated");
        assert_eq!((faults.alone.program, faults.mixed.program), (6, 24));
    }

    type Step = (usize, u64, u64, u64, usize);

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let address = prop_oneof![0..100_u64, 0..3000_u64, 0..100_000_u64, 4_000_000..4_002_000_u64];
        // Accessor, first address, stride, length, count.
        let times = prop_oneof![3 => 1..40_usize, 1 => Just(9000)];
        prop::collection::vec((0..5_usize, address, 0..100_u64, 0..80_u64, times), 1..80)
    }

    proptest! {
        /// What the sieve drops would have changed nothing: the parts have the same results when each gets all
        /// references.
        #[test]
        fn sifting_changes_nothing(
            steps in steps(),
            machine in prop::sample::select(vec!["4K/2,64K/4", "192/3,960/5,64K/1", "48K/12,2M/16", "8K/2/128,64K/4/128"]),
            line in prop::sample::select(vec![32_u64, 64]),
            lowest in 0..7_u32,
        ) {
            let machine: Machine = machine.parse().expect("a machine");
            let settings = Settings { sets: Some(lowest..=8), line_bytes: line, ..Settings::default() };
            let plan = Plan::new(settings.clone(), machine.clone(), true).expect("a plan");
            let mut simulator = ImageSimulator::new(&plan);
            let mut hierarchies = [Hierarchy::new(&machine), Hierarchy::new(&machine)];
            let mut over_time = OverTime::new(line, 4096, 1 << 30);
            // Forgets before each reference: the sieve drops nothing.
            let mut simulation = Simulation::new(&settings).expect("settings");
            for (index, from, apart, length, times) in steps {
                let owner = [Owner::Program, Owner::Allocator, Owner::Collector, Owner::Program, Owner::Program][index];
                if index == 3 {
                    simulator.event(&Event::Kernel { owner, address: from, length, store: true });
                    hierarchies.iter_mut().for_each(|one| one.system(from, length, true));
                    over_time.kernel(owner, from, length);
                    simulation.kernel(from, length);
                    continue;
                }
                let references: Vec<Reference> = (0..times as u64)
                    .map(|at| Reference::new(from + at % 50 * apart, length % 17 + 1, at % 3 == 0))
                    .collect();
                simulator.references(owner, &references);
                hierarchies[0].references(owner, &references);
                if owner == Owner::Program {
                    hierarchies[1].references(owner, &references);
                }
                over_time.references(owner, &references);
                for one in references.chunks(1) {
                    simulation.forget();
                    simulation.references(owner, one);
                }
            }
            let result = simulator.finish();
            prop_assert_eq!(&result.machine, &hierarchies[0].misses());
            prop_assert_eq!(&result.alone.as_ref().expect("simulated alone").1, &hierarchies[1].misses());
            prop_assert_eq!(&result.over_time, &over_time.scales());
            prop_assert_eq!(result.footprint, over_time.footprint());
            let profile = simulation.finish();
            prop_assert_eq!(&result.profile.associative, &profile.associative);
            prop_assert_eq!((&result.profile.lines, &result.profile.pages), (&profile.lines, &profile.pages));
        }
    }

    /// The line is the same as before, but the program had not touched it.
    #[test]
    fn what_another_touched_is_still_new_to_the_program() {
        let mut simulator = ImageSimulator::new(&plan(false));
        let (given, read) = (1 << 20, 1 << 21);
        simulator.references(Owner::Allocator, &walk(given, 8));
        simulator.references(Owner::Program, &walk(given, 8));
        simulator.event(&Event::Kernel { owner: Owner::Allocator, address: read, length: 64, store: true });
        simulator.references(Owner::Program, &walk(read, 8));
        simulator.references(Owner::Program, &walk(1 << 22, 8 * (crate::over_time::BASE - 2)));
        let result = simulator.finish();
        let sample = result.over_time[0].samples[0];
        assert_eq!(sample.program_lines, sample.lines);
        assert_eq!(sample.program_lines, (crate::over_time::BASE - 2).div_ceil(8) + 2);
    }

    #[test]
    fn alone_is_not_simulated_unless_requested() {
        let result = result(false);
        assert_eq!((result.level(0), result.associative(64, 8), result.pages(6)), (None, None, None));
        assert_eq!(result.profile.references.program, 4 * 3072);
        assert_eq!(result.over_time.len(), 0, "the run is shorter than a window");
    }

    #[test]
    fn what_comes_before_main_is_no_work_of_the_program() {
        let run = |before: u64, main_seen: bool| {
            let plan =
                Plan::new(Settings::default(), "32K/8".parse().expect("a machine"), false).expect("sound");
            let mut simulator = ImageSimulator::new(&plan);
            let references: Vec<Reference> =
                (0..before + 50).map(|n| Reference::new(n * 64, 8, n % 2 == 0)).collect();
            let (first, rest) = references.split_at(before as usize);
            simulator.references(Owner::Program, first);
            if main_seen {
                let mut clocks = [heaptoll_reftrace::Clock::default(); 3];
                clocks[0].loads = before / 2;
                clocks[0].stores = before - before / 2;
                simulator.event(&Event::Main { before: clocks });
            }
            simulator.references(Owner::Program, rest);
            simulator.finish()
        };
        assert_eq!(run(10, true).work(&run(30, true)), (50, 50));
        assert_eq!(run(10, true).work(&run(30, false)), (60, 80));
    }
}
