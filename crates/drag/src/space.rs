//! The space-time of objects by phase, as Röjemo and Runciman (1996) distinguish.

use heaptoll_reftrace::numbered;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stamp::{Clock, Stamp};

numbered! {
    /// The phase of an object at an instant.
    pub enum Phase {
        /// Allocated, and touched later.
        Lag = 0 => "lag",
        /// Between its first and its last touch.
        Use = 1 => "use",
        /// Touched for the last time, and still held.
        Drag = 2 => "drag",
        /// Never touched at all, and held.
        Void = 3 => "void",
        /// Freed by the program, and not reclaimed by its collector.
        Unreclaimed = 4 => "unreclaimed",
    }
}

/// Number of phases.
pub const PHASES: usize = Phase::ALL.len();

/// Bytes times the clock, by phase: bytes x instructions, or bytes x bytes allocated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Space {
    /// From the allocation to the first touch.
    pub lag: u128,
    /// From the first to the last touch.
    #[serde(rename = "use")]
    pub in_use: u128,
    /// From the last touch to the end.
    pub drag: u128,
    /// From the allocation to the end, when there was no touch.
    pub void: u128,
    /// From the free until a collector reclaimed it: at most this.
    pub unreclaimed: u128,
}

impl Space {
    /// The space-time of a phase.
    pub fn of(&self, phase: Phase) -> u128 {
        match phase {
            Phase::Lag => self.lag,
            Phase::Use => self.in_use,
            Phase::Drag => self.drag,
            Phase::Void => self.void,
            Phase::Unreclaimed => self.unreclaimed,
        }
    }

    /// Adds space-time to a phase.
    #[inline(always)]
    pub fn add(&mut self, phase: Phase, area: u128) {
        let sum = match phase {
            Phase::Lag => &mut self.lag,
            Phase::Use => &mut self.in_use,
            Phase::Drag => &mut self.drag,
            Phase::Void => &mut self.void,
            Phase::Unreclaimed => &mut self.unreclaimed,
        };
        *sum = sum.saturating_add(area);
    }

    /// The sum.
    pub fn plus(mut self, other: &Space) -> Space {
        Phase::ALL.iter().for_each(|phase| self.add(*phase, other.of(*phase)));
        self
    }

    /// Space-time while the program holds the objects: all phases but the wait for the collector.
    pub fn held(&self) -> u128 {
        self.lag.saturating_add(self.in_use).saturating_add(self.drag).saturating_add(self.void)
    }

    /// Space-time without any later touch.
    pub fn idle(&self) -> u128 {
        self.drag.saturating_add(self.void).saturating_add(self.unreclaimed)
    }
}

/// Space-time on both clocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spaces(pub [Space; 2]);

impl Spaces {
    /// Adds bytes that are in a phase for a duration.
    #[inline(always)]
    pub fn add(&mut self, phase: Phase, bytes: u64, from: Stamp, to: Stamp) {
        for clock in Clock::ALL {
            let duration = to[clock].saturating_sub(from[clock]);
            self.0[clock as usize].add(phase, u128::from(bytes) * u128::from(duration));
        }
    }

    /// The sum.
    pub fn plus(self, other: &Spaces) -> Spaces {
        Spaces([self.0[0].plus(&other.0[0]), self.0[1].plus(&other.0[1])])
    }

    /// The space-time on a clock.
    pub fn on(&self, clock: Clock) -> &Space {
        &self.0[clock as usize]
    }
}
