//! `heaptoll-papers instructions`: Tables IV and V of Detlefs, Dosser and Zorn 1994, compared with ours.
//!
//! Each cell is counted twice: as the program is, single-threaded, where our managers and glibc's take no atomic
//! instruction, and with a second thread that sleeps. The difference is what the uncontended lock adds, counted apart.
//! It may be negative: an atomic instruction counts as one and may stand for several plain ones.

use heaptoll_catalog::{Prepared, Size};
use heaptoll_statistics::median;

use crate::counting::{Counts, count, per_call};
use crate::installation::{Choice, Installation, RunRequest, machine_line, missing_note};
use crate::published::{Published, Table};
use crate::result_table::{Cell, Outputs, ResultTable, column, data};
use crate::verdict::{self, Pair};
use crate::{Error, stand_ins};

/// Of the document block.
pub const COMMAND: &str = "instructions";
/// The default programs.
pub const PROGRAMS: [&str; 5] = ["cfrac", "gawk", "perl", "espresso", "make"];

/// What to count.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// A program of the catalog; several times for several
    #[arg(long = "program", short, value_name = "PROGRAM", default_values = PROGRAMS)]
    pub programs: Vec<String>,
    #[command(flatten)]
    pub choice: Choice,
    #[command(flatten)]
    pub outputs: Outputs,
}

/// A manager on a program: as is, and with the sleeping thread.
#[derive(Debug, Clone)]
struct Cells {
    program: String,
    manager: String,
    published: [Option<f64>; 2],
    plain: Counts,
    threaded: Counts,
}

/// The two operations that the paper has tables for.
const OPERATIONS: [fn(&Counts) -> Option<f64>; 2] =
    [|counts| per_call(counts.malloc), |counts| per_call(counts.free)];

impl Cells {
    fn ours(&self, operation: usize) -> Option<f64> {
        OPERATIONS[operation](&self.plain)
    }

    fn lock(&self, operation: usize) -> Option<f64> {
        Some(OPERATIONS[operation](&self.threaded)? - self.ours(operation)?)
    }
}

/// Counts, prints, and returns whether every cell could be filled.
///
/// # Errors
/// An error that prevents the whole table.
pub fn run(options: &Options) -> Result<bool, Error> {
    options.outputs.check(&[COMMAND])?;
    let installation =
        Installation::open(std::time::Duration::from_secs(options.choice.timeout), options.choice.jobs)?;
    let published =
        [Table::Malloc, Table::Free].map(|table| Published::read(&options.choice.published, table));
    let [malloc, free] = published;
    let published = [malloc?, free?];
    let managers = installation.managers(&options.choice.managers)?;
    let size = options.choice.size(Size::Quick)?;
    let programs = installation.programs(&options.programs, size)?;
    let sleeper = installation.sleeper()?;
    let runs: Vec<_> =
        programs.iter().flat_map(|program| managers.iter().map(move |manager| (program, manager))).collect();
    let results = installation.each(&runs, |(program, manager)| -> Result<Cells, Error> {
        let of_paper = |table: &Published| {
            table.value(stand_ins::paper_program(&program.name)?, stand_ins::column(&manager.name)?)
        };
        let cells = Cells {
            program: program.name.clone(),
            manager: manager.name.clone(),
            published: [of_paper(&published[0]), of_paper(&published[1])],
            plain: count(&installation, program, manager, None)?,
            threaded: count(&installation, program, manager, Some(&sleeper))?,
        };
        eprintln!("counted {} under {}", cells.program, cells.manager);
        Ok(cells)
    });
    let (mut cells, mut failures) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(cell) => cells.push(cell),
            Err(error @ Error::Failed { .. }) => failures.push(error.to_string()),
            Err(error) => return Err(error),
        }
    }
    let mut result_table = result_table(&cells, size);
    result_table.notes.extend(null_note(&installation, &programs, &cells)?);
    result_table.notes.extend(missing_note(&installation).filter(|_| options.choice.managers.is_empty()));
    result_table.notes.extend(failures.iter().map(|failure| format!("Left out: {failure}.")));
    options.outputs.write(&result_table)?;
    Ok(failures.is_empty())
}

