//! How large may an experiment on many machines be? Makes the plan and the shards of one with synthetic rows, and measures
//! what merging, reporting and exporting them take: sizes, CPU, peak memory.
//!
//! Each file is described by the library as `heaptoll lab shards work` describes it. Its rows are those of a template with noise of
//! its own, changed inside SQLite: ten million rows appended one by one would take an hour.

use std::path::{Path, PathBuf};

use heaptoll_experiment::experiment::{Experiment, Machine, ProgramInfo, Protocol, StackInfo};
use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::launch::{self, Invocation};
use heaptoll_experiment::observation::Observation;
use heaptoll_experiment::places::Places;
use heaptoll_experiment::shards::{Part, Shard};
use heaptoll_experiment::store::Store;
use heaptoll_laboratory::cluster::cutting::{self, ProgramTime};
use heaptoll_laboratory::cluster::plan::PlannedShard;
use heaptoll_laboratory::cluster::{MachineClass, Plan, format};
use heaptoll_launcher::Ended;
use rusqlite::{Connection, params};
use serde_json::json;

use crate::Error;
use crate::installation::heaptoll;

/// The longest array that Slurm takes by default.
const ARRAY: usize = 1001;

/// What to make.
#[derive(Debug, clap::Args)]
pub struct Size {
    /// The folder that gets them; a million rows take 0.6 GB there
    folder: PathBuf,
    /// Programs
    #[arg(long, default_value_t = 40)]
    programs: u32,
    /// Managers
    #[arg(long, default_value_t = 10)]
    managers: u32,
    /// Repetitions on each class of machines
    #[arg(long, default_value_t = 2500)]
    repetitions: u32,
    /// Classes of machines; the second has a true difference
    #[arg(long, default_value_t = 1)]
    classes: u32,
    /// Repetitions of a shard
    #[arg(long, default_value_t = 100)]
    each: u32,
    /// Nodes
    #[arg(long, default_value_t = 20)]
    nodes: u32,
    /// The heaptoll to measure [default: the one next to this program]
    #[arg(long)]
    heaptoll: Option<PathBuf>,
}

/// Makes the files and measures the commands that read them.
pub fn run(size: &Size) -> Result<(), Error> {
    let folder = size.folder.join("shards");
    std::fs::create_dir_all(&folder).map_err(Error::system("make the folder"))?;
    let plan = plan(size)?;
    let path = size.folder.join("exp.plan");
    plan.write(&path).map_err(unexpected)?;
    let rows = u64::from(size.programs * size.managers) * u64::from(size.repetitions * size.classes);
    println!(
        "{rows} rows: {} programs, {} managers, {} classes of {} repetitions, {} shards, {} nodes",
        size.programs,
        size.managers,
        size.classes,
        size.repetitions,
        plan.shards.len(),
        size.nodes
    );
    let arrays = plan.shards.len().div_ceil(ARRAY);
    println!("plan: {} KiB; job arrays of {ARRAY}: {arrays}", bytes(&path)? >> 10);
    make(size, &plan, &folder)?;
    let (files, total) = total(&folder)?;
    println!("shards: {files} files, {} MiB, {} KiB each", total >> 20, (total / files.max(1)) >> 10);
    commands(size, &folder)
}

/// Merges, reports and exports, and prints what each took.
fn commands(size: &Size, shards: &Path) -> Result<(), Error> {
    let all = size.folder.join("all.db");
    let word = |path: &Path| path.display().to_string();
    timed(size, "merge", &["merge".into(), word(&all), word(shards)])?;
    println!("merged file: {} MiB", bytes(&all)? >> 20);
    timed(size, "report", &["report".into(), word(&all)])?;
    let runs = size.folder.join("runs");
    timed(size, "export", &["export".into(), word(&all), "--parquet-dir".into(), word(&runs)])?;
    let (files, total) = total(&runs)?;
    println!("Parquet: {files} files, {} MiB", total >> 20);
    Ok(())
}

fn timed(size: &Size, name: &str, words: &[String]) -> Result<(), Error> {
    let heaptoll = size.heaptoll.clone().map_or_else(heaptoll, Ok)?;
    let command = std::iter::once(heaptoll.into()).chain(words.iter().map(Into::into)).collect();
    let invocation = Invocation { command, ..Invocation::default() };
    let found = launch::run(&Places::find()?.launcher(), &invocation, &Interrupt::default())?;
    if found.ended != Ended::Exit(0) {
        return Err(Error::Unexpected(format!("{name} ended {:?}: {}", found.ended, found.error_tail)));
    }
    let usage = found.usage;
    println!(
        "{name}: {:.1} s CPU, {:.1} s, {} MiB at most",
        (usage.user_us + usage.system_us) as f64 / 1e6,
        usage.wall_ns as f64 / 1e9,
        usage.peak_rss_kib >> 10
    );
    Ok(())
}

