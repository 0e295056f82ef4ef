//! What a gate writes for other tools, and the ready files for CI, whose commands run here on a made-up
//! repository.

use std::path::Path;
use std::process::Command;

use heaptoll_gate::sites;

use crate::fixture::{CommandOutput, Fixture, git, read_json};

/// Allocates 20,000 times at `term` and leaks one block in 10,000; holds 1,000 blocks of `node` at the end, 2 %
/// larger in the new build; and executes 1 % more in `hot`.
const PROGRAM: &str = r#"
    static void *kept[1000];
    __attribute__((noinline)) static void *node(int at) { return malloc(NODE); }
    __attribute__((noinline)) static char *term(int at) { char *text = malloc(64); text[0] = at; return text; }
    __attribute__((noinline)) static int hot(int rounds) {
        int sum = 0;
        for (volatile int i = 0; i < rounds; i++) sum += i;
        return sum;
    }
    int main() {
        for (int i = 0; i < 1000; i++) kept[i] = node(i);
        int sum = 0;
        volatile int leaks = LEAKS;
        for (int i = 0; i < 20000; i++) {
            char *text = term(i);
            sum += text[0];
            if (i % 10000 != 9999 || !leaks) free(text);
        }
        sum += hot(ROUNDS);
        for (int i = 0; i < 1000; i++) { sum += ((char *)kept[i])[0] = 1; free(kept[i]); }
        printf("%d\n", sum != 0);
    }"#;

fn build(fixture: &Fixture, name: &str, node: usize, leaks: bool, rounds: usize) -> String {
    let defines =
        format!("#define NODE {node}\n#define LEAKS {}\n#define ROUNDS {rounds}\n", u8::from(leaks));
    fixture.program(name, &format!("{defines}{PROGRAM}"))
}

#[test]
fn planted_leaks_and_live_bytes_are_named_first_in_recordings() {
    let fixture = Fixture::new();
    let record = |name: &str, node, leaks| {
        let program = build(&fixture, name, node, leaks, 1);
        let trace = fixture.path(&format!("{name}.heaptoll"));
        fixture
            .heaptoll(&["record", "--sites", "-o", trace.to_str().expect("text"), "--", &program])
            .exits(0);
        vec![trace]
    };
    let base = record("base", 1000, false);
    let found = sites::differences(&base, &record("leaky", 1000, true)).expect("recordings");
    let first = |found: &heaptoll_gate::differences::Differences| {
        found.added().first().map(|added| (added.part.name.clone(), added.certain))
    };
    assert_eq!(first(&found.exit), Some(("term < main".into(), 128)), "{:?}", found.exit);
    let found = sites::differences(&base, &record("larger", 1020, false)).expect("recordings");
    assert_eq!(first(&found.live), Some(("node < main".into(), 20_000)), "{:?}", found.live);
    for one in [&found.bytes, &found.calls, &found.live, &found.exit] {
        assert_eq!(one.sum(), i128::from(one.new) - i128::from(one.base));
    }
}

#[test]
fn a_gate_writes_what_other_tools_read() {
    let fixture = Fixture::new();
    let base = build(&fixture, "old", 1000, false, 2_000_000);
    let new = build(&fixture, "new", 1000, true, 2_020_000);
    let at = |name: &str| fixture.at(name);
    let mut command = fixture.command(&[
        "gate",
        "--base",
        &base,
        "--new",
        &new,
        "--limit",
        "cpu=none",
        "--budget",
        "1s",
        "--json",
        &at("gate.json"),
        "--junit",
        &at("gate.xml"),
        "--bencher",
        &at("bencher.json"),
        "--github-benchmark",
        &at("benchmark.json"),
    ]);
    command.current_dir(fixture.path("")).env("GITHUB_STEP_SUMMARY", fixture.path("summary.md"));
    CommandOutput::from(command.output().expect("heaptoll starts")).exits(1);
    let figures = read_json(&at("gate.json"));
    let program = &figures["programs"][0];
    assert_eq!(program["functions"]["grown"][0]["part"]["name"], "hot", "{program}");
    assert_eq!(program["sites"]["exit"]["grown"][0]["part"]["name"], "term < main");
    let xml = std::fs::read_to_string(at("gate.xml")).expect("the XML");
    assert!(xml.contains("<failure") && xml.contains("hot of new: "), "{xml}");
    let bencher = read_json(&at("bencher.json"));
    let counted = &program["metrics"].as_array().expect("metrics")[0];
    assert_eq!(
        bencher["old"]["instructions"]["value"].as_f64().or(bencher["new"]["instructions"]["value"].as_f64()),
        counted["new"].as_f64(),
        "{bencher}"
    );
    assert!(
        read_json(&at("benchmark.json"))[0]["extra"]
            .as_str()
            .is_some_and(|extra| extra.contains("beyond the limit"))
    );
    let summary = std::fs::read_to_string(at("summary.md")).expect("the summary");
    assert!(summary.contains("### Verdict") && summary.contains("`hot`"), "{summary}");
}

#[test]
fn a_file_for_another_tool_that_cannot_be_written_is_refused_before() {
    let fixture = Fixture::new();
    let program = fixture.program("p", "int main() {}");
    let other = format!("{program} x");
    let gate = ["gate", "--base-cmd", &program, "--new-cmd", &other, "--junit", "/nowhere/gate.xml"];
    fixture.heaptoll(&gate).exits(2).complains(&["cannot write /nowhere/gate.xml"]);
    fixture.heaptoll(&["report"]).exits(2);
}

