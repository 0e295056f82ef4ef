//! What `heaptoll run` measured: the tool next to this program is started, or the JSON that it wrote earlier is read.
//! Every figure of the tables here is one of the tool's.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use heaptoll_catalog::Size;
use heaptoll_command::labelled;
use heaptoll_experiment::compare::{compare, judge_outputs};
use heaptoll_experiment::comparison::{Comparison, Metric, Row};
use heaptoll_experiment::experiment::{Experiment, Pairing};
use heaptoll_experiment::observation::Phase;
use heaptoll_papers::stored;
use heaptoll_report::json::ExperimentFile;
use heaptoll_statistics::median;

use super::document::Outputs;
use crate::Error;
use crate::installation::{Installation, dated_line, heaptoll, scratch};

/// Where the figures come from.
#[derive(Debug, Clone, clap::Args)]
pub struct Source {
    /// Read what `heaptoll run --json` wrote, as it is or compressed by xz, and run nothing
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Where `heaptoll run` writes its JSON [default: nowhere]
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    json: Option<PathBuf>,
    /// Other words for `heaptoll run` than those that the published page is made with, managers among them
    #[arg(last = true, value_name = "WORDS", conflicts_with = "from")]
    words: Vec<String>,
}

/// The command line of a section whose programs run once more than for the table.
#[derive(Debug, clap::Args)]
pub struct SizedOptions {
    /// Size of the programs' inputs, the table's
    #[arg(long, value_name = "SIZE", default_value = "demo")]
    pub size: Size,
    #[command(flatten)]
    pub source: Source,
    #[command(flatten)]
    pub outputs: Outputs,
}

/// What is measured where no other words are given.
pub struct Plan {
    /// Sets of the catalog, whose programs are measured with those of the words.
    pub sets: &'static [&'static str],
    /// Words for `heaptoll run`.
    pub words: &'static str,
    /// Managers that are measured too where they have been added.
    pub added: &'static [&'static str],
}

impl Plan {
    fn words(&self) -> Result<Vec<String>, Error> {
        let installation = Installation::find()?;
        let mut words: Vec<String> = self.words.split_whitespace().map(String::from).collect();
        for set in self.sets {
            words.extend(installation.set(set)?.into_iter().flat_map(|program| ["-p".into(), program]));
        }
        let added = self.added.iter().filter(|name| installation.manager(name).is_ok());
        words.extend(added.flat_map(|name| ["-m", name]).map(String::from));
        Ok(words)
    }
}

impl Source {
    /// What was measured, by this plan where no other words were given.
    ///
    /// # Errors
    /// The run measured nothing, or a file cannot be read.
    pub fn measured(&self, plan: &Plan) -> Result<Measured, Error> {
        if let Some(path) = &self.from {
            return Measured::read(path);
        }
        let folder = scratch()?;
        let json = self.json.clone().unwrap_or_else(|| folder.path().join("run.json"));
        let mut command = Command::new(heaptoll()?);
        command.arg("run").arg("--json").arg(&json);
        match self.words.is_empty() {
            true => command.args(plan.words()?),
            false => command.args(&self.words),
        };
        let shown = format!("{command:?}");
        let status = command.stdout(Stdio::null()).status();
        let status = status.map_err(Error::system(format!("start `{shown}`")))?;
        // 1: some runs did not end well, which the tables show.
        match status.code() {
            Some(0 | 1) => Measured::read(&json),
            _ => Err(Error::failed(format!("`{shown}`"), status)),
        }
    }
}

/// An experiment and its comparison.
pub struct Measured {
    pub experiment: Experiment,
    pub comparison: Comparison,
}

impl Measured {
    /// Reads what `heaptoll run --json` wrote.
    ///
    /// # Errors
    /// The file cannot be read, or something else wrote it.
    pub fn read(path: &Path) -> Result<Measured, Error> {
        let text = stored::text(path).map_err(Error::file("read", path))?;
        let read = labelled::read::<ExperimentFile>(&text);
        let read = read.map_err(|why| Error::failed(format!("cannot read {}", path.display()), why))?;
        Ok(Measured::of(read.experiment))
    }

