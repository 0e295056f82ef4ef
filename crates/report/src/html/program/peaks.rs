//! Peaks of resident memory by three ways, which should agree.

use heaptoll_experiment::comparison::{Metric, ProgramTable};
use heaptoll_experiment::experiment::Experiment;

use super::super::palette::Palette;
use super::super::views::Chip;
use crate::format::{self, NONE};

/// The peak of resident memory as it was seen in three ways.
pub struct Peak {
    /// Stack.
    pub chip: Chip,
    /// Median `ru_maxrss` of the timed rows, MiB.
    pub median: String,
    /// `VmHWM` of the watched run, MiB.
    pub high_water: String,
    /// Highest sample of the process tree, MiB.
    pub sampled: String,
}

/// One a stack whose memory was sampled.
pub fn peaks(experiment: &Experiment, table: &ProgramTable, palette: &Palette) -> Vec<Peak> {
    let tracks = experiment.tracks.iter().filter(|track| track.program == table.program);
    tracks
        .map(|track| {
            let row = table.rows.iter().find(|row| row.stack == track.stack);
            let median = row.and_then(|row| row.figures.get(&Metric::PeakRss));
            let sampled = track.samples.iter().map(|sample| sample.1).max();
            Peak {
                chip: Chip::of(&track.stack, palette),
                median: median.map_or(NONE.to_owned(), |figure| format::median(Metric::PeakRss, figure)),
                high_water: format::mib_from_kib(track.vm_hwm_kib as f64),
                sampled: sampled.map_or(NONE.to_owned(), |kib| format::mib_from_kib(kib as f64)),
            }
        })
        .collect()
}
