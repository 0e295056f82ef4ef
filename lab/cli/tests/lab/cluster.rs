//! One experiment in shards: cut, measured shard by shard, merged; and every way in which that can go wrong.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::fixture::{CommandOutput, Fixture, eventually, marker, programs_with, read_json, rows, text};

/// A program with some work for malloc.
const WORK: &str = "int main(void) { long sum = 0; for (int i = 0; i < 20000; i++) { char *p = malloc(16 + i % 99); \
                    p[0] = i; sum += p[0]; free(p); } printf(\"%ld\\n\", sum); return 0; }";
/// What each experiment of a test has in common.
const COMMON: [&str; 8] = ["-m", "glibc", "-m", "glibc", "--seed", "7", "-n", "6"];

/// A plan of short shards; the names of its shards' files.
fn plan(fixture: &Fixture, name: &str, more: &[&str], program: &str) -> Vec<String> {
    let path = fixture.at(name);
    let short: &[&str] = if more.contains(&"--shard-time") { &[] } else { &["--shard-time", "0.001s"] };
    let words =
        [&["lab", "shards", "plan", "-o", &path], short, more, &COMMON[..], &["--", program]].concat();
    fixture.heaptoll(&words).exits(0).shows(&["shards", "heaptoll lab shards work"]);
    let plan = read_json(&path);
    let count = plan["shards"].as_array().expect("shards").len();
    (0..count).map(|number| format!("{}-{number:05}.db", &text(&plan["identity"])[..12])).collect()
}

/// Measures these shards into the folder `shards`.
fn work(fixture: &Fixture, plan: &str, numbers: impl IntoIterator<Item = usize>) {
    for number in numbers {
        let node = format!("n{}", number % 2);
        let words = [
            "lab",
            "shards",
            "work",
            &fixture.at(plan),
            "--shard",
            &number.to_string(),
            "-o",
            &fixture.at("shards"),
        ];
        fixture.heaptoll(&[&words[..], &["--node", &node]].concat()).exits(0);
    }
}

/// Program, stack, phase and repetition of every row that is compared.
fn cells(json: &Value) -> Vec<(String, String, String, u64)> {
    let mut cells: Vec<_> = rows(json)
        .iter()
        .map(|row| {
            let repetition = row["repetition"].as_u64().expect("a number");
            (text(&row["program"]), text(&row["stack"]), text(&row["phase"]), repetition)
        })
        .filter(|(_, _, phase, _)| ["timed", "alone", "startup"].contains(&phase.as_str()))
        .collect();
    cells.sort();
    cells
}

fn shard_file(fixture: &Fixture, name: &str) -> PathBuf {
    fixture.path("shards").join(name)
}

#[test]
fn shards_have_the_cells_of_one_run_each_once() {
    let fixture = Fixture::new();
    let program = fixture.program("prog", WORK);
    let one = fixture.at("one.db");
    fixture.heaptoll(&[&["run", "--db", &one], &COMMON[..], &["--", &program]].concat()).exits(0);
    let names = plan(&fixture, "exp.plan", &[], &program);
    assert_eq!(names.len(), 6, "one repetition each, since a shard has that at least");
    work(&fixture, "exp.plan", 0..5);
    let (early, all) = (fixture.at("early.db"), fixture.at("all.db"));
    fixture
        .heaptoll(&["lab", "shards", "merge", &early, &fixture.at("shards")])
        .exits(1)
        .complains(&["1 shard missing: 5", "5 shards"]);
    fixture.heaptoll(&["report", &early]).exits(0).shows(&["1 of 6 shards missing: 5"]);

    let there = fixture.heaptoll(&[
        "lab",
        "shards",
        "work",
        &fixture.at("exp.plan"),
        "--shard",
        "3",
        "-o",
        &fixture.at("shards"),
    ]);
    there.exits(0).complains(&["shard 3 is there", "nothing to do"]);
    work(&fixture, "exp.plan", 5..6);
    // Its name is after those of the shards, which begin with a hexadecimal digit.
    std::fs::copy(shard_file(&fixture, &names[1]), fixture.path("shards/second.db")).expect("copies");
    fixture
        .heaptoll(&["lab", "shards", "merge", &all, &fixture.at("shards")])
        .exits(0)
        .complains(&["shard 1 is there twice", "second.db is not"]);
    fixture
        .heaptoll(&["lab", "shards", "merge", &all, &fixture.at("shards")])
        .exits(2)
        .complains(&["exists"]);
    assert_eq!(cells(&fixture.json(&all)), cells(&fixture.json(&one)));

    let shown = fixture.heaptoll(&["report", &all]);
    shown.exits(0).shows(&["By node", "vs other nodes", "n0", "n1", "6 shards of 2 nodes of this class"]);
    fixture.heaptoll(&["diff", &one, &all]).exits(0);
    fixture
        .heaptoll(&["run", "--resume", &all])
        .exits(2)
        .complains(&["measured in shards", "heaptoll lab shards work"]);
    let parquet = fixture.at("runs");
    fixture.heaptoll(&["trace", "export", &all, "--parquet-dir", &parquet]).exits(0).complains(&["6 files"]);
    fixture.heaptoll(&["trace", "export", &one, "--parquet-dir", &parquet]).exits(0).complains(&["1 file"]);
    let identity = names[0].split('-').next().expect("a name");
    let folder = fixture.path("runs").join(format!("experiment={identity}"));
    let class = std::fs::read_dir(folder).expect("is there").next().expect("a class").expect("reads").path();
    assert!(class.join("node=n1/shard-00003.parquet").is_file(), "{class:?}");
}

