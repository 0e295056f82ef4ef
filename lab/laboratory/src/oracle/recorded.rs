//! A run under the tracer, of which the oracle file is made.
//!
//! With pointers nothing is given back that the program frees: an object's address is no other's later, so what leads to
//! it shows beyond its free.

use std::ffi::OsString;
use std::path::Path;

use heaptoll_experiment::experiment::{ProgramInfo, StackInfo};
use heaptoll_oracle::{About, OracleFile, file};
use heaptoll_preflight::inspect_program;
use heaptoll_reftrace_host::{Image, Options, Tracer};

use super::native::{LAYER, VARIABLE};
use super::reachability::{Both, Graph};
use super::request::OracleRequest;
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_runs::traced::{Cell, Run, TracedRunner};

/// The stack under which programs are recorded: the layer, which forwards, over glibc.
fn stack(program: &ProgramInfo, graph: bool, context: &Context) -> StackInfo {
    StackInfo {
        program: program.name.clone(),
        name: "glibc".into(),
        preload: vec![context.places.layer(LAYER).display().to_string()],
        environment: vec![(VARIABLE.into(), format!("point={}", if graph { "keep" } else { "record" }))],
        ..StackInfo::default()
    }
}

/// The file that is executed, by the name that the kernel has for it.
fn executable(program: &ProgramInfo) -> Result<String, Failure> {
    let environment: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let found = inspect_program(&program.command_as_stored(), &environment, None)?;
    let path = std::fs::canonicalize(&found.binary).unwrap_or(found.binary);
    Ok(path.display().to_string())
}

/// Records a program and writes the file.
///
/// # Errors
/// The program cannot be traced, has threads, or fails; the file cannot be written.
pub fn record(
    request: &OracleRequest,
    program: &ProgramInfo,
    file: &Path,
    tracer: &Tracer,
    context: &Context,
) -> Result<OracleFile, Failure> {
    let refuse = |why: String| Failure::NothingToCompare(format!("{}: {why}", program.name));
    let executable = executable(program)?;
    let cell = Cell::alone(program, stack(program, request.graph, context));
    let runner = TracedRunner { copied: None, tracer, context: *context, protocol: &request.protocol };
    // Calls count where they arrive at the layer, as they do natively.
    let layer = context.places.layer(LAYER);
    let only_in = layer.file_name().map(|name| format!("/{}", name.to_string_lossy())).unwrap_or_default();
    let options = Options {
        references: true,
        graph: request.graph,
        sites: 1,
        only_in: only_in.into(),
        ..Options::default()
    };
    let mut graph = if request.graph {
        Some(Graph::begin(file).map_err(|error| Failure::Refused(Box::new(error)))?)
    } else {
        None
    };
    // The first image is the program.
    let mut begin = |_: &Cell, _: &Image| Both { graph: graph.take(), ..Both::default() };
    let Run { mut traced, row } =
        runner.run(&cell, &options, "recorded", &mut begin)?.map_err(|error| refuse(error.to_string()))?;
    if context.interrupt.is_set() {
        return Err(Failure::Interrupted);
    }
    if let Some(why) = traced.stopped {
        return Err(refuse(why));
    }
    if !row.outcome.is_ok() {
        return Err(refuse(format!(
            "the traced run: {}\n{}",
            row.outcome,
            traced.finished.error_tail.trim()
        )));
    }
    // The first image of the process that was started is the program; what it starts has allocations of its own.
    let Some(main) = traced.images.first_mut() else { return Err(refuse("nothing was traced".into())) };
    if !main.is_whole() {
        return Err(refuse(format!("the traced run is incomplete: it {}", main.ending)));
    }
    let Both { oracle, graph } = std::mem::take(&mut main.sink);
    let mut recording = oracle.recording().map_err(|why| refuse(why.to_string()))?;
    let unreachable = graph.map(|graph| graph.complete(&mut recording)).transpose().map_err(&refuse)?;
    let about = About {
        heaptoll: env!("CARGO_PKG_VERSION").into(),
        program: program.name.clone(),
        command: program.command.clone(),
        executable,
        status: request.protocol.expect_status,
        output_sha256: traced.finished.digest.clone(),
        unreachable,
        ..About::default()
    };
    file::write(file, &recording, about).map_err(|error| Failure::Refused(Box::new(error)))
}