fn result_table(cells: &[Cells], size: Size) -> ResultTable {
    let row = |cell: &Cells| {
        let mut row = vec![
            Cell::Text(cell.program.clone()),
            Cell::Text(cell.manager.clone()),
            stand_ins::column(&cell.manager).map_or(Cell::None, Cell::from),
        ];
        for operation in [0, 1] {
            row.push(Cell::maybe(cell.published[operation], 0));
            row.push(Cell::maybe(cell.ours(operation), 1));
            row.push(Cell::maybe(cell.lock(operation), 1));
        }
        row.push(Cell::maybe(per_call(cell.plain.calloc), 1));
        row.push(Cell::maybe(per_call(cell.plain.realloc), 1));
        for entries in [cell.plain.malloc, cell.plain.free, cell.plain.calloc, cell.plain.realloc] {
            row.push(Cell::Figure(entries.calls as f64 / 1000.0, 1));
        }
        row
    };
    let mut rows: Vec<Vec<Cell>> = cells.iter().map(row).collect();
    rows.extend(averages(cells));
    let mut verdict: Vec<String> = Vec::new();
    for (operation, what) in ["Instructions per malloc", "Instructions per free"].into_iter().enumerate() {
        verdict.extend(verdict::of(what, &pairs(cells, operation)));
    }
    verdict.extend(lock_sentence(cells));
    let mut columns = vec![
        column("program", "program"),
        column("manager", "manager"),
        column("stands_for", "stands for"),
        column("published_instructions_per_malloc", "malloc: 1994"),
        column("instructions_per_malloc", "malloc: here"),
        column("lock_instructions_per_malloc", "malloc: lock"),
        column("published_instructions_per_free", "free: 1994"),
        column("instructions_per_free", "free: here"),
        column("lock_instructions_per_free", "free: lock"),
        column("instructions_per_calloc", "calloc: here"),
        column("instructions_per_realloc", "realloc: here"),
    ];
    columns.extend(["malloc_calls_1e3", "free_calls_1e3", "calloc_calls_1e3", "realloc_calls_1e3"].map(data));
    ResultTable {
        command: COMMAND,
        title: format!(
            "Instructions per call: Detlefs, Dosser and Zorn 1994, Tables IV and V, and here (inputs of size {size})"
        ),
        columns,
        rows,
        verdict,
        notes: vec![
            "Instructions of a MIPS of 1994 and of x86-64 are not commensurable, and neither are the programs' \
             versions and inputs: read the order of the managers, not the figures across."
                .into(),
            "Here: everything executed from entry to return, in the program's main process, single-threaded; `lock` \
             is what a second, sleeping thread adds. Functions are bound at the start."
                .into(),
            "`lock` is of instructions, not of time. An atomic one counts as one and may stand for several plain ones \
             of the single-threaded way, so it may be negative; its time is in the table of cfrac."
                .into(),
            "The second thread's own blocks shift the others a little, so where a manager searches the length of its \
             search is in the lock's column too, and may make it negative."
                .into(),
        ],
        machine: machine_line(),
    }
}

/// The mean of each manager over the programs, for managers that were counted on all of them.
fn averages(cells: &[Cells]) -> Vec<Vec<Cell>> {
    let mut programs: Vec<&str> = cells.iter().map(|cell| cell.program.as_str()).collect();
    programs.dedup();
    let mut managers: Vec<&str> = Vec::new();
    for cell in cells {
        if !managers.contains(&cell.manager.as_str()) {
            managers.push(&cell.manager);
        }
    }
    if programs.len() < 2 {
        return vec![];
    }
    let average = |manager: &str| {
        let own: Vec<&Cells> = cells.iter().filter(|cell| cell.manager == manager).collect();
        let mean = |figure: &dyn Fn(&Cells) -> Option<f64>, decimals: usize| {
            let values: Option<Vec<f64>> = own.iter().map(|cell| figure(cell)).collect();
            let whole = values.filter(|values| values.len() == programs.len());
            Cell::maybe(whole.map(|values| values.iter().sum::<f64>() / values.len() as f64), decimals)
        };
        let mut row = vec![
            Cell::from("(mean)"),
            Cell::from(manager),
            stand_ins::column(manager).map_or(Cell::None, Cell::from),
        ];
        for operation in [0, 1] {
            row.push(mean(&|cell| cell.published[operation], 1));
            row.push(mean(&|cell| cell.ours(operation), 1));
            row.push(mean(&|cell| cell.lock(operation), 1));
        }
        row.push(mean(&|cell| per_call(cell.plain.calloc), 1));
        row.push(mean(&|cell| per_call(cell.plain.realloc), 1));
        row.extend([Cell::None, Cell::None, Cell::None, Cell::None]);
        row
    };
    managers.into_iter().map(average).collect()
}

fn pairs(cells: &[Cells], operation: usize) -> Vec<Pair> {
    cells
        .iter()
        .filter_map(|cell| {
            Some(Pair {
                program: cell.program.clone(),
                manager: cell.manager.clone(),
                published: cell.published[operation]?,
                ours: cell.ours(operation)?,
            })
        })
        .collect()
}

