//! Peaks of resident memory by three ways, which should agree.

use heaptoll_experiment::comparison::{Metric, ProgramTable};
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::observation::MemoryTrack;

use crate::document::{Cell, Column, Grid};
use crate::format::{self, NONE};

/// A row a stack whose memory was sampled; none without any.
pub(super) fn grid(experiment: &Experiment, table: &ProgramTable) -> Option<Grid> {
    let row = |track: &MemoryTrack| {
        let row = table.rows.iter().find(|row| row.stack == track.stack);
        let median = row.and_then(|row| row.figures.get(&Metric::PeakRss));
        let sampled = track.samples.iter().map(|sample| sample.1).max();
        [
            track.stack.clone(),
            median.map_or(NONE.to_owned(), |figure| format::median(Metric::PeakRss, figure)),
            format::mib_from_kib(track.vm_hwm_kib as f64),
            sampled.map_or(NONE.to_owned(), |kib| format::mib_from_kib(kib as f64)),
        ]
        .map(Cell::text)
        .into()
    };
    let tracks = experiment.tracks.iter().filter(|track| track.program == table.program);
    let rows: Vec<Vec<Cell>> = tracks.map(row).collect();
    let columns = vec![
        Column::text("manager"),
        Column::figures("timed runs, median MiB"),
        Column::figures("watched run, VmHWM MiB"),
        Column::figures("watched run, highest sample of all processes MiB"),
    ];
    (!rows.is_empty()).then(|| Grid { columns, rows, wide: true, ..Grid::default() })
}
