//! Progress of an experiment, with the time left computed from the mean time of each kind of run so far.

use std::collections::HashMap;
use std::time::Duration;

use heaptoll_experiment::experiment::{Experiment, StackInfo};
use heaptoll_experiment::manager::filled;
use heaptoll_experiment::observation::{Observation, Phase};
use heaptoll_experiment::plan::Cell;
use heaptoll_experiment::runner::Progress;

use heaptoll_command::context::{self, Messages};

/// Progress over the runs that are lacking.
pub struct Bar {
    bar: Box<dyn context::Progress>,
    waiting: Vec<Cell>,
    /// Mean wall seconds and count by stack and whether it is a start-up run.
    seen: HashMap<(usize, bool), (f64, u32)>,
}

impl Bar {
    /// A bar over these cells. Rows that exist already (a resumed experiment) inform the time left.
    pub fn new(cells: &[Cell], experiment: &Experiment, messages: &dyn Messages) -> Bar {
        let bar = messages.progress(Some(cells.len() as u64));
        let mut bar = Bar { bar, waiting: cells.to_vec(), seen: HashMap::new() };
        for row in &experiment.observations {
            let stack = experiment
                .stacks
                .iter()
                .position(|stack| stack.name == row.stack && stack.program == row.program);
            if let Some(stack) = stack {
                bar.learn(stack, row.phase, row.wall_s);
            }
        }
        bar
    }

    fn learn(&mut self, stack: usize, phase: Phase, wall_s: f64) {
        let (mean, count) = self.seen.entry((stack, phase == Phase::Startup)).or_default();
        *count += 1;
        *mean += (wall_s - *mean) / f64::from(*count);
    }

    /// Seconds left; stacks not seen yet count as the mean of those that were.
    fn left_s(&self) -> Option<f64> {
        let known: Vec<f64> =
            self.seen.iter().filter(|((_, startup), _)| !startup).map(|(_, (mean, _))| *mean).collect();
        let typical = known.iter().sum::<f64>() / known.len().max(1) as f64;
        (!known.is_empty()).then(|| {
            let of = |cell: &Cell| match (
                self.seen.get(&(cell.stack, cell.phase == Phase::Startup)),
                cell.phase,
            ) {
                (Some((mean, _)), _) => *mean,
                (None, Phase::Startup) => 0.005,
                (None, _) => typical,
            };
            self.waiting.iter().map(of).sum()
        })
    }
}

impl Progress for Bar {
    fn begins(&mut self, _cell: &Cell, stack: &StackInfo) {
        let left = self.left_s().map(|seconds| {
            let left = Duration::from_secs(seconds.ceil() as u64);
            format!("{} left, ", indicatif::HumanDuration(left))
        });
        let name = filled(&stack.name, &stack.program);
        self.bar.set_text(&format!("{}now {} under {}", left.unwrap_or_default(), stack.program, name));
    }

    fn ended(&mut self, cell: &Cell, row: Option<&Observation>) {
        if let Some(row) = row {
            self.learn(cell.stack, cell.phase, row.wall_s);
        }
        self.waiting.retain(|other| other != cell);
        self.bar.advance(1);
    }
}
