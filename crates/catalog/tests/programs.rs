//! Every program of the catalog that is installed here runs at its quick size, twice with the same output, and prints
//! what its entry expects.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use heaptoll_catalog::{Catalog, Places, Prepared, Program, Size, fill_scratch};
use regex_lite::Regex;
use sha2::{Digest, Sha256};

fn share() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs")
}

/// Many times what a program takes at its quick size.
const LIMIT_SECONDS: &str = "120";

/// The staged programs, with a folder for inputs.
pub fn places(inputs: &Path) -> Places {
    Places {
        bin: heaptoll_testing::staged::file("programs"),
        added: "/opt/added".into(),
        inputs_cache: inputs.join("inputs"),
    }
}

/// The command, which `timeout` ends when it takes minutes for what should take a second: a hanging program fails its
/// test, with its name.
fn command(words: &[String], prepared: &Prepared, tmp: &Path) -> Command {
    let put = |text: &String| fill_scratch(text, tmp.to_str().unwrap());
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", LIMIT_SECONDS]).args(words.iter().map(put)).current_dir(tmp);
    command.stdin(Stdio::null());
    command.envs(prepared.environment.iter().map(|(key, value)| (key, put(value))));
    command
}

/// The digest of one run's standard output.
fn run(prepared: &Prepared) -> String {
    let tmp = tempfile::tempdir().unwrap();
    let mut command = command(&prepared.command, prepared, tmp.path());
    if let Some(path) = &prepared.stdin {
        command.stdin(File::open(path).unwrap());
    }
    let output = command.output().unwrap();
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {}: {problem}", prepared.name, output.status);
    assert!(!output.stdout.is_empty(), "{} printed nothing", prepared.name);
    Sha256::digest(&output.stdout).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
#[ignore = "slow: the whole catalog twice, some 70 CPU seconds"]
fn every_installed_program_prints_what_its_entry_expects() {
    print_what_is_expected(Size::Quick, 2);
}

#[test]
fn installed_programs_print_what_their_entries_expect_of_the_smallest_input() {
    print_what_is_expected(Size::Tiny, 1);
}

/// Packages whose programs are always run. Of the others that the tests install, six programs with a tiny input are drawn.
const ALWAYS: [&str; 18] = [
    "binutils",
    "fig2dev",
    "gawk",
    "gcc-12",
    "gdb",
    "ghostscript",
    "gnugo",
    "hmmer",
    "libsqlite3-dev",
    "lua5.4",
    "make",
    "perl",
    "python3",
    "redis-server",
    "redis-tools",
    "sqlite3",
    "xalan",
    "z3",
];

/// Packages that come with gcc.
const WITH_GCC: [&str; 2] = ["binutils", "gcc-12"];

fn is_always_run(program: &Program) -> bool {
    program.package().is_none_or(|package| ALWAYS.contains(&package))
}

/// The packages that `scripts/setup STEP` installs.
fn installed_by(step: &str) -> BTreeSet<String> {
    let setup = share().join("../scripts/setup");
    let output = Command::new(setup).args([step, "--list"]).output().expect("scripts/setup starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").split_whitespace().map(str::to_owned).collect()
}

/// The programs that are run with the smallest input: six of those with a tiny one are drawn by the seed in
/// HEAPTOLL_CATALOG_SEED, 1 where there is none, so that a run repeats. Only what the tests install is drawn.
fn drawn(catalog: &Catalog) -> Vec<String> {
    let seed = std::env::var("HEAPTOLL_CATALOG_SEED").unwrap_or_else(|_| "1".to_owned());
    let installed = installed_by("test");
    let small = |program: &&Program| {
        !is_always_run(program)
            && !program.is_by_name()
            && program.package().is_some_and(|package| installed.contains(package))
            && program.sizes().any(|size| size == Size::Tiny)
    };
    let mut names: Vec<String> =
        catalog.programs().filter(small).map(|program| program.name().to_owned()).collect();
    names.sort_by_key(|name| Sha256::digest(format!("{seed} {name}")));
    names.truncate(6);
    names
}

/// Found when a draw met cvc5, which only machines had where it had been installed by hand.
#[test]
fn each_program_that_the_tests_run_comes_from_a_package_that_setup_installs() {
    let tests = installed_by("test");
    let missing: Vec<_> = ALWAYS.iter().filter(|&&p| !WITH_GCC.contains(&p) && !tests.contains(p)).collect();
    assert!(missing.is_empty(), "scripts/setup test does not install {missing:?}");
    let catalog = Catalog::load(&share()).unwrap();
    assert_eq!(drawn(&catalog).len(), 6, "there are six to draw");
    // What `make test-slow` runs.
    let slow = installed_by("catalog");
    let missing: Vec<_> = catalog
        .programs()
        .filter(|program| !is_always_run(program) && program.recipe().is_none())
        .filter_map(Program::package)
        .filter(|package| !slow.contains(*package) && !OF_STUDIES.contains(package))
        .collect();
    assert!(missing.is_empty(), "scripts/setup catalog does not install {missing:?}");
}

/// `scripts/setup demo` as a user without apt's rights, where these packages are missing.
fn setup_without(missing: &[&str]) -> std::process::Output {
    let folder = tempfile::tempdir().unwrap();
    let script = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    };
    let installed = "install ok installed";
    let lacks = format!("case \" {} \" in *\" $4 \"*) exit 1 ;; esac; echo '{installed}'", missing.join(" "));
    script("dpkg-query", &lacks);
    script("id", "echo 1000");
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    Command::new(share().join("../scripts/setup")).arg("demo").env("PATH", path).output().expect("it starts")
}