/// The plan; nothing of it can be run.
fn plan(size: &Size) -> Result<Plan, Error> {
    let classes: Vec<MachineClass> = (0..size.classes)
        .map(|class| MachineClass { name: format!("class-{class}"), ..MachineClass::here() })
        .collect();
    let names: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
    let time = |number: u32| ProgramTime { program: program(number), repetition_s: 1.0, warmup_s: 0.0 };
    let times: Vec<ProgramTime> = (0..size.programs).map(time).collect();
    let shards: Vec<PlannedShard> = cutting::cut(&times, &names, size.repetitions, 0, f64::from(size.each));
    let plan = Plan {
        format: format::FORMAT.into(),
        version: format::VERSION,
        heaptoll: env!("CARGO_PKG_VERSION").into(),
        identity: String::new(),
        experiment: experiment(size),
        environment: [].into(),
        catalog: None,
        gate: None,
        files: vec![],
        classes,
        shards,
    };
    plan.sealed().map_err(unexpected)
}

fn program(number: u32) -> String {
    format!("program-{number:03}")
}

fn manager(number: u32) -> String {
    format!("manager-{number:02}")
}

/// An experiment that is described as long as usual.
fn experiment(size: &Size) -> Experiment {
    let info = |number: u32| ProgramInfo {
        name: program(number),
        about: "a program that was made up to measure how large an experiment may be".into(),
        command: vec![
            format!("/usr/bin/{}", program(number)),
            "--input".into(),
            "/var/cache/an-input".into(),
        ],
        ..ProgramInfo::default()
    };
    let stack = |program_number: u32, number: u32| StackInfo {
        program: program(program_number),
        name: manager(number),
        preload: vec![format!("/usr/lib/heaptoll/managers/{}.so", manager(number))],
        version: "1.2.3".into(),
        origin: format!("crate {} 1.2.3", manager(number)),
        proof: format!("malloc bound to {}.so in 1 process, 84210 calls seen", manager(number)),
        ..StackInfo::default()
    };
    let stacks = (0..size.programs).flat_map(|of| (0..size.managers).map(move |number| stack(of, number)));
    Experiment {
        heaptoll_version: env!("CARGO_PKG_VERSION").into(),
        created_unix_s: 1.0,
        settings: Protocol {
            repetitions: size.repetitions * size.classes,
            seed: 7,
            timeout_s: 600.0,
            ..Protocol::default()
        },
        machine: Machine::default(),
        baseline: manager(0),
        programs: (0..size.programs).map(info).collect(),
        stacks: stacks.collect(),
        refused: vec![],
        exact_notes: vec![],
        observations: vec![],
        tracks: vec![],
        own_cost: None,
        complete: true,
    }
}

/// A row of a manager whose figures are `1 + number / 50` times those of the first.
fn row(number: u32, repetition: u32) -> Result<Observation, Error> {
    let cpu_s = 1.0 + f64::from(number) / 50.0;
    let fields = json!({
        "order": repetition * 1000 + number, "repetition": repetition, "phase": "timed", "program": program(0),
        "stack": manager(number), "outcome": { "kind": "ok" }, "user_s": cpu_s, "system_s": cpu_s / 10.0,
        "wall_s": 1.2 * cpu_s, "peak_rss_kib": 100_000 + 1000 * number, "minor_faults": 25_000, "major_faults": 0,
        "voluntary_switches": 3, "involuntary_switches": 12, "output_bytes": 1000, "output_digest": "0f".repeat(32),
        "heap_high_water_bytes": null, "serve": null, "started_unix_s": 1.79e9, "load_average": 1.0,
        "counters": { "instructions": null, "cycles": null, "llc_misses": null, "dtlb_misses": null },
        "env_padding": 1234, "stderr_tail": "", "left_behind": 0,
    });
    serde_json::from_value(fields).map_err(unexpected)
}

