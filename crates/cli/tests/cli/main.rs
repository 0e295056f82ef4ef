//! Tests of the built binary, on real programs and on small C programs and managers that misbehave in every known way.
//! One test binary, so that all tests run in parallel.

mod fixture;

mod arguments;
mod choosing;
mod correct_programs;
mod demo_build;
mod diffs;
mod disks;
mod drag;
mod exact;
mod exporting;
mod files;
mod gate;
mod gate_ci;
mod golden;
mod golden_files;
mod graphs;
mod growth;
mod guarded_resizing;
mod guarding;
mod heaps;
mod importing;
mod instructions;
mod laboratory;
mod launcher;
mod leak_owners;
mod leaks;
mod ledger_peaks;
mod ledgers;
mod limits;
mod locality;
mod lockstep;
mod lower_bound;
mod managers;
mod marks;
mod misuse;
mod names;
mod own;
mod pins;
mod planted;
mod processes;
mod programs;
mod quarantine;
mod recording;
mod refusals;
mod replaying;
mod reporting;
mod sampling;
mod schemas;
mod servers;
mod stacks;
mod stopping;
mod stored;
mod sweeping;
mod trace_reports;
mod tracing;
mod variants;
mod varying;

use heaptoll::REGISTRY;

/// The binary under test.
const HEAPTOLL: &str = env!("CARGO_BIN_EXE_heaptoll");
