//! A machine's caches over one process image, without any more expensive simulator: the basis of `heaptoll run
//! --exact`.

use heaptoll_reftrace::{Event, Owner, Reference, Sink};

use crate::hierarchy::Hierarchy;
use crate::image::Levels;
use crate::machine::{LINE, Machine};
use crate::simulation::{Partial, Settings, Simulation, Split};

/// The sink that simulates an image.
#[derive(Debug)]
pub struct MachineOnly {
    hierarchy: Hierarchy,
    /// Counts the pages, and drops references that the caches need not see.
    pages: Simulation,
    sifted: Vec<Reference>,
}

/// The results for an image.
#[derive(Debug, Clone)]
pub struct MachineResult {
    /// References by accessor.
    pub references: Split<u64>,
    /// Misses of each level, nearest first.
    pub levels: Levels,
    /// Different pages touched.
    pub pages_touched: u64,
    /// Bytes of a line.
    pub line_bytes: u64,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Why pages are not those of the whole run, if they are not.
    pub partial: Option<Partial>,
}

impl MachineOnly {
    /// A sink for an image that begins; `memory_limit`: bytes that the pages may take.
    pub fn new(machine: &Machine, memory_limit: u64) -> MachineOnly {
        let settings =
            Settings { lines: false, sets: None, line_bytes: LINE, memory_limit, ..Settings::default() };
        let pages = match Simulation::new(&settings) {
            Ok(simulation) => simulation,
            Err(error) => unreachable!("the line and page of every run are valid: {error}"),
        };
        MachineOnly { hierarchy: Hierarchy::new(machine), pages, sifted: Vec::new() }
    }

    /// The results so far.
    pub fn finish(self) -> MachineResult {
        let profile = self.pages.finish();
        MachineResult {
            references: profile.references,
            levels: self.hierarchy.misses(),
            pages_touched: profile.pages.map_or(0, |curve| curve.distinct),
            line_bytes: profile.line_bytes,
            page_bytes: profile.page_bytes,
            partial: profile.partial,
        }
    }
}

impl Sink for MachineOnly {
    fn references(&mut self, owner: Owner, references: &[Reference]) {
        self.sifted.clear();
        self.pages.sift(owner, references, &mut self.sifted);
        if self.hierarchy.can_be_sifted(LINE, self.pages.sieve_sets()) {
            self.hierarchy.sifted(owner, references, &self.sifted);
        } else {
            self.hierarchy.references(owner, references);
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        let Event::Kernel { address, length, store, .. } = *event else { return };
        self.pages.kernel(address, length);
        self.hierarchy.system(address, length, store);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{ImageSimulator, Plan};

    /// The whole simulator and this one process a program that wanders, its allocator, and system calls.
    #[test]
    fn the_machine_alone_counts_what_the_whole_simulation_does() {
        for text in ["4K/2,64K/4", "48K/12,2M/16", "192/3,960/5,64K/1", "8K/2/128,64K/4/128"] {
            let machine: Machine = text.parse().expect("a machine");
            let plan = Plan::new(Settings::default(), machine.clone(), false).expect("a plan");
            let (mut whole, mut only) = (ImageSimulator::new(&plan), MachineOnly::new(&machine, 1 << 30));
            let mut address = 1_u64 << 30;
            for step in 0..4000_u64 {
                let owner = [Owner::Program, Owner::Allocator, Owner::Program][step as usize % 3];
                let references: Vec<Reference> =
                    (0..step % 40).map(|at| Reference::new(address + at * 24, 8, at % 3 == 0)).collect();
                whole.references(owner, &references);
                only.references(owner, &references);
                if step % 50 == 0 {
                    let call = Event::Kernel { owner, address, length: 300, store: true };
                    whole.event(&call);
                    only.event(&call);
                }
                address = (1 << 30) + (address.wrapping_mul(6_364_136_223_846_793_005) >> 40) % (1 << 18);
            }
            let (whole, only) = (whole.finish(), only.finish());
            assert_eq!(only.levels, whole.machine, "{text}");
            assert_eq!(only.references, whole.profile.references, "{text}");
            assert_eq!(only.pages_touched, whole.pages_touched(), "{text}");
            assert!(only.partial.is_none());
        }
    }
}
