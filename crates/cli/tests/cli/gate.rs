//! `heaptoll gate`: planted regressions are found and named, equal builds pass, and what cannot be gated is refused.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::fixture::{CommandOutput, Fixture, assert_none_left, git, marker, read_json};

/// Work that is the same in each run: rounds of arithmetic, blocks that are freed at once but for some, and blocks that
/// stay. `ROUNDS`, `LEAK` (0 or 1) and `KEPT` (bytes) are the builds' differences.
const PARSE: &str = r#"
    static unsigned parse(unsigned n) {
        unsigned x = 1;
        for (unsigned at = 0; at < n; at++) x = x * 1664525u + 1013904223u;
        return x;
    }
    static void *table[400];
    static void keep_table(void) { for (int at = 0; at < 400; at++) table[at] = malloc(KEPT); }
    static void requests(void) {
        for (int at = 1; at <= 20000; at++) {
            void *block = malloc(64);
            if (!LEAK || at % 1000) free(block);
        }
    }
    int main(void) {
        unsigned sum = parse(ROUNDS);
        keep_table();
        requests();
        printf("%d\n", sum != 7);
        return 0;
    }
"#;

fn build(fixture: &Fixture, name: &str, rounds: u32, leak: u32, kept: u32) -> String {
    let head = format!("#define ROUNDS {rounds}\n#define LEAK {leak}\n#define KEPT {kept}\n");
    fixture.program(name, &format!("{head}{PARSE}"))
}

/// A gate whose verdict rests on counts: on a loaded machine one on time may be undecided.
fn gate(fixture: &Fixture, options: &[&str]) -> (Value, CommandOutput) {
    let file = fixture.at("gate.json");
    let output = fixture
        .heaptoll(&[&["gate", "--json", &file, "--limit", "cpu=none", "--budget", "1s"], options].concat());
    (if Path::new(&file).is_file() { read_json(&file) } else { Value::Null }, output)
}

fn metric<'a>(json: &'a Value, name: &str) -> &'a Value {
    let metrics = json["programs"][0]["metrics"].as_array().expect("metrics");
    metrics.iter().find(|one| one["metric"] == name).unwrap_or_else(|| panic!("no {name} in {metrics:#?}"))
}

fn verdict<'a>(json: &'a Value, name: &str) -> &'a str {
    metric(json, name)["verdict"]["kind"].as_str().expect("a verdict")
}

#[test]
fn two_builds_of_one_source_in_folders_of_other_names_are_within_limits() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path("a-much-longer-name-of-a-folder")).expect("a folder");
    let old = build(&fixture, "old", 100_000, 0, 100);
    let new = build(&fixture, "a-much-longer-name-of-a-folder/new", 100_000, 0, 100);
    let (page, text) = (fixture.at("gate.html"), fixture.at("gate.md"));
    let (json, output) =
        gate(&fixture, &["--base", &old, "--new", &new, "--html", &page, "--markdown", &text, "--strict"]);
    output.exits(0).shows(&[
        "Within limits: new",
        "instructions",
        "the same",
        "What this machine can detect now",
    ]);
    assert_eq!((&json["verdict"], &json["schema"]), (&"within".into(), &"heaptoll-gate/1".into()));
    for name in ["instructions", "allocations", "bytes", "live", "exit"] {
        assert_eq!(verdict(&json, name), "within", "{:#}", metric(&json, name));
    }
    assert_eq!(metric(&json, "allocations")["base"], 20_401.0, "and one of standard output");
    assert_eq!(metric(&json, "live")["change"]["ratio"], 1.0);
    assert_eq!(json["programs"][0]["outputs"], "equal");
    let notes = json["programs"][0]["notes"].to_string();
    assert!(!notes.contains("as traced and"), "most live bytes are the same in a recording: {notes}");
    assert!(std::fs::read_to_string(&text).expect("written").starts_with("## Within limits: new"));
    assert!(std::fs::read_to_string(&page).expect("written").contains("Within limits: new"));
}