    /// Compares.
    pub fn of(mut experiment: Experiment) -> Measured {
        judge_outputs(&mut experiment);
        Measured { comparison: compare(&experiment), experiment }
    }

    /// The same of these programs alone, with the means over them.
    pub fn only(&self, is_wanted: impl Fn(&str) -> bool) -> Measured {
        let mut experiment = self.experiment.clone();
        experiment.programs.retain(|one| is_wanted(&one.name));
        experiment.stacks.retain(|one| is_wanted(&one.program));
        experiment.observations.retain(|one| is_wanted(&one.program));
        experiment.tracks.retain(|one| is_wanted(&one.program));
        Measured::of(experiment)
    }

    /// The programs, in the order in which they ran.
    pub fn programs(&self) -> impl Iterator<Item = &str> {
        self.experiment.programs.iter().map(|program| program.name.as_str())
    }

    /// The managers without the baseline, in the order in which they were requested.
    pub fn managers(&self) -> Vec<&str> {
        let mut found: Vec<&str> = vec![];
        for stack in &self.experiment.stacks {
            if stack.name != self.experiment.baseline && !found.contains(&stack.name.as_str()) {
                found.push(&stack.name);
            }
        }
        found
    }

    /// A manager's figures on a program.
    pub fn row(&self, program: &str, manager: &str) -> Option<&Row> {
        let table = self.comparison.tables.iter().find(|table| table.program == program)?;
        table.rows.iter().find(|row| row.stack == manager)
    }

    /// A median.
    pub fn median(&self, program: &str, manager: &str, metric: Metric) -> Option<f64> {
        Some(self.row(program, manager)?.figures.get(&metric)?.median)
    }

    /// Mean resident memory over time, KiB, of the run that was watched.
    pub fn mean_kib(&self, program: &str, manager: &str) -> Option<f64> {
        let mut tracks = self.experiment.tracks.iter();
        tracks.find(|track| track.program == program && track.stack == manager)?.mean_kib()
    }

    /// A figure of a manager over the baseline's.
    pub fn over(&self, manager: &str, figure: impl Fn(&str) -> Option<f64>) -> Option<f64> {
        Some(figure(manager)? / figure(&self.experiment.baseline)?)
    }

    /// The median of a figure of the timed runs; none where no run has it.
    pub fn timed(&self, program: &str, manager: &str, figure: Timed) -> Option<f64> {
        let rows = self.experiment.observations.iter();
        let timed = rows.filter(|row| {
            row.phase == Phase::Timed && row.program == program && row.stack == manager && row.outcome.is_ok()
        });
        let values: Vec<f64> = timed.filter_map(figure).collect();
        (!values.is_empty()).then(|| median(&values))
    }

    /// The day, the machine and the plan, as a sentence before a table.
    pub fn heading(&self) -> String {
        let Experiment { created_unix_s, machine, settings, .. } = &self.experiment;
        let pairing = match settings.pairing {
            Pairing::Lockstep => "in lockstep",
            Pairing::Interleaved => "interleaved",
        };
        format!(
            "{}; {} repetitions {pairing}: `{}`. Ratios are to {}.",
            dated_line(*created_unix_s, machine),
            self.experiment.repetitions(),
            settings.repeat_command.join(" "),
            self.experiment.baseline,
        )
    }

    /// Which runs did not end well.
    pub fn not_well(&self) -> Vec<String> {
        let rows =
            self.comparison.tables.iter().flat_map(|table| table.rows.iter().map(move |row| (table, row)));
        let marked = rows.filter(|(_, row)| !row.marks.is_empty());
        marked
            .map(|(table, row)| format!("{} under {}: {}", table.program, row.stack, row.marks.join(", ")))
            .collect()
    }

    /// The same as a paragraph.
    pub fn outputs(&self) -> String {
        match self.not_well().as_slice() {
            [] => format!(
                "\nEvery run ended well and printed what it prints under {}.\n",
                self.experiment.baseline
            ),
            wrong => format!("\nNot well: {}.\n", wrong.join("; ")),
        }
    }
}

/// What a run has of a figure.
pub type Timed = fn(&heaptoll_experiment::observation::Observation) -> Option<f64>;
