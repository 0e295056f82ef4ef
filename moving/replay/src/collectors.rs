//! Collectors of our own for replays of traces with pointers, each a file set of its own: [`MostlyCopying`],
//! [`Counting`], [`Treadmill`]. They run on the thread that replays, when it allocates.

mod cells;
mod counting;
mod damage;
mod mostly_copying;
mod object;
mod pages;
mod pause;
mod roots;
mod treadmill;
#[cfg(test)]
mod trial;

pub use counting::Counting;
pub use mostly_copying::MostlyCopying;
pub use treadmill::Treadmill;

use heaptoll_moving_answers::Replayed;

use crate::error::Error;
use crate::program::Program;
use crate::replay::replay;
use crate::settings::Settings;
use crate::world::World;

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collector {
    /// [`MostlyCopying`].
    MostlyCopying,
    /// [`Counting`].
    Counting,
    /// [`Treadmill`].
    Treadmill,
}

/// All of them.
pub const COLLECTORS: [Collector; 3] = [Collector::MostlyCopying, Collector::Counting, Collector::Treadmill];

impl Collector {
    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Collector::MostlyCopying => "mostlycopying",
            Collector::Counting => "counting",
            Collector::Treadmill => "treadmill",
        }
    }

    /// Replays a program under it.
    ///
    /// # Errors
    /// The system has no memory for the heap.
    pub fn replay(self, program: &Program, settings: &Settings) -> Result<Replayed, Error> {
        let world = World::new(program.handles(), settings);
        Ok(match self {
            Collector::MostlyCopying => replay(program, self.name(), &mut MostlyCopying::new(world)?),
            Collector::Counting => replay(program, self.name(), &mut Counting::new(world)?),
            Collector::Treadmill => replay(program, self.name(), &mut Treadmill::new(world)?),
        })
    }
}
