//! Tests of the built binary, on real programs and on small C programs and managers that misbehave in every known way.
//! One test binary, so that all tests run in parallel.

mod fixture;

mod arguments;
mod delay;
mod disks;
mod documented;
mod drag;
mod exact;
mod files;
mod frequency;
mod gate;
mod gate_ci;
mod heaps;
mod instructions;
mod launcher;
mod ledgers;
mod locality;
mod lockstep;
mod lower_bound;
mod managers;
mod marks;
mod minheap;
mod misuse;
mod names;
mod originals;
mod own;
mod processes;
mod programs;
mod proximity;
mod quarantine;
mod recording;
mod refusals;
mod replaying;
mod reporting;
mod schemas;
mod servers;
mod stacks;
mod stopping;
mod stored;
mod studies;
mod sweeping;
mod trace_reports;
mod tracing;
mod typed;
mod variants;
