//! `heaptoll-papers expansion`: Table X of Detlefs, Dosser and Zorn 1994, compared with ours.
//!
//! Heap expansion is the most memory that a manager has held from the system over the most bytes that the program
//! has requested from the manager and not freed. The first is reported by the manager on its statistics page; the
//! second is the program's own and is measured once, by the live layer over glibc, in a run apart.

use heaptoll_catalog::{Prepared, Size};
use heaptoll_stats_page::{SlotRecord, WriterKind};

use crate::installation::{Choice, Installation, RunRequest, SelectedManager, machine_line, missing_note};
use crate::published::{Published, Table, max_live_bytes};
use crate::result_table::{Cell, Outputs, ResultTable, column};
use crate::search::Searches;
use crate::verdict::{self, Pair};
use crate::{Error, stand_ins};

const KIB: f64 = 1024.0;

/// Of the document block.
pub const COMMAND: &str = "expansion";
/// The default programs.
pub const PROGRAMS: [&str; 6] = ["perl", "ghostscript", "make", "espresso", "gawk", "cfrac"];

/// What to measure.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// A program of the catalog; several times for several
    #[arg(
        long = "program", short, value_name = "PROGRAM",
        default_values = PROGRAMS
    )]
    pub programs: Vec<String>,
    #[command(flatten)]
    pub choice: Choice,
    #[command(flatten)]
    pub outputs: Outputs,
}

/// The largest of a run's processes by one figure, and how many there were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Largest {
    bytes: u64,
    processes: usize,
}

fn largest(
    slots: &[SlotRecord],
    kind: WriterKind,
    writer: &str,
    figure: fn(&SlotRecord) -> u64,
) -> Option<Largest> {
    let of_writer =
        || slots.iter().filter(|slot| slot.kind == kind && (writer.is_empty() || slot.writer == writer));
    let bytes = of_writer().map(figure).max()?;
    Some(Largest { bytes, processes: of_writer().count() })
}

/// A program's demand: most requested bytes live at once.
fn demand(
    installation: &Installation,
    program: &Prepared,
    layer: &std::path::Path,
) -> Result<Largest, Error> {
    let request = RunRequest { preload: vec![layer.to_path_buf()], ..RunRequest::default() };
    let slots = installation.run_with_page(program, "the live layer", request)?;
    largest(&slots, WriterKind::Layer, "live", |slot| slot.live_high_bytes).ok_or_else(|| Error::Failed {
        program: program.name.clone(),
        manager: "the live layer".into(),
        reason: "the layer reported nothing; is the program statically linked?".into(),
    })
}

/// A manager's statistics of a run.
#[derive(Debug, Clone, Copy)]
struct ManagerReport {
    /// The most memory it held; none when it does not report it.
    heap: Option<Largest>,
    search: Option<Searches>,
}

fn report(
    installation: &Installation,
    program: &Prepared,
    manager: &SelectedManager,
) -> Result<ManagerReport, Error> {
    let request = RunRequest {
        preload: manager.object.iter().cloned().collect(),
        environment: manager.environment.clone(),
        ..RunRequest::default()
    };
    let slots = installation.run_with_page(program, &manager.name, request)?;
    let heap = largest(&slots, WriterKind::Manager, "", |slot| slot.mapped_high_bytes);
    Ok(ManagerReport { heap: heap.filter(|largest| largest.bytes > 0), search: Searches::most(&slots) })
}

/// A manager on a program.
#[derive(Debug, Clone)]
struct Row {
    program: String,
    manager: String,
    published: Option<f64>,
    live: u64,
    heap: Option<u64>,
    search: Option<Searches>,
}

impl Row {
    fn expansion(&self) -> Option<f64> {
        Some(self.heap? as f64 / self.live as f64)
    }
}