#[test]
fn one_percent_more_instructions_break_their_limit() {
    let fixture = Fixture::new();
    let (old, new) = (build(&fixture, "old", 1_000_000, 0, 100), build(&fixture, "new", 1_020_000, 0, 100));
    let (json, output) = gate(&fixture, &["--base", &old, "--new", &new]);
    output.exits(1).shows(&["Limits broken by: new", "instructions: +1.", "over the limit of 0.5%"]);
    assert_eq!((verdict(&json, "instructions"), verdict(&json, "live")), ("broken", "within"));
    let (_, output) =
        gate(&fixture, &["--base", &old, "--new", &new, "--limit", "instructions=2%", "--bisect"]);
    output.exits(0);
}

#[test]
fn a_leak_and_more_live_bytes_break_their_limits() {
    let fixture = Fixture::new();
    let (old, new) = (build(&fixture, "old", 100_000, 0, 1000), build(&fixture, "new", 100_000, 1, 1020));
    let (json, output) = gate(&fixture, &["--base", &old, "--new", &new, "--bisect"]);
    output.exits(1).shows(&["most live bytes: +2", "bytes live at exit: +"]);
    assert_eq!(
        [verdict(&json, "live"), verdict(&json, "exit"), verdict(&json, "allocations")],
        ["broken", "broken", "within"]
    );
    let of = |name: &str, side: &str| metric(&json, name)[side].as_f64().expect("a figure");
    assert_eq!(of("exit", "new") - of("exit", "base"), 20.0 * 64.0 + 400.0 * 20.0);
}

#[test]
fn counts_that_depend_on_addresses_are_not_decided() {
    let fixture = Fixture::new();
    // A loop as long as an address decides.
    let source = |rounds: u32| {
        format!(
            "int main(void) {{ size_t n = ((size_t)malloc(1) >> 12 & 0xfff) * 1000 + {rounds};\n\
             for (volatile size_t at = 0; at < n; at++); puts(\"done\"); return 0; }}"
        )
    };
    let (old, new) = (fixture.program("old", &source(5_000_000)), fixture.program("new", &source(6_000_000)));
    let (json, output) = gate(&fixture, &["--base", &old, "--new", &new, "--strict"]);
    output.exits(3).shows(&["Not decided: new", "it varies by itself: two runs of the base differ by"]);
    assert_eq!(verdict(&json, "instructions"), "undecided");
    assert!(metric(&json, "instructions")["base_again"].is_number());
}

#[test]
fn a_static_program_is_gated_without_recordings() {
    let fixture = Fixture::new();
    let with = |kept: u32| format!("#define ROUNDS 100000\n#define LEAK 0\n#define KEPT {kept}\n{PARSE}");
    let (old, new) = (fixture.static_program("old", &with(100)), fixture.static_program("new", &with(102)));
    let (json, output) = gate(&fixture, &["--base", &old, "--new", &new]);
    output.exits(1).shows(&["most live bytes", "no recording, so call sites are not compared"]);
    assert_eq!([verdict(&json, "live"), verdict(&json, "instructions")], ["broken", "within"]);
}

/// An installation that lacks the tracer alone.
fn without_tracer(fixture: &Fixture) -> String {
    let (staged, home) =
        (Path::new(&std::env::var_os("HEAPTOLL_HOME").expect("a stage")).to_owned(), fixture.path("home"));
    let inner = home.join("lib/heaptoll");
    std::fs::create_dir_all(&inner).expect("folders");
    let link = |from: &Path, to: &Path| std::os::unix::fs::symlink(from, to).expect("a link");
    link(&staged.join("share"), &home.join("share"));
    for part in std::fs::read_dir(staged.join("lib/heaptoll")).expect("a stage").flatten() {
        if part.file_name() != "tracer" {
            link(&part.path(), &inner.join(part.file_name()));
        }
    }
    fixture.at("home")
}

