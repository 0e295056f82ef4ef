//! `include/tithe.h` from outside: programs in C, linked with `libtithe.a` and with `libtithe.so`, in every mode, and
//! with a preloaded heap.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The libraries and the programs linked with them.
struct Built {
    archive: PathBuf,
    object: PathBuf,
    /// The cases, linked with the archive, with the object, and with the archive and a C library that is static.
    linked: PathBuf,
    shared: PathBuf,
    alone: PathBuf,
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."))
}

/// A file of the staged build.
fn staged(path: &str) -> PathBuf {
    let home = std::env::var_os("HEAPTOLL_HOME").expect("cargo's configuration sets HEAPTOLL_HOME");
    let file = PathBuf::from(home).join("lib/heaptoll").join(path);
    assert!(file.exists(), "{} is missing: run make stage-tests", file.display());
    file
}

fn folder() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

fn compile<A: AsRef<OsStr>>(to: &Path, arguments: &[A]) {
    let mut command = Command::new("cc");
    command.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-g", "-pthread", "-o"]).arg(to);
    run(command.arg("-I").arg(root().join("include")).args(arguments));
}

fn built() -> &'static Built {
    static BUILT: OnceLock<Built> = OnceLock::new();
    BUILT.get_or_init(|| {
        let built = Built {
            archive: staged("libtithe.a"),
            object: staged("managers/tithe.so"),
            linked: folder().join("api-linked"),
            shared: folder().join("api-shared"),
            alone: folder().join("api-alone"),
        };
        let sources = ["main.c", "blocks.c", "collecting.c", "reasons.c"];
        let sources = sources.map(|name| root().join("preload/collectors/tithe/tests/api").join(name));
        let with = |more: &[&OsStr]| -> Vec<PathBuf> {
            sources.iter().cloned().chain(more.iter().map(PathBuf::from)).collect()
        };
        compile(&built.linked, &with(&[built.archive.as_os_str()]));
        compile(&built.shared, &with(&[built.object.as_os_str()]));
        compile(&built.alone, &with(&[built.archive.as_os_str(), OsStr::new("-static")]));
        built
    })
}

/// The environment of a run.
type Settings<'a> = &'a [(&'a str, &'a str)];

fn case(program: &Path, name: &str, settings: Settings<'_>) -> Output {
    let mut command = Command::new(program);
    let output = run(command.arg(name).envs(settings.iter().copied()));
    assert!(output.stdout.ends_with(b"ok\n"), "{command:?} did not come to its end");
    output
}

/// Runs a case linked in both ways, in both modes that collect, and with a preloaded heap.
fn everywhere(name: &str) {
    let Built { linked, shared, object, .. } = built();
    let object = object.to_str().expect("a path in UTF-8");
    for mode in ["hybrid", "collect"] {
        case(linked, name, &[("TITHE_MODE", mode)]);
        case(shared, name, &[("TITHE_MODE", mode)]);
        case(linked, name, &[("TITHE_MODE", mode), ("LD_PRELOAD", object)]);
        case(linked, name, &[("TITHE_MODE", mode), ("TITHE_POISON", "1")]);
    }
}

#[test]
fn blocks_come_change_and_go() {
    everywhere("blocks");
    case(&built().linked, "blocks", &[("TITHE_MODE", "explicit")]);
}

#[test]
fn words_in_pointer_free_blocks_hold_nothing() {
    everywhere("atomic");
}

#[test]
fn a_collection_is_finished_on_return() {
    everywhere("collect");
}

#[test]
fn mode_explicit_does_not_collect() {
    for program in [&built().linked, &built().shared] {
        case(program, "explicit", &[("TITHE_MODE", "explicit")]);
    }
}

