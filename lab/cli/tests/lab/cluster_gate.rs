//! A gate in shards: planned, measured on several nodes, merged and decided.

use std::path::PathBuf;

use serde_json::Value;

use crate::fixture::{Fixture, read_json, text};
use crate::schemas::validate;

/// A build with so many rounds of arithmetic, which keeps so many bytes at its end.
fn build(fixture: &Fixture, name: &str, rounds: u32, kept: u32) -> String {
    fixture.program(
        name,
        &format!(
            "int main(void) {{ unsigned x = 1; for (int i = 0; i < {rounds}; i++) x = x * 1664525u + 1013904223u;\n\
             for (int i = 0; i < 2000; i++) free(malloc(64)); char *kept = malloc({kept}); kept[0] = 1;\n\
             printf(\"%d\\n\", x != 7); return 0; }}"
        ),
    )
}

/// A plan of a gate without limits on time, of shards of one repetition; the paths of its shards' files.
fn plan(fixture: &Fixture, more: &[&str], builds: [&str; 2]) -> Vec<PathBuf> {
    let path = fixture.at("gate.plan");
    let [base, new] = builds;
    let words = [
        "lab", "shards", "plan", "gate", "-o", &path, "-n", "6", "--limit", "cpu=none", "--base", base,
        "--new", new,
    ];
    fixture.heaptoll(&[&words[..], more].concat()).exits(0).shows(&["shards", "heaptoll lab shards work"]);
    let plan = read_json(&path);
    validate("a plan", &plan.to_string());
    let count = plan["shards"].as_array().expect("shards").len();
    let name = |number| format!("{}-{number:05}.db", &text(&plan["identity"])[..12]);
    (0..count).map(|number| fixture.path("shards").join(name(number))).collect()
}

/// Measures these shards on two nodes.
fn work(fixture: &Fixture, numbers: impl IntoIterator<Item = usize>) {
    for number in numbers {
        let (node, plan) = (format!("n{}", number % 2), fixture.at("gate.plan"));
        let words =
            ["work", &plan, "--shard", &number.to_string(), "-o", &fixture.at("shards"), "--node", &node];
        fixture.heaptoll(&words).exits(0);
    }
}

fn metric<'a>(json: &'a Value, name: &str) -> &'a Value {
    let metrics = json["programs"][0]["metrics"].as_array().expect("metrics");
    metrics.iter().find(|one| one["metric"] == name).expect("the metric")
}

#[test]
fn a_gate_in_shards_decides_as_one_in_one_place() {
    let fixture = Fixture::new();
    let (old, new) = (build(&fixture, "old", 200_000, 1000), build(&fixture, "new", 220_000, 1900));
    let files = plan(&fixture, &["--shard-time", "0.001s"], [&old, &new]);
    assert_eq!(files.len(), 7, "a shard a repetition, and one that counts");
    work(&fixture, 0..6);
    let (early, all) = (fixture.at("early.db"), fixture.at("all.db"));
    fixture
        .heaptoll(&["lab", "shards", "merge", &early, &fixture.at("shards")])
        .exits(1)
        .complains(&["1 shard missing: 6"]);
    fixture.heaptoll(&["gate", "--merged", &early]).exits(2).complains(&["lacks 1 shard"]);
    work(&fixture, [6]);
    let merged = fixture.heaptoll(&["lab", "shards", "merge", &all, &fixture.at("shards")]);
    merged.exits(0).complains(&["7 shards", "decide with: heaptoll gate --merged"]);

    let (json, one) = (fixture.at("gate.json"), fixture.at("one.json"));
    fixture.heaptoll(&["gate", "--merged", &all, "--json", &json]).exits(1).shows(&[
        "Limits broken by: new",
        "7 shards on 2 nodes",
        "most live bytes",
        "both builds write the same output",
    ]);
    let here = ["--limit", "cpu=none", "--budget", "1s", "--base", &old, "--new", &new];
    fixture.heaptoll(&[&["gate", "--json", &one], &here[..]].concat()).exits(1);
    let (json, one) = (read_json(&json), read_json(&one));
    for name in ["instructions", "allocations", "bytes", "live", "exit"] {
        assert_eq!(metric(&json, name), metric(&one, name));
    }
    for part in ["functions", "sites", "sizes", "base", "new", "verdict"] {
        assert_eq!(json["programs"][0][part], one["programs"][0][part], "{part}");
    }
    assert_eq!(metric(&json, "resident")["change"]["pairs"], 6);
    fixture.heaptoll(&["report", &all]).exits(0).shows(&["base", "new"]);

    // Another build under the name of one is not measured.
    std::fs::remove_file(&files[0]).expect("removes");
    build(&fixture, "new", 230_000, 1900);
    let shard =
        ["lab", "shards", "work", &fixture.at("gate.plan"), "--shard", "0", "-o", &fixture.at("shards")];
    fixture.heaptoll(&shard).exits(2).complains(&["new (program) differs from the file of the plan"]);
}

#[test]
fn each_class_of_machines_has_a_verdict_of_its_own() {
    let fixture = Fixture::new();
    let (old, new) = (build(&fixture, "old", 100_000, 1000), build(&fixture, "new", 100_000, 1001));
    let class = fixture.at("node.json");
    fixture.heaptoll(&["lab", "shards", "plan", "--machine", "-o", &class]).exits(0);
    let classes = [format!("one={class}"), format!("two={class}")];
    let more = ["--shard-time", "1h", "--class", &classes[0], "--class", &classes[1]];
    assert_eq!(plan(&fixture, &more, [&old, &new]).len(), 4);
    work(&fixture, 0..4);
    let (all, two) = (fixture.at("all.db"), fixture.at("two.db"));
    fixture.heaptoll(&["lab", "shards", "merge", &all, &fixture.at("shards")]).exits(0);
    fixture.heaptoll(&["gate", "--merged", &all]).exits(2).complains(&["one and two", "never averaged"]);
    fixture.heaptoll(&["lab", "shards", "merge", &two, "--class", "two", &fixture.at("shards")]).exits(0);
    let decided = fixture.heaptoll(&["gate", "--merged", &two, "--strict"]);
    decided.exits(0).shows(&["Within limits: new", "of the class two", "in 6 repetitions"]);
}

#[test]
fn a_gate_that_cannot_be_cut_is_refused() {
    let fixture = Fixture::new();
    let (old, new) = (build(&fixture, "old", 1000, 10), build(&fixture, "new", 1000, 10));
    let path = fixture.at("gate.plan");
    let refused = |more: &[&str], reason: &str| {
        fixture
            .heaptoll(&[&["lab", "shards", "plan", "gate", "-o", &path], more].concat())
            .exits(2)
            .complains(&[reason]);
    };
    refused(&["--base", &old, "--new", &new, "--budget", "9s"], "a shard has only its own");
    refused(&["--base-ref", "main", "--command", "./app"], "where all nodes can read them");
    refused(&["--base", &old, "--new", "/no/such"], "/no/such");
    let fails = fixture.program("fails", "int main(void) { return 3; }");
    refused(&["--base", &old, "--new", &fails], "the new build ends with exit status 3");
    assert!(!fixture.path("gate.plan").exists());
    let one = fixture.at("one.db");
    fixture.heaptoll(&["run", "--db", &one, "-m", "glibc", "-m", "glibc", "-n", "1", "--", &old]).exits(0);
    fixture.heaptoll(&["gate", "--merged", &one]).exits(2).complains(&["does not come from a gate"]);
    fixture.heaptoll(&["gate", "--merged", &one, "--base", &old, "--new", &new]).exits(2);
}
