//! A process image heard by the simulators.

use heaptoll_locality::simulation::{Profile, Sampling, Settings, Simulation};
use heaptoll_reference::{Event, Owner, Reference, Sink};

use crate::Error;

/// Curves of fully associative caches, of pages, and associative caches, as the simulators make them by default.
pub fn everything(sampled: bool) -> Settings {
    Settings { sampling: sampled.then(Sampling::default), ..Settings::default() }
}

/// A simulation as a sink: references, and what the kernel loads and stores in system calls.
#[derive(Debug, Clone)]
pub struct Hearing {
    simulation: Simulation,
}

impl Hearing {
    /// One that has heard nothing; each process image gets a clone.
    ///
    /// # Errors
    /// Settings with which nothing can be simulated.
    pub fn new(settings: &Settings) -> Result<Hearing, Error> {
        Ok(Hearing { simulation: Simulation::new(settings)? })
    }

    /// What it found.
    pub fn finish(self) -> Profile {
        self.simulation.finish()
    }
}

impl Sink for Hearing {
    fn references(&mut self, owner: Owner, references: &[Reference]) {
        self.simulation.references(owner, references);
    }

    fn event(&mut self, event: &Event<'_>) {
        if let Event::Kernel { address, length, .. } = *event {
            self.simulation.kernel(address, length);
        }
    }
}