#[test]
fn without_the_tracer_requests_are_recorded_and_instructions_stay_open() {
    let fixture = Fixture::new();
    let (old, new) = (build(&fixture, "old", 100_000, 0, 100), build(&fixture, "new", 100_000, 0, 100));
    let (file, home) = (fixture.at("gate.json"), without_tracer(&fixture));
    let run = |options: &[&str]| {
        let arguments =
            ["gate", "--base", &old, "--new", &new, "--json", &file, "--budget", "1s", "--limit", "cpu=none"];
        let mut command = fixture.command(&[&arguments, options].concat());
        CommandOutput::from(command.env("HEAPTOLL_HOME", &home).output().expect("heaptoll starts"))
    };
    run(&[]).exits(0).shows(&[
        "Not decided: new",
        "the limit of 0.5% on instructions is not decided",
        "there is no tracer here",
    ]);
    let json = read_json(&file);
    assert_eq!((verdict(&json, "live"), verdict(&json, "instructions")), ("within", "undecided"));
    assert_eq!(metric(&json, "allocations")["base"], 20_401.0);
    run(&["--strict"]).exits(3);
    run(&["--strict", "--bisect"]).exits(125);
}

#[test]
fn limits_on_time_are_judged_and_what_a_decision_takes_is_stated() {
    let fixture = Fixture::new();
    let busy = |rounds: u32| {
        format!("int main(void) {{ for (volatile int at = 0; at < {rounds}; at++); return 0; }}")
    };
    let (old, new) = (fixture.program("old", &busy(1_000_000)), fixture.program("new", &busy(20_000_000)));
    let file = fixture.at("gate.json");
    let off = ["--limit", "instructions=none"];
    let options = ["gate", "--base", &old, "--new", &new, "--json", &file];
    // Twenty times the work is beyond any noise; a loaded machine takes more runs to show it. The start of a program may
    // take longer than the first loop.
    let decided = [&options[..], &off, &["--budget", "5m"]].concat();
    fixture.heaptoll(&decided).exits(1).shows(&["CPU time: ", "over the limit of 3%"]);
    let json = read_json(&file);
    assert_eq!(
        (verdict(&json, "cpu"), &metric(&json, "cpu")["change"]["kind"]),
        ("broken", &"measured".into())
    );
    let few = [&options[..], &off, &["--budget", "0.01s", "--strict"]].concat();
    fixture
        .heaptoll(&few)
        .exits(3)
        .shows(&["is not decided: too few repetitions, it takes at least 6: --budget"]);
}

#[test]
fn a_new_build_that_crashes_breaks_the_gate_and_a_base_that_does_is_refused() {
    let fixture = Fixture::new();
    let good = fixture.program("good", "int main(void) { free(malloc(9)); return 0; }");
    let crashes = fixture.program("crashes", "int main(void) { raise(11); return 0; }");
    let fails =
        fixture.program("fails", "int main(void) { fprintf(stderr, \"no \\x1b[2Jinput\\n\"); return 4; }");
    let (json, output) = gate(&fixture, &["--base", &good, "--new", &crashes]);
    output.exits(1).shows(&["the new build is killed by signal 11, and the base does not"]);
    assert_eq!(json["verdict"], "broken");
    let (_, output) = gate(&fixture, &["--base", &good, "--new", &fails]);
    let output = output.exits(1).shows(&["ends with exit status 4, not 0; it wrote: no \\u{1b}[2Jinput"]);
    assert!(!output.out.contains('\x1b'), "{}", output.out);
    let (_, output) = gate(&fixture, &["--base", &crashes, "--new", &good]);
    output.exits(2).complains(&["the base build is killed by signal 11"]);
    let (_, output) = gate(&fixture, &["--base", &fails, "--new", &good, "--bisect"]);
    output.exits(125).complains(&["exit status 4"]);
}

