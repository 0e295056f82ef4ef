//! `heaptoll lab shards merge OUT SHARDS`: one experiment of measured shards.

use std::path::PathBuf;

use clap::Args;
use heaptoll::entry::Command;
use heaptoll::{exit, terminal};
use heaptoll_command::failure::Failure;
use heaptoll_laboratory::cluster::merge::{MergeRequest, Merged, merge};
use heaptoll_report::format::{plural, shell_path};
use heaptoll_units::first_few;

/// As many numbers of missing shards are printed.
const NAMED: usize = 20;

/// Merge measured shards into one experiment.
///
/// Reads the files that `heaptoll lab shards work` made for one plan. It refuses half-written files and files of
/// another plan, description or version, and then writes nothing. If a shard is there twice, the first file by name
/// counts. `heaptoll report` shows the merged experiment: each node's ratios beside the pooled ones, and each class
/// of machines separately.
///
/// Exit status: 0 the file has all shards of the plan; 1 some are missing; 2 a file was refused.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  heaptoll lab shards merge all.db shards\n  heaptoll lab shards merge all.db shards/*.db\n  \
    heaptoll lab shards merge zen.db --class zen shards     (one class of machines)\n  heaptoll report all.db"
)]
pub struct Arguments {
    /// The file to write; it must not exist
    output: PathBuf,
    /// Files of shards, or folders with them
    #[arg(required = true)]
    shards: Vec<PathBuf>,
    /// Take only the shards of this class of machines
    #[arg(long, value_name = "NAME")]
    class: Option<String>,
}

impl Command for Arguments {
    const NAME: &'static str = "lab shards merge";

    fn run(arguments: &Self) -> Result<u8, Failure> {
        if arguments.output.exists() {
            let path = arguments.output.display();
            return Err(Failure::Usage(format!("{path} exists; give the merged experiment another name")));
        }
        let request = MergeRequest {
            output: arguments.output.clone(),
            shards: arguments.shards.clone(),
            class: arguments.class.clone(),
        };
        let merged = merge(&request).map_err(|error| Failure::Refused(Box::new(error)))?;
        for (number, kept, other) in &merged.twice {
            terminal::note(&format!(
                "shard {number} is there twice: {} is taken, {} is not",
                kept.display(),
                other.display()
            ));
        }
        if let Some(class) = arguments.class.as_ref().filter(|_| merged.left_out > 0) {
            let others = plural(merged.left_out, "shard");
            terminal::note(&format!("{others} of other classes than {class} left out"));
        }
        terminal::note(&format!(
            "merged {} of {} in {}; {}{}",
            plural(merged.rows as usize, "row"),
            plural(merged.experiment.settings.shards.len(), "shard"),
            arguments.output.display(),
            next(&merged),
            shell_path(&arguments.output)
        ));
        Ok(missing(&merged))
    }
}

/// What shows it, up to the file's name.
fn next(merged: &Merged) -> &'static str {
    let is_gate = merged.experiment.settings.shards.iter().any(|shard| shard.part.counts);
    if is_gate { "decide with: heaptoll gate --merged " } else { "show it with: heaptoll report " }
}

/// Prints which shards are missing; the exit status.
fn missing(merged: &Merged) -> u8 {
    if merged.experiment.complete {
        return 0;
    }
    let missing = merged.experiment.missing_shards();
    terminal::warning(&format!(
        "{} missing: {}; measure them and merge again",
        plural(missing.len(), "shard"),
        first_few(missing.iter().map(u32::to_string), NAMED)
    ));
    exit::TROUBLE
}
