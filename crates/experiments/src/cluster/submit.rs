//! The shards of a plan as work of a scheduler: a script for Slurm's `sbatch`, or one that calls GNU parallel. heaptoll
//! starts the scheduler and does not wait for Slurm's.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use heaptoll_report::format::{shell_command, shell_path};

use super::error::ClusterError;
use super::plan::Plan;
use super::work::is_there;
use heaptoll_command::context::Context;

/// Slurm's own default of `MaxArraySize`: task numbers are below it.
const USUAL_ARRAY: u32 = 1001;

/// What starts the shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scheduler {
    /// Slurm: a job array, with these further options of `sbatch`.
    Slurm(Vec<String>),
    /// GNU parallel on these hosts, as its `--sshlogin` names them, one shard at a time on each.
    Parallel(String),
}

/// What is submitted.
#[derive(Debug, Clone)]
pub struct Request {
    /// The plan's file, absolute.
    pub plan: PathBuf,
    /// The folder of the shards, absolute.
    pub folder: PathBuf,
    /// heaptoll itself, by the path that it has on each node.
    pub heaptoll: PathBuf,
    /// Value of `HEAPTOLL_HOME`, where it is set.
    pub home: Option<String>,
    /// A class of machines, where only its shards are submitted.
    pub class: Option<String>,
    /// What starts them.
    pub scheduler: Scheduler,
}

/// The shards that have no file yet.
///
/// # Errors
/// A file of something else has the name of one.
pub fn missing(request: &Request, plan: &Plan, context: &Context) -> Result<Vec<u32>, ClusterError> {
    let mut missing = Vec::new();
    for (number, shard) in (0..).zip(&plan.shards) {
        let is_requested = request.class.as_ref().is_none_or(|class| *class == shard.part.class);
        let path = request.folder.join(plan.file_name(number));
        if is_requested && !is_there(&path, plan, number, context)? {
            missing.push(number);
        }
    }
    Ok(missing)
}

/// The scripts that measure these shards: more than one where Slurm's arrays are too short.
pub fn scripts(request: &Request, plan: &Plan, shards: &[u32], largest_array: u32) -> Vec<String> {
    match &request.scheduler {
        Scheduler::Slurm(_) => {
            let mut rest = shards;
            let mut scripts = Vec::new();
            while let Some(first) = rest.first() {
                let offset = first / largest_array * largest_array;
                let length = rest.partition_point(|number| number - offset < largest_array);
                let (batch, others) = rest.split_at(length);
                let tasks: Vec<u32> = batch.iter().map(|number| number - offset).collect();
                scripts.push(slurm_script(request, plan, &tasks, offset));
                rest = others;
            }
            scripts
        }
        Scheduler::Parallel(hosts) => vec![parallel_script(request, plan, hosts, shards)],
    }
}

fn slurm_script(request: &Request, plan: &Plan, tasks: &[u32], offset: u32) -> String {
    let name = plan.short_identity();
    let log = request.folder.join(format!("{name}-%A_%a.log"));
    let number = match offset {
        0 => "\"$SLURM_ARRAY_TASK_ID\"".to_owned(),
        _ => format!("$((SLURM_ARRAY_TASK_ID + {offset}))"),
    };
    format!(
        "#!/bin/sh\n#SBATCH --job-name=heaptoll-{name}\n#SBATCH --array={}\n#SBATCH --exclusive\n#SBATCH \
         --requeue\n#SBATCH --open-mode=append\n#SBATCH --output=\"{}\"\n{}\nstatus=$?\n# A refused node \
         would soon be free and get shard after shard: it waits.\nif [ $status = 2 ]; then sleep \
         \"${{HEAPTOLL_HOLD:-60}}\"; fi\nexit $status\n",
        ranges(tasks),
        log.display(),
        work(request, &number)
    )
}

fn parallel_script(request: &Request, plan: &Plan, hosts: &str, shards: &[u32]) -> String {
    let log = request.folder.join(format!("{}.joblog", plan.short_identity()));
    let numbers: String = shards.iter().map(|number| format!("{number}\n")).collect();
    let quoted = |text: &str| shell_command(&[text.to_owned()]);
    format!(
        "#!/bin/sh\nmkdir -p {} || exit\n\
         # One shard at a time on each host; one that fails is tried on another.\n\
         parallel --jobs 1 --retries 3 --sshlogin {} --joblog {} {} <<'END'\n{numbers}END\n",
        shell_path(&request.folder),
        quoted(hosts),
        shell_path(&log),
        quoted(&work(request, "{}"))
    )
}

/// The command that measures a shard.
fn work(request: &Request, number: &str) -> String {
    let home = request.home.as_ref().map(|home| shell_command(&[format!("HEAPTOLL_HOME={home}")]));
    format!(
        "{}{} lab shards work {} --shard {number} -o {}",
        home.map_or(String::new(), |home| format!("env {home} ")),
        shell_path(&request.heaptoll),
        shell_path(&request.plan),
        shell_path(&request.folder)
    )
}