/// Measures, prints, and returns whether every row could be filled.
///
/// # Errors
/// An error that prevents the whole table.
pub fn run(options: &Options) -> Result<bool, Error> {
    options.outputs.check(&[COMMAND])?;
    let installation =
        Installation::open(std::time::Duration::from_secs(options.choice.timeout), options.choice.jobs)?;
    let published = Published::read(&options.choice.published, Table::Expansion)?;
    let of_1994 = max_live_bytes(&options.choice.published)?;
    let managers = installation.managers(&options.choice.managers)?;
    let size = options.choice.size(Size::Demo)?;
    let programs = installation.programs(&options.programs, size)?;
    let layer = installation.live_layer()?;
    let demands: Vec<Largest> = installation
        .each(&programs, |program| demand(&installation, program, &layer))
        .into_iter()
        .collect::<Result<_, _>>()?;
    let cells: Vec<_> = programs
        .iter()
        .zip(&demands)
        .flat_map(|(program, demand)| managers.iter().map(move |manager| (program, demand, manager)))
        .collect();
    let results = installation.each(&cells, |(program, demand, manager)| -> Result<(Row, usize), Error> {
        let ManagerReport { heap, search } = report(&installation, program, manager)?;
        let of_paper =
            || published.value(stand_ins::paper_program(&program.name)?, stand_ins::column(&manager.name)?);
        let row = Row {
            program: program.name.clone(),
            manager: manager.name.clone(),
            published: of_paper(),
            live: demand.bytes,
            heap: heap.map(|heap| heap.bytes),
            search,
        };
        Ok((row, demand.processes.max(heap.map_or(1, |heap| heap.processes))))
    });
    let (mut rows, mut failures, mut several) = (Vec::new(), Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok((row, processes)) => {
                if processes > 1 && !several.contains(&row.program) {
                    several.push(row.program.clone());
                }
                rows.push(row);
            }
            Err(error @ Error::Failed { .. }) => failures.push(error.to_string()),
            Err(error) => return Err(error),
        }
    }
    let live_1994 = |program: &str| of_1994.get(stand_ins::paper_program(program)?).copied();
    let mut result_table = result_table(&rows, &live_1994, size);
    if !several.is_empty() {
        result_table.notes.push(format!(
            "Several processes ran in {}: each figure is that of the largest single process.",
            several.join(", ")
        ));
    }
    result_table.notes.extend(missing_note(&installation).filter(|_| options.choice.managers.is_empty()));
    result_table.notes.extend(failures.iter().map(|failure| format!("Left out: {failure}.")));
    options.outputs.write(&result_table)?;
    Ok(failures.is_empty())
}

fn result_table(rows: &[Row], live_1994: &dyn Fn(&str) -> Option<f64>, size: Size) -> ResultTable {
    let heap = |row: &Row| match row.heap {
        Some(heap) => Cell::Figure(heap as f64 / KIB, 0),
        None => "not reported".into(),
    };
    let mut cells: Vec<Vec<Cell>> = rows
        .iter()
        .map(|row| {
            vec![
                Cell::Text(row.program.clone()),
                Cell::Text(row.manager.clone()),
                stand_ins::column(&row.manager).map_or(Cell::None, Cell::from),
                Cell::maybe(live_1994(&row.program).map(|bytes| bytes / KIB), 0),
                Cell::Figure(row.live as f64 / KIB, 0),
                heap(row),
                Cell::maybe(row.published, 2),
                Cell::maybe(row.expansion(), 2),
                Cell::maybe(row.search.map(|search| search.mean()), 1),
                Cell::maybe(row.search.map(|search| search.longest as f64), 0),
            ]
        })
        .collect();
    let means = means(rows);
    for (manager, published, ours) in &means {
        cells.push(vec![
            "(geometric mean)".into(),
            Cell::Text(manager.clone()),
            stand_ins::column(manager).map_or(Cell::None, Cell::from),
            Cell::None,
            Cell::None,
            Cell::None,
            Cell::maybe(*published, 2),
            Cell::maybe(*ours, 2),
            Cell::None,
            Cell::None,
        ]);
    }
    let mut verdict = verdict::of("Heap expansion", &pairs(rows));
    verdict.extend(mean_sentence(&means));
    ResultTable {
        command: COMMAND,
        title: format!(
            "Heap expansion: Detlefs, Dosser and Zorn 1994, Table X, and here (inputs of size {size}); heap is the \
             most that was held from the system"
        ),
        columns: vec![
            column("program", "program"),
            column("manager", "manager"),
            column("stands_for", "stands for"),
            column("published_live_high_kib", "most live 1994, KiB"),
            column("live_high_kib", "most live here, KiB"),
            column("heap_high_kib", "heap here, KiB"),
            column("published_expansion", "expansion 1994"),
            column("expansion", "expansion here"),
            column("search_mean_blocks", "blocks examined a search"),
            column("search_longest_blocks", "longest"),
        ],
        rows: cells,
        verdict,
        notes: vec![
            "Most live bytes are requested bytes, measured once by the live layer over glibc; they are the program's \
             own and the same under every manager. `not reported`: the manager keeps no statistics page."
                .into(),
            "A small heap is mostly the first piece taken from the system, in 1994 as now: read its KiB, not its \
             ratio."
                .into(),
            "Blocks examined are reported by managers that search, of the process that searched most. The meaning of a search \
             differs: knuth and bestfit make one a malloc, cartesian one a malloc and one a free, the others only \
             where their lists have nothing."
                .into(),
        ],
        machine: machine_line(),
    }
}