#[test]
fn a_thread_that_does_not_stop_is_counted_and_leaves_standard_error_alone() {
    for program in [&built().linked, &built().shared] {
        let output = case(program, "unstoppable", &[("TITHE_PATIENCE", "100")]);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
}

#[test]
fn added_roots_hold_what_nothing_else_does() {
    everywhere("roots");
}

#[test]
fn a_registered_stack_ends_with_its_thread() {
    everywhere("threads");
}

#[test]
fn a_forked_child_loses_the_stacks_of_other_threads() {
    everywhere("fork");
}

#[test]
fn counters_count() {
    everywhere("stats");
}

#[test]
fn a_block_is_live_until_it_is_given_back_or_collected() {
    everywhere("live");
}

#[test]
fn chains_are_complete_short_and_cut_at_the_capacity() {
    everywhere("why");
}

#[test]
fn a_chain_begins_where_the_word_is() {
    everywhere("chain");
}

#[test]
fn a_chain_may_begin_in_a_register() {
    everywhere("registers");
}

#[test]
fn queries_and_collections_do_not_interfere() {
    for program in [&built().linked, &built().shared] {
        for mode in ["hybrid", "collect"] {
            case(program, "queries", &[("TITHE_MODE", mode)]);
        }
    }
}

#[test]
fn shares_are_what_one_sort_of_root_holds_alone() {
    everywhere("held");
}

#[test]
fn two_heaps_hold_each_others_blocks() {
    everywhere("neighbours");
}

#[test]
fn a_program_without_shared_objects_collects() {
    for name in ["blocks", "collect", "roots", "threads", "fork", "neighbours"] {
        case(&built().alone, name, &[]);
    }
}

#[test]
fn a_pass_of_mode_guard_reads_no_page_without_access() {
    for program in [&built().linked, &built().shared] {
        case(program, "inaccessible", &[("TITHE_MODE", "guard")]);
    }
}

#[test]
fn wrong_addresses_are_reported_once_each_and_ignored() {
    for program in [&built().linked, &built().shared] {
        let written = |mode: &str| {
            let output = case(program, "misuse", &[("TITHE_MODE", mode)]);
            String::from_utf8_lossy(&output.stderr).into_owned()
        };
        for mode in ["hybrid", "explicit"] {
            let text = written(mode);
            assert_eq!(text.lines().count(), 3, "{text}");
            for part in ["was not allocated here", "not where a block begins", "is free already"] {
                assert!(text.contains(part), "{text}");
            }
        }
        assert_eq!(written("collect"), "", "free does nothing");
    }
}

#[test]
fn the_variable_has_chains_and_shares_written_after_each_collection() {
    let log = folder().join("why.log");
    let path = log.to_str().expect("a path in UTF-8");
    for program in [&built().linked, &built().shared] {
        // To standard error.
        let output = case(program, "variable", &[]);
        check_written(&output.stdout, &String::from_utf8_lossy(&output.stderr));
        // To the log.
        let _ = fs::remove_file(&log);
        let output = case(program, "variable", &[("TITHE_LOG", path)]);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        let text = fs::read_to_string(&log).expect("the log was written");
        check_written(&output.stdout, &text);
        let line = text.lines().find(|line| line.contains(" collection=1 ")).expect("the collection's line");
        let share = text.lines().find(|line| line.contains("held_statics_bytes")).expect("the shares' line");
        let numbers = share.split(' ').filter_map(|word| word.strip_prefix("held_")?.split('=').nth(1));
        let sum: u64 = numbers.map(|number| number.parse::<u64>().expect("a number")).sum();
        assert!(line.contains(&format!(" ambiguous_bytes={sum} ")), "{line}\n{share}");
    }
}

/// The program's standard output has the end of the chain's first line, and its other lines.
fn check_written(expected: &[u8], text: &str) {
    let expected = String::from_utf8_lossy(expected);
    let chain: Vec<&str> = expected.lines().filter(|line| *line != "ok").collect();
    assert_eq!(chain.len(), 4, "{expected}");
    let written: Vec<&str> = text.lines().filter(|line| line.contains(" why=0x")).collect();
    assert_eq!(written.len(), 5, "{text}");
    assert!(written[0].contains(" static datum /") && written[0].ends_with(chain[0]), "{text}");
    for (written, expected) in written[1..].iter().zip(&chain[1..]) {
        assert!(written.ends_with(expected), "{written}: {expected}");
    }
    assert!(written[4].contains(" held_statics_bytes="), "{text}");
}

#[test]
fn wrong_settings_end_a_linked_program_too() {
    let mut command = Command::new(&built().linked);
    let output = command.arg("blocks").env("TITHE_MODE", "lazy").output().expect("the program runs");
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("TITHE_MODE") && text.contains("hybrid, collect, explicit or guard"), "{text}");
}

/// The names that a library exports.
fn names(arguments: &[&OsStr]) -> BTreeSet<String> {
    let output =
        run(Command::new("nm").args(["--defined-only", "--format=posix", "--extern-only"]).args(arguments));
    let text = String::from_utf8(output.stdout).expect("names in UTF-8");
    text.lines()
        .filter(|line| line.contains(' '))
        .filter_map(|line| line.split(' ').next())
        .map(str::to_string)
        .collect()
}

#[test]
fn libraries_offer_what_the_header_declares() {
    let header = fs::read_to_string(root().join("include/tithe.h")).expect("the header");
    let code: String =
        header.split("/*").map(|part| part.split_once("*/").map_or(part, |(_, code)| code)).collect();
    let declared: BTreeSet<String> = code
        .split('(')
        .filter_map(|before| before.rsplit([' ', '*', '\n']).next())
        .filter(|name| name.starts_with("tithe_"))
        .map(str::to_string)
        .collect();
    assert!(declared.len() >= 15, "{declared:?}");
    assert_eq!(names(&[built().archive.as_os_str()]), declared);
    let object = names(&[OsStr::new("--dynamic"), built().object.as_os_str()]);
    assert!(object.is_superset(&declared), "{object:?}");
    assert!(object.contains("malloc") && object.contains("heaptoll_control_v1"), "{object:?}");
}

#[test]
fn the_header_is_c_plus_plus_too() {
    let header = root().join("include/tithe.h");
    run(Command::new("c++")
        .args(["-std=c++11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c++"])
        .arg(header));
}

#[test]
fn the_documented_example_writes_what_the_document_shows() {
    let document = fs::read_to_string(root().join("docs/questions/tithe-api.md")).expect("the document");
    let block = |language: &str| {
        let (_, rest) = document.split_once(&format!("\n```{language}\n")).expect("a block");
        rest.split_once("\n```\n").expect("its end").0
    };
    let source = folder().join("people.c");
    fs::write(&source, block("c")).expect("the program is written");
    for (name, library) in [("people-linked", &built().archive), ("people-shared", &built().object)] {
        let program = folder().join(name);
        compile(&program, &[&source, library]);
        for mode in ["hybrid", "collect"] {
            let output = run(Command::new(&program).env("TITHE_MODE", mode));
            assert_eq!(String::from_utf8_lossy(&output.stdout).trim_end(), block("text"), "{name}, {mode}");
        }
    }
}