/// Found without apt's rights: the demo ended where only programs, libraries or libgc were missing.
#[test]
fn the_demo_goes_on_without_packages_that_only_bring_rows() {
    let output = setup_without(&["gawk", "libgc-dev", "libzstd-dev"]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}");
    assert!(
        message.contains("apt-get install -y --no-install-recommends gawk libgc-dev libzstd-dev"),
        "{message}"
    );
    let output = setup_without(&["gawk", "g++"]);
    assert_eq!(output.status.code(), Some(1), "nothing can be compiled without a compiler");
    assert!(setup_without(&[]).stderr.is_empty());
}

/// Found when a program or package of the demo was only in one of two lists.
#[test]
fn the_demo_installs_what_it_runs() {
    let script = std::fs::read_to_string(share().join("../scripts/demo")).unwrap();
    let programs = script.split("for program in ").nth(1).and_then(|rest| rest.split(';').next()).unwrap();
    let packages =
        programs.split_whitespace().filter_map(|word| word.split_once(':')).map(|(_, package)| package);
    let packages: BTreeSet<String> = packages.chain(["libgc-dev"]).map(str::to_owned).collect();
    assert!(packages.len() == 4 && packages.is_subset(&installed_by("demo")), "{packages:?}");
}

/// Runs every program that is installed `times` with its input of `size`; those without a tiny one with the quick one.
/// Where the size is the smallest, many are left out.
fn print_what_is_expected(size: Size, times: usize) {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    let catalog = Catalog::load(&share()).unwrap();
    let mut ran = Vec::new();
    let mut wrong = Vec::new();
    let drawn = drawn(&catalog);
    let is_run = |program: &&Program| {
        let chosen = is_always_run(program) || drawn.iter().any(|name| name == program.name());
        !program.is_server() && (chosen || size != Size::Tiny)
    };
    for program in catalog.programs().filter(is_run) {
        if let Some(missing) = program.missing(&places) {
            skip(program, &missing);
            continue;
        }
        // There are many forms of few programs: those are tried with the smallest input.
        let tiny = program.sizes().any(|size| size == Size::Tiny);
        let smallest = size == Size::Tiny || program.is_by_name();
        let prepared =
            program.prepare(if tiny && smallest { Size::Tiny } else { Size::Quick }, &places).unwrap();
        let first = run(&prepared);
        if (1..times).any(|_| run(&prepared) != first) {
            wrong.push(format!("{} printed something else another time", prepared.name));
        }
        if prepared.expected_digest.as_ref().is_some_and(|expected| *expected != first) {
            wrong.push(format!("{} printed {first}", prepared.name));
        }
        ran.push(prepared.name);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    for bundled in [
        "cfrac",
        "exchange",
        "gcbench",
        "kv",
        "larson",
        "reverse",
        "reverse:8-byte",
        "route",
        "search",
        "translate",
    ] {
        assert!(ran.iter().any(|name| name == bundled), "{bundled} did not run, only {ran:?}");
    }
}

/// Packages that only the studies need, and no test: they are large.
const OF_STUDIES: [&str; 3] = ["default-jdk-headless", "guile-3.0", "ocaml-nox"];

/// Prints what is left out. The continuous integration installs all programs, and cargo builds espresso when it tests
/// the whole workspace: there nothing may be missing, or this file would pass by testing nothing.
fn skip(program: &Program, missing: &str) {
    let integration = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    let name = program.name();
    // What a user adds, no test may fetch.
    let needed =
        program.recipe().is_none() && program.package().is_none_or(|package| !OF_STUDIES.contains(&package));
    assert!(!(integration && needed), "{name} cannot run, and CI is set: {missing}");
    eprintln!("{name} is skipped: {missing}");
}

#[test]
fn bundled_programs_refuse_what_they_do_not_understand() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    for (program, arguments) in [
        ("cfrac", &["12x"][..]),
        ("gcbench", &["18", "16", "5", "4", "30"]),
        ("larson", &["0", "1", "8", "8", "1", "1"]),
        ("exchange", &["3", "1", "8", "8"]),
        ("kv", &["0", "10"]),
        ("kv", &["10"]),
        ("search", &["10", "/dev/null"]),
        ("search", &["10", "/nowhere"]),
        ("redis-client", &["/nowhere", "10", "10", "15"]),
        ("cfrac", &["1"]),
        ("cfrac", &[]),
        ("reverse", &["10"]),
        ("reverse", &["10", "-1"]),
        ("reverse", &["10", "10", "12"]),
        ("reverse", &["10", "10", "99999999999999999999999"]),
        ("reverse-counted", &["10", "10", "12"]),
        ("reverse-shared-ptr", &["10", "10", "48"]),
        ("crossover", &["4", "1", "10"]),
        ("crossover", &["2048", "1", "10"]),
        ("churn", &["1", "8"]),
        ("churn", &["64"]),
        ("release", &["10", "1"]),
        ("lists", &["phases", "0"]),
        ("lists", &["classes", "10"]),
        ("retain", &["0"]),
    ] {
        let output = Command::new(places.bin.join(program)).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{program} {arguments:?}");
        assert!(!output.stderr.is_empty());
    }
}

