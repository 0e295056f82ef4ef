//! Peaks of resident memory by three ways, which should agree.

use heaptoll_experiment::comparison::{Metric, ProgramTable};
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::observation::MemoryTrack;

use crate::document::Table;
use crate::format;

/// A row a stack whose memory was sampled; none without any.
pub(super) fn table(experiment: &Experiment, program: &ProgramTable) -> Option<Table> {
    let median = |track: &MemoryTrack| {
        let row = program.rows.iter().find(|row| row.stack == track.stack)?;
        Some(format::median(Metric::PeakRss, row.figures.get(&Metric::PeakRss)?))
    };
    let mib = |kib: u64| format::mib_from_kib(kib as f64);
    let tracks: Vec<&MemoryTrack> =
        experiment.tracks.iter().filter(|track| track.program == program.program).collect();
    let table = Table::of(&tracks)
        .text("manager", |track| track.stack.clone())
        .figure("timed runs, median MiB", |track| median(track))
        .figure("watched run, VmHWM MiB", |track| mib(track.vm_hwm_kib))
        .figure("watched run, highest sample of all processes MiB", |track| {
            track.samples.iter().map(|sample| sample.1).max().map(mib)
        });
    (!tracks.is_empty()).then(|| table.wide())
}
