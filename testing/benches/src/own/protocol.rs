//! How experiments of these benches are made.

use heaptoll_catalog::Size;
use heaptoll_experiment::experiment::{Pairing, Protocol};

/// The input of the program: how long a run is decides what is seen.
pub fn size(longer: bool) -> Size {
    if longer { Size::Demo } else { Size::Quick }
}

/// How runs are paired.
pub fn pairing(lockstep: bool) -> Pairing {
    if lockstep { Pairing::Lockstep } else { Pairing::Interleaved }
}

/// How an experiment is made.
pub fn protocol(repetitions: u32, seed: u64, pairing: Pairing) -> Protocol {
    Protocol { repetitions, warmup: 1, seed, timeout_s: 120.0, pairing, ..Protocol::default() }
}
