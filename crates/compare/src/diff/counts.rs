//! Instruction counts compared: two files of `heaptoll exact instructions`, program by program and manager by manager, joined
//! function by function as `heaptoll gate` joins them.

use std::path::Path;

pub use document::document;
pub use figures::{DiffCountsFigures, Pair, Routine};
use heaptoll_command::failure::Failure;
use heaptoll_command::foreign;
use heaptoll_command::full::begins_as_json;
use heaptoll_command::labelled::{self, Labelled};
use heaptoll_gate::functions::{self, Of};
use heaptoll_traced::instructions::{self, Program, Row};

use super::JsonFile;
use super::joined::joined;
use crate::comparative::Comparable;

mod document;
mod figures;

schemars::labelled!(DiffCountsFigures, "heaptoll-diff-instructions/1");

/// Whether a file begins as JSON does, as a trace does not, and is no profile of another tool.
pub fn is_json(path: &Path) -> bool {
    begins_as_json(path) && foreign::kind(path).is_none()
}

/// Whether a command's results are compared here, by function.
pub fn takes(command: &Comparable) -> bool {
    command.schema == instructions::ExactInstructionsFigures::SCHEMA
}

/// Compares two files of `heaptoll exact instructions`.
///
/// # Errors
/// One is something else; they have no program in common; a file has no functions.
pub fn measure(base: &JsonFile, new: &JsonFile) -> Result<DiffCountsFigures, Failure> {
    let read = |file: &JsonFile| file.parse(labelled::read::<instructions::ExactInstructionsFigures>);
    let [before, after]: [instructions::ExactInstructionsFigures; 2] = [read(base)?, read(new)?];
    let mut warnings: Vec<String> = [(base, &before), (new, &after)]
        .into_iter()
        .filter(|(_, figures)| !figures.complete)
        .map(|(file, _)| format!("{}: not all runs were made", file.name()))
        .collect();
    let mut pairs = Vec::new();
    for (base, new) in joined(&before.programs, &after.programs, |one| &one.program, "program", &mut warnings)
    {
        let rows = joined(&base.managers, &new.managers, |row| &row.manager, "manager", &mut warnings);
        for (base_row, new_row) in rows {
            pairs.push(pair(new, base_row, new_row, &mut warnings)?);
        }
    }
    if pairs.is_empty() {
        return Err(Failure::Usage(format!(
            "{} and {} have no program under one manager in common: compare counts of one program, or of one manager",
            base.name(),
            new.name()
        )));
    }
    Ok(DiffCountsFigures { base: base.name(), new: new.name(), pairs, warnings })
}

fn pair(program: &Program, base: &Row, new: &Row, warnings: &mut Vec<String>) -> Result<Pair, Failure> {
    for (row, which) in [(base, "first"), (new, "second")] {
        let name = format!("{} under {} in the {which} file", program.program, row.manager);
        warnings.extend(row.problem.iter().map(|problem| format!("{name}: {problem}")));
        if row.more.functions.is_empty() {
            return Err(Failure::Usage(format!(
                "{name} has no instructions by function: count them again by heaptoll exact instructions --json"
            )));
        }
    }
    let counts = [base, new].map(|row| instructions::functions::counts(&row.more.functions));
    let differences = |of| functions::differences(of, &counts[0], &counts[1], None);
    Ok(Pair {
        program: program.program.clone(),
        manager: new.manager.clone(),
        functions: differences(Of::Itself),
        library: differences(Of::Library),
        routines: routines(base, new),
        stacks: functions::stacks(&counts[0], &counts[1]),
    })
}

fn routines(base: &Row, new: &Row) -> Vec<Routine> {
    let mut all: Vec<Routine> = Vec::new();
    for (side, row) in [base, new].into_iter().enumerate() {
        for one in row.figures.iter().flat_map(|figures| &figures.routines) {
            let at = all.iter().position(|known| known.routine == one.routine).unwrap_or_else(|| {
                all.push(Routine { routine: one.routine.clone(), ..Routine::default() });
                all.len() - 1
            });
            let known = &mut all[at];
            let (calls, instructions) = match side {
                0 => (&mut known.base_calls, &mut known.base_instructions),
                _ => (&mut known.new_calls, &mut known.new_instructions),
            };
            (*calls, *instructions) = (one.calls, one.cost.instructions);
        }
    }
    all
}