/// The script of a step of a workflow on GitHub: what is indented below `run: |`.
fn of_github(file: &str, step: &str) -> String {
    let from = file.split_once(&format!("- name: {step}\n")).expect("the step").1;
    let script = from.split_once("run: |\n").expect("its script").1;
    let indent = script.len() - script.trim_start().len();
    script
        .lines()
        .map_while(|line| line.get(indent..).filter(|_| line[..indent].trim().is_empty()))
        .collect::<Vec<_>>()
        .join("\n")
}

/// The script of a job on GitLab: the list below `script:`.
fn of_gitlab(file: &str) -> String {
    let script = file.split_once("\n  script:\n").expect("the script").1;
    script.lines().map_while(|line| line.strip_prefix("    - ")).collect::<Vec<_>>().join("\n")
}

/// Commits a program that does these rounds, and returns the commit.
fn commit(repository: &Path, rounds: usize, message: &str) -> String {
    let source = format!(
        "#include <stdio.h>\nint main(void) {{ int sum = 0; for (volatile int i = 0; i < {rounds}; i++) sum += i; puts(\"done\"); return 0 * sum; }} // {message}\n"
    );
    std::fs::write(repository.join("app.c"), source).expect("writes");
    git(repository, &["add", "--all"]);
    git(repository, &["commit", "--quiet", "--message", message]);
    git(repository, &["rev-parse", "HEAD"])
}

#[test]
fn the_ready_files_gate_a_pull_request() {
    let fixture = Fixture::new();
    let (origin, clone) = (fixture.path("origin"), fixture.path("clone"));
    std::fs::create_dir(&origin).expect("a folder");
    git(&origin, &["init", "--quiet", "--initial-branch=main"]);
    std::fs::write(origin.join("Makefile"), "app: app.c\n\tcc -O1 -o app app.c\n").expect("writes");
    std::fs::write(origin.join(".gitignore"), "app\ngate.*\n").expect("writes");
    let limits = "[gate.app]\ncommand = \"./app\"\nlimits = { instructions = \"0.5%\", cpu = \"none\" }\n";
    std::fs::write(origin.join("heaptoll.toml"), limits).expect("writes");
    let first = commit(&origin, 500_000, "first");
    git(fixture.path("").as_path(), &["clone", "--quiet", origin.to_str().expect("text"), "clone"]);
    commit(&clone, 500_000, "a comment");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/questions/ci");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a ready file");
    let run = |script: &str, variable: (&str, &str)| {
        let mut shell = Command::new("bash");
        shell.args(["-e", "-c", script]).current_dir(&clone).env(variable.0, variable.1).env("BUILD", "make");
        let tool = Path::new(env!("CARGO_BIN_EXE_heaptoll")).parent().expect("a folder");
        let path = std::env::var("PATH").unwrap_or_default();
        shell.env("PATH", format!("{}:{path}", tool.display()));
        fixture.prepare(&mut shell);
        CommandOutput::from(shell.output().expect("bash"))
    };
    let github = of_github(&read("github.yml"), "Gate");
    let gitlab = of_gitlab(&read("gitlab.yml"));
    run(&gitlab, ("CI_MERGE_REQUEST_DIFF_BASE_SHA", &first)).exits(0).shows(&["Within limits: app"]);
    commit(&clone, 520_000, "a regression");
    run(&github, ("GITHUB_BASE_REF", "main")).exits(1).shows(&["Limits broken by: app", "main"]);
    let xml = std::fs::read_to_string(clone.join("gate.xml")).expect("the XML");
    assert!(xml.contains("<failure") && clone.join("gate.html").is_file(), "{xml}");
}

/// The scripts that install a release, on one that holds a program alone.
#[test]
fn the_ready_files_install_a_release_whose_hash_is_right_and_no_other() {
    let fixture = Fixture::new();
    let bin = fixture.path("heaptoll-0/bin");
    std::fs::create_dir_all(&bin).expect("folders");
    std::fs::write(bin.join("heaptoll"), "#!/bin/sh\necho installed\n").expect("writes");
    let shell = |script: &str| {
        let mut shell = Command::new("bash");
        shell.args(["-e", "-o", "pipefail", "-c", script]).current_dir(fixture.path(""));
        shell.env("HOME", fixture.path("home")).env("GITHUB_PATH", fixture.path("path"));
        shell.env("HEAPTOLL_TARBALL", format!("file://{}", fixture.at("r.tar.gz")));
        CommandOutput::from(shell.output().expect("bash"))
    };
    shell("tar -czf r.tar.gz heaptoll-0 && mkdir home").exits(0);
    let file = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/questions/ci/github.yml"),
    )
    .expect("a ready file");
    let install = of_github(&file, "Install heaptoll");
    let hash = "export HEAPTOLL_SHA256=$(sha256sum r.tar.gz | cut -d' ' -f1)";
    shell(&format!("{hash}\n{install}")).exits(0);
    let path = std::fs::read_to_string(fixture.path("path")).expect("the runner's path");
    assert_eq!(path.trim(), format!("{}/bin", fixture.at("home/heaptoll")));
    assert!(fixture.path("home/heaptoll/bin/heaptoll").is_file());
    let other = shell(&format!("export HEAPTOLL_SHA256={}\n{install}", "0".repeat(64)));
    other.exits(1);
}
