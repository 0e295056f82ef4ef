//! `heaptoll lab oracle`: when each object of a program is used last, for runs that free it then.

use std::path::PathBuf;

use clap::Args;
use heaptoll::documents::DocumentOutputs;
use heaptoll::entry::{Command, writes};
use heaptoll::exit;
use heaptoll::protocol_arguments::Limits;
use heaptoll::session::Session;
use heaptoll::traced_arguments::LIMIT;
use heaptoll::workload_args::Programs;
use heaptoll_catalog::Size;
use heaptoll_command::failure::Failure;
use heaptoll_laboratory::oracle::{self, OracleRequest};

/// Record the last use of each object of a program, for runs that free it then.
///
/// The program runs under the tracer once, which records each allocation with size and caller, and each object's last
/// use. Native runs identify objects by the order of their allocation. Two native runs check that the allocations are
/// equal. One more frees every object at its last use and makes its pages inaccessible; another does so over the C
/// library's malloc. A program that touches an object later, or depends on addresses, gets no file. `heaptoll run -m
/// oracle=POINT,file=FILE/MANAGER` uses the file (`oracle=POINT/MANAGER` without -o): the manager stays the same, and
/// only the point of reclamation varies. With --graph, the file also contains the points where objects become
/// unreachable. The program may have one thread only. Its effects on files and other processes happen in each run.
/// docs/lab/reclamation.md says what must be equal in each run.
///
/// Exit status: 0 all well; 1 a program could not be recorded, a native run differs, or an early free is not safe (no
/// file is written); 2 bad request; 130 interrupted.
#[derive(Debug, Args)]
#[command(
    mut_arg("timeout", |arg| arg.default_value(LIMIT)),
    after_help = "Examples:\n  heaptoll lab oracle -o gawk.oracle -- gawk -f report.awk access.log\n  \
    heaptoll run -m oracle=free,file=gawk.oracle/mimalloc3 -m oracle=last-use,file=gawk.oracle/mimalloc3 -- \
    gawk -f report.awk access.log\n  \
    heaptoll lab oracle -p lua\n  \
    heaptoll run -p lua -m oracle=free/mimalloc3 -m oracle=last-use/mimalloc3\n  \
    heaptoll lab oracle --graph -p lua\n  \
    heaptoll run -p lua -m oracle=free/mimalloc3 -m oracle=unreachable/mimalloc3\n  \
    heaptoll lab oracle -o oracles -p cfrac -p espresso         (a folder with a file for each program)"
)]
pub struct Arguments {
    /// The file, with the ending .oracle; a folder for several programs [default: $XDG_CACHE_HOME/heaptoll/oracles,
    /// overwritten; stacks without a file look there]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite a file that exists
    #[arg(short, long)]
    force: bool,
    /// Also record when each object becomes unreachable: pointers and roots, while nothing is freed; some tens of
    /// times slower (docs/lab/reclamation.md)
    #[arg(long)]
    graph: bool,
    /// Do not prove that early frees are safe
    #[arg(long)]
    no_proof: bool,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    programs: Programs,
    #[command(flatten)]
    outputs: DocumentOutputs,
}

impl Command for Arguments {
    const NAME: &'static str = "lab oracle";
    const FIRST: &'static [&'static str] = &["graph"];
    writes!(of: oracle::OracleFigures);

    fn run(arguments: &Self) -> Result<u8, Failure> {
        let session = Session::begin()?;
        let output = match &arguments.output {
            Some(file) => file.clone(),
            None => default_folder()?,
        };
        let request = OracleRequest {
            workload: arguments.programs.workload(Size::Demo),
            output,
            force: arguments.force || arguments.output.is_none(),
            graph: arguments.graph,
            prove: !arguments.no_proof,
            protocol: arguments.limits.protocol(),
        };
        let found = oracle::run(&request, &session.context())?;
        let code = arguments.outputs.deliver(&found.document, &found.figures)?;
        Ok(exit::of_runs(found.ending, code))
    }
}

/// Where stacks look for recordings whose file they do not name.
fn default_folder() -> Result<PathBuf, Failure> {
    let folder = oracle::folder();
    std::fs::create_dir_all(&folder).map_err(|error| {
        Failure::Usage(format!(
            "{}: {error}; name a file that can be written: -o FILE.oracle",
            folder.display()
        ))
    })?;
    Ok(folder)
}
