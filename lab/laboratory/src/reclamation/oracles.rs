//! The recordings that the study needs: those that are there and still of the program, and new ones.

use std::path::Path;

use heaptoll_experiment::experiment::{ProgramInfo, Protocol};
use heaptoll_oracle::FreePoint;
use heaptoll_reftrace_host::Tracer;
use heaptoll_report::format::and_list;

use super::request::ReclamationRequest;
use crate::oracle;
use crate::oracle::recordings::{checked, lacks_unreachable};
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_runs::workload::Workload;

/// What is there of a program.
enum Recorded {
    /// A recording, and whether it has points of unreachability.
    Whole(bool),
    /// None, for this reason.
    LeftOut(String),
}

/// Programs by what their recordings have.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Recordings {
    /// Programs whose recordings have points of unreachability.
    pub with_unreachable: Vec<String>,
    /// Those whose recordings have none.
    pub without: Vec<String>,
}

impl Recordings {
    /// The points, and unreachability as one more where it is requested and every recording has it. Else those that have
    /// none are named.
    pub fn points(&self, request: &ReclamationRequest, context: &Context) -> Vec<FreePoint> {
        let mut points = request.all_points();
        if !request.adds_unreachable || self.with_unreachable.is_empty() {
            return points;
        }
        if self.without.is_empty() {
            points.push(FreePoint::Unreachable);
            points.sort_unstable();
        } else {
            context.messages.note(&format!(
                "unreachable is left out: {}",
                and_list(&self.without.iter().map(|name| lacking(request, name)).collect::<Vec<_>>())
            ));
        }
        points
    }
}

fn lacking(request: &ReclamationRequest, program: &str) -> String {
    lacks_unreachable(&oracle::file_in(&request.oracles, program).display().to_string())
}

/// Records every program of which the folder has no recording of this command and build, and leaves those out of the
/// workload that cannot be recorded.
///
/// # Errors
/// No program can be recorded, or the folder cannot be made.
pub fn record(
    request: &ReclamationRequest,
    workload: &mut Workload,
    context: &Context,
) -> Result<Recordings, Failure> {
    workload.require("--set, --all, --serve, or --resume")?;
    std::fs::create_dir_all(&request.oracles).map_err(|error| {
        Failure::Usage(format!(
            "--oracles {}: {error}; name a folder that can be written",
            request.oracles.display()
        ))
    })?;
    let tracer = Tracer::find(context.places).map_err(|error| Failure::Refused(Box::new(error)))?;
    let programs = workload.resolve(context)?;
    let mut kept = Vec::new();
    let mut recordings = Recordings::default();
    let mut reasons = Vec::new();
    for program in &programs {
        match of_program(request, program, &tracer, context) {
            Ok(Recorded::Whole(has_unreachable)) => {
                let Recordings { with_unreachable, without } = &mut recordings;
                if has_unreachable { with_unreachable } else { without }.push(program.name.clone());
                kept.push(program.name.clone());
            }
            Ok(Recorded::LeftOut(why)) => reasons.push(format!("{} is left out: {why}", program.name)),
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
        (workload.program, workload.all, workload.set) = (kept, false, None);
    }
    Ok(recordings)
}

/// The recording of a program, made where there is none.
fn of_program(
    request: &ReclamationRequest,
    program: &ProgramInfo,
    tracer: &Tracer,
    context: &Context,
) -> Result<Recorded, Failure> {
    if program.serve.is_some() {
        return Ok(Recorded::LeftOut("it is a server: its requests arrive differently in each run".into()));
    }
    let path = oracle::file_in(&request.oracles, &program.name);
    if let Some(has_unreachable) = recorded(&path, program) {
        return Ok(Recorded::Whole(has_unreachable));
    }
    context.messages.note(&format!("{} is recorded first: {}", program.name, path.display()));
    let recording = oracle::OracleRequest {
        workload: request.study.workload.clone(),
        output: path.clone(),
        force: true,
        graph: request.points.contains(&FreePoint::Unreachable),
        prove: true,
        protocol: Protocol {
            timeout_s: heaptoll_runs::traced::LIMIT_S,
            expect_status: request.study.protocol.expect_status,
            ..Protocol::default()
        },
    };
    let found = oracle::of_program(&recording, program, &path, tracer, context)?;
    let unsafe_free =
        found.proof.and_then(|proof| proof.fails).map(|why| format!("early frees are not safe: {why}"));
    let why = found.sequence.differs.or(unsafe_free);
    Ok(why.map_or(Recorded::Whole(found.unreachable.is_some()), Recorded::LeftOut))
}

/// Whether the recording has points of unreachability, if there is one of this command and of the code that is there now.
fn recorded(path: &Path, program: &ProgramInfo) -> Option<bool> {
    let found = checked(path).ok().filter(|found| found.about.command == program.command)?;
    Some(found.about.unreachable.is_some())
}