#[test]
fn a_plan_is_refused_where_it_is_not_the_one_that_was_made() {
    let fixture = Fixture::new();
    let program = fixture.program("prog", WORK);
    plan(&fixture, "exp.plan", &["--shard-time", "1h"], &program);
    let work_on = |name: &str, shard: &str| {
        fixture.heaptoll(&[
            "lab",
            "shards",
            "work",
            &fixture.at(name),
            "--shard",
            shard,
            "-o",
            &fixture.at("shards"),
        ])
    };
    work_on("exp.plan", "1").exits(2).complains(&["there is no shard 1", "1 shard"]);
    work_on("none.plan", "0").exits(2).complains(&["cannot read", "none.plan"]);
    let whole = std::fs::read_to_string(fixture.path("exp.plan")).expect("reads");
    for (from, to, reason) in [
        ("\"version\": 1,", "\"version\": 9,", "is a plan of version 9"),
        ("\"first\": 0", "\"first\": 1", "was changed after it was made"),
        ("heaptoll-plan", "another", "is not a plan"),
    ] {
        assert!(whole.contains(from), "{from}");
        std::fs::write(fixture.path("bad.plan"), whole.replacen(from, to, 1)).expect("writes");
        work_on("bad.plan", "0").exits(2).complains(&[reason]);
    }
    std::fs::write(fixture.path("half.plan"), &whole[..whole.len() / 2]).expect("writes");
    work_on("half.plan", "0").exits(2).complains(&["is not a plan"]);
    assert!(!fixture.path("shards").exists());
}

#[test]
fn a_node_that_has_other_files_settings_or_hardware_is_refused() {
    let fixture = Fixture::new();
    let (program, other) = (fixture.program("prog", WORK), fixture.object("extra.so", "int extra = 1;"));
    let class = fixture.at("node.json");
    fixture.heaptoll(&["lab", "shards", "plan", "--machine", "-o", &class]).exits(0);
    let mut another = read_json(&class);
    another["kernel"] = "1.2.3-other".into();
    std::fs::write(fixture.path("other.json"), another.to_string()).expect("writes");
    plan(&fixture, "exp.plan", &["--shard-time", "1h"], &program);
    plan(&fixture, "other.plan", &["--class", &format!("elsewhere={}", fixture.at("other.json"))], &program);
    let words =
        |name: &str| ["work".into(), fixture.at(name), "--shard=0".into(), "-o".into(), fixture.at("shards")];
    let work_on = |name: &str| {
        let words = words(name);
        fixture.heaptoll(&words.each_ref().map(String::as_str))
    };
    let refused = work_on("other.plan");
    refused.exits(2).complains(&[
        "is not a machine of class elsewhere",
        "the kernel is ",
        "1.2.3-other in the plan",
    ]);

    let words = words("exp.plan");
    let mut command = fixture.command(&words.each_ref().map(String::as_str));
    let output: crate::fixture::CommandOutput =
        command.env("MALLOC_ARENA_MAX", "1").output().expect("runs").into();
    output.exits(2).complains(&["MALLOC_ARENA_MAX is `1` here, but was not set"]);

    let whole = std::fs::read(&program).expect("reads");
    fixture.program("prog", &WORK.replace("20000", "20001"));
    work_on("exp.plan").exits(2).complains(&["prog (program) differs from the file of the plan", "SHA-256"]);
    std::fs::remove_file(&program).expect("removes");
    work_on("exp.plan").exits(2).complains(&["cannot run on this node"]);
    std::fs::write(&program, &whole).expect("writes");
    assert!(Command::new("chmod").args(["755", &program]).status().expect("chmod runs").success());
    assert!(!fixture.path("shards").join("x").exists() && Path::new(&other).exists());
    work_on("exp.plan").exits(0);
}

