//! `simulators`: references a second on one core, of each simulator by itself and of all together, on references of real
//! programs and on random ones.
//!
//! The references are recorded once and simulated from memory, so that the figure includes neither the tracer nor the
//! ring.

use heaptoll_locality::simulation::{Sampling, Settings, Simulation};
use heaptoll_reftrace::{Event, Owner, Reference, Sink};
use heaptoll_reftrace_host::Options as TracerOptions;
use heaptoll_units::number;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::setup::{Choice, Setup};
use super::slowdown::own_cpu;
use super::traced::{self, Run};
use crate::Error;
use crate::installation::machine_line;
use crate::table::table;

/// The command line of `simulators`.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    choice: Choice,
    /// References, millions
    #[arg(long, default_value_t = 40)]
    millions: usize,
    /// References at the start that are skipped, millions: until its heap has grown a program is easy to simulate
    #[arg(long, default_value_t = 150)]
    skip: usize,
    /// Times each is measured; the fastest counts
    #[arg(short, default_value_t = 3)]
    n: usize,
}

/// Targets of lines and of all simulators, millions of references a second.
const LINES: f64 = 60.0;
const EVERYTHING: f64 = 40.0;
/// Range of random references, bytes.
const RANDOM_BYTES: u64 = 64 << 20;

/// Keeps some references of a run, with their owners.
struct Recording {
    references: Vec<Reference>,
    runs: Vec<(Owner, usize)>,
    most: usize,
    skip: usize,
}

impl Sink for Recording {
    fn references(&mut self, owner: Owner, references: &[Reference]) {
        let passed = references.len().min(self.skip);
        self.skip -= passed;
        let rest = &references[passed..];
        let taken = &rest[..rest.len().min(self.most - self.references.len())];
        if !taken.is_empty() {
            self.references.extend_from_slice(taken);
            self.runs.push((owner, taken.len()));
        }
    }

    fn event(&mut self, _event: &Event<'_>) {}
}

/// Measures. Always true: the figures are information.
///
/// # Errors
/// A program fails, or the tracer is missing.
pub fn run(options: &Options) -> Result<bool, Error> {
    let setup = Setup::open(options.choice.timeout)?;
    let managers = setup.installation.managers(&options.choice.managers, &["glibc"])?;
    let most = options.millions * 1_000_000;
    println!("{}; millions of references a second, the fastest of {}", machine_line(), options.n);
    let mut streams = Vec::new();
    for program in setup.programs(&options.choice, &["gawk", "cfrac"])? {
        for manager in &managers {
            let run = Run {
                options: TracerOptions { references: true, ..TracerOptions::default() },
                ..Run::default()
            };
            let skip = options.skip * 1_000_000;
            let record = |_: &_| Recording { references: Vec::new(), runs: Vec::new(), most, skip };
            let traced = traced::trace(&setup, &program, manager, run, record)?;
            let (recording, _) = traced::main(&setup, &program, manager, traced)?;
            streams.push((format!("{} under {}", program.name, manager.name), recording));
        }
    }
    streams.push((format!("random in {} MiB", RANDOM_BYTES >> 20), random(most)));
    let base = Settings { lines: false, sets: None, pages: false, ..Settings::default() };
    let all = Settings::default();
    let kinds = [
        ("lines of every size, exact", Settings { lines: true, ..base.clone() }, Some(LINES)),
        ("associative caches", Settings { sets: all.sets.clone(), ..base.clone() }, None),
        ("pages", Settings { pages: true, ..base }, None),
        ("everything, exact", all.clone(), Some(EVERYTHING)),
        ("everything, sampled", Settings { sampling: Some(Sampling::default()), ..all }, None),
    ];
    let mut rows = Vec::new();
    for (name, recording) in &streams {
        for (kind, settings, target) in &kinds {
            let mut best = 0.0f64;
            let mut memory = 0;
            for _ in 0..options.n.max(1) {
                let (speed, bytes) = measure(settings, recording)?;
                best = best.max(speed);
                memory = bytes;
            }
            let of_program = !name.starts_with("random");
            let verdict = target.filter(|_| of_program).map_or(String::new(), |target| {
                format!(">= {target:.0}: {}", if best >= target { "met" } else { "MISSED" })
            });
            let size = number(recording.references.len() as u64 / 1_000_000);
            rows.push(vec![
                name.clone(),
                (*kind).into(),
                size,
                format!("{best:.0}"),
                format!("{:.1}", memory as f64 / (1 << 20) as f64),
                verdict,
            ]);
        }
    }
    println!(
        "{}",
        table(&["references", "simulator", "millions", "millions/s", "memory, MiB", "target"], 2, rows)
    );
    Ok(true)
}

/// Millions of references a second, and the bytes that the simulators took.
fn measure(settings: &Settings, recording: &Recording) -> Result<(f64, u64), Error> {
    let mut simulation = Simulation::new(settings)?;
    let before = own_cpu();
    let mut rest = recording.references.as_slice();
    for (owner, count) in &recording.runs {
        let (now, later) = rest.split_at(*count);
        simulation.references(*owner, now);
        rest = later;
    }
    let profile = std::hint::black_box(simulation.finish());
    let seconds = own_cpu() - before;
    Ok((recording.references.len() as f64 / seconds / 1e6, profile.memory_bytes))
}

/// Loads of eight bytes at random addresses.
fn random(count: usize) -> Recording {
    let mut dice = ChaCha8Rng::seed_from_u64(1992);
    let one = |_| Reference::new(0x1000_0000 + dice.random_range(0..RANDOM_BYTES / 8) * 8, 8, false);
    // Runs as long as in a program: some hundred references.
    let references: Vec<Reference> = (0..count).map(one).collect();
    let runs = references.chunks(500).map(|run| (Owner::Program, run.len())).collect();
    Recording { references, runs, most: count, skip: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_passes_over_its_start_and_ends_when_it_is_full() {
        let mut recording = Recording { references: vec![], runs: vec![], most: 5, skip: 4 };
        let three = [Reference::new(64, 8, false); 3];
        (0..5).for_each(|_| recording.references(Owner::Allocator, &three));
        assert_eq!(recording.references.len(), 5);
        assert_eq!(recording.runs, [(Owner::Allocator, 2), (Owner::Allocator, 3)]);
    }
}