/// Writes the file of each shard.
fn make(size: &Size, plan: &Plan, folder: &Path) -> Result<(), Error> {
    let template = size.folder.join("template.db");
    let described = Experiment { complete: true, ..plan.experiment.clone() };
    let store = Store::create(&template, &described).map_err(unexpected)?;
    let mut rows = Vec::new();
    for repetition in 0..size.each {
        for number in 0..size.managers {
            rows.push(row(number, repetition)?);
        }
    }
    store.append_all(&rows).map_err(unexpected)?;
    drop(store);
    for (number, planned) in (0..).zip(&plan.shards) {
        let path = folder.join(plan.file_name(number));
        std::fs::copy(&template, &path).map_err(Error::system("copy the template"))?;
        let shard = Shard {
            plan: plan.identity.clone(),
            number,
            of: plan.shards.len() as u32,
            part: planned.part.clone(),
            node: format!("n{:05}", number % size.nodes.max(1)),
            ..Shard::default()
        };
        change(&path, &planned.part, size)?;
        let mut settings = plan.experiment.settings.clone();
        settings.shards = vec![shard];
        let settings = serde_json::to_string(&settings).map_err(unexpected)?;
        let connection = open(&path)?;
        let put = "UPDATE description SET value = ?1 WHERE key = 'settings'";
        connection.execute(put, [settings]).map_err(unexpected)?;
    }
    std::fs::remove_file(&template).map_err(Error::system("remove the template"))
}

fn open(path: &Path) -> Result<Connection, Error> {
    let connection = Connection::open(path).map_err(unexpected)?;
    // Nothing has to survive a crash.
    let fast = "PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY;";
    connection.execute_batch(fast).map_err(unexpected)?;
    Ok(connection)
}

/// Gives the template's rows to a part: its program, its repetitions, noise of 1 %, and on the second class of machines
/// twice the CPU time of all managers but the first.
fn change(path: &Path, part: &Part, size: &Size) -> Result<(), Error> {
    let connection = open(path)?;
    let more = "DELETE FROM observation WHERE repetition >= ?1";
    connection.execute(more, [part.repetitions]).map_err(unexpected)?;
    let factor = if size.classes > 1 && part.class == "class-1" { 2.0 } else { 1.0 };
    let update = "UPDATE observation SET program = ?1, repetition = repetition + ?2, \
                  user_s = user_s * (1 + (random() % 1000) / 1e5) * CASE stack WHEN ?4 THEN 1 ELSE ?3 END, \
                  peak_rss_kib = peak_rss_kib + random() % 500";
    connection.execute(update, params![part.program, part.first, factor, manager(0)]).map_err(unexpected)?;
    Ok(())
}

fn bytes(path: &Path) -> Result<u64, Error> {
    std::fs::metadata(path).map(|file| file.len()).map_err(Error::system("read the size of a file"))
}

/// Files below a folder and their bytes.
fn total(folder: &Path) -> Result<(u64, u64), Error> {
    let mut sum = (0, 0);
    for entry in std::fs::read_dir(folder).map_err(Error::system("read a folder"))?.flatten() {
        let path = entry.path();
        let (files, length) = if path.is_dir() { total(&path)? } else { (1, bytes(&path)?) };
        sum = (sum.0 + files, sum.1 + length);
    }
    Ok(sum)
}

fn unexpected(error: impl std::fmt::Display) -> Error {
    Error::Unexpected(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptoll_laboratory::cluster::merge::{MergeRequest, merge};

    fn made(size: &Size) -> (Plan, PathBuf) {
        let folder = size.folder.join("shards");
        std::fs::create_dir_all(&folder).expect("a folder");
        let plan = plan(size).expect("a plan");
        make(size, &plan, &folder).expect("shards");
        (plan, folder)
    }

    fn size(folder: &Path) -> Size {
        Size {
            folder: folder.to_path_buf(),
            programs: 2,
            managers: 3,
            repetitions: 7,
            classes: 2,
            each: 3,
            nodes: 5,
            heaptoll: None,
        }
    }

    #[test]
    fn synthetic_shards_are_those_of_their_plan() {
        let folder = tempfile::tempdir().expect("a folder");
        let (plan, shards) = made(&size(folder.path()));
        let output = folder.path().join("all.db");
        let merged = merge(&MergeRequest { output: output.clone(), shards: vec![shards], class: None })
            .expect("merges");
        assert_eq!((merged.rows, merged.experiment.complete), (2 * 3 * 7 * 2, true));
        assert_eq!(merged.experiment.settings.shards.len(), plan.shards.len());
        let whole = Store::read(&output).expect("reads");
        assert_eq!(whole.nodes().len(), 5);
        let mut seconds = whole.into_classes().into_iter().map(|(_, class)| {
            let rows = class.observations.iter().filter(|row| row.stack == manager(1));
            rows.map(|row| row.user_s).sum::<f64>() / 14.0
        });
        let (first, second) = (seconds.next().expect("a class"), seconds.next().expect("a class"));
        assert!(
            (second / first - 2.0).abs() < 0.05,
            "the second class has a true difference: {first} {second}"
        );
    }
}
