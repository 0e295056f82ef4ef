//! What is known of a made-up experiment before it begins: settings, machine, programs, stacks.

use heaptoll_experiment::experiment::{
    Machine, OwnCommand, Pairing, ProgramInfo, Protocol, RawWord, ServeInfo, StackInfo, Turns,
};
use heaptoll_experiment::named::Named;
use heaptoll_experiment::shards::{Part, Shard};

use super::shape::{PROGRAMS, STACKS, Shape};

pub fn settings(shape: Shape, programs: &[usize], repetitions: u32) -> Protocol {
    Protocol {
        repetitions,
        warmup: 1,
        expect_status: 0,
        directory: "/home/user".into(),
        pairing: Pairing::default(),
        slice_s: None,
        at_once_bytes: None,
        working_copy: false,
        precision: Some(0.01),
        budget_s: Some(300.0),
        enough: [("cfrac".to_owned(), 8)].into(),
        turns: [("cfrac".to_owned(), Turns { count: 2, at_once: 3, why: "memory".into() })].into(),
        exact: shape == Shape::Suite,
        level: None,
        named: Some(Named {
            managers: vec!["mimalloc3".into()],
            programs: programs.iter().map(|p| PROGRAMS[*p].0.to_owned()).collect(),
        }),
        shards: if shape == Shape::Server { vec![shard()] } else { vec![] },
        seed: 7_310_582_937,
        timeout_s: 60.0,
        thp: if shape == Shape::Troubled { "never".into() } else { String::new() },
        repeat_command: command(shape, programs),
    }
}

/// The only shard of an experiment.
fn shard() -> Shard {
    let part = Part { program: "redis".into(), class: "xeon".into(), repetitions: 1, ..Part::default() };
    let (plan, node) = ("0123456789abcdef".repeat(4), "n1".into());
    Shard { plan, number: 0, of: 1, part, node, machine: machine(Shape::Server), own_cost: None }
}

pub fn machine(shape: Shape) -> Machine {
    Machine {
        cpu: "Intel(R) Xeon(R) Processor @ 2.60GHz".into(),
        cores: 2,
        memory_kib: 8_130_424,
        kernel: "6.1.0-40-amd64".into(),
        distribution: "Debian GNU/Linux 12 (bookworm)".into(),
        libc: "2.36".into(),
        thp: "madvise".into(),
        governor: "unknown".into(),
        aslr: "2".into(),
        load: [0.31, 0.42, 0.28],
        no_hardware_counters: (shape != Shape::Suite)
            .then(|| "perf_event_open: the virtual machine offers no counters".into()),
    }
}

fn command(shape: Shape, programs: &[usize]) -> Vec<String> {
    let mut words = vec!["heaptoll".to_owned(), "run".into(), "--seed".into(), "7310582937".into()];
    if shape == Shape::Troubled {
        words.extend(
            ["--thp", "never", "--", "sh", "-c", "gawk '{ n[$1]++ } END { print \"<b>\" }' < in"]
                .map(String::from),
        );
    } else {
        words.extend(programs.iter().flat_map(|p| ["--program".to_owned(), PROGRAMS[*p].0.to_owned()]));
    }
    words
}

pub fn program(shape: Shape, name: &str, p: usize) -> ProgramInfo {
    let (_, about, ..) = PROGRAMS[p];
    let serve = (p == 11).then(|| ServeInfo {
        load: ["redis-benchmark", "-s", "/tmp/redis.sock", "-n", "200000"].map(String::from).into(),
        ready: "Ready to accept connections".into(),
        figures: Some("(?<requests_per_s>[0-9.]+) requests per second".into()),
        stop: "TERM".into(),
        ..ServeInfo::default()
    });
    ProgramInfo {
        name: name.into(),
        about: about.into(),
        command: vec![name.to_owned(), "--input".into(), format!("{p} with spaces & <angle brackets>.txt")],
        environment: vec![("LC_ALL".into(), "C".into())],
        stdin: (p == 2).then(|| "/tmp/in put.txt".into()),
        expected_digest: (shape == Shape::Suite).then(|| "9f86d081884c7d659a2feaa0c55ad015".into()),
        varies: None,
        figures: (p == 1).then(|| "pause (?<pause_ms>[0-9.]+) ms".into()),
        serve,
        scratch: shape == Shape::Suite,
        raw_words: (p == 2).then(|| RawWord { at: 1, bytes: vec![0xff] }).into_iter().collect(),
        ..ProgramInfo::default()
    }
}

pub fn stack(shape: Shape, program: &str, s: usize) -> StackInfo {
    let (name, ..) = STACKS[s];
    let mut info = StackInfo {
        program: program.into(),
        name: name.into(),
        preload: vec![format!("/opt/heaptoll/lib/managers/{name}.so")],
        environment: Vec::new(),
        version: ["2.36", "3.1.5", "5.3.0", "0.7.4", "2.10", "1.4.5", ""][s].into(),
        origin: [
            "Debian libc6 2.36-9",
            "crate libmimalloc-sys 0.1.44",
            "crate tikv-jemalloc-sys 0.6.1",
            "crate snmalloc-sys 0.7.4",
            "Debian libtcmalloc-minimal4 2.10-1",
            "crate rpmalloc 0.2",
            "./libmine.so",
        ][s]
            .into(),
        proof: format!("malloc bound to {name} in 1 process, 84210 calls seen"),
        warnings: Vec::new(),
        reports_statistics: s == 1,
        apart: None,
        makes_files: false,
        never_frees: false,
        dropped_after: None,
        block: 0,
        heap: None,
        varied: None,
        own_command: None,
    };
    if s == 0 {
        info.preload.clear();
    }
    if s == 1 {
        info.environment.push(("MIMALLOC_ALLOW_THP".into(), "0".into()));
    }
    if shape == Shape::Troubled && s == 2 {
        info.own_command = Some(OwnCommand {
            command: vec!["./new build".into(), "\u{fffd}".into()],
            raw_words: vec![RawWord { at: 1, bytes: vec![0xff] }],
            directory: Some("/tmp/new".into()),
        });
        info.warnings.push("a child process (`/bin/<mail>`) is static: the manager does not reach it".into());
    }
    info
}
