//! Options that set how runs are made, each declared once. A command takes the group that it has, and names the defaults
//! that are its own there.

use clap::Args;
use clap::builder::ArgPredicate;
use heaptoll_command::clock;
use heaptoll_experiment::experiment::{Pairing, Protocol, REPETITIONS};

use crate::duration::positive_seconds;
use crate::one_of::{Word, one_of};
use crate::outputs::own_arguments;

/// The groups and options of [`Paired`] that are fixed when an experiment begins. The struct's own group is empty: clap
/// leaves it so where a group has another inside.
pub const FIXED: [&str; 4] = ["warmup", "pairing", "seed", "Limits"];

/// When a run ends, and how it ends well.
#[derive(Debug, Args)]
pub struct Limits {
    /// Seconds after which a run is ended and marked
    #[arg(long, value_name = "T", default_value_t = 600.0, allow_negative_numbers = true,
        value_parser = positive_seconds)]
    timeout: f64,
    /// Exit status of a good run [default: 0]
    #[arg(long, value_name = "STATUS", value_parser = clap::value_parser!(i32).range(0..=255))]
    pub expect_status: Option<i32>,
}

/// The same, with a seed.
#[derive(Debug, Args)]
pub struct Seeded {
    /// Seed of all random choices [default: from the clock, printed]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    #[command(flatten)]
    pub limits: Limits,
}

/// The same, of paired repetitions.
#[derive(Debug, Args)]
pub struct Paired {
    /// Timed repetitions; below 6 no difference can be claimed [default: 10]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repetitions: Option<u32>,
    /// Repetitions before the timed ones, not compared; the first gives memory over time. Lockstep adds one of its own
    #[arg(long, value_name = "W", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=1000))]
    warmup: u32,
    /// How runs are paired: `lockstep` runs what is compared together on one processor if the program allows it,
    /// `interleaved` one after another
    // Only `run` and `lab shards plan` have --vary: what takes more memory costs more in lockstep than by itself.
    #[arg(long, value_name = "HOW", default_value = "lockstep", value_parser = one_of(&PAIRINGS),
        default_value_if("vary", ArgPredicate::IsPresent, "interleaved"))]
    pairing: Pairing,
    #[command(flatten)]
    seeded: Seeded,
}

const PAIRINGS: [Word<Pairing>; 2] = [
    (
        "lockstep",
        Pairing::Lockstep,
        "All managers together on one processor: detects differences of one percent on a noisy machine",
    ),
    ("interleaved", Pairing::Interleaved, "One after another in random order"),
];

impl Limits {
    /// The protocol of a single run of this command.
    pub fn protocol(&self) -> Protocol {
        Protocol {
            timeout_s: self.timeout,
            expect_status: self.expect_status.unwrap_or_default(),
            repeat_command: own_arguments(),
            ..Protocol::default()
        }
    }
}

impl Seeded {
    /// The protocol with this number of repetitions.
    pub fn protocol(&self, repetitions: u32) -> Protocol {
        Protocol { repetitions, seed: self.seed.unwrap_or_else(clock::seed), ..self.limits.protocol() }
    }
}

impl Paired {
    /// The protocol of the repetitions.
    pub fn protocol(&self) -> Protocol {
        Protocol {
            warmup: self.warmup,
            pairing: self.pairing,
            ..self.seeded.protocol(self.repetitions.unwrap_or(REPETITIONS))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::traced_arguments::LIMIT;
    use crate::{REGISTRY, cli};

    #[test]
    fn commands_have_their_own_defaults() {
        let default = |of: &[&str], name: &str| {
            let cli = cli(&REGISTRY);
            let command = of.iter().fold(&cli, |at, word| at.find_subcommand(word).expect(word));
            let argument = command.get_arguments().find(|one| one.get_id() == name).expect(name);
            argument.get_default_values()[0].to_string_lossy().into_owned()
        };
        for (command, option, value) in [
            (&["run"][..], "timeout", "600"),
            (&["run"], "warmup", "1"),
            (&["run"], "pairing", "lockstep"),
            (&["exact", "drag"], "timeout", LIMIT),
            (&["gate"], "timeout", "600"),
        ] {
            assert_eq!(default(command, option), value, "{command:?} --{option}");
        }
        assert_eq!(LIMIT.parse(), Ok(heaptoll_runs::traced::LIMIT_S));
    }
}
