//! The tutorial as a reader types it, and the command that each page of questions and of the laboratory begins with:
//! all of them run.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::documented::commands::{Shown, of_markdown};
use crate::fixture::Fixture;

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
/// In the order of the book: later pages read what earlier ones recorded.
const TUTORIAL: [&str; 4] = [
    "tutorial/first-comparison.md",
    "tutorial/who-holds-the-memory.md",
    "tutorial/find-a-leak.md",
    "questions/write-an-allocator.md",
];
/// Pages without such a command, and what covers them.
const OTHERWISE: [(&str, &str); 13] = [
    ("artifact", "it reads an experiment of the reader's; its own tests make some"),
    ("send-a-run", "it prepares the whole catalog; the tests of plans cut a part of it"),
    ("jvm", "it needs a virtual machine of Java; the slow tests of Java run one"),
    ("events", "it shows code; the tests of `programs/events` compile it"),
    ("gate", "it compares two builds of the reader's; the tests of the gate build some"),
    ("gate-ci", "its files' commands run in a test of their own"),
    ("own-allocators", "it has a program of the reader's; the tests of own allocators build some"),
    ("import", "it reads recordings of other tools; its own tests read some"),
    ("frequency", "the program has too few collections; its own tests run it"),
    ("proximity", "minutes; the test of all commands runs it in little"),
    ("programs", "a program of the catalog at full size; its own tests run it"),
    ("study", "minutes; the test of all commands runs its list"),
    ("tithe-api", "it shows code; the tests of the library compile it"),
];

fn page(path: &str) -> String {
    std::fs::read_to_string(Path::new(DOCS).join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The first listing in C of a page.
fn listing(page: &str) -> &str {
    let (_, rest) = page.split_once("```c\n").expect("the page has a listing");
    rest.split_once("```").expect("the listing ends").0
}

/// Writes the sources of the tutorial and compiles them by the lines of its pages.
fn compile(fixture: &Fixture) {
    std::fs::write(fixture.path("requests.c"), listing(&page(TUTORIAL[0]))).expect("writes");
    std::fs::write(fixture.path("mine.c"), page("questions/mine.c")).expect("writes");
    for path in [TUTORIAL[0], TUTORIAL[3]] {
        let page = page(path);
        let line = page.lines().find(|line| line.starts_with("gcc ")).expect("the page compiles it");
        let status = Command::new("sh").args(["-c", line]).current_dir(fixture.path(".")).status();
        assert!(status.expect("sh runs").success(), "{line}");
    }
    // Names by which pages call the allocator and the program of the reader.
    for (from, to) in [("mine.so", "libmine.so"), ("requests", "program")] {
        std::fs::copy(fixture.path(from), fixture.path(to)).expect("copies");
    }
}

/// A page's command, with less to do where it would take minutes in a build without optimisation.
fn in_little(words: &[String]) -> Vec<String> {
    let at = if words[0] == "lab" { 2 } else { 1 };
    let measures = ["run", "delay", "reclamation", "choose"].contains(&words[at - 1].as_str());
    let traces = words[0] == "exact";
    let mut little = Vec::new();
    for word in words {
        let requests = matches!(word.as_str(), "80000" | "40000");
        let fewer = if word == "80000" { "4000" } else { "2000" };
        little.push(if requests && (measures || traces) { fewer.to_owned() } else { word.clone() });
    }
    if measures {
        little.retain(|word| word != "-n" && word != "6");
        let shorter: &[&str] = if words[0] == "run" { &["-n", "1", "--warmup", "0"] } else { &["-n", "1"] };
        little.splice(at..at, shorter.iter().map(|&word| word.to_owned()));
    }
    little
}

/// Runs a command of a page where its files are, and returns what it printed.
fn typed(fixture: &Fixture, shown: &Shown) -> String {
    let words = in_little(&shown.words);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let begun = Instant::now();
    let output = fixture.command(&words).current_dir(fixture.path(".")).output().expect("heaptoll starts");
    eprintln!("{:6.1} s  {}: heaptoll {}", begun.elapsed().as_secs_f64(), shown.place, words.join(" "));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}: heaptoll {}\n{text}\n{errors}",
        shown.place,
        words.join(" ")
    );
    text + &errors
}

/// Commands of a page that have all they need.
fn commands(path: &str) -> Vec<Shown> {
    of_markdown(path, &page(path)).into_iter().filter(|shown| shown.words.len() > 1).collect()
}

#[test]
#[ignore = "slow: runs some thirty commands of pages, a minute"]
fn the_tutorial_runs_as_it_is_typed() {
    let fixture = Fixture::new();
    compile(&fixture);
    let mut ran = 0;
    for path in TUTORIAL {
        for shown in commands(path) {
            let text = typed(&fixture, &shown);
            let line = shown.words.join(" ");
            ran += 1;
            // What the pages find: the site of the leak, and that the heap is fragmented.
            if line == "trace lifetimes --by site requests.heaptoll" {
                let (_, live) = text.split_once("Still live at exit").expect("the last table");
                let sites = ["parse_header (requests.c:11) < handle", "log_audit (requests.c:17) < handle"];
                assert!(sites.iter().all(|site| live.contains(site)), "{live}");
            }
            // On a loaded machine the peak may be missed.
            if line.starts_with("ledger -- ") {
                let headings = ["At the peak", "The peak of "];
                let (_, peak) =
                    headings.iter().find_map(|one| text.split_once(one)).expect("the first section");
                let missed = text.contains(headings[1]);
                let (sentences, _) = peak.split_once("Where ").expect("the first table");
                assert!(missed || sentences.contains("external fragmentation"), "{text}");
            }
        }
    }
    assert!(ran > 14, "only {ran} commands were typed");
}

#[test]
#[ignore = "slow: runs some thirty commands of pages, a minute"]
fn the_command_that_a_page_of_the_guide_begins_with_runs() {
    let fixture = Fixture::new();
    compile(&fixture);
    for shown in
        commands("tutorial/who-holds-the-memory.md").iter().filter(|shown| shown.words[0] == "record")
    {
        typed(&fixture, shown);
    }
    std::fs::copy(fixture.path("requests.heaptoll"), fixture.path("half.heaptoll")).expect("copies");
    // The page of replays with pointers reads what the page of recordings with pointers makes.
    typed(&fixture, &commands("lab/graph.md")[0]);
    let pages = ["questions", "lab"].into_iter().flat_map(|folder| {
        let entries = std::fs::read_dir(Path::new(DOCS).join(folder)).expect(folder).flatten();
        entries.map(move |entry| format!("{folder}/{}", entry.file_name().to_str().expect("a name")))
    });
    let mut ran = 0;
    for page in pages {
        let Some(name) = page.strip_suffix(".md").and_then(|path| path.split('/').nth(1)) else { continue };
        if OTHERWISE.iter().any(|(known, _)| *known == name) {
            continue;
        }
        let mut shown = commands(&page).into_iter().next().expect(name);
        if shown.words[0] == "record" {
            shown.words.insert(1, "--force".into());
        }
        typed(&fixture, &shown);
        ran += 1;
    }
    assert!(ran > 12, "only {ran} pages begin with a command");
}
