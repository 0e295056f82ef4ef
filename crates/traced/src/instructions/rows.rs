//! Runs, gathered into a row a program and manager.

use super::check;
use super::figures::{Disagreement, Program, Row, Runs};
use heaptoll_runs::traced::Made;

/// A program: its runs, those under one manager as one row, then what was refused.
pub fn program(made: Made<Row>) -> Program {
    let rows = made.rows.chunk_by(|run, next| run.manager == next.manager).filter_map(gathered).collect();
    Program::of(Made { rows, ..made }, check::warnings)
}

/// One row of several runs of a cell: the first whole one, and whether the others agree with it.
fn gathered(runs: &[Row]) -> Option<Row> {
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
    let more = Runs { runs: made, agree, differ_by, ..first.more };
    Some(Row { more, problem, ..first })
}

#[cfg(test)]
mod tests {
    use heaptoll_instruction_counts::{Amounts, Figures, Instructions, Owners};

    use super::*;

    fn run(application: u64) -> Row {
        let program = Instructions { instructions: application, loads: 0, stores: 0 };
        let owners = Owners { program, ..Owners::default() };
        let figures = Figures { amounts: Amounts { owners, ..Amounts::default() }, ..Figures::default() };
        let more = Runs { runs: 1, ..Runs::default() };
        Row { figures: Some(figures), more, ..Row::default() }
    }

    #[test]
    fn one_run_neither_agrees_nor_disagrees() {
        let row = gathered(&[run(10)]).expect("a row");
        assert_eq!((row.more.runs, row.more.agree, row.more.differ_by), (1, None, None));
        assert!(gathered(&[]).is_none());
    }

    #[test]
    fn runs_that_are_the_same_agree() {
        let row = gathered(&[run(10), run(10), run(10)]).expect("a row");
        assert_eq!((row.more.runs, row.more.agree, row.more.differ_by), (3, Some(true), None));
    }

    #[test]
    fn by_how_much_they_differ_is_kept() {
        let row = gathered(&[run(10), run(17), run(8)]).expect("a row");
        assert_eq!((row.more.agree, row.application()), (Some(false), Some(10)));
        assert_eq!(row.more.differ_by, Some(Disagreement { application: 9, allocation: 0 }));
    }

    #[test]
    fn a_run_that_failed_is_not_the_one_that_is_shown() {
        let failed = Row { problem: Some("killed".into()), ..run(3) };
        let row = gathered(&[failed, run(10)]).expect("a row");
        assert_eq!((row.application(), row.problem.as_deref()), (Some(10), Some("killed")));
    }
}
