//! Runs, gathered into a row a program and manager.

use std::collections::HashMap;

use super::check;
use super::figures::{Disagreement, Program, Row};
use heaptoll_experiment::experiment::ProgramInfo;
use heaptoll_runs::traced::{Cell, Plan};

/// All runs made, by program and manager.
#[derive(Debug, Default)]
pub struct Runs {
    made: HashMap<(String, String), Vec<Row>>,
}

fn key(cell: &Cell) -> (String, String) {
    (cell.program.name.clone(), cell.stack.name.clone())
}

impl Runs {
    /// Adds one.
    pub fn add(&mut self, cell: &Cell, run: Row) {
        self.made.entry(key(cell)).or_default().push(run);
    }

    /// The rows of every program of the plan.
    pub fn programs(&self, plan: &Plan, cells: &[Cell]) -> Vec<Program> {
        let made = |program: &ProgramInfo| {
            let own = cells.iter().filter(|cell| cell.program.name == program.name);
            own.filter_map(|cell| self.made.get(&key(cell)).cloned().and_then(gathered)).collect()
        };
        let refused = |manager, why| Row { manager, problem: Some(why), ..Row::default() };
        let program = |(info, managers): (&ProgramInfo, Vec<Row>)| Program {
            program: info.name.clone(),
            command: info.command.clone(),
            warnings: check::warnings(&managers),
            managers,
        };
        plan.by_program(made, refused).into_iter().map(program).collect()
    }
}

/// One row of several runs of a cell: the first whole one, and whether the others agree with it.
fn gathered(runs: Vec<Row>) -> Option<Row> {
    let made = u32::try_from(runs.len()).unwrap_or(u32::MAX);
    let shown = runs.iter().position(Row::is_whole).unwrap_or(0);
    let first = runs.get(shown)?.clone();
    let same = |run: &Row| run.figures == first.figures && run.all_images == first.all_images;
    let agree = (made > 1).then(|| runs.iter().all(same));
    let differ_by = (agree == Some(false)).then(|| {
        let off = |of: fn(&Row) -> Option<u64>| {
            let all = || runs.iter().filter_map(of);
            all().max().unwrap_or(0) - all().min().unwrap_or(0)
        };
        Disagreement {
            application: off(Row::application),
            allocation: off(|run| Some(run.figures.as_ref()?.amounts.allocation())),
        }
    });
    let problem = runs.iter().find_map(|run| run.problem.clone());
    Some(Row { runs: made, agree, differ_by, problem, ..first })
}

#[cfg(test)]
mod tests {
    use heaptoll_instruction_counts::{Amounts, Figures, Instructions, Owners};

    use super::*;

    fn run(application: u64) -> Row {
        let program = Instructions { instructions: application, loads: 0, stores: 0 };
        let owners = Owners { program, ..Owners::default() };
        let figures = Figures { amounts: Amounts { owners, ..Amounts::default() }, ..Figures::default() };
        Row { figures: Some(figures), runs: 1, ..Row::default() }
    }

    #[test]
    fn one_run_neither_agrees_nor_disagrees() {
        let row = gathered(vec![run(10)]).expect("a row");
        assert_eq!((row.runs, row.agree, row.differ_by), (1, None, None));
        assert!(gathered(vec![]).is_none());
    }

    #[test]
    fn runs_that_are_the_same_agree() {
        let row = gathered(vec![run(10), run(10), run(10)]).expect("a row");
        assert_eq!((row.runs, row.agree, row.differ_by), (3, Some(true), None));
    }

    #[test]
    fn by_how_much_they_differ_is_kept() {
        let row = gathered(vec![run(10), run(17), run(8)]).expect("a row");
        assert_eq!((row.agree, row.application()), (Some(false), Some(10)));
        assert_eq!(row.differ_by, Some(Disagreement { application: 9, allocation: 0 }));
    }

    #[test]
    fn a_run_that_failed_is_not_the_one_that_is_shown() {
        let failed = Row { problem: Some("killed".into()), ..run(3) };
        let row = gathered(vec![failed, run(10)]).expect("a row");
        assert_eq!((row.application(), row.problem.as_deref()), (Some(10), Some("killed")));
    }
}
