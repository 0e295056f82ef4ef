//! `heaptoll-mmtk`: what `heaptoll replay --graph` starts, a process a replay.
//!
//!     heaptoll-mmtk prepare TRACE PROGRAM MEMORY_LIMIT_BYTES
//!     heaptoll-mmtk replay PROGRAM PLAN HEAP_BYTES COLLECTOR_THREADS check|unchecked
//!     heaptoll-mmtk smallest PROGRAM PLAN FIRST_BYTES MOST_BYTES COLLECTOR_THREADS TOLERANCE
//!
//! Each prints one line of JSON. Exit status: 0 done, 1 it cannot be, 2 wrong arguments.

use std::path::Path;
use std::process::{Command, ExitCode};

use heaptoll_graph_replay::error::Error;
use heaptoll_graph_replay::prepare::prepare;
use heaptoll_graph_replay::program::Program;
use heaptoll_graph_replay::replay::Answer;
use heaptoll_graph_replay::settings::{PAGE, Settings};
use heaptoll_mmtk::collector::Collector;
use heaptoll_mmtk::search::smallest;
use serde_json::{Value, json};

fn main() -> ExitCode {
    end_at_panics();
    let arguments: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    match run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(Some(answer)) => {
            println!("{answer}");
            ExitCode::SUCCESS
        }
        Ok(None) => {
            eprintln!("heaptoll-mmtk: its arguments are wrong; see the first lines of its source");
            ExitCode::from(2)
        }
        Err(error) => {
            eprintln!("heaptoll-mmtk: {error}");
            ExitCode::FAILURE
        }
    }
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
            let collector = Collector::named(plan)?;
            let settings = Settings { heap_bytes, check: *check == "check" };
            let program = Program::open(Path::new(program))?;
            Ok(Some(json!(collector.replay(&program, &settings, threads)?)))
        }
        [_, "smallest", program, plan, first, most, threads, tolerance] => {
            let (Ok(first), Ok(most), Ok(tolerance)) = (first.parse(), most.parse(), tolerance.parse())
            else {
                return Ok(None);
            };
            search(program, Collector::named(plan)?, [first, most], threads, tolerance).map(Some)
        }
        _ => Ok(None),
    }
}

/// The smallest heap, by replays in processes of their own: after an object has found no memory, some plans cannot go
/// on, and none may be made twice in a process.
fn search(
    program: &str,
    collector: Collector,
    bytes: [u64; 2],
    threads: &str,
    tolerance: f64,
) -> Result<Value, Error> {
    let own = std::env::current_exe().map_err(Error::system("find", Path::new("heaptoll-mmtk")))?;
    let mut tried = Vec::new();
    let edge = smallest(bytes[0] / PAGE, bytes[1] / PAGE, tolerance, |pages| {
        let heap_bytes = (pages * PAGE).to_string();
        let mut command = Command::new(&own);
        command.args(["replay", program, collector.name(), &heap_bytes, threads, "unchecked"]);
        let output = command.output().map_err(Error::system("start", &own))?;
        let answer: Option<Answer> = serde_json::from_slice(&output.stdout).ok();
        // A collector that runs out of memory while it copies has too small a heap as well.
        let fits = answer.is_some_and(|answer| answer.fits);
        let failure =
            (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned());
        tried.push(json!({ "heap_bytes": pages * PAGE, "fits": fits, "failure": failure }));
        Ok::<_, Error>(fits)
    })?;
    let pages = |pages: u64| pages * PAGE;
    Ok(json!({
        "plan": collector.name(),
        "too_small_bytes": edge.map(|edge| pages(edge.too_small)),
        "fits_bytes": edge.map(|edge| pages(edge.fits)),
        "tried": tried,
    }))
}
