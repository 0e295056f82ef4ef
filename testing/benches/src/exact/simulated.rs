//! A sink that simulates a process image.

use heaptoll_locality::simulation::{Profile, Sampling, Settings, Simulation};
use heaptoll_reftrace::{Event, Owner, Reference, Sink};

use crate::Error;

/// Curves of fully associative caches, of pages, and associative caches: the simulators' defaults.
pub fn everything(sampled: bool) -> Settings {
    Settings { sampling: sampled.then(Sampling::default), ..Settings::default() }
}

/// A simulation as a sink: references, and the kernel's loads and stores in system calls.
#[derive(Debug, Clone)]
pub struct SimulationSink {
    simulation: Simulation,
}

impl SimulationSink {
    /// An empty one; each process image gets a clone.
    ///
    /// # Errors
    /// Settings that cannot be simulated.
    pub fn new(settings: &Settings) -> Result<SimulationSink, Error> {
        Ok(SimulationSink { simulation: Simulation::new(settings)? })
    }

    /// The results.
    pub fn finish(self) -> Profile {
        self.simulation.finish()
    }
}

impl Sink for SimulationSink {
    fn references(&mut self, owner: Owner, references: &[Reference]) {
        self.simulation.references(owner, references);
    }

    fn event(&mut self, event: &Event<'_>) {
        if let Event::Kernel { address, length, .. } = *event {
            self.simulation.kernel(address, length);
        }
    }
}
