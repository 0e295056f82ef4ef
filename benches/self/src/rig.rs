//! An experiment made for a bench: one bundled program under stacks given by hand, without preflight.

use std::path::PathBuf;

use heaptoll_catalog::{Catalog, Size};
use heaptoll_lab::experiment::{Experiment, ProgramInfo, Settings, StackInfo};
use heaptoll_lab::interrupt::Interrupt;
use heaptoll_lab::machine;
use heaptoll_lab::observation::Observation;
use heaptoll_lab::places::Places;
use heaptoll_lab::plan::{self, Cell};
use heaptoll_lab::runner::{self, Bench, Progress};
use heaptoll_lab::store::Store;

use crate::BenchError;

/// A stack: its name, what it preloads, its environment.
pub struct Stack {
    /// Name in rows.
    pub name: String,
    /// Objects to preload.
    pub preload: Vec<PathBuf>,
    /// Environment.
    pub environment: Vec<(String, String)>,
}

struct Quiet;

impl Progress for Quiet {
    fn begins(&mut self, _: &Cell, _: &StackInfo) {}
    fn ended(&mut self, _: &Cell, _: Option<&Observation>) {}
}

/// The catalog's `cfrac` at its quick size, about a tenth of a second.
pub fn cfrac(places: &Places) -> Result<Vec<String>, BenchError> {
    let catalog = Catalog::load(&places.catalog())?;
    let folders = heaptoll_catalog::Places { bin: places.programs(), inputs_cache: Places::inputs() };
    Ok(catalog.find("cfrac")?.prepare(Size::Quick, &folders)?.command)
}

/// Runs `command` under the stacks, the first being the baseline, `repetitions` times.
pub fn run(
    places: &Places,
    command: Vec<String>,
    stacks: &[Stack],
    repetitions: u32,
    seed: u64,
) -> Result<Experiment, BenchError> {
    let folder = tempfile::tempdir().map_err(BenchError::system("temporary folder"))?;
    let mut experiment = Experiment {
        heaptoll_version: env!("CARGO_PKG_VERSION").into(),
        created_unix_s: 0.0,
        settings: Settings { repetitions, warmup: 1, seed, timeout_s: 120.0, ..Settings::default() },
        machine: machine::read(),
        baseline: stacks[0].name.clone(),
        programs: vec![ProgramInfo {
            name: "program".into(),
            about: String::new(),
            command,
            environment: vec![],
            stdin: None,
            expected_digest: None,
            serve: None,
        }],
        stacks: stacks
            .iter()
            .map(|stack| StackInfo {
                program: "program".into(),
                name: stack.name.clone(),
                preload: stack.preload.iter().map(|path| path.display().to_string()).collect(),
                environment: stack.environment.clone(),
                version: String::new(),
                origin: String::new(),
                proof: String::new(),
                warnings: vec![],
                tells: false,
            })
            .collect(),
        refused: vec![],
        observations: vec![],
        tracks: vec![],
        own_cost: None,
        complete: false,
    };
    let mut store = Store::create(&folder.path().join("bench.db"), &experiment)?;
    let cells = plan::plan(&experiment, &vec![true; stacks.len()]);
    let bench = Bench {
        launcher: places.launcher(),
        start_layer: places.start_layer(),
        interrupt: Interrupt::default(),
    };
    runner::execute(&mut experiment, &cells, &mut store, &bench, &mut Quiet)?;
    Ok(experiment)
}
