//! Drivers as the tool starts them, under glibc and under managers that watch or misbehave.

mod fixture;

mod checked;
mod failing;
mod ledgers;
mod orders;
