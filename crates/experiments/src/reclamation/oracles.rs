//! The recordings that the study needs: those that are there and still of the program, and new ones.

use std::path::Path;

use heaptoll_experiment::experiment::ProgramInfo;
use heaptoll_reftrace_host::Tracer;

use super::request::Request;
use crate::context::Context;
use crate::failure::Failure;
use crate::oracle;
use crate::preparation::oracle_files::checked;
use crate::workload::Workload;

/// Records every program of which the folder has no recording of this command and build, and leaves those out of the
/// workload that cannot be recorded.
///
/// # Errors
/// No program can be recorded, or the folder cannot be made.
pub fn record(request: &Request, workload: &mut Workload, context: &Context) -> Result<(), Failure> {
    workload.require(true)?;
    std::fs::create_dir_all(&request.oracles).map_err(|error| {
        Failure::Usage(format!(
            "--oracles {}: {error}; name a folder that can be written",
            request.oracles.display()
        ))
    })?;
    let tracer = Tracer::find(context.places).map_err(|error| Failure::Refused(Box::new(error)))?;
    let programs = workload.resolve(context.places, context.messages)?;
    let mut kept = Vec::new();
    let mut reasons = Vec::new();
    for program in &programs {
        match of_program(request, program, &tracer, context) {
            Ok(None) => kept.push(program.name.clone()),
            Ok(Some(why)) => reasons.push(format!("{} is left out: {why}", program.name)),
            Err(Failure::NothingToCompare(why)) => {
                reasons.push(format!("{} is left out: {why}", program.name))
            }
            Err(failure) => return Err(failure),
        }
    }
    if kept.is_empty() {
        return Err(Failure::NothingToCompare(reasons.join("\n")));
    }
    for reason in &reasons {
        context.messages.warning(reason);
    }
    if workload.command.is_empty() {
        (workload.program, workload.all) = (kept, false);
    }
    Ok(())
}

/// Why a program cannot be recorded; `None` where there is a recording.
fn of_program(
    request: &Request,
    program: &ProgramInfo,
    tracer: &Tracer,
    context: &Context,
) -> Result<Option<String>, Failure> {
    if program.serve.is_some() {
        return Ok(Some("it is a server: how requests arrive changes from run to run".into()));
    }
    let path = oracle::file_in(&request.oracles, &program.name);
    if is_of(&path, program) {
        return Ok(None);
    }
    context.messages.note(&format!("{} is recorded first: {}", program.name, path.display()));
    let recording = oracle::Request {
        workload: request.study.workload.clone(),
        output: path.clone(),
        force: true,
        prove: true,
        timeout_s: crate::traced::LIMIT_S,
        expect_status: request.study.expect_status,
        command: vec![],
    };
    let found = oracle::of_program(&recording, program, &path, tracer, context)?;
    let unsafe_free =
        found.proof.and_then(|proof| proof.fails).map(|why| format!("early frees are not safe: {why}"));
    Ok(found.sequence.differs.or(unsafe_free))
}

/// Whether there is a recording of this command and of the code that is there now.
fn is_of(path: &Path, program: &ProgramInfo) -> bool {
    checked(path).is_ok_and(|found| found.about.command == program.command)
}
