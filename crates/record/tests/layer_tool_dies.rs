//! When the tool dies, the program goes on.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::layer_support::{Fixture, layers};
use heaptoll_alloc_ring::{Options, RingEvent, Shared, Sink, Tap};

struct Nothing;

impl Sink for Nothing {
    fn event(&mut self, _: u32, _: RingEvent<'_>) {}
    fn thread(&mut self, _: u32, _: i32) {}
}

/// Not a test: the tool of the tests below, in a process of its own, which they kill.
#[test]
#[ignore = "run by the other tests"]
fn tool() {
    let Some(fixture) = std::env::var_os("LAYER_TEST_FOLDER") else { return };
    let fixture = Path::new(&fixture);
    let drains = std::env::var_os("LAYER_TEST_DRAINS").is_some();
    // Small rings: a tool that does not drain them stops the program soon.
    let options = Options { rings: 16, ring_log2: 10, block_log2: 8, processes: 16, ..Options::default() };
    let mut shared = Shared::create(&options).expect("the shared file");
    std::fs::write(fixture.join("rings"), shared.path().as_os_str().as_encoded_bytes()).expect("a file");
    let mut child = Command::new(fixture.join("outlives"))
        .arg(fixture.join("ready"))
        .arg("3")
        .env("LD_PRELOAD", layers().join("libheaptoll_record.so"))
        .env("HEAPTOLL_RECORD", shared.path())
        .stdin(Stdio::null())
        .stdout(File::create(fixture.join("out")).expect("a file"))
        .stderr(File::create(fixture.join("err")).expect("a file"))
        .spawn()
        .expect("it starts");
    let mut taps = Vec::new();
    // The tests kill this process long before.
    while child.try_wait().expect("a child").is_none() {
        for arrival in shared.arrivals() {
            taps.push(Tap::new(&shared, arrival.index));
        }
        if drains || !fixture.join("ready").exists() {
            for tap in &mut taps {
                tap.drain(usize::MAX, &mut Nothing);
            }
        }
        shared.tick();
        shared.wait(Duration::from_millis(1));
    }
}

fn await_until(what: &str, mut is: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn the_program_goes_on(drains: bool) {
    let fixture = Fixture::new();
    fixture.program("outlives.c", &[]);
    let mut tool = Command::new(std::env::current_exe().expect("this test"));
    tool.args(["--ignored", "--exact", "layer_tool_dies::tool"])
        .env("LAYER_TEST_FOLDER", fixture.0.path())
        .env("HEAPTOLL_LAYERS_DIR", layers())
        .stdout(Stdio::null());
    if drains {
        tool.env("LAYER_TEST_DRAINS", "1");
    }
    let mut tool = tool.spawn().expect("it starts");
    await_until("the program allocates", || fixture.path("ready").exists());
    // Its rings are full by now where the tool does not drain them.
    std::thread::sleep(Duration::from_millis(300));
    tool.kill().expect("the tool is killed");
    tool.wait().expect("it is dead");
    std::fs::remove_file(fixture.path("ready")).expect("the file is there");
    let read = |name: &str| std::fs::read_to_string(fixture.path(name)).expect("a file");
    await_until("the program ends", || read("out").ends_with('\n'));
    assert_eq!(read("err"), "");
    let rounds: u64 = read("out").trim().parse().expect("a number");
    assert!(rounds > 100_000, "{rounds}");
    // Unless the program, the only process left with it, has removed it.
    let _ = std::fs::remove_file(read("rings"));
}

#[test]
fn a_program_whose_events_are_read_goes_on() {
    the_program_goes_on(true);
}

#[test]
fn a_program_that_waits_for_the_tool_goes_on() {
    the_program_goes_on(false);
}
