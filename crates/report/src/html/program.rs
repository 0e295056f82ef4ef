//! One program's section of the page.

mod bounds;
mod charts;
mod exact;
mod extra_columns;
mod facts;
mod invocations;
mod peaks;
mod row;

use heaptoll_experiment::columns::headed;
use heaptoll_experiment::comparison::{Comparison, ProgramTable};
use heaptoll_experiment::experiment::{Experiment, StackInfo};
use heaptoll_experiment::observation::Observation;

use super::chart_registry::{ChartRegistry, ChartSlot};
use super::palette::Palette;
use super::views::{Chip, Fact};
use crate::bounds::{is_shown, sentence};
use crate::format;
use bounds::bound_lines;
use exact::Exact;
use extra_columns::extra_columns;
use facts::facts;
use invocations::{Bad, Invocation, bad, invocation};
use peaks::{Peak, peaks};
use row::{ProgramRow, program_row};

pub(super) use bounds::BoundLine;
pub(super) use facts::environment;

/// A section.
pub(super) struct Program {
    /// Anchor.
    pub id: String,
    /// Name.
    pub name: String,
    /// One line: what it is.
    pub about: String,
    /// Command, input, environment, load.
    pub facts: Vec<Fact>,
    /// What the reader must see first.
    pub notes: Vec<String>,
    /// Whether it is a server under load.
    pub is_server: bool,
    /// Columns of the second table: what only some programs or managers have figures for.
    pub extra_headings: Vec<String>,
    /// The table.
    pub rows: Vec<ProgramRow>,
    /// Exact counts with the measured ratio; without rows where there are only notes, or nothing.
    pub exact: Exact,
    /// What memory management costs at least.
    pub bounds: Vec<BoundLine>,
    /// How to read that, and what is missing.
    pub bound_notes: Vec<String>,
    /// The charts.
    pub charts: Vec<ChartSlot>,
    /// What the preflight proved.
    pub proofs: Vec<Proof>,
    /// Stacks left out: name, reason.
    pub refused: Vec<Fact>,
    /// Peaks by three ways.
    pub peaks: Vec<Peak>,
    /// Headings of the figures that the table of invocations has as they are.
    pub figure_headings: Vec<&'static str>,
    /// Every invocation.
    pub invocations: Vec<Invocation>,
    /// Rows that did not end well.
    pub bad: Vec<Bad>,
    /// Whether any row was measured.
    pub measured: bool,
}

/// What the preflight proved of a stack.
pub struct Proof {
    /// Stack.
    pub chip: Chip,
    /// In one sentence.
    pub text: String,
    /// For the reader.
    pub warnings: Vec<String>,
}

impl Program {
    /// Builds the section and keeps its charts.
    pub fn new(
        index: usize,
        experiment: &Experiment,
        comparison: &Comparison,
        table: &ProgramTable,
        palette: &Palette,
        registry: &mut ChartRegistry,
    ) -> Self {
        let rows: Vec<&Observation> =
            experiment.observations.iter().filter(|o| o.program == table.program).collect();
        let info = experiment.programs.iter().find(|program| program.name == table.program);
        let (extra_headings, extra) = extra_columns(table, &rows);
        let refused = experiment.refused.iter().filter(|(program, ..)| *program == table.program);
        let bounds = comparison.lower_bounds.programs.iter().find(|found| found.program == table.program);
        let bounds = bounds.filter(|found| is_shown(found));
        Program {
            exact: table
                .exact
                .as_ref()
                .map_or_else(Exact::default, |found| exact::of(found, comparison, palette)),
            bounds: bounds.map_or(Vec::new(), |found| bound_lines(found, palette)),
            bound_notes: bounds.map_or(Vec::new(), |found| {
                let sentence = sentence(found);
                let all = std::iter::once(&sentence).chain(&found.notes);
                all.map(|text| format::printable(text)).collect()
            }),
            id: format!("program-{index}"),
            name: format::printable(&table.program),
            about: info.map_or(String::new(), |info| format::printable(&info.about)),
            facts: info.map_or(Vec::new(), facts),
            notes: notes(table),
            is_server: info.is_some_and(|info| info.serve.is_some()),
            extra_headings,
            rows: table
                .rows
                .iter()
                .zip(extra)
                .map(|(row, extra)| program_row(row, extra, comparison, palette))
                .collect(),
            charts: charts::register(experiment, comparison, table, &rows, palette, registry),
            proofs: proofs(experiment, table, palette),
            refused: refused.map(|(_, stack, reason)| Fact::new(stack, reason)).collect(),
            peaks: peaks(experiment, table, palette),
            figure_headings: headed().map(|(heading, _)| heading).collect(),
            invocations: rows.iter().map(|row| invocation(row)).collect(),
            bad: bad(&rows, palette),
            measured: !table.rows.is_empty(),
        }
    }
}

/// What the reader must see first.
fn notes(table: &ProgramTable) -> Vec<String> {
    let mut notes: Vec<String> = table.notes.iter().map(|note| format::printable(note)).collect();
    notes.extend(table.disturbance.as_ref().map(format::disturbed));
    if let Some(ratio) = table.detectable_cpu_ratio {
        notes.push(format!(
            "CPU differences under about {} could not be seen here.",
            format::percent_off(ratio)
        ));
    }
    notes
}

/// What the preflight proved of every stack.
fn proofs(experiment: &Experiment, table: &ProgramTable, palette: &Palette) -> Vec<Proof> {
    let stacks = experiment.stacks.iter().filter(|stack| stack.program == table.program);
    let proof = |stack: &StackInfo| Proof {
        chip: Chip::of(&stack.name, palette),
        text: format::printable(&stack.proof),
        warnings: stack.warnings.iter().map(|text| format::printable(text)).collect(),
    };
    stacks.map(proof).collect()
}