#[test]
fn other_output_is_refused_unless_it_is_allowed() {
    let fixture = Fixture::new();
    let prints = |word: &str| format!("int main(void) {{ free(malloc(9)); puts(\"{word}\"); return 0; }}");
    let (old, new) = (fixture.program("old", &prints("one")), fixture.program("new", &prints("two")));
    let (_, output) = gate(&fixture, &["--base", &old, "--new", &new]);
    output.exits(2).complains(&["the two builds write different output", "4 bytes", "--outputs-differ"]);
    let (json, output) = gate(&fixture, &["--base", &old, "--new", &new, "--outputs-differ"]);
    output.exits(0).shows(&["which --outputs-differ allows"]);
    assert_eq!(json["programs"][0]["outputs"], "differ");
}

#[test]
fn builds_of_the_same_bytes_are_no_change() {
    let fixture = Fixture::new();
    let good = fixture.program("good", "int main(void) { free(malloc(9)); return 0; }");
    std::fs::copy(&good, fixture.path("copy")).expect("a copy");
    let (json, output) = gate(&fixture, &["--base", &good, "--new", &fixture.at("copy")]);
    output.exits(0).shows(&["copy: there is no change: ", "hold the same bytes.\n"]);
    assert_eq!(json["verdict"], "within");
}

#[test]
fn what_cannot_be_gated_is_refused_before_anything_runs() {
    let fixture = Fixture::new();
    let good = fixture.program("good", "int main(void) { free(malloc(9)); return 0; }");
    std::os::unix::fs::symlink(&good, fixture.path("again")).expect("a link");
    let again = fixture.at("again");
    let refused = |options: &[&str], words: &[&str]| {
        fixture.heaptoll(&[&["gate"], options].concat()).exits(2).complains(words);
    };
    refused(&["--base", &good, "--new", "/nowhere/app"], &["/nowhere/app"]);
    refused(&["--base", &good], &["--new"]);
    refused(&["--base-cmd", "'x", "--new-cmd", "y"], &["--base-cmd `'x` is not a command"]);
    let two = ["--base", &good, "--new", &again];
    // The program once more, as if `--` were the place for the whole command.
    for program in [&good, &again] {
        let message = format!("`{program}` is passed to both programs as an argument");
        refused(
            &[&two[..], &["--", program, "w 2", "-x"]].concat(),
            &[&message, "did you mean `-- 'w 2' -x`?"],
        );
    }
    refused(&[&two[..], &["--", &good]].concat(), &["it is one of them: leave it out"]);
    // Before, the advice was to leave out the program that `env` runs.
    let wrapped = ["--base", "env", "--new", "env", "--limit", "speed=1%", "--", "/bin/sh"];
    refused(&wrapped, &["env is compared with itself", "--base-cmd 'env OLD'", "no metric `speed`"]);
    let other = [&two[..], &["--limit", "speed=1%", "--", "/bin/sh"]].concat();
    refused(&other, &["warning: `/bin/sh` is passed to both programs", "no metric `speed`"]);
    refused(
        &[&two[..], &["--limit", "speed=1%"]].concat(),
        &["no metric `speed`", "instructions, malloc_instructions"],
    );
    refused(&[&two[..], &["--limit", "cpu=0%"]].concat(), &["allows no growth"]);
    refused(&[&two[..], &["--limit", "cpu=3ms"]].concat(), &["is not a percentage"]);
    refused(&[&two[..], &["--stdin", "/nowhere/in"]].concat(), &["/nowhere/in"]);
    refused(&[&two[..], &["--allocator-symbols", "/nowhere/table.toml"]].concat(), &["/nowhere/table.toml"]);
    let bisect = fixture.heaptoll(&["gate", "--bisect", "--speed"]);
    bisect.exits(125);
}

/// heaptoll in a folder.
fn in_folder(fixture: &Fixture, folder: &Path, options: &[&str]) -> CommandOutput {
    fixture
        .command(&[&["gate"], options].concat())
        .current_dir(folder)
        .output()
        .expect("heaptoll starts")
        .into()
}

