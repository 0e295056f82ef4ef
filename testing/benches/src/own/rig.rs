//! The experiment of these benches: the catalog's cfrac, at its quick size, under stacks given by hand.

use heaptoll_bench::NoProgress;
pub use heaptoll_bench::Stack;
use heaptoll_catalog::{Catalog, Prepared, Size};
use heaptoll_experiment::experiment::{Experiment, Pairing, Protocol};
use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::places::Places;
use heaptoll_experiment::runner::RunContext;

use crate::BenchError;

/// The catalog's `cfrac` at its quick size, about a tenth of a second.
pub fn cfrac(places: &Places) -> Result<Prepared, BenchError> {
    program(places, "cfrac", Size::Quick)
}

/// A program of the catalog.
pub fn program(places: &Places, name: &str, size: Size) -> Result<Prepared, BenchError> {
    let catalog = Catalog::load(&places.catalog())?;
    let folders = heaptoll_catalog::Places {
        bin: places.programs(),
        added: Places::added(),
        inputs_cache: Places::inputs(),
    };
    Ok(catalog.find(name)?.prepare(size, &folders)?)
}

/// Runs `program` under the stacks, the first being the baseline, `repetitions` times.
pub fn run(
    places: &Places,
    program: Prepared,
    stacks: &[Stack],
    repetitions: u32,
    seed: u64,
    pairing: Pairing,
) -> Result<Experiment, BenchError> {
    sliced(places, program, stacks, repetitions, seed, pairing, None)
}

/// [`run`], with time slices of so many seconds in lockstep.
pub fn sliced(
    places: &Places,
    program: Prepared,
    stacks: &[Stack],
    repetitions: u32,
    seed: u64,
    pairing: Pairing,
    slice_s: Option<f64>,
) -> Result<Experiment, BenchError> {
    let settings =
        Protocol { repetitions, warmup: 1, seed, timeout_s: 120.0, pairing, slice_s, ..Protocol::default() };
    let context = RunContext {
        launcher: places.launcher(),
        start_layer: places.start_layer(),
        interrupt: Interrupt::default(),
    };
    Ok(heaptoll_bench::run(&program, stacks, None, settings, &context, &mut NoProgress)?)
}
