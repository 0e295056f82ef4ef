//! What layers cost whole programs: programs of the catalog under a manager, forwarding in front of it and a quarantine
//! of 1 B in front of it, in runs that take turns, compared within repetitions.

use heaptoll_catalog::Size;
use heaptoll_experiment::compare::{compare, judge_outputs};
use heaptoll_experiment::comparison::{Metric, Row};
use heaptoll_experiment::experiment::{Experiment, Protocol};
use heaptoll_statistics::{Interval, geometric_mean};

use crate::installation::Installation;
use crate::table::table;
use crate::{Error, NoProgress, Stack};

/// Programs, repetitions, input size and seed.
#[derive(Debug, Clone, clap::Args)]
pub struct Effort {
    /// Programs of the catalog
    #[arg(value_name = "PROGRAM", default_values_t = ["cfrac", "espresso", "gawk", "perl", "sqlite", "lua"].map(String::from))]
    pub programs: Vec<String>,
    /// The manager under the layers
    #[arg(short, long, default_value = "mimalloc3")]
    pub manager: String,
    /// Timed repetitions; in each every stack runs once, in random order
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub repetitions: u32,
    /// Size of the programs' inputs
    #[arg(long, value_name = "SIZE", default_value = "demo", value_parser = clap::builder::PossibleValuesParser::new(["quick", "demo", "full"]))]
    pub size: String,
    /// Seed of the order
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Print Markdown
    #[arg(long)]
    pub markdown: bool,
}

/// Measures and prints.
///
/// # Errors
/// A program or the manager is not there, or the experiment fails. A stack that fails is marked in its row.
pub fn run(installation: &Installation, effort: &Effort) -> Result<(), Error> {
    let base = installation.manager(&effort.manager)?;
    let stack = |layer: &str| installation.stack(&format!("{layer}{}", base.name));
    let stacks = [stack("")?, stack("forward/")?, stack("quarantine=1B/")?];
    let size: Size = effort.size.parse()?;
    let header = [
        "program",
        "CPU s",
        "forward over none, CPU",
        "1B over forward, CPU",
        "forward over none, elapsed",
        "1B over forward, elapsed",
    ];
    let mut table = table(&header, 1, []).in_markdown(effort.markdown);
    let mut ratios: [Vec<f64>; 4] = [const { Vec::new() }; 4];
    for name in &effort.programs {
        let program = match installation.program(name, size) {
            Err(error @ Error::Missing { .. }) => {
                eprintln!("left out: {error}");
                continue;
            }
            program => program?,
        };
        eprintln!("{name} under 3 stacks");
        let protocol = Protocol {
            repetitions: effort.repetitions,
            warmup: 1,
            seed: effort.seed,
            timeout_s: 600.0,
            ..Protocol::default()
        };
        let mut experiment = installation.run(&program, &stacks, protocol, &mut NoProgress)?;
        judge_outputs(&mut experiment);
        let cpu_s = rows(&experiment).first().and_then(|row| Some(row.figures.get(&Metric::Cpu)?.median));
        let forward = over_baseline(&mut experiment, &stacks, 0);
        let quarantine = over_baseline(&mut experiment, &stacks, 1);
        let found = [forward[0], quarantine[0], forward[1], quarantine[1]];
        for (all, found) in ratios.iter_mut().zip(found) {
            all.extend(found.map(|interval| interval.ratio));
        }
        let mut cells = vec![name.clone(), cpu_s.map_or("-".into(), |seconds| format!("{seconds:.2}"))];
        cells.extend(found.map(interval_text));
        table.row(cells);
        for row in rows(&experiment).iter().filter(|row| !row.marks.is_empty()) {
            eprintln!("{name} under {}: {}", row.stack, row.marks.join("; "));
        }
    }
    let mut last = vec!["geometric mean".into(), String::new()];
    last.extend(ratios.map(|all| geometric_mean(all).map_or("-".into(), |mean| format!("{mean:.3}"))));
    table.row(last);
    println!("{table}");
    println!(
        "{} repetitions; intervals of 95 % over all stacks and metrics of a program together",
        effort.repetitions
    );
    Ok(())
}

fn rows(experiment: &Experiment) -> Vec<Row> {
    compare(experiment).tables.into_iter().flat_map(|table| table.rows).collect()
}

/// CPU and elapsed time of a stack over those of the one before it, which has this number.
fn over_baseline(experiment: &mut Experiment, stacks: &[Stack], before: usize) -> [Option<Interval>; 2] {
    experiment.baseline = stacks[before].name.clone();
    let rows = rows(experiment);
    let row = rows.iter().find(|row| row.stack == stacks[before + 1].name);
    [Metric::Cpu, Metric::Wall].map(|metric| row?.figures.get(&metric)?.ratio)
}

fn interval_text(interval: Option<Interval>) -> String {
    interval.map_or("-".into(), |i| format!("{:.3} ({:.3}-{:.3})", i.ratio, i.low, i.high))
}