#[test]
fn programs_and_limits_of_a_file_are_used_and_its_mistakes_named() {
    let fixture = Fixture::new();
    let folder = fixture.path("project");
    std::fs::create_dir(&folder).expect("a folder");
    let write = |text: &str| std::fs::write(folder.join("heaptoll.toml"), text).expect("writes");
    in_folder(&fixture, &folder, &[]).exits(2).complains(&["nothing to gate", "heaptoll.toml"]);
    write("[gate.a]\ncommand = './x'\n");
    in_folder(&fixture, &folder, &[]).exits(2).complains(&["[gate.a] has one command", "--base-ref"]);
    write("[gate.a]\ncommand = './x'\nlimit = {}\n");
    in_folder(&fixture, &folder, &[]).exits(2).complains(&["unknown field `limit`", "`limits`"]);
    in_folder(&fixture, &folder, &["--config", "none.toml"]).exits(2).complains(&["none.toml"]);
    let (old, new) = (build(&fixture, "old", 100_000, 0, 100), build(&fixture, "new", 100_000, 0, 110));
    write(&format!(
        "[gate.same]\nbase = '{old}'\nnew = '{new} twice'\n[gate.more]\nbase = '{old}'\nnew = '{new}'\n\
         limits = {{ live = '20%', exit = '20%', bytes = '20%', cpu = 'none' }}\n"
    ));
    in_folder(&fixture, &folder, &["--only", "less"]).exits(2).complains(&["has more, same"]);
    let found = in_folder(&fixture, &folder, &["--only", "more", "--budget", "1s"]).exits(0);
    found.shows(&["Within limits: more", "20%"]);
    let found =
        in_folder(&fixture, &folder, &["--only", "more", "--budget", "1s", "--limit", "live=5%"]).exits(1);
    found.shows(&["Limits broken by: more", "most live bytes"]);
}

/// The refusal of one program threw away what was measured of the others.
#[test]
fn a_program_that_cannot_be_run_leaves_the_verdicts_on_the_others() {
    let fixture = Fixture::new();
    let folder = fixture.path("project");
    std::fs::create_dir(&folder).expect("a folder");
    let (old, new) = (build(&fixture, "old", 100_000, 0, 100), build(&fixture, "new", 100_000, 0, 110));
    let fails = fixture.program("fails", "int main(void) { free(malloc(9)); return 4; }");
    let write = |live: &str| {
        let text = format!(
            "[gate.bad]\nbase = '{fails}'\nnew = '{new}'\n[gate.good]\nbase = '{old}'\nnew = '{new}'\n\
             limits = {{ live = '{live}', exit = '20%', bytes = '20%', cpu = 'none' }}\n"
        );
        std::fs::write(folder.join("heaptoll.toml"), text).expect("writes");
    };
    write("20%");
    let file = fixture.at("gate.json");
    let junit = fixture.at("gate.xml");
    let options = ["--budget", "1s", "--json", &file, "--junit", &junit];
    let found = in_folder(&fixture, &folder, &options).exits(2);
    found.shows(&["Could not be run: bad", "good: within limits", "ends with exit status 4"]);
    let json = read_json(&file);
    assert_eq!((&json["refused"][0]["name"], &json["programs"][0]["name"]), (&"bad".into(), &"good".into()));
    let xml = std::fs::read_to_string(&junit).expect("the XML");
    assert!(xml.contains("<error") && xml.contains("errors=\"1\""), "{xml}");
    write("5%");
    in_folder(&fixture, &folder, &options)
        .exits(1)
        .shows(&["Limits broken by: good", "could not be run: bad"]);
    // Nor does one that is not there.
    let text =
        std::fs::read_to_string(folder.join("heaptoll.toml")).expect("the file").replace(&fails, "./none");
    std::fs::write(folder.join("heaptoll.toml"), text).expect("writes");
    in_folder(&fixture, &folder, &options).exits(1).shows(&["Limits broken by: good", "./none"]);
    std::fs::write(folder.join("heaptoll.toml"), "[gate.\"a\\n::error::x\"]\ncommand = 'x'\n")
        .expect("writes");
    in_folder(&fixture, &folder, &[]).exits(2).complains(&["a log could mistake for something else"]);
}

