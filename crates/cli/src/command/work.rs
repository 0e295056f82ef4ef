//! `heaptoll lab shards work PLAN --shard N`: one shard of a plan, on this machine.

use std::path::PathBuf;

use clap::Args;
use heaptoll_command::failure::Failure;
use heaptoll_experiments::cluster::work::{Request, Worked, work};
use heaptoll_report::format::{plural, shell_path};

use crate::session::Session;
use crate::{exit, terminal};

/// Measure one shard of a plan on this machine.
///
/// Refuses a machine of another class than the shard's, and other files than the plan's. Rows are written to a disk of
/// this machine; when all are there, the file is put into the folder in one step. A shard whose file is there already is
/// not measured again: this is how a stopped experiment is resumed. What was measured of a shard that is stopped is
/// discarded.
///
/// Exit status: 0 the shard's file is there; 1 it was measured and cannot be kept, or measuring failed; 2 this machine is
/// not what the plan needs, or the plan cannot be used; 130 interrupted.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll lab shards work exp.plan --shard 3 -o shards\n  \
    taskset -c 0-7 heaptoll lab shards work exp.plan --shard 3 -o shards     (within these processors)")]
pub struct Arguments {
    /// The plan
    plan: PathBuf,
    /// Number of the shard, from 0
    #[arg(long, value_name = "N")]
    shard: u32,
    /// The folder that gets the shard's file, which all machines may share
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// A folder on a disk of this machine, for the file while it is written [default: $TMPDIR or /tmp]
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// Name of this machine in reports [default: Slurm's name of the node, or the system's]
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(arguments: Arguments) -> Result<u8, Failure> {
    let session = Session::begin()?;
    let number = arguments.shard;
    let request = Request {
        plan: arguments.plan,
        shard: number,
        folder: arguments.output,
        scratch: arguments.scratch,
        node: arguments.node,
    };
    let (text, code) = match work(&request, &session.context())? {
        Worked::Measured { path, rows, failed } => {
            let failed = if failed > 0 { format!(", {failed} of them failed runs") } else { String::new() };
            let what = if rows == 0 { "counts of both builds".to_owned() } else { plural(rows, "row") };
            (format!("shard {number}: {what}{failed}, in {}", shell_path(&path)), 0)
        }
        Worked::WasThere(path) => {
            (format!("shard {number} is there: {}; nothing to do", shell_path(&path)), 0)
        }
        Worked::WasFirst(path) => {
            let text = "was measured elsewhere meanwhile; that file stays, and these rows are discarded";
            (format!("shard {number} {text}: {}", shell_path(&path)), 0)
        }
        Worked::Interrupted => {
            (format!("shard {number} was interrupted, and nothing of it is kept"), exit::INTERRUPTED)
        }
    };
    terminal::note(&text);
    Ok(code)
}
