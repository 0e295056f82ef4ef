//! A sampled process as a profile: its estimates, rounded to whole objects and bytes.

use heaptoll_profiles::{Builder, Measure, Profile, Subject};
use heaptoll_record::sampling::NamedProcess;
use heaptoll_trace_analysis::profile::Frames;

use super::figures::Figures;

/// The four measures of heap profiles.
const MEASURES: [Measure; 4] =
    [Measure::AllocatedObjects, Measure::AllocatedBytes, Measure::EndObjects, Measure::EndBytes];

/// The profile, `wall_ns` after the program's start.
pub fn profile(process: &NamedProcess, figures: &Figures, wall_ns: u64) -> Profile {
    let mut builder = Builder::new(MEASURES.to_vec());
    builder.subject(Subject {
        command: figures.command.clone(),
        exe: figures.exe.clone(),
        pid: process.pid,
        started_unix_s: process.started_unix_ns / 1_000_000_000,
        to_ns: wall_ns,
        sampled_bytes: Some(figures.mean_bytes),
        ..Subject::default()
    });
    let mut frames = Frames::new(&process.sites);
    for (site, sampled) in process.samples.iter().enumerate() {
        if sampled.allocated.samples == 0 {
            continue;
        }
        let stack = frames.stack(site as u32, false, &mut builder);
        let values =
            [sampled.allocated.objects, sampled.allocated.bytes, sampled.live.objects, sampled.live.bytes];
        // Saturating, and nothing is below 0.
        builder.stack(&stack, &values.map(|value| value.round() as u64));
    }
    builder.finish()
}