/// A recording had no time limit: a program that waits for something under the recording layer was waited for for ever.
#[test]
fn a_recording_ends_at_the_time_limit_of_a_run() {
    let fixture = Fixture::new();
    let source = |more: &str| {
        format!(
            "int main(void) {{ free(malloc(9)); {more} char *own = getenv(\"LD_PRELOAD\");\n\
             if (own && strstr(own, \"record\")) pause(); return 0; }}"
        )
    };
    let (old, new) =
        (fixture.program("old", &source("")), fixture.program("new", &source("free(malloc(7));")));
    let (json, output) = gate(&fixture, &["--base", &old, "--new", &new, "--timeout", "3"]);
    output.exits(0).shows(&["the recorded run took longer than 3 s"]);
    assert_eq!(verdict(&json, "instructions"), "within");
}

/// A build with one output a repetition was refused for another one, before a second run showed that it has many.
#[test]
fn output_that_differs_from_run_to_run_is_not_compared() {
    let fixture = Fixture::new();
    let source = |more: &str| {
        format!(
            "#include <pthread.h>\nvoid *work(void *x) {{ free(malloc(9)); {more} return x; }}\n\
             int main(void) {{ pthread_t t; pthread_create(&t, 0, work, 0); pthread_join(t, 0);\n\
             printf(\"%d\\n\", getpid()); return 0; }}"
        )
    };
    let (old, new) =
        (fixture.program("old", &source("")), fixture.program("new", &source("free(malloc(7));")));
    let (json, output) = gate(&fixture, &["--base", &old, "--new", &new]);
    output.exits(0).shows(&["outputs differ from run to run, so they are not compared"]);
    assert_eq!(json["programs"][0]["outputs"], "vary");
}

/// A repository with a program in C whose first commit keeps less, and a build.
struct Repository<'a> {
    fixture: &'a Fixture,
    folder: std::path::PathBuf,
}

impl Repository<'_> {
    fn new(fixture: &Fixture) -> Repository<'_> {
        let folder = fixture.path("repository");
        std::fs::create_dir(&folder).expect("a folder");
        let made = Repository { fixture, folder };
        made.git(&["init", "--quiet", "--initial-branch", "main"]);
        made.source(100);
        made.write("build", "#!/bin/sh\nset -e\ncc -g -O1 -fno-builtin -w -o app app.c\n");
        made.write(".gitignore", "app\n");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(made.folder.join("build"), mode).expect("chmod");
        made.commit("begin");
        made
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.join(name), text).expect("writes");
    }

    fn source(&self, kept: u32) {
        let head = format!(
            "#include <stdio.h>\n#include <stdlib.h>\n#define ROUNDS 100000\n#define LEAK 0\n#define KEPT {kept}\n"
        );
        self.write("app.c", &format!("{head}{PARSE}"));
    }

    fn git(&self, arguments: &[&str]) -> String {
        git(&self.folder, arguments)
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "-m", message]);
    }

    fn gate(&self, options: &[&str]) -> CommandOutput {
        let usual = ["--command", "./app", "--budget", "1s", "--limit", "cpu=none"];
        in_folder(self.fixture, &self.folder, &[&usual, options].concat())
    }
}

