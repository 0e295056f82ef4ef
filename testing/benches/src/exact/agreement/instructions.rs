//! Instructions in total and inside each routine of the malloc family, in the tracer and in callgrind.

use heaptoll_callgrind::outermost::Outermost;
use heaptoll_catalog::Prepared;
use heaptoll_experiment::manager::Manager;
use heaptoll_reftrace::Routine;
use heaptoll_units::number;

use super::options::Options;
use crate::Error;
use crate::exact::difference::{difference, per_cent};
use crate::exact::profiled::{self, Profiled};
use crate::exact::setup::Setup;
use crate::exact::traced::{self, Count, Routines, Run};
use crate::table::table;

/// Compares all programs under all managers. False if one is off by more than the tolerance.
///
/// # Errors
/// A program fails, or a tool is missing.
pub fn run(
    setup: &Setup,
    programs: &[Prepared],
    managers: &[Manager],
    options: &Options,
) -> Result<bool, Error> {
    println!(
        "Instructions in the tracer and in callgrind; routines inclusive, calls from outside of the family"
    );
    let mut rows = Vec::new();
    let mut agreed = true;
    for program in programs {
        for manager in managers {
            let profiled = profiled::count(setup, program, manager, !options.lazy)?;
            let run = Run { bound: !options.lazy, ..Run::default() };
            let traced = traced::trace(setup, program, manager, run, |_| Routines::default())?;
            let (counted, total) = traced::main(setup, program, manager, traced)?;
            let compared = compare(&profiled, &counted, total);
            agreed &= compared.iter().all(|line| line.within(options.tolerance));
            rows.extend(compared.iter().map(|line| line.cells(program, manager)));
        }
    }
    let headings =
        ["program", "manager", "in", "calls", "callgrind's", "instructions", "callgrind's", "off by %"];
    println!("{}", table(&headings, 3, rows));
    println!();
    Ok(agreed)
}

/// One figure of both tools.
struct Comparison {
    what: &'static str,
    ours: Count,
    theirs: Count,
}

impl Comparison {
    fn within(&self, per_cent_at_most: f64) -> bool {
        let off = per_cent(self.ours.instructions, self.theirs.instructions).abs();
        self.ours.calls == self.theirs.calls && off <= per_cent_at_most
    }

    fn cells(&self, program: &Prepared, manager: &Manager) -> Vec<String> {
        let (ours, theirs) = (self.ours, self.theirs);
        vec![
            program.name.clone(),
            manager.name.clone(),
            self.what.into(),
            number(ours.calls),
            difference(theirs.calls, ours.calls),
            number(ours.instructions),
            difference(theirs.instructions, ours.instructions),
            format!("{:+.4}", per_cent(ours.instructions, theirs.instructions)),
        ]
    }
}

/// One comparison for each routine that was called, one for the family, one for the program.
fn compare(profiled: &Profiled, counted: &Routines, total: u64) -> Vec<Comparison> {
    let entered =
        |one: &Outermost| Count { calls: one.entered.calls, instructions: one.entered.instructions };
    let plus = |a: Count, b: Count| Count {
        calls: a.calls + b.calls,
        instructions: a.instructions + b.instructions,
    };
    let mut comparisons: Vec<Comparison> = Routine::ALL
        .iter()
        .zip(&counted.counts)
        .zip(&profiled.routines)
        .map(|((routine, ours), theirs)| Comparison {
            what: routine.name(),
            ours: *ours,
            theirs: entered(theirs),
        })
        .filter(|line| line.ours.calls + line.theirs.calls > 0)
        .collect();
    let sum = |of: fn(&Comparison) -> Count| comparisons.iter().map(of).fold(Count::default(), plus);
    let family =
        Comparison { what: "the family", ours: sum(|line| line.ours), theirs: sum(|line| line.theirs) };
    let all = |instructions| Count { calls: 0, instructions };
    comparisons
        .extend([family, Comparison { what: "the program", ours: all(total), theirs: all(profiled.total) }]);
    comparisons
}

#[cfg(test)]
mod tests {
    use heaptoll_callgrind::profile::Entries;

    use super::*;

    #[test]
    fn a_call_too_few_or_a_cost_too_low_is_no_agreement() {
        let theirs = |calls, instructions| Outermost {
            entered: Entries { calls, instructions },
            ..Outermost::default()
        };
        let mut routines = vec![Outermost::default(); Routine::ALL.len()];
        routines[0] = theirs(10, 100_000);
        let profiled = Profiled { total: 1_000_000, routines, text: String::new() };
        let counted = |calls, instructions| {
            let mut counted = Routines::default();
            counted.counts[0] = Count { calls, instructions };
            counted
        };
        let agreed = |counted: &Routines, total| {
            compare(&profiled, counted, total).iter().all(|line| line.within(0.01))
        };
        assert!(agreed(&counted(10, 100_000), 1_000_000) && agreed(&counted(10, 99_995), 1_000_099));
        assert!(!agreed(&counted(9, 100_000), 1_000_000));
        assert!(!agreed(&counted(10, 99_900), 1_000_000));
        assert!(!agreed(&counted(10, 100_000), 999_000));
        assert_eq!(compare(&profiled, &counted(10, 1), 5).len(), 3);
    }
}