#[test]
fn reverse_detects_a_wrong_number_of_reversals() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    for bytes in ["8", "40"] {
        let printed = |reversals: u32| {
            let arguments = ["100", &reversals.to_string(), bytes];
            let output = Command::new(places.bin.join("reverse")).args(arguments).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let checksum = |text: &str| text.rsplit_once(' ').unwrap().1.to_owned();
        let (even, odd) = (printed(8), printed(9));
        assert!(even.starts_with("100 elements, 8 reversals, checksum "), "{even}");
        assert_ne!(checksum(&even), checksum(&odd), "{bytes} bytes");
        assert_ne!(checksum(&even), checksum(&printed(10)), "{bytes} bytes");
    }
}

#[test]
fn cfrac_factors_numbers_of_every_kind() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    for (number, factors) in [
        ("2", "2"),
        ("1048576", "2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2"),
        ("1000000007", "1000000007"),
        ("1000000016000000063", "1000000007 1000000009"),
        ("1000036000099", "1000003 1000033"),
        ("550702591858063", "81967 81967 81967"),
        ("340282366920938463463374607431768211457", "59649589127497217 5704689200685129054721"),
        ("170141183460469231731687303715884105727", "170141183460469231731687303715884105727"),
    ] {
        let output = Command::new(places.bin.join("cfrac")).arg(number).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), format!("{number} = {factors}"));
    }
}

/// A started server, which does not outlive a failed test.
struct Server(Child);

impl Server {
    /// Whether the signal was sent. `timeout` passes it on, and kills the server when it does not end.
    fn signal(&self, name: &str) -> bool {
        let kill = Command::new("kill").arg(format!("-{name}")).arg(self.0.id().to_string()).status();
        kill.is_ok_and(|status| status.success())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) && self.signal("TERM") {
            let _ = self.0.wait();
        }
    }
}

#[test]
fn the_server_starts_answers_its_load_and_stops() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    let catalog = Catalog::load(&share()).unwrap();
    for program in catalog.programs().filter(|program| program.is_server()) {
        if let Some(missing) = program.missing(&places) {
            skip(program, &missing);
            continue;
        }
        let tmp = tempfile::tempdir().unwrap();
        let prepared = program.prepare(Size::Quick, &places).unwrap();
        let serve = prepared.serve.as_ref().unwrap();
        let child = command(&serve.server, &prepared, tmp.path()).stdout(Stdio::piped()).spawn().unwrap();
        let mut server = Server(child);
        let mut lines = BufReader::new(server.0.stdout.take().unwrap()).lines();
        let ready = Regex::new(&serve.ready).unwrap();
        assert!(lines.any(|line| ready.is_match(&line.unwrap())), "{} was never ready", prepared.name);

        let output = command(&serve.load, &prepared, tmp.path()).output().unwrap();
        let problem = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: the load: {}: {problem}", prepared.name, output.status);
        let text = String::from_utf8(output.stdout).unwrap();
        let figures = Regex::new(serve.figures.as_ref().unwrap()).unwrap();
        let names: Vec<&str> = figures.capture_names().flatten().filter(|name| *name != "test").collect();
        let mut sets = 0;
        for captures in figures.captures_iter(&text) {
            sets += 1;
            for name in &names {
                captures[*name].parse::<f64>().unwrap();
            }
            assert!(captures["requests_per_s"].parse::<f64>().unwrap() > 0.0);
        }
        assert!(sets >= 4, "{text}");

        assert!(server.signal(&serve.stop));
        assert!(lines.all(|line| line.is_ok()));
        assert!(server.0.wait().unwrap().success(), "{} did not stop cleanly", prepared.name);
    }
}
