//! A made-up experiment of realistic shape, for tests and for looking at the outputs.
//!
//! Every figure here is invented by a seeded generator. Nothing outside tests may use it: it is part of `cfg(test)` and the
//! feature `testing`.

mod chart;
mod comparison;
mod counts;
mod heaps;
mod info;
mod noise;
mod observation;
mod shape;
mod studies;

use std::sync::OnceLock;

use heaptoll_experiment::comparison::Comparison;
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::observation::{MemoryTrack, Observation, Outcome, Phase};

use noise::Noise;
use observation::{Invocation, row, track};
use shape::name_of;

pub use chart::chart;
pub use heaps::heaps;
pub use shape::{HOSTILE, Shape};
pub use studies::studies;

/// An experiment and a plausible comparison of it. Each shape is made up once: its sign flips take a second.
pub fn experiment(shape: Shape) -> (Experiment, Comparison) {
    static MADE: [OnceLock<(Experiment, Comparison)>; Shape::ALL.len()] =
        [const { OnceLock::new() }; Shape::ALL.len()];
    MADE[shape as usize].get_or_init(|| make(shape)).clone()
}

fn make(shape: Shape) -> (Experiment, Comparison) {
    let (programs, stacks, repetitions): (Vec<usize>, usize, u32) = match shape {
        Shape::Single => (vec![0], 5, 15),
        Shape::Suite => ((0..12).collect(), 7, 15),
        Shape::Server => (vec![11], 4, 8),
        Shape::Troubled => (vec![2, 4], 6, 5),
    };
    let cells: Vec<(usize, usize)> =
        programs.iter().flat_map(|p| (0..stacks).map(move |s| (*p, s))).collect();
    let mut runs =
        Runs { shape, noise: Noise(42 + shape as u64), observations: Vec::new(), tracks: Vec::new() };
    runs.repeat(&cells, repetitions);
    runs.apart(&cells);
    let mut experiment = Experiment {
        heaptoll_version: "0.1.0".into(),
        created_unix_s: 1_795_251_983.0,
        settings: info::settings(shape, &programs, repetitions),
        machine: info::machine(shape),
        baseline: "glibc".into(),
        programs: programs.iter().map(|p| info::program(shape, name_of(shape, *p), *p)).collect(),
        stacks: cells.iter().map(|(p, s)| info::stack(shape, name_of(shape, *p), *s)).collect(),
        refused: Vec::new(),
        exact_notes: Vec::new(),
        observations: runs.observations,
        tracks: runs.tracks,
        own_cost: Some((0.00063, 212)),
        complete: shape != Shape::Troubled,
    };
    if shape == Shape::Troubled {
        trouble(&mut experiment);
    }
    let comparison = comparison::compare(&experiment);
    (experiment, comparison)
}

/// Refusals, a note, and a row that is missing.
fn trouble(experiment: &mut Experiment) {
    let silent = "exports no malloc: under it the program would run on glibc in silence";
    experiment.refused = vec![
        ("gawk".into(), "./libnothing.so".into(), silent.into()),
        (HOSTILE.into(), "hoard".into(), "no such file: ./libhoard.so".into()),
    ];
    experiment.exact_notes =
        vec![(HOSTILE.into(), "glibc".into(), format!("left out: its last words were {HOSTILE}"))];
    experiment.observations.pop();
}

/// Rows in the order in which they are made up, and what they are made of.
struct Runs {
    shape: Shape,
    noise: Noise,
    observations: Vec<Observation>,
    tracks: Vec<MemoryTrack>,
}

impl Runs {
    /// A warm-up and all repetitions, each in random order.
    fn repeat(&mut self, cells: &[(usize, usize)], repetitions: u32) {
        for repetition in 0..=repetitions {
            let phase = if repetition == 0 { Phase::Warmup } else { Phase::Timed };
            let drift = 1.0 + 0.02 * f64::from(repetition) / f64::from(repetitions);
            let mut cells = cells.to_vec();
            for i in (1..cells.len()).rev() {
                cells.swap(i, (self.noise.next() * (i + 1) as f64) as usize);
            }
            for (p, s) in cells {
                let row = self.row(p, s, phase, repetition.saturating_sub(1), drift);
                self.observations.push(row);
            }
        }
    }

    /// What is run once a stack: start-up, the watched run, the traced one.
    fn apart(&mut self, cells: &[(usize, usize)]) {
        for (p, s) in cells.iter().copied() {
            self.once(p, s, Phase::Startup, 0.0006);
            let watched = self.once(p, s, Phase::Profile, 1.0);
            self.tracks.push(track(&mut self.noise, &watched));
            if self.shape == Shape::Suite {
                self.once(p, s, Phase::Traced, 30.0);
            }
        }
        for row in self.observations.iter_mut().filter(|row| row.phase == Phase::Traced) {
            row.exact = Some(counts::exact(&mut self.noise));
            row.locality = Some(counts::locality(&mut self.noise));
        }
    }

    /// A good row that takes `scale` times as long as a timed one.
    fn once(&mut self, p: usize, s: usize, phase: Phase, scale: f64) -> Observation {
        let mut row = self.row(p, s, phase, 0, 1.0);
        (row.user_s, row.system_s, row.wall_s) =
            (row.user_s * scale, row.system_s * scale, row.wall_s * scale);
        row.outcome = Outcome::Ok;
        row.stderr_tail.clear();
        self.observations.push(row.clone());
        row
    }

    fn row(&mut self, p: usize, s: usize, phase: Phase, repetition: u32, drift: f64) -> Observation {
        let order = self.observations.len() as u32;
        row(&mut self.noise, Invocation { shape: self.shape, p, s, phase, repetition, drift, order })
    }
}