/// Geometric means of the paper's and our expansions over the programs, for managers that reported on all of them.
fn means(rows: &[Row]) -> Vec<(String, Option<f64>, Option<f64>)> {
    let mut managers: Vec<&str> = Vec::new();
    let mut programs: Vec<&str> = Vec::new();
    for row in rows {
        if !managers.contains(&row.manager.as_str()) {
            managers.push(&row.manager);
        }
        if !programs.contains(&row.program.as_str()) {
            programs.push(&row.program);
        }
    }
    if programs.len() < 2 {
        return vec![];
    }
    let mean = |manager: &str, figure: fn(&Row) -> Option<f64>| {
        let logs: Option<Vec<f64>> =
            rows.iter().filter(|row| row.manager == manager).map(|row| figure(row).map(f64::ln)).collect();
        let logs = logs.filter(|logs| logs.len() == programs.len())?;
        Some((logs.iter().sum::<f64>() / logs.len() as f64).exp())
    };
    managers
        .into_iter()
        .map(|manager| {
            (manager.to_owned(), mean(manager, |row| row.published), mean(manager, Row::expansion))
        })
        .filter(|(_, published, ours)| published.is_some() || ours.is_some())
        .collect()
}

/// The orders of the means, the paper's and ours.
fn mean_sentence(means: &[(String, Option<f64>, Option<f64>)]) -> Option<String> {
    let both: Vec<(&str, f64, f64)> = means
        .iter()
        .filter_map(|(manager, published, ours)| Some((manager.as_str(), (*published)?, (*ours)?)))
        .collect();
    if both.len() < 2 {
        return None;
    }
    let order = |figure: fn(&(&str, f64, f64)) -> f64| {
        let mut sorted = both.clone();
        sorted.sort_by(|a, b| figure(a).total_cmp(&figure(b)));
        let words: Vec<String> =
            sorted.iter().map(|entry| format!("{} {:.2}", entry.0, figure(entry))).collect();
        words.join(", ")
    };
    Some(format!(
        "Geometric means, lowest first: the paper {}; here {}.",
        order(|entry| entry.1),
        order(|entry| entry.2)
    ))
}

fn pairs(rows: &[Row]) -> Vec<Pair> {
    rows.iter()
        .filter_map(|row| {
            Some(Pair {
                program: row.program.clone(),
                manager: row.manager.clone(),
                published: row.published?,
                ours: row.expansion()?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(program: &str, manager: &str, published: f64, live: u64, heap: Option<u64>) -> Row {
        Row {
            program: program.into(),
            manager: manager.into(),
            published: (published > 0.0).then_some(published),
            live,
            heap,
            search: None,
        }
    }

    #[test]
    fn means_are_geometric_and_only_over_all_programs() {
        let rows = [
            row("p", "lea", 1.0, 1000, Some(1000)),
            row("p", "kingsley", 2.0, 1000, Some(3000)),
            row("p", "glibc", 0.0, 1000, None),
            row("q", "lea", 4.0, 1000, Some(4000)),
            row("q", "kingsley", 2.0, 1000, None),
            row("q", "glibc", 0.0, 1000, None),
        ];
        let means = means(&rows);
        assert_eq!(means.len(), 2, "{means:?}");
        let near = |value: Option<f64>, wanted: f64| value.is_some_and(|value| (value - wanted).abs() < 1e-9);
        assert!(means[0].0 == "lea" && near(means[0].1, 2.0) && near(means[0].2, 2.0), "{means:?}");
        assert!(near(means[1].1, 2.0) && means[1].2.is_none(), "{means:?}");
        assert_eq!(mean_sentence(&means), None);
    }

    #[test]
    fn the_orders_are_shown_together() {
        let means = [("lea".into(), Some(1.5), Some(1.2)), ("kingsley".into(), Some(1.9), Some(1.1))];
        let sentence = mean_sentence(&means).expect("a sentence");
        assert!(
            sentence.contains("the paper lea 1.50, kingsley 1.90; here kingsley 1.10, lea 1.20"),
            "{sentence}"
        );
    }

    #[test]
    fn a_manager_that_does_not_report_is_shown_so() {
        let search = Some(Searches { searches: 4, steps: 10, longest: 5 });
        let rows = [
            row("cfrac", "glibc", 0.0, 2048, None),
            Row { search, ..row("cfrac", "lea", 2.29, 2048, Some(65536)) },
        ];
        let result_table = result_table(&rows, &|_| Some(21_400.0), Size::Quick);
        assert_eq!(
            result_table.rows[0][5..],
            ["not reported".into(), Cell::None, Cell::None, Cell::None, Cell::None]
        );
        assert_eq!(
            result_table.rows[1][4..],
            [
                Cell::Figure(2.0, 0),
                Cell::Figure(64.0, 0),
                Cell::Figure(2.29, 2),
                Cell::Figure(32.0, 2),
                Cell::Figure(2.5, 1),
                Cell::Figure(5.0, 0)
            ]
        );
        assert!(result_table.rows.iter().all(|row| row.len() == result_table.columns.len()));
    }
}
