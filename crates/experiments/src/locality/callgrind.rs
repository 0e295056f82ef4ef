//! The misses of a program under a manager in callgrind's format, by the code that made the reference.

use heaptoll_locality::study::Row;
use heaptoll_units::whole_bytes;

use super::figures::Program;
use heaptoll_command::callgrind_file::{CallgrindFile, Function};

/// Names of what makes references; the sweep is the collector's.
const NAMES: [&str; 4] = ["program", "allocator", "collector", "system calls"];

/// The file of a row.
pub fn file(program: &Program, row: &Row) -> CallgrindFile {
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
    let functions = NAMES.iter().enumerate().map(|(at, name)| Function {
        name: (*name).to_owned(),
        own: figures(row, at),
        ..Function::default()
    });
    CallgrindFile {
        command: row.about.main.clone(),
        descriptions: vec![
            format!("Simulated: {} under {}, by heaptoll exact locality", program.program, row.about.manager),
            "Functions: whose code made a reference".into(),
        ],
        events,
        functions: functions.filter(|function| function.own.iter().any(|figure| *figure > 0)).collect(),
    }
}

/// In the order of the events; `at` is an index of [`NAMES`].
fn figures(row: &Row, at: usize) -> Vec<u64> {
    let of = |split: [u64; 5]| {
        let [program, allocator, collector, system, sweeper] = split;
        [program, allocator, collector + sweeper, system][at]
    };
    let references = &row.references;
    let mut figures = vec![
        row.about.instructions.get(at).copied().unwrap_or(0),
        of([
            references.program,
            references.allocator,
            references.collector,
            references.system,
            references.sweeper,
        ]),
    ];
    for level in &row.machine {
        let by = &level.by;
        let counts = [by.program, by.allocator, by.collector, by.system, by.sweeper];
        figures.push(of(counts.map(|counts| counts.total())));
    }
    let stall = &row.stall_cycles;
    figures.push(of([stall.program, stall.allocator, stall.collector, stall.system, stall.sweeper]));
    figures
}
