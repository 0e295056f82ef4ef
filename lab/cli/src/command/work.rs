//! `heaptoll lab shards work PLAN --shard N`: one shard of a plan, on this machine.

use std::path::PathBuf;

use clap::Args;
use heaptoll::entry::Command;
use heaptoll::session::Session;
use heaptoll::{exit, terminal};
use heaptoll_command::failure::Failure;
use heaptoll_laboratory::cluster::work::{WorkRequest, Worked, work};
use heaptoll_report::format::{plural, shell_path};

/// Measure one shard of a plan on this machine.
///
/// Refuses a machine of another class, and files that differ from the plan's. Rows are written to a disk of this
/// machine; the complete file goes into the folder in one step. A shard whose file exists is not measured again, so a
/// stopped experiment can be resumed. The rows of a stopped shard are discarded.
///
/// Exit status: 0 the shard's file is there; 1 measuring failed, or its file cannot be kept; 2 the wrong class of
/// machine, or an unusable plan; 130 interrupted.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  heaptoll lab shards work exp.plan --shard 3 -o shards\n  \
    taskset -c 0-7 heaptoll lab shards work exp.plan --shard 3 -o shards     (within these processors)")]
pub struct Arguments {
    /// The plan
    plan: PathBuf,
    /// Number of the shard, from 0
    #[arg(long, value_name = "N")]
    shard: u32,
    /// The folder for the shard's file; all machines may share it
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// A folder on a disk of this machine, for the unfinished file [default: $TMPDIR or /tmp]
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// Name of this machine in reports [default: Slurm's or the system's]
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
}

impl Command for Arguments {
    const NAME: &'static str = "lab shards work";

    fn run(arguments: &Self) -> Result<u8, Failure> {
        let session = Session::begin()?;
        let number = arguments.shard;
        let request = WorkRequest {
            plan: arguments.plan.clone(),
            shard: number,
            folder: arguments.output.clone(),
            scratch: arguments.scratch.clone(),
            node: arguments.node.clone(),
        };
        let (text, code) = match work(&request, &session.context())? {
            Worked::Measured { path, rows, failed } => {
                let failed =
                    if failed > 0 { format!(", {failed} of them failed runs") } else { String::new() };
                let what = if rows == 0 { "counts of both builds".to_owned() } else { plural(rows, "row") };
                (format!("shard {number}: {what}{failed}, in {}", shell_path(&path)), 0)
            }
            Worked::WasThere(path) => {
                (format!("shard {number} is there: {}; nothing to do", shell_path(&path)), 0)
            }
            Worked::WasFirst(path) => {
                let text = "was also measured elsewhere; that file stays, and these rows are discarded";
                (format!("shard {number} {text}: {}", shell_path(&path)), 0)
            }
            Worked::Interrupted => {
                (format!("shard {number} was interrupted; its rows are discarded"), exit::INTERRUPTED)
            }
        };
        terminal::note(&text);
        Ok(code)
    }
}
