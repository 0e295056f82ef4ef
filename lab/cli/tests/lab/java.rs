//! Java programs under the collectors of their virtual machine. Most tests use a stand-in for `java`, which writes the
//! log that is named by `JAVA_TOOL_OPTIONS`, so that no JDK is needed.

use std::process::Command;

use crate::fixture::{Fixture, outcomes, read_json, rows_of};

/// Writes a log with two pauses, of 2 and 3 ms, under the collector and heap that the options name.
const JAVA: &str = r#"#!/bin/sh
echo "Picked up JAVA_TOOL_OPTIONS: $JAVA_TOOL_OPTIONS" >&2
name=G1
heap=256M
for word in $JAVA_TOOL_OPTIONS; do
    case $word in
    -XX:+UseSerialGC) name=Serial ;;
    -XX:+UseShenandoahGC)
        echo "Unrecognized VM option 'UseShenandoahGC'" >&2
        exit 1
        ;;
    -Xmx*) heap=$((${word#-Xmx} / 1048576))M ;;
    *-Xlog:*)
        log=${word#*file=\"}
        log=$(printf %s "${log%%\"*}" | sed "s/%p/$$/")
        ;;
    esac
done
if [ -n "$log" ]; then
    {
        echo "[1000ns][info][gc] Using $name"
        echo "[2000ns][info][gc,init] Heap Max Capacity: $heap"
        echo "[9000000ns][info][gc          ] GC(0) Pause Young (Allocation Failure) 30M->10M(64M) 2.000ms"
        echo "[19000000ns][info][gc          ] GC(1) Pause Young (Allocation Failure) 40M->10M(64M) 3.000ms"
    } >"$log"
fi
echo hits 12
"#;

#[test]
fn a_java_program_runs_under_collectors_with_their_heap() {
    let fixture = Fixture::new();
    let java = fixture.script("java", JAVA);
    let file = fixture.at("java.json");
    let options = ["-m", "jvm-serial", "-m", "jvm-g1,heap=64M", "-n", "2", "--warmup", "0", "--json", &file];
    let run = fixture.heaptoll(&[&["run"], &options[..], &["--", &java]].concat()).exits(0);
    run.shows(&["jvm-serial", "jvm-g1,heap=64M"]);
    let json = read_json(&file);
    for stack in ["jvm-serial", "jvm-g1,heap=64M"] {
        assert!(outcomes(&json, stack).iter().all(|outcome| outcome == "ok"), "{json}");
        for row in rows_of(&json, stack, "timed") {
            let collections = &row["collections"];
            assert_eq!(collections["count"], 2, "{row}");
            assert_eq!(collections["pause_total_ns"], 5_000_000, "{row}");
            assert_eq!(collections["pause_max_ns"], 3_000_000, "{row}");
            assert_eq!(collections["reclaimed_bytes"], 50 << 20, "{row}");
            assert_eq!(row["used_high_bytes"], 40 << 20, "{row}");
        }
    }
    assert!(rows_of(&json, "glibc", "timed").iter().all(|row| row["collections"].is_null()), "{json}");
}

#[test]
fn a_collector_that_is_not_there_or_a_program_of_c_is_refused() {
    let fixture = Fixture::new();
    let java = fixture.script("java", JAVA);
    let run = |stack: &str, program: &str| fixture.heaptoll(&["run", "-n", "2", "-m", stack, "--", program]);
    run("jvm-shenandoah", &java)
        .exits(2)
        .complains(&["Unrecognized VM option 'UseShenandoahGC'", "PrintFlagsFinal"]);
    run("jvm-g1", "ls").exits(2).complains(&["started no Java virtual machine"]);
    run("quarantine=1M/jvm-g1", &java).exits(2).complains(&["serves no malloc"]);
    run("jvm-g1,heap=12", &java).exits(2).complains(&["1M or more"]);
    run("jvm-zgc,every=1M", &java).exits(2).complains(&["every", "it has heap, threads"]);
    fixture.heaptoll(&["record", "-m", "jvm-g1", "--", &java]).exits(2).complains(&["Java's collectors"]);
    let mixed = ["lab", "proximity", "-m", "jvm-g1", "-m", "sweep/glibc", "--", &java];
    fixture.heaptoll(&mixed).exits(2).complains(&["two commands"]);
}

/// Every collector of Debian's JDK on GCBench, whose output does not depend on it.
#[test]
#[ignore = "slow: needs a JDK (scripts/setup study)"]
fn the_collectors_of_a_jdk_collect() {
    let fixture = Fixture::new();
    let file = fixture.at("java.json");
    let options = ["-m", "jvm", "-n", "1", "--warmup", "0", "--json", &file, "--quick"];
    fixture.heaptoll(&[&["run"], &options[..], &["-p", "gcbench-java"]].concat()).exits(0);
    let json = read_json(&file);
    for stack in ["jvm-serial", "jvm-parallel", "jvm-g1", "jvm-shenandoah", "jvm-zgc"] {
        let rows = rows_of(&json, stack, "timed");
        assert!(!rows.is_empty(), "{stack}: {json}");
        assert!(outcomes(&json, stack).iter().all(|outcome| outcome == "ok"), "{stack}: {json}");
    }
    let serial = rows_of(&json, "jvm-serial", "timed")[0];
    assert!(
        serial["heap_high_water_bytes"].as_u64().is_some_and(|bytes| bytes > 0)
            || serial["collections"]["count"] == 0
    );
}

/// Of a heap that is fixed with an unmodified program: it completes in one size and not in a smaller one.
#[test]
#[ignore = "slow: needs a JDK (scripts/setup study), and searches for a minute"]
fn a_java_program_has_a_smallest_heap() {
    let fixture = Fixture::new();
    let file = fixture.at("heaps.json");
    let options = ["lab", "minheap", "--json", &file, "--quick", "-n", "1", "--tolerance", "10"];
    fixture.heaptoll(&[&options[..], &["-m", "jvm-serial", "-p", "gcbench-java"]].concat());
    let search = read_json(&file)["programs"][0]["collectors"][0]["search"].clone();
    let (heap, failed) =
        (search["heap"].as_u64().expect("a heap"), search["failed_at"].as_u64().expect("a failure"));
    assert!(failed < heap && heap < 256 << 20, "{search}");
}

#[test]
fn a_suite_is_taken_by_the_path_of_its_jar_and_only_with_the_digest_that_was_named() {
    let fixture = Fixture::new();
    let jar = fixture.at("dacapo.jar");
    std::fs::write(&jar, "not that jar").expect("written");
    let add = |words: &[&str]| fixture.heaptoll(&[&["programs", "add"], words].concat());
    add(&["dacapo"]).exits(2).complains(&["https://www.dacapobench.org/", "--from PATH.jar"]);
    add(&["renaissance", "--from", "/nowhere/r.jar"]).exits(2).complains(&["cannot read /nowhere/r.jar"]);
    let zeroes = "0".repeat(64);
    add(&["dacapo", "--from", &jar, "--sha256", &zeroes])
        .exits(2)
        .complains(&["dacapo.jar is another file (SHA-256 ", &zeroes]);
    add(&["dacapo", "--from", &jar, "--sha256", "12"]).exits(2).complains(&["64 hexadecimal digits"]);
    add(&["lucene", "--sha256", &zeroes]).exits(2).complains(&["a jar that you have"]);
    assert!(!fixture.path("data/heaptoll/programs/dacapo").exists());
    fixture
        .heaptoll(&["run", "-m", "glibc", "-p", "dacapo", "--quick"])
        .exits(2)
        .complains(&["heaptoll programs add dacapo"]);
}

/// Lists programs and prints times as DaCapo does; the number in it makes one jar differ from another.
const HARNESS: &str = r#"
public final class Harness {
    public static void main(String[] words) {
        if (words[0].equals("-l")) {
            System.out.println("fop h2 luindex lusearch pmd xalan");
            return;
        }
        int iterations = 0;
        for (int at = 0; at + 1 < words.length; at++)
            if (words[at].equals("-n")) iterations = Integer.parseInt(words[at + 1]);
        String name = words[words.length - 1];
        for (int at = 1; at <= iterations; at++) {
            byte[][] kept = new byte[64][];
            for (int i = 0; i < 4000; i++) kept[i % 64] = new byte[NUMBER];
            String what = at < iterations ? "completed warmup " + at : "PASSED";
            System.err.println("===== DaCapo stand-in " + name + " " + what + " in " + (100 - at) + " msec =====");
        }
    }
}
"#;

/// Compiles the stand-in and makes a jar of it at `jar`.
fn make_jar(fixture: &Fixture, jar: &str, number: &str) {
    let source = fixture.path("Harness.java");
    std::fs::write(&source, HARNESS.replace("NUMBER", number)).expect("written");
    let classes = fixture.at("classes");
    let run = |command: &mut Command| {
        assert!(command.status().is_ok_and(|status| status.success()), "{command:?}");
    };
    run(Command::new("javac").args(["--release", "17", "-d", &classes]).arg(&source));
    run(Command::new("jar").args([
        "--create",
        "--file",
        jar,
        "--main-class",
        "Harness",
        "-C",
        &classes,
        ".",
    ]));
}

/// A jar of DaCapo's shape, since the real one cannot be fetched by a test.
#[test]
#[ignore = "slow: needs a JDK (scripts/setup study)"]
fn a_suite_runs_from_its_jar_and_another_jar_in_its_place_is_refused() {
    let fixture = Fixture::new();
    let (jar, file) = (fixture.at("da capo.jar"), fixture.at("dacapo.json"));
    make_jar(&fixture, &jar, "5000");
    fixture.heaptoll(&["programs", "add", "dacapo", "--from", &jar]).exits(0).complains(&["SHA-256 "]);
    let options = ["run", "-m", "jvm-serial", "-n", "1", "--warmup", "0", "--quick", "--json", &file];
    let run = |program: &str| fixture.heaptoll(&[&options[..], &["-p", program]].concat());
    run("dacapo").exits(0);
    let row = rows_of(&read_json(&file), "jvm-serial", "timed")[0].clone();
    assert_eq!(
        (&row["figures"]["first_round_ms"], &row["figures"]["last_round_ms"]),
        (&99.0.into(), &98.0.into())
    );
    assert!(row["collections"]["count"].is_u64(), "{row}");
    make_jar(&fixture, &jar, "6000");
    run("dacapo:h2").exits(2).complains(&["da capo.jar is another file than the one that was added"]);
    fixture.heaptoll(&["programs", "add", "dacapo", "--from", &jar]).exits(2).complains(&["remove "]);
}
