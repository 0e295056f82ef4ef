//! heaptoll as its users meet it: the built binary on real programs and on small C programs and managers that
//! misbehave in every way that has been thought of. One test binary, so that everything runs side by side.

mod fixture;

mod asking;
mod asking_traces;
mod delay;
mod disks;
mod documented;
mod drag;
mod exact;
mod files;
mod frequency;
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
mod processes;
mod programs;
mod proximity;
mod quarantine;
mod recording;
mod replaying;
mod servers;
mod stacks;
mod stopping;
mod studies;
mod sweeping;
mod telling;
mod tracing;
mod variants;
mod words;