/// How many of each program's frees are of NULL: they cost next to nothing and lower the average. Callgrind counts all
/// calls, the live layer those that give a block back.
fn null_note(
    installation: &Installation,
    programs: &[Prepared],
    cells: &[Cells],
) -> Result<Option<String>, Error> {
    let layer = installation.live_layer()?;
    let mut shares = Vec::new();
    for program in programs {
        let Some(cell) = cells.iter().find(|cell| cell.program == program.name) else { continue };
        let request = RunRequest { preload: vec![layer.clone()], ..RunRequest::default() };
        let slots = installation.run_with_page(program, "the live layer", request)?;
        let real = slots.iter().map(|slot| slot.free_calls).max().unwrap_or(0);
        let all = cell.plain.free.calls;
        if all > 0 {
            shares.push(format!(
                "{} {:.0} %",
                program.name,
                100.0 * (1.0 - real as f64 / all as f64).max(0.0)
            ));
        }
    }
    let note = format!("A free of NULL counts as a free; it is that many of them: {}.", shares.join(", "));
    Ok((!shares.is_empty()).then_some(note))
}

/// What the lock costs, over all programs.
fn lock_sentence(cells: &[Cells]) -> Vec<String> {
    let spread = |operation: usize, of: &dyn Fn(&str) -> bool| {
        let locks = cells.iter().filter(|cell| of(&cell.manager)).filter_map(|cell| cell.lock(operation));
        let locks: Vec<f64> = locks.collect();
        let (low, high) = locks
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), lock| (low.min(*lock), high.max(*lock)));
        (low <= high).then(|| format!("{:.1} (from {low:.1} to {high:.1})", median(&locks)))
    };
    let sentence = |managers: &str, of: &dyn Fn(&str) -> bool| {
        let (malloc, free) = (spread(0, of)?, spread(1, of)?);
        Some(format!(
            "With a second thread the lock adds {malloc} instructions a malloc and {free} a free under {managers}, by the median \
             over programs."
        ))
    };
    let papers = |name: &str| stand_ins::find(name).is_some();
    [sentence("the papers' managers", &papers), sentence("glibc", &|name| name == "glibc")]
        .into_iter()
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use heaptoll_callgrind::profile::Entries;

    use super::*;

    fn cells(program: &str, manager: &str, published: f64, malloc: u64, lock: u64) -> Cells {
        let counts = |malloc: u64| Counts {
            malloc: Entries { calls: 10, instructions: malloc * 10 },
            free: Entries { calls: 10, instructions: malloc * 5 },
            ..Counts::default()
        };
        Cells {
            program: program.into(),
            manager: manager.into(),
            published: [Some(published), None],
            plain: counts(malloc),
            threaded: counts(malloc + lock),
        }
    }

    #[test]
    fn averages_leave_out_managers_that_lack_a_program() {
        let all = [
            cells("p", "lea", 40.0, 60, 8),
            cells("p", "kingsley", 50.0, 20, 8),
            cells("q", "lea", 60.0, 80, 12),
        ];
        let rows = averages(&all);
        assert_eq!(rows.len(), 2);
        assert_eq!(
            rows[0][..6],
            [
                "(mean)".into(),
                "lea".into(),
                "g++".into(),
                Cell::Figure(50.0, 1),
                Cell::Figure(70.0, 1),
                Cell::Figure(10.0, 1)
            ]
        );
        assert_eq!(rows[1][3..5], [Cell::None, Cell::None]);
    }

    #[test]
    fn the_lock_is_the_difference_and_not_counted_was_not_called() {
        let mut one = cells("p", "lea", 40.0, 60, 8);
        assert_eq!((one.ours(0), one.lock(0), one.lock(1)), (Some(60.0), Some(8.0), Some(4.0)));
        one.plain.free = Entries::default();
        assert_eq!((one.ours(1), one.lock(1)), (None, None));
        let result_table = result_table(&[one], Size::Quick);
        assert_eq!(result_table.rows[0].len(), result_table.columns.len());
        assert!(
            result_table.verdict.iter().any(|sentence| sentence.contains("no verdict")),
            "{:?}",
            result_table.verdict
        );
    }

    #[test]
    fn every_row_has_every_column() {
        let all =
            [cells("p", "lea", 40.0, 60, 8), cells("q", "lea", 60.0, 80, 12), cells("p", "glibc", 1.0, 2, 0)];
        let result_table = result_table(&all, Size::Quick);
        assert!(result_table.rows.iter().all(|row| row.len() == result_table.columns.len()));
        assert_eq!(result_table.rows.len(), 5);
    }
}
