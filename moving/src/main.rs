//! `heaptoll-mmtk`: what `heaptoll lab replay-graph` starts, a process a replay.
//!
//!     heaptoll-mmtk prepare TRACE PROGRAM MEMORY_LIMIT_BYTES
//!     heaptoll-mmtk replay PROGRAM PLAN HEAP_BYTES COLLECTOR_THREADS check|unchecked
//!     heaptoll-mmtk simulate PROGRAM PLAN HEAP_BYTES COLLECTOR_THREADS MACHINE COLLECT_EVERY_BYTES
//!
//! MACHINE is the simulated caches as JSON, COLLECT_EVERY_BYTES 0 where only full heaps are collected. Each prints one line of JSON. Exit status: 0 done, 1 it cannot be, 2 wrong arguments.

use std::fmt::Display;
use std::io::{Write, stderr, stdout};
use std::path::Path;
use std::process::ExitCode;

use heaptoll_graph_replay::error::Error;
use heaptoll_graph_replay::prepare::prepare;
use heaptoll_graph_replay::program::Program;
use heaptoll_graph_replay::settings::Settings;
use heaptoll_graph_replay::simulate;
use heaptoll_locality::machine::Machine;
use heaptoll_mmtk::collector::Collector;
use serde_json::{Value, json};

fn main() -> ExitCode {
    end_at_panics();
    let arguments: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    match run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(Some(answer)) => match writeln!(stdout(), "{answer}") {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&format_args!("cannot write the answer: {error}"), 1),
        },
        Ok(None) => fail(&"its arguments are wrong; see the first lines of its source", 2),
        Err(error) => fail(&error, 1),
    }
}

/// States why; where that cannot be written either, the status is left.
fn fail(why: &dyn Display, status: u8) -> ExitCode {
    let _ = writeln!(stderr(), "heaptoll-mmtk: {why}");
    ExitCode::from(status)
}

/// A thread of the collector that ended alone would leave the others waiting for it.
fn end_at_panics() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::abort();
    }));
}

/// The answer; none when the arguments are wrong.
fn run(arguments: &[&str]) -> Result<Option<Value>, Error> {
    match arguments {
        [_, "prepare", trace, program, limit] => {
            let Ok(limit) = limit.parse() else { return Ok(None) };
            Ok(Some(json!(prepare(Path::new(trace), Path::new(program), limit)?)))
        }
        [_, "replay", program, plan, heap, threads, check @ ("check" | "unchecked")] => {
            let (Ok(heap_bytes), Ok(threads)) = (heap.parse(), threads.parse()) else {
                return Ok(None);
            };
            let settings = Settings { heap_bytes, check: *check == "check", simulate: None };
            replayed(program, plan, &settings, threads)
        }
        [_, "simulate", program, plan, heap, threads, machine, every] => {
            let (Ok(heap_bytes), Ok(threads), Ok(machine), Ok(every)) = (
                heap.parse(),
                threads.parse(),
                serde_json::from_str::<Machine>(machine),
                every.parse::<u64>(),
            ) else {
                return Ok(None);
            };
            let simulate = simulate::Settings { machine, collect_every_bytes: (every > 0).then_some(every) };
            let settings = Settings { heap_bytes, check: false, simulate: Some(simulate) };
            replayed(program, plan, &settings, threads)
        }
        _ => Ok(None),
    }
}

fn replayed(program: &str, plan: &str, settings: &Settings, threads: usize) -> Result<Option<Value>, Error> {
    let collector = Collector::named(plan)?;
    let program = Program::open(Path::new(program))?;
    Ok(Some(json!(collector.replay(&program, settings, threads)?)))
}