#[test]
fn a_library_of_a_manager_that_a_node_lacks_is_refused() {
    let fixture = Fixture::new();
    let program = fixture.program("prog", WORK);
    let library = fixture.object("libneeded.so", "int needed(void) { return 1; }");
    let source = "extern int needed(void); int unused(void) { return needed(); }";
    let manager = fixture.manager("mine.so", source);
    // The manager needs the library, which lies next to it.
    let linked = Command::new("cc")
        .args(["-shared", "-fPIC", "-fno-builtin", "-w", "-o", &manager])
        .arg(format!("{manager}.c"))
        .args([&library, "-Wl,--no-as-needed,-rpath,$ORIGIN"])
        .status()
        .expect("cc runs");
    assert!(linked.success());
    let path = fixture.at("exp.plan");
    let words = ["lab", "shards", "plan", "-o", &path, "-m", &manager, "-n", "6", "--", &program];
    fixture.heaptoll(&words).exits(0);
    std::fs::remove_file(&library).expect("removes");
    let shard = ["lab", "shards", "work", &path, "--shard", "0", "-o", &fixture.at("shards")];
    fixture.heaptoll(&shard).exits(2).complains(&["mine.so", "not on this node", "libneeded.so"]);
}

#[test]
fn half_written_files_are_never_taken_for_whole() {
    let fixture = Fixture::new();
    let program = fixture.program("prog", WORK);
    let names = plan(&fixture, "exp.plan", &[], &program);
    work(&fixture, "exp.plan", 0..2);
    let first = shard_file(&fixture, &names[0]);
    let whole = std::fs::read(&first).expect("reads");
    std::fs::write(&first, &whole[..whole.len() - 4096]).expect("cuts");
    fixture
        .heaptoll(&["lab", "shards", "merge", &fixture.at("all.db"), &fixture.at("shards")])
        .exits(2)
        .complains(&["damaged"]);
    assert!(!fixture.path("all.db").exists());
    let again =
        ["lab", "shards", "work", &fixture.at("exp.plan"), "--shard", "0", "-o", &fixture.at("shards")];
    fixture.heaptoll(&again).exits(0).complains(&["is incomplete", "measured again"]);
    assert!(first.with_extension("half").is_file());
    fixture.heaptoll(&["lab", "shards", "merge", &fixture.at("all.db"), &fixture.at("shards")]).exits(1);
    // Another shard under the name of one is not touched.
    let second = shard_file(&fixture, &names[1]);
    std::fs::copy(&second, shard_file(&fixture, &names[2])).expect("copies");
    let third =
        ["lab", "shards", "work", &fixture.at("exp.plan"), "--shard", "2", "-o", &fixture.at("shards")];
    fixture.heaptoll(&third).exits(2).complains(&["is not shard 2 of this plan"]);
}

#[test]
fn shards_of_different_plans_are_not_merged() {
    let fixture = Fixture::new();
    let program = fixture.program("prog", WORK);
    plan(&fixture, "exp.plan", &["--shard-time", "1h"], &program);
    plan(&fixture, "more.plan", &["--shard-time", "1h", "--warmup", "2"], &program);
    work(&fixture, "exp.plan", 0..1);
    work(&fixture, "more.plan", 0..1);
    let merged = fixture.heaptoll(&["lab", "shards", "merge", &fixture.at("all.db"), &fixture.at("shards")]);
    merged.exits(2).complains(&["belongs to another experiment"]);
    let one = fixture.at("one.db");
    fixture.heaptoll(&[&["run", "--db", &one], &COMMON[..], &["--", &program]].concat()).exits(0);
    fixture
        .heaptoll(&["lab", "shards", "merge", &fixture.at("all.db"), &one])
        .exits(2)
        .complains(&["is not a shard"]);
}

