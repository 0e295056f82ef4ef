//! The figures of one program: a row a stack.

use heaptoll_experiment::comparison::{Comparison, Figure, Metric, ProgramTable, Row};

use crate::document::{Cell, Column, Grid, Tone};
use crate::format::{self, NONE, TOO_FEW};

/// CPU, memory and verdict, and what a narrow terminal does without.
pub(super) fn grid(comparison: &Comparison, table: &ProgramTable, notes: Vec<String>) -> Grid {
    let mut columns = vec![
        Column::text("stack"),
        Column::optional("CPU s"),
        Column::figures("CPU ratio"),
        Column::figures("RSS MiB"),
        Column::figures("memory ratio"),
    ];
    // Only managers that keep the statistics page report it.
    let heap = table.rows.iter().any(|row| row.heap_high_water_bytes.is_some());
    if heap {
        columns.push(Column::optional("heap MiB"));
    }
    columns.extend([Column::optional("faults"), Column::optional("start ms"), Column::text("verdict")]);
    let rows = table.rows.iter().map(|row| cells(comparison, row, heap)).collect();
    Grid { columns, rows, wide: true, notes, ..Grid::default() }
}

/// Names, CPU time and memory alone: the first columns. Where pairs are too few for an interval, medians give a first guess.
pub(super) fn brief(comparison: &Comparison, table: &ProgramTable) -> Grid {
    const BRIEF: usize = 5;
    let mut grid = grid(comparison, table, vec![]);
    grid.columns.truncate(BRIEF);
    let baseline = table.rows.iter().find(|row| row.stack == comparison.baseline);
    for (cells, row) in grid.rows.iter_mut().zip(&table.rows) {
        cells.truncate(BRIEF);
        for (at, metric) in [(2, Metric::Cpu), (4, Metric::PeakRss)] {
            let figures = (row.figures.get(&metric), baseline.and_then(|row| row.figures.get(&metric)));
            if let (Some(own @ Figure { ratio: None, .. }), Some(base)) = figures
                && row.stack != comparison.baseline
            {
                cells[at] = Cell::text(format!("about {:.2}", own.median / base.median)).toned(Tone::Dim);
            }
        }
    }
    grid
}

fn cells(comparison: &Comparison, row: &Row, heap: bool) -> Vec<Cell> {
    let is_baseline = row.stack == comparison.baseline;
    let mut cells = vec![Cell {
        tone: match is_baseline {
            true => Tone::Strong,
            false if row.good == 0 => Tone::More,
            false => Tone::Same,
        },
        marks: row.marks.clone(),
        tag: if row.on_frontier { "frontier".into() } else { String::new() },
        ..Cell::text(&row.stack)
    }];
    for metric in [Metric::Cpu, Metric::PeakRss] {
        let figure = row.figures.get(&metric);
        let words = match (is_baseline, figure) {
            (true, _) => "baseline",
            (_, None) => NONE,
            _ => TOO_FEW,
        };
        cells.push(Cell::text(figure.map_or(NONE.into(), |figure| format::median(metric, figure))));
        cells.push(Cell::ratio(figure.and_then(|figure| figure.ratio.as_ref()), words));
    }
    if heap {
        cells.push(Cell::text(row.heap_high_water_bytes.map_or(NONE.into(), format::mib_from_bytes)));
    }
    cells.push(Cell::text(if row.good == 0 { NONE.to_owned() } else { format::count(row.minor_faults) }));
    cells.push(Cell::text(row.startup_cpu_s.map_or(NONE.into(), format::milliseconds)));
    let claims = |metric| row.figures.get(&metric).and_then(|f| f.ratio).is_some_and(|ratio| ratio.differs);
    let tone = match row.good {
        0 => Tone::More,
        _ if claims(Metric::Cpu) || claims(Metric::PeakRss) => Tone::Same,
        _ => Tone::Dim,
    };
    cells.push(Cell::text(&row.verdict).toned(tone));
    cells
}
