//! The option by which a user chooses how runs are paired.

use clap::ValueEnum;
use heaptoll_experiment::experiment::Pairing;

/// How runs are paired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PairingArg {
    /// All managers together on one processor: detects differences of one percent on a noisy machine
    Lockstep,
    /// One after another in random order
    Interleaved,
}

impl From<PairingArg> for Pairing {
    fn from(pairing: PairingArg) -> Pairing {
        match pairing {
            PairingArg::Lockstep => Pairing::Lockstep,
            PairingArg::Interleaved => Pairing::Interleaved,
        }
    }
}