#[test]
fn what_is_stopped_leaves_nothing_in_the_folder() {
    let fixture = Fixture::new();
    let hold = fixture.at("hold");
    let mark = marker("cluster");
    let source = "int main(int c, char **v) { free(malloc(9)); while (!access(v[1], F_OK)) usleep(1000); \
                  puts(\"done\"); return 0; }";
    let program = fixture.program("prog", source);
    let path = fixture.at("exp.plan");
    let words = [
        "lab", "shards", "plan", "-o", &path, "-m", "glibc", "-m", "glibc", "-n", "6", "--", &program, &hold,
        &mark,
    ];
    fixture.heaptoll(&words).exits(0);
    std::fs::write(&hold, "").expect("writes");
    let shard = ["lab", "shards", "work", &path, "--shard", "0", "-o", &fixture.at("shards")];
    let under_way = fixture.start(&shard);
    eventually("the program runs", || !programs_with(&mark).is_empty());
    under_way.signal(libc::SIGTERM);
    under_way.wait().exits(130).complains(&["shard 0 was interrupted"]);
    assert_eq!(std::fs::read_dir(fixture.path("shards")).expect("is there").count(), 0);
    std::fs::remove_file(&hold).expect("removes");
    fixture.heaptoll(&shard).exits(0);
    // A place that takes no files keeps nothing, and the message names it.
    let nowhere = ["lab", "shards", "work", &path, "--shard", "0", "-o", "/proc/nowhere"];
    fixture.heaptoll(&nowhere).exits(2).complains(&["/proc/nowhere"]);
}

#[test]
fn two_classes_of_machines_are_two() {
    let fixture = Fixture::new();
    let program = fixture.program("prog", WORK);
    let class = fixture.at("node.json");
    fixture.heaptoll(&["lab", "shards", "plan", "--machine", "-o", &class]).exits(0);
    let classes = [format!("one={class}"), format!("two={class}")];
    let more = ["--shard-time", "1h", "--class", &classes[0], "--class", &classes[1]];
    assert_eq!(plan(&fixture, "exp.plan", &more, &program).len(), 2);
    let twice = [
        &["lab", "shards", "plan", "-o", &fixture.at("no.plan"), "--class", &class, "--class", &class],
        &COMMON[..],
    ];
    fixture.heaptoll(&[&twice.concat()[..], &["--", &program]].concat()).exits(2).complains(&["two classes"]);
    work(&fixture, "exp.plan", 0..2);
    let all = fixture.at("all.db");
    fixture.heaptoll(&["lab", "shards", "merge", &all, &fixture.at("shards")]).exits(0);
    fixture.heaptoll(&["report", &all]).exits(0).shows(&[
        "on 2 classes of machines",
        "one: prog",
        "two: prog",
    ]);
    let json = fixture.at("no.json");
    fixture.heaptoll(&["report", &all, "--json", &json]).exits(2).complains(&["merge --class"]);
    let one = fixture.at("two.db");
    fixture.heaptoll(&["lab", "shards", "merge", &one, "--class", "two", &fixture.at("shards")]).exits(0);
    let found = fixture.json(&one);
    let timed = cells(&found).into_iter().filter(|(_, _, phase, _)| phase == "timed");
    assert_eq!(timed.map(|(_, _, _, repetition)| repetition).max(), Some(5), "from 0");
}

#[test]
fn an_array_of_slurm_measures_all_shards_and_those_that_are_there_are_kept() {
    let fixture = Fixture::new();
    let program = fixture.program("prog", WORK);
    let words = ["lab", "shards", "plan", "-o", &fixture.at("exp.plan"), "--shard-time", "0.001s"];
    let words = [&words, &COMMON[..], &["--", &program]].concat();
    let printed = fixture.heaptoll(&words).exits(0).out.clone();
    work(&fixture, "exp.plan", [1]);
    let line = printed.lines().find(|line| line.contains("sbatch")).expect("the command for Slurm");
    assert!(line.contains("sbatch --array=0-5 --exclusive"), "{line}");
    let (_, job) = line.split_once("--wrap ").expect("a job");
    // What would run in an array runs here.
    let shards = fixture.at("shards");
    let job = job.trim_matches('\'').replace("-o shards", &format!("-o {shards}"));
    let job = job.replacen("heaptoll", crate::HEAPTOLL, 1);
    let job = fixture.script("job.sh", &format!("#!/bin/sh\n{job}\n"));
    for task in ["0", "1", "2", "3", "4", "5"] {
        let mut command = Command::new(&job);
        fixture.prepare(&mut command);
        assert!(command.env("SLURM_ARRAY_TASK_ID", task).status().expect("runs").success());
    }
    fixture.heaptoll(&["lab", "shards", "merge", &fixture.at("all.db"), &fixture.at("shards")]).exits(0);
}

