//! Records when each object of a program is used last, and proves that freeing it then is safe (Hertz and Berger 2005).
//!
//! A recording is of a run under the tracer. It serves native runs only if they make the same allocations, so each is
//! compared first: a native run follows the recorded sequence from its first to its last allocation, and another frees
//! every object at its last use with each block on pages of its own, which become inaccessible.

mod document;
mod figures;
mod native;
mod reachability;
mod recorded;
pub mod recordings;
mod request;
mod unchecked;

use std::path::{Path, PathBuf};

use heaptoll_experiment::experiment::ProgramInfo;
use heaptoll_experiment::places::Places;
use heaptoll_oracle::OracleFile;
use heaptoll_reftrace_host::Tracer;
use heaptoll_report::format::shell_command;

use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_command::writable;
use heaptoll_runs::findings::{Ending, Findings};
use heaptoll_runs::studied::visit;

pub use figures::{OracleFigures, Program, Proof, Sequence};
pub use native::{LAYER, NativeRun, VARIABLE, check_of};
pub use request::OracleRequest;
use unchecked::Unchecked;

schemars::labelled!(OracleFigures, "heaptoll-oracle/1");
/// What the file's name must end with, so that a stack's name shows where it ends.
pub const ENDING: &str = ".oracle";

/// Records every program, compares native runs, and proves early frees safe.
///
/// # Errors
/// The request cannot be carried out; the one program that was named cannot be recorded.
pub fn run(request: &OracleRequest, context: &Context) -> Result<Findings<OracleFigures>, Failure> {
    request.workload.require("--set or --all")?;
    let programs = request.workload.resolve(context)?;
    let files = files(request, &programs)?;
    let tracer = Tracer::find(context.places).map_err(|error| Failure::Refused(Box::new(error)))?;
    let mut files = files.iter();
    let visited = visit(&programs, context.messages, "no program could be recorded", |program, recorded| {
        let Some(file) = files.next() else { return Ok(()) };
        recorded.push(of_program(request, program, file, &tracer, context)?);
        Ok(())
    })?;
    let has_trouble = visited.failed || visited.programs.iter().any(|program| !program.is_good());
    let ending = Ending::of(visited.complete, has_trouble);
    let figures = OracleFigures { complete: visited.complete, programs: visited.programs };
    let document = document::document(&figures, shell_command(&request.protocol.repeat_command));
    Ok(Findings { figures, document, ending })
}

/// The file of each program.
fn files(request: &OracleRequest, programs: &[ProgramInfo]) -> Result<Vec<PathBuf>, Failure> {
    let output = &request.output;
    let refuse = |why: String| Failure::Usage(format!("-o {}: {why}", output.display()));
    let named = output.to_str().filter(|text| !text.contains([',', '\n']));
    if named.is_none() {
        return Err(refuse("a stack's name cannot contain a path that has a comma or is not text".into()));
    }
    if let Some(server) = programs.iter().find(|program| program.serve.is_some()) {
        let why = format!("{} is a server: its requests arrive differently in each run", server.name);
        return Err(Failure::Usage(why));
    }
    if output.extension().is_some_and(|extension| extension == &ENDING[1..]) {
        if programs.len() > 1 {
            return Err(refuse("several programs need a folder, which gets a file for each".into()));
        }
        writable::check(output).map_err(&refuse)?;
        return Ok(vec![checked(output.clone(), request.force)?]);
    }
    if programs.len() == 1 && !output.is_dir() {
        return Err(refuse(format!("name the file with the ending {ENDING}, or a folder that exists")));
    }
    std::fs::create_dir_all(output).map_err(|error| refuse(error.to_string()))?;
    programs.iter().map(|program| checked(file_in(output, &program.name), request.force)).collect()
}

/// Where stacks look for recordings whose file they do not name (preload/layers/oracle/oracle.toml).
pub fn folder() -> PathBuf {
    Places::cache().join("oracles")
}

/// The file of a program in a folder of them.
pub fn file_in(folder: &Path, program: &str) -> PathBuf {
    folder.join(format!("{}{ENDING}", program.replace('/', "_")))
}

fn checked(file: PathBuf, force: bool) -> Result<PathBuf, Failure> {
    if file.exists() && !force {
        return Err(Failure::Usage(format!("{} exists; overwrite it with --force", file.display())));
    }
    let refuse = |why: String| Failure::Usage(format!("{}: {why}", file.display()));
    // The recording takes its place by its name.
    writable::regular(&file).map_err(refuse)?;
    std::path::absolute(&file).map_err(|error| refuse(error.to_string()))
}

/// Records one program and checks the recording. A recording that no native run follows is removed.
pub(crate) fn of_program(
    request: &OracleRequest,
    program: &ProgramInfo,
    file: &Path,
    tracer: &Tracer,
    context: &Context,
) -> Result<Program, Failure> {
    // A file that nothing has checked yet must not be taken for one that serves, however this ends.
    let refuse = |why: String| Failure::Usage(format!("cannot name the recording {}: {why}", file.display()));
    let place = writable::regular(file).map_err(refuse)?;
    let unchecked = Unchecked::next_to(&place);
    let recorded = recorded::record(request, program, unchecked.path(), tracer, context)?;
    let checked = check(request, program, unchecked.path(), &recorded, context)?;
    if checked.is_good() {
        std::fs::rename(unchecked.path(), &place).map_err(|error| refuse(error.to_string()))?;
    }
    Ok(checked.named(file))
}

fn check(
    request: &OracleRequest,
    program: &ProgramInfo,
    file: &Path,
    recorded: &OracleFile,
    context: &Context,
) -> Result<Program, Failure> {
    let native = native::Native { program, file, recorded, timeout: request.protocol.timeout(), context };
    let sequence = native.sequence()?;
    let proof = match request.prove && sequence.differs.is_none() {
        true => Some(native.proof()?),
        false => None,
    };
    Ok(Program::of(program, recorded, sequence, proof))
}