#[test]
fn two_commits_are_built_side_by_side_and_nothing_is_left_of_them() {
    let fixture = Fixture::new();
    let repository = Repository::new(&fixture);
    let build = ["--base-ref", "main", "--build", "./build"];
    let json = fixture.at("gate.json");
    // What is not committed is the new build.
    repository.source(110);
    repository.write("untracked", "x");
    let before = repository.git(&["status", "--porcelain"]);
    let found = repository.gate(&[&build[..], &["--json", &json]].concat());
    found.exits(1).shows(&["Limits broken by: app", "most live bytes"]);
    let side = |name: &str| read_json(&json)["programs"][0][name].clone();
    assert_eq!((&side("new")["dirty"], &side("base")["dirty"]), (&true.into(), &false.into()));
    assert_eq!(side("base")["commit"], repository.git(&["rev-parse", "HEAD"]).trim());
    assert_eq!(repository.git(&["status", "--porcelain"]), before);
    assert_eq!(repository.git(&["worktree", "list"]).lines().count(), 1);
    assert!(!repository.folder.join("app").exists(), "it is built elsewhere");
    repository.commit("keep more");
    repository.write("README", "More words.\n");
    repository.commit("document it");
    let found = repository.gate(&["--base-ref", "main~1", "--new-ref", "main", "--build", "./build"]);
    found
        .exits(0)
        .shows(&["Within limits: app", "app: there is no change: no run opens a file that differs"]);
}

#[test]
fn commits_that_cannot_be_built_are_refused_with_the_reason() {
    let fixture = Fixture::new();
    let repository = Repository::new(&fixture);
    let refused = |options: &[&str], words: &[&str]| {
        repository.gate(options).exits(2).complains(words);
        assert_eq!(repository.git(&["worktree", "list"]).lines().count(), 1);
    };
    refused(&["--base-ref", "none"], &["there is no commit `none`", "git branch -a"]);
    refused(&["--base-ref=--all"], &["--all"]);
    refused(
        &["--base-ref", "main", "--build", "echo it broke; exit 3"],
        &["the build of", "exit status: 3", "it broke"],
    );
    // Before, what a build had put into a session of its own ran on.
    let mark = marker("build");
    let leaves = format!("setsid sh -c 'sleep 300; :' {mark} & echo it left; exit 3");
    refused(&["--base-ref", "main", "--build", &leaves], &["it left"]);
    assert_none_left(&mark);
    refused(&["--base-ref", "main", "--build", "echo >> app.c"], &["changes tracked files: app.c"]);
    refused(&["--base-ref", "main"], &["./app"]);
    let nowhere = in_folder(&fixture, &fixture.path(""), &["--base-ref", "main", "--command", "./app"]);
    nowhere.exits(2).complains(&["is in no git repository"]);
    let mut bare = fixture.command(&["gate", "--base-ref", "main", "--command", "./app"]);
    let bare: CommandOutput = bare.env("PATH", fixture.path("nothing")).output().expect("starts").into();
    bare.exits(2).complains(&["git was not found"]);
    repository.source(101);
    repository.commit("second");
    let shallow = fixture.path("shallow");
    let from = format!("file://{}", repository.folder.display());
    let mut clone = Command::new("git");
    let cloned =
        clone.args(["clone", "--quiet", "--depth", "1", &from]).arg(&shallow).output().expect("git runs");
    assert!(cloned.status.success(), "{}", String::from_utf8_lossy(&cloned.stderr));
    let found = in_folder(&fixture, &shallow, &["--base-ref", "HEAD~1", "--command", "./app"]);
    found.exits(2).complains(&["it is a shallow clone", "fetch-depth: 0"]);
}

#[test]
fn two_managers_of_one_program_are_two_sides() {
    let fixture = Fixture::new();
    let program = build(&fixture, "app", 100_000, 0, 100);
    let options = ["--new-manager", "knuth", "--limit", "instructions=none", "--", &program];
    let (json, output) = gate(&fixture, &options);
    output.exits(0);
    assert_eq!(json["programs"][0]["new"]["manager"], "knuth");
    assert_eq!(verdict(&json, "live"), "within");
}
