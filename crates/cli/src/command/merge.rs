//! `heaptoll lab shards merge OUT SHARDS`: one experiment of measured shards.

use std::path::PathBuf;

use clap::Args;
use heaptoll_command::failure::Failure;
use heaptoll_experiments::cluster::merge::{Merged, Request, merge};
use heaptoll_report::format::{and_list, plural, shell_path};

use crate::{exit, terminal};

/// As many numbers of missing shards are printed.
const NAMED: usize = 20;

/// Make one experiment of measured shards.
///
/// Takes the files of `heaptoll lab shards work` of one plan. Files of another plan, another version of heaptoll, or with another
/// description, and half-written ones, are refused, and then nothing is written. Of a shard that is there more than once
/// the first file by name is taken. `heaptoll report` shows the merged experiment: the ratios of each node next to the
/// pooled ones, and each class of machines by itself.
///
/// Exit status: 0 all shards of the plan are in the file; 1 some are missing, and it has the others; 2 a file was refused.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  heaptoll lab shards merge all.db shards\n  heaptoll lab shards merge all.db shards/*.db\n  \
    heaptoll lab shards merge zen.db --class zen shards     (one class of machines)\n  heaptoll report all.db"
)]
pub struct Arguments {
    /// The file to write, which must not exist
    output: PathBuf,
    /// Files of shards, or folders of them
    #[arg(required = true)]
    shards: Vec<PathBuf>,
    /// Take the shards of this class of machines alone
    #[arg(long, value_name = "NAME")]
    class: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    if arguments.output.exists() {
        let path = arguments.output.display();
        return Err(Failure::Usage(format!("{path} exists; give the merged experiment another name")));
    }
    let request = Request {
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
    let mut numbers: Vec<String> = missing.iter().take(NAMED).map(u32::to_string).collect();
    if missing.len() > NAMED {
        numbers.push(format!("{} more", missing.len() - NAMED));
    }
    terminal::warning(&format!(
        "{} missing: {}; measure them and merge again",
        plural(missing.len(), "shard"),
        and_list(&numbers)
    ));
    exit::TROUBLE
}
