//! The counts of a program under a manager in callgrind's format.

use heaptoll_instruction_counts::{Figures as ImageFigures, Instructions};

use super::figures::{ExactInstructionsFigures, Program, Row};
use heaptoll_command::callgrind_file::{CallgrindFile, Function};

/// A file for each program and manager with counts.
pub fn files(figures: &ExactInstructionsFigures) -> impl Iterator<Item = CallgrindFile> {
    let programs = figures.programs.iter();
    programs.flat_map(|program| program.managers.iter().filter_map(move |row| file(program, row)))
}

fn file(program: &Program, row: &Row) -> Option<CallgrindFile> {
    let figures = row.figures.as_ref()?;
    // What collections load in calls is not known by routine, so the sums would not close.
    let has_collector = figures.amounts.owners.collector.instructions > 0;
    let events = [("Ir", "instructions"), ("Dr", "loads"), ("Dw", "stores")];
    let counted = if has_collector { 1 } else { events.len() };
    let events = events[..counted].iter().map(|(name, title)| ((*name).to_owned(), (*title).to_owned()));
    let (name, manager) = (program.program.clone(), row.manager.clone());
    Some(CallgrindFile {
        command: row.image.as_ref().map_or_else(|| program.command.clone(), |image| image.command.clone()),
        descriptions: vec![
            format!("Counted: {name} under {manager}, by heaptoll exact instructions"),
            "Functions: routines of the malloc family, with all that they call; `program` is all else".into(),
        ],
        events: events.collect(),
        functions: functions(row, figures, counted),
        program: name,
        manager,
    })
}

fn functions(row: &Row, figures: &ImageFigures, counted: usize) -> Vec<Function> {
    let owners = &figures.amounts.owners;
    let amounts = |of: Instructions| [of.instructions, of.loads, of.stores][..counted].to_vec();
    let mut functions = vec![Function {
        object: row.image.as_ref().and_then(|image| image.command.first().cloned()).unwrap_or_default(),
        name: "program".into(),
        own: amounts(owners.program),
        calls: Vec::new(),
    }];
    let mut rest = amounts(owners.allocator);
    for routine in &figures.routines {
        let mut own = amounts(routine.cost);
        own[0] = own[0].saturating_sub(routine.collector_instructions);
        for (rest, own) in rest.iter_mut().zip(&own) {
            *rest = rest.saturating_sub(*own);
        }
        let called = functions.len();
        functions[0].calls.push((called, routine.calls, own.clone()));
        functions.push(Function {
            object: row.more.routine_objects.get(&routine.routine).cloned().unwrap_or_default(),
            name: routine.routine.clone(),
            own,
            calls: Vec::new(),
        });
    }
    if rest.iter().any(|figure| *figure > 0) {
        functions.push(Function {
            name: "(calls that did not end)".into(),
            own: rest,
            ..Function::default()
        });
    }
    if owners.collector.instructions > 0 {
        let (called, own) = (functions.len(), amounts(owners.collector));
        functions[0].calls.push((called, figures.amounts.collections, own.clone()));
        functions.push(Function { name: "(collections)".into(), own, ..Function::default() });
    }
    functions
}