/// `0-3,7` for 0, 1, 2, 3 and 7.
fn ranges(numbers: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let text = |(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

/// The longest array that this Slurm takes, as it reports; its default where it does not.
pub fn largest_array() -> u32 {
    let output = Command::new("scontrol").args(["show", "config"]).stdin(Stdio::null()).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    array_size(&text).unwrap_or(USUAL_ARRAY)
}

fn array_size(config: &str) -> Option<u32> {
    let line = config.lines().find_map(|line| line.trim().strip_prefix("MaxArraySize"))?;
    line.trim_start_matches([' ', '=']).trim().parse().ok().filter(|size| *size > 0)
}

/// Gives a script to the scheduler; its answer. Slurm answers at once, GNU parallel when all shards were tried.
///
/// # Errors
/// It cannot be started, or refuses.
pub fn submit(script: &str, scheduler: &Scheduler, folder: &Path) -> Result<String, ClusterError> {
    std::fs::create_dir_all(folder)
        .map_err(|cause| ClusterError::Write { path: folder.to_path_buf(), cause })?;
    let (program, options) = match scheduler {
        Scheduler::Slurm(options) => ("sbatch", options.as_slice()),
        Scheduler::Parallel(_) => ("sh", &[][..]),
    };
    let no_scheduler = |cause| ClusterError::NoScheduler { program, cause };
    let mut command = Command::new(program);
    command.args(options).stdin(Stdio::piped()).stdout(Stdio::piped());
    let is_slurm = matches!(scheduler, Scheduler::Slurm(_));
    // What shards report is the user's to see while it comes.
    command.stderr(if is_slurm { Stdio::piped() } else { Stdio::inherit() });
    let mut child = command.spawn().map_err(no_scheduler)?;
    // A scheduler that ends before it has read the script reports why by its status.
    if let Some(mut input) = child.stdin.take() {
        let _ = input.write_all(script.as_bytes());
    }
    let output = child.wait_with_output().map_err(no_scheduler)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let program = if is_slurm { program } else { "parallel" };
    let why = match String::from_utf8_lossy(&output.stderr).trim() {
        "" => format!("it ended with {}", output.status),
        why => why.to_owned(),
    };
    Err(ClusterError::SchedulerRefused { program, why })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::format::{FORMAT, VERSION};
    use crate::cluster::plan::PlannedShard;
    use crate::testing::experiment;
    use heaptoll_experiment::shards::Part;

    fn plan() -> Plan {
        Plan {
            format: FORMAT.into(),
            version: VERSION,
            heaptoll: "0".into(),
            identity: "0123456789abcdef".into(),
            experiment: experiment(&["prog"], &["glibc".into()], 1),
            environment: [].into(),
            catalog: None,
            gate: None,
            files: vec![],
            classes: vec![],
            shards: vec![PlannedShard { part: Part::default(), estimated_s: 1.0 }],
        }
    }

    fn request(scheduler: Scheduler) -> Request {
        Request {
            plan: "/home/my plans/exp.plan".into(),
            folder: "/home/shards".into(),
            heaptoll: "/opt/bin/heaptoll".into(),
            home: None,
            class: None,
            scheduler,
        }
    }

    #[test]
    fn an_array_has_the_shards_that_are_lacking() {
        let scripts = scripts(&request(Scheduler::Slurm(vec![])), &plan(), &[0, 1, 2, 7, 9, 10], 1001);
        let [script] = scripts.as_slice() else { panic!("{scripts:?}") };
        for line in [
            "#SBATCH --array=0-2,7,9-10",
            "#SBATCH --exclusive",
            "#SBATCH --requeue",
            "/opt/bin/heaptoll lab shards work '/home/my plans/exp.plan' --shard \"$SLURM_ARRAY_TASK_ID\" -o /home/shards",
        ] {
            assert!(script.lines().any(|found| found == line), "{script}");
        }
    }

    #[test]
    fn more_shards_than_an_array_may_have_are_several_arrays() {
        let numbers: Vec<u32> = (0..25).filter(|number| *number != 12).collect();
        let scripts = scripts(&request(Scheduler::Slurm(vec![])), &plan(), &numbers, 10);
        let lines = |start: &str| -> Vec<&str> {
            scripts.iter().filter_map(|text| text.lines().find(|line| line.starts_with(start))).collect()
        };
        let arrays = ["#SBATCH --array=0-9", "#SBATCH --array=0-1,3-9", "#SBATCH --array=0-4"];
        assert_eq!(lines("#SBATCH --array"), arrays);
        assert!(scripts[1].contains("--shard $((SLURM_ARRAY_TASK_ID + 10)) "), "{}", scripts[1]);
        assert!(scripts[2].contains("--shard $((SLURM_ARRAY_TASK_ID + 20)) "), "{}", scripts[2]);
    }

    #[test]
    fn parallel_gets_numbers_and_a_command_for_each_host() {
        let requested =
            Request { home: Some("/opt/home".into()), ..request(Scheduler::Parallel("n1,n2".into())) };
        let scripts = scripts(&requested, &plan(), &[3, 5], 10);
        let [script] = scripts.as_slice() else { panic!("{scripts:?}") };
        assert!(script.contains("--jobs 1 --retries 3 --sshlogin ") && script.contains("n1,n2"), "{script}");
        assert!(script.ends_with("<<'END'\n3\n5\nEND\n"), "{script}");
        assert!(
            script.contains("HEAPTOLL_HOME=/opt/home")
                && script.contains("/opt/bin/heaptoll lab shards work"),
            "{script}"
        );
    }

    #[test]
    fn slurm_reports_its_longest_array() {
        assert_eq!(array_size("MaxArraySize            = 1001\nX = 1"), Some(1001));
        assert_eq!(array_size("nothing"), None);
    }
}
