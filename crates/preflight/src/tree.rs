//! Running a command once and seeing every program image that its process tree executes.
//!
//! With ptrace (SEIZE, so that the processes notice as little as possible) each `exec` is stopped and recorded: nothing
//! in the tree can run a program unseen, whatever it does to its environment. Where ptrace is not permitted the command
//! runs untraced.
//!
//! [`start`] forks the command, [`tracer`] follows it to its end or limit, [`processes`] takes the kernel's events of
//! its tree, [`images`] has what each image used, [`output`] what the command writes; the outcome is a [`Run`].

mod images;
mod output;
mod pipe;
mod processes;
mod requests;
mod run;
mod start;
mod tracer;

use std::io;
use std::sync::atomic::AtomicBool;

use crate::plan::Plan;
use crate::refusal::Refusal;

pub use run::{Ending, Image, Run};

/// Runs the plan to its end, its limit, or until `cancel` is set.
pub fn run(plan: &Plan<'_>, cancel: &AtomicBool) -> Result<Run, Refusal> {
    // A thread of its own: the tracer is a thread, and so its `wait` sees no children but these.
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("heaptoll-tracer".to_owned());
        match thread.spawn_scoped(scope, || start::start(plan)?.follow(cancel)) {
            Ok(handle) => handle.join().unwrap_or_else(|_| {
                Err(Refusal::system("follow the program", &io::Error::other("a defect")))
            }),
            Err(error) => Err(Refusal::system("start a thread", &error)),
        }
    })
}
