//! `heaptoll lab shards submit PLAN`: the shards of a plan as work of Slurm or GNU parallel.

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};
use heaptoll_command::failure::Failure;
use heaptoll_experiments::cluster::Plan;
use heaptoll_experiments::cluster::submit::{Request, Scheduler, largest_array, missing, scripts, submit};
use heaptoll_report::format::plural;

use crate::session::Session;
use crate::terminal;

/// Give the shards of a plan to Slurm or GNU parallel.
///
/// Only shards without a file are submitted: to resume, submit again. --slurm gives `sbatch` a job array and returns;
/// a task that Slurm ends starts again from its beginning. --parallel runs one shard at a time on each host, by ssh,
/// and returns when all were tried. The plan, heaptoll and the folder of shards need the same path on all hosts.
///
/// Exit status: 0 submitted, or nothing left to do; 2 the scheduler did not start or refused, or a shard failed on
/// all hosts.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("scheduler").required(true), after_help = "Examples:\n  \
    heaptoll lab shards submit exp.plan --slurm -o shards -- --partition=bench --time=30\n  \
    heaptoll lab shards submit exp.plan --slurm --print -o shards\n  \
    heaptoll lab shards submit exp.plan --parallel node1,node2 -o shards")]
pub struct Arguments {
    /// The plan
    plan: PathBuf,
    /// The folder for the shards' files
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Submit a job array to Slurm: `sbatch --array --exclusive --requeue`
    #[arg(long, group = "scheduler")]
    slurm: bool,
    /// Run them by GNU parallel on these hosts, named as for its --sshlogin; `:` is this host
    #[arg(long, value_name = "HOSTS", group = "scheduler")]
    parallel: Option<String>,
    /// Print the script and start nothing
    #[arg(long)]
    print: bool,
    /// Submit only the shards of this class of machines; add the options that choose such nodes
    #[arg(long, value_name = "NAME")]
    class: Option<String>,
    /// Further options of `sbatch`
    #[arg(last = true, value_name = "OPTIONS", conflicts_with = "parallel")]
    options: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// See [`Failure`].
pub fn run(arguments: &Arguments) -> Result<u8, Failure> {
    let session = Session::begin()?;
    let refused = |error| Failure::Refused(Box::new(error));
    let plan = Plan::read(&arguments.plan).map_err(refused)?;
    let request = request(arguments)?;
    if plan.classes.len() > 1 && arguments.class.is_none() {
        let names: Vec<String> = plan.classes.iter().map(|class| class.name.clone()).collect();
        return Err(Failure::Usage(format!(
            "the plan has shards for several classes of machines: submit each class separately, with --class {} and \
             the options that choose its nodes",
            names.join(" or ")
        )));
    }
    let shards = missing(&request, &plan, &session.context()).map_err(refused)?;
    if shards.is_empty() {
        terminal::note("all shards are there: heaptoll lab shards merge makes one experiment of them");
        return Ok(0);
    }
    let largest = if arguments.slurm { largest_array() } else { u32::MAX };
    for script in scripts(&request, &plan, &shards, largest) {
        if arguments.print {
            terminal::print(&script)?;
            continue;
        }
        let answer = submit(&script, &request.scheduler, &request.folder).map_err(refused)?;
        if !answer.is_empty() {
            terminal::print(&format!("{answer}\n"))?;
        }
    }
    if !arguments.print {
        terminal::note(&format!("{} of {} given away", shards.len(), plural(plan.shards.len(), "shard")));
    }
    Ok(0)
}

fn request(arguments: &Arguments) -> Result<Request, Failure> {
    let absolute = |path: &Path| {
        let text = || format!("cannot find {}", path.display());
        std::path::absolute(path).map_err(|error| Failure::Usage(format!("{}: {error}", text())))
    };
    let heaptoll = std::env::current_exe()
        .map_err(|error| Failure::Usage(format!("heaptoll cannot find its own file: {error}")))?;
    Ok(Request {
        plan: absolute(&arguments.plan)?,
        folder: absolute(&arguments.output)?,
        heaptoll,
        home: std::env::var("HEAPTOLL_HOME").ok().filter(|home| !home.is_empty()),
        class: arguments.class.clone(),
        scheduler: match &arguments.parallel {
            Some(hosts) => Scheduler::Parallel(hosts.clone()),
            None => Scheduler::Slurm(arguments.options.clone()),
        },
    })
}
