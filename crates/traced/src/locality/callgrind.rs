//! The misses of a program under a manager in callgrind's format, by the code that made the reference.

use heaptoll_locality::hierarchy::all;
use heaptoll_locality::simulation::{Accessor, Split};
use heaptoll_locality::study::Row;
use heaptoll_units::whole_bytes;

use super::figures::{ExactLocalityFigures, Program};
use heaptoll_command::callgrind_file::{CallgrindFile, Function};

/// What makes references; the sweep is the collector's.
const ACCESSORS: [Accessor; 4] =
    [Accessor::Program, Accessor::Allocator, Accessor::Collector, Accessor::System];

/// A file for each program and manager.
pub fn files(figures: &ExactLocalityFigures) -> impl Iterator<Item = CallgrindFile> {
    let programs = figures.programs.iter();
    programs.flat_map(|program| program.study.rows.iter().map(move |row| file(program, row)))
}

fn file(program: &Program, row: &Row) -> CallgrindFile {
    let mut events = vec![
        ("Ir".to_owned(), "instructions".to_owned()),
        ("Refs".to_owned(), "loads and stores".to_owned()),
    ];
    for level in &row.machine {
        let title =
            format!("misses of level {}, {} in {} ways", level.level, whole_bytes(level.bytes), level.ways);
        events.push((format!("L{}m", level.level), title));
    }
    events.push(("Stall".to_owned(), "estimated cycles of waiting".to_owned()));
    let functions = ACCESSORS.map(|accessor| Function {
        name: accessor.name().to_owned(),
        own: amounts(row, accessor),
        ..Function::default()
    });
    let (program, manager) = (program.program.clone(), row.about.manager.clone());
    CallgrindFile {
        command: row.about.main.clone(),
        descriptions: vec![
            format!("Simulated: {program} under {manager}, by heaptoll exact locality"),
            "Functions: whose code made a reference".into(),
        ],
        events,
        functions: functions
            .into_iter()
            .filter(|function| function.own.iter().any(|figure| *figure > 0))
            .collect(),
        program,
        manager,
    }
}

/// In the order of the events. Instructions in system calls are not seen.
fn amounts(row: &Row, accessor: Accessor) -> Vec<u64> {
    let of = |split: &Split<u64>| match accessor {
        Accessor::Collector => split.collections(),
        other => *split.get(other),
    };
    let instructions = row.about.instructions.get(accessor as usize).copied().unwrap_or(0);
    let mut amounts = vec![instructions, of(&row.references)];
    amounts.extend(row.machine.iter().map(|level| of(&all(&level.by))));
    amounts.push(of(&row.stall_cycles));
    amounts
}