#[test]
fn what_cannot_be_cut_is_refused_before_anything_runs() {
    let fixture = Fixture::new();
    let path = fixture.at("exp.plan");
    let refused = |more: &[&str], reason: &str| {
        let words = [&["lab", "shards", "plan", "-o", &path], more].concat();
        fixture.heaptoll(&words).exits(2).complains(&[reason]);
    };
    refused(&["--precision", "1%", "--", "ls"], "unexpected argument");
    refused(&["-m", "glibc"], "nothing to run");
    refused(&["--class", "/no/such.json", "--", "ls"], "/no/such.json");
    refused(&["-m", "glibc", "--", "ls", "/no/such/folder"], "fails under the baseline");
    assert!(!fixture.path("exp.plan").exists());
}

/// `duckdb` of `HEAPTOLL_DUCKDB`: PyPI has it as duckdb-cli.
#[test]
#[ignore = "slow: needs DuckDB's command line"]
fn duckdb_reads_the_data_set_by_its_folders() {
    let Some(duckdb) = std::env::var_os("HEAPTOLL_DUCKDB") else {
        eprintln!("left out: set HEAPTOLL_DUCKDB to its path (pip download duckdb-cli)");
        return;
    };
    let fixture = Fixture::new();
    let program = fixture.program("prog", WORK);
    plan(&fixture, "exp.plan", &[], &program);
    work(&fixture, "exp.plan", 0..6);
    let (all, runs) = (fixture.at("all.db"), fixture.at("runs"));
    fixture.heaptoll(&["lab", "shards", "merge", &all, &fixture.at("shards")]).exits(0);
    fixture.heaptoll(&["trace", "export", &all, "--parquet-dir", &runs]).exits(0);
    let query = format!(
        "select node, phase, count(*) from read_parquet('{runs}/**/*.parquet', hive_partitioning = true, \
         union_by_name = true) where phase = 'timed' group by all order by all"
    );
    let output = Command::new(duckdb).args(["-csv", "-noheader", "-c", &query]).output().expect("runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "n0,timed,6\nn1,timed,6\n");
}

/// Before, it ended with status 2 and stated that rows are kept, which a shard's scratch folder takes with it.
#[test]
fn a_full_scratch_disk_ends_a_shard_with_nothing_kept() {
    if !Command::new("unshare")
        .args(["--mount", "mount", "-t", "tmpfs", "none", "/mnt"])
        .output()
        .is_ok_and(|output| output.status.success())
    {
        eprintln!("SKIPPED: mounting is not permitted here");
        return;
    }
    let fixture = Fixture::new();
    let plan = fixture.at("e.plan");
    let words = [
        "lab",
        "shards",
        "plan",
        "-m",
        "glibc",
        "-m",
        "glibc",
        "-n",
        "300",
        "--shard-time",
        "10m",
        "-o",
        &plan,
    ];
    fixture.heaptoll(&[&words[..], &["--", "ls", "/"]].concat()).exits(0);
    let script = "mount -t tmpfs -o size=100k heaptoll-test \"$MNT\" && \
        exec \"$HT\" work \"$PLAN\" --shard 0 --scratch \"$MNT\" -o \"$OUT\"";
    std::fs::create_dir(fixture.path("mnt")).expect("makes");
    let mut command = Command::new("unshare");
    fixture.prepare(&mut command);
    command.args(["--mount", "sh", "-c", script]).env("HT", crate::HEAPTOLL);
    command.env("MNT", fixture.path("mnt")).env("PLAN", &plan).env("OUT", fixture.path("out"));
    let output: CommandOutput = command.output().expect("runs").into();
    output.exits(1).complains(&["shard 0 was not measured, and nothing of it is kept", "--scratch"]);
    assert_eq!(std::fs::read_dir(fixture.path("out")).expect("lists").count(), 0);
}
