//! The ring with real processes: forks, kills, execs, threads by the thousand, a tool that dies.
//!
//! Without the test harness, whose threads a fork would leave behind: the program runs its tests one after another,
//! or, as a child of itself, plays one of the [`roles`].

#[path = "../common/mod.rs"]
mod common;
mod follow;
mod roles;

use std::collections::HashMap;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use heaptoll_alloc_ring::{Flags, Options, Shared, StopPoint};

use common::{Event, Received, tiny};
use follow::{FinishedProcess, TestTool};
use roles::{Counters, number};

fn main() {
    if let Some(role) = std::env::var_os("RING_ROLE") {
        return roles::play(&role.to_string_lossy());
    }
    let only: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let tests: &[(&str, fn())] = &[
        ("a_process_is_followed_to_its_end", a_process_is_followed_to_its_end),
        (
            "a_process_stops_after_the_event_it_is_to_stop_after",
            a_process_stops_after_the_event_it_is_to_stop_after,
        ),
        ("what_was_emitted_before_a_kill_comes_out", what_was_emitted_before_a_kill_comes_out),
        ("what_threads_emitted_before_a_kill_comes_out", what_threads_emitted_before_a_kill_comes_out),
        (
            "a_full_ring_blocks_the_program_until_it_is_drained",
            a_full_ring_blocks_the_program_until_it_is_drained,
        ),
        ("a_program_whose_tool_is_killed_goes_on", a_program_whose_tool_is_killed_goes_on),
        ("a_program_whose_tool_closes_goes_on", a_program_whose_tool_closes_goes_on),
        ("a_thousand_forks_one_after_another", a_thousand_forks_one_after_another),
        ("forks_that_are_faster_than_the_tool_wait_for_it", forks_that_are_faster_than_the_tool_wait_for_it),
        ("a_hundred_thousand_forks_over_time", a_hundred_thousand_forks_over_time),
        ("three_hundred_forks_at_once", three_hundred_forks_at_once),
        ("a_fork_by_clone_registers_again", a_fork_by_clone_registers_again),
        ("a_fork_registers_once", a_fork_registers_once),
        ("a_child_of_vfork_counts_as_its_parent", a_child_of_vfork_counts_as_its_parent),
        ("an_exec_is_a_new_image", an_exec_is_a_new_image),
        ("five_thousand_threads_one_after_another", five_thousand_threads_one_after_another),
        ("three_thousand_threads_at_once", three_thousand_threads_at_once),
        ("processes_without_an_entry_run_and_are_counted", processes_without_an_entry_run_and_are_counted),
        ("a_dismissed_process_goes_on", a_dismissed_process_goes_on),
        (
            "a_tool_without_descriptors_takes_no_process_for_dead",
            a_tool_without_descriptors_takes_no_process_for_dead,
        ),
        ("a_changed_root_does_not_detach", a_changed_root_does_not_detach),
        ("no_descriptors_do_not_detach", no_descriptors_do_not_detach),
        ("a_limited_address_space_takes_fewer_rings", a_limited_address_space_takes_fewer_rings),
        ("another_namespace_of_processes_is_followed", another_namespace_of_processes_is_followed),
        ("events_of_signal_handlers_come_out", events_of_signal_handlers_come_out),
    ];
    let mut failed = Vec::new();
    for (name, test) in tests {
        if !only.is_empty() && !only.iter().any(|part| name.contains(part.as_str())) {
            continue;
        }
        let begin = Instant::now();
        let fine = std::panic::catch_unwind(test).is_ok();
        println!(
            "test {name} ... {} ({:.2} s)",
            if fine { "ok" } else { "FAILED" },
            begin.elapsed().as_secs_f64()
        );
        if !fine {
            failed.push(*name);
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

/// This program in a role, recorded by `shared`.
fn role(shared: &Shared, role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the test program has a path"));
    command.env("RING_ROLE", role).env("HEAPTOLL_RECORD", shared.path()).stdin(Stdio::null());
    command
}

fn follow(options: &Options, what: &str) -> Vec<FinishedProcess> {
    let shared = Shared::create(options).expect("a file can be made");
    let child = role(&shared, what).spawn().expect("the test program runs");
    let mut tool = TestTool::new(shared);
    let status = tool.follow(child);
    assert!(status.success(), "{what}: {status}");
    assert_eq!(tool.shared.left_out(), Default::default());
    tool.done
}

/// Waits for a condition, with a limit that only a defect or a very slow machine exceeds.
fn await_until(what: &str, mut is: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{what}: not within 20 s");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The numbers of a sequence of [`roles::numbered`] events, which must be those events exactly.
fn numbers(received: &Received, thread: u32) -> Vec<u64> {
    received.events.iter().filter(|(writer, _)| *writer == thread).map(|(_, event)| number(event)).collect()
}

fn assert_counts_to(numbers: &[u64], count: u64) {
    assert_eq!(numbers.len() as u64, count);
    assert!(numbers.iter().enumerate().all(|(n, &number)| n as u64 == number), "not in order");
}

fn a_process_is_followed_to_its_end() {
    for ring_log2 in [7, 8, 12, 17] {
        let done = follow(&tiny(ring_log2, 8), "emit 20000");
        assert_eq!(done.len(), 1);
        assert_counts_to(&numbers(&done[0].received, 0), 20000);
        assert_eq!(done[0].missing, 0);
        assert_eq!(done[0].arrival.exe, std::env::current_exe().unwrap());
        assert_eq!(done[0].arrival.parent_pid, std::process::id() as i32);
    }
}

fn a_process_stops_after_the_event_it_is_to_stop_after() {
    for (ring_log2, events, image) in
        [(7, 1, 0), (7, 777, 0), (12, 19_999, 0), (17, 20_000, 0), (12, 20_001, 0), (12, 7, 1)]
    {
        let options = Options { stop: Some(StopPoint { image, events }), ..tiny(ring_log2, 8) };
        let shared = Shared::create(&options).expect("a file can be made");
        let child = role(&shared, "emit 20000").spawn().expect("the test program runs");
        let mut tool = TestTool::new(shared);
        assert!(tool.follow(child).success());
        assert_counts_to(&numbers(&tool.done[0].received, 0), 20000);
        let stops = image == 0 && events <= 20_000;
        assert_eq!(tool.stopped, if stops { vec![events as usize] } else { vec![] }, "{events} of {image}");
    }
}

/// Kills `what` after `after`; returns the events that came out and the counters of those emitted.
fn kill(options: &Options, what: &str, after: Duration, slow: bool) -> (Vec<FinishedProcess>, Vec<u64>) {
    let counters = Counters::create();
    let shared = Shared::create(options).expect("a file can be made");
    let mut child = role(&shared, what).env("RING_COUNTERS", &counters.path).spawn().expect("runs");
    let mut tool = TestTool::new(shared);
    let begin = Instant::now();
    while tool.received() == 0 {
        tool.step(1000);
        assert!(begin.elapsed() < Duration::from_secs(20), "{what} emits nothing");
    }
    let begin = Instant::now();
    while begin.elapsed() < after {
        tool.step(if slow { 50 } else { 1 << 20 });
    }
    child.kill().expect("it is our child");
    let status = tool.follow(child);
    assert_eq!(status.signal(), Some(libc::SIGKILL));
    (tool.done, counters.all())
}

fn what_was_emitted_before_a_kill_comes_out() {
    for round in 0..60u64 {
        let after = Duration::from_micros(round * 397 % 9000);
        let (done, counts) = kill(&tiny(7 + round as u32 % 6, 8), "forever", after, round % 2 == 0);
        assert_eq!(done.len(), 1);
        let emitted = numbers(&done[0].received, 0);
        assert_counts_to(&emitted, emitted.len() as u64);
        let count = counts[0];
        assert!(
            (count..=count + 1).contains(&(emitted.len() as u64)),
            "{count} emitted, {} received",
            emitted.len()
        );
    }
}

fn what_threads_emitted_before_a_kill_comes_out() {
    for round in 0..60u64 {
        let after = Duration::from_micros(round * 397 % 9000);
        // With two rings, the threads share one.
        let rings = if round % 3 == 0 { 2 } else { 32 };
        let (done, counts) =
            kill(&tiny(7 + round as u32 % 6, rings), "threads-forever 6", after, round % 2 == 0);
        assert_eq!(done.len(), 1);
        assert!(done[0].missing <= 6, "{} events missing of 6 threads", done[0].missing);
        // The size of an event identifies its thread; indices are given in order of registration.
        let mut emitted: HashMap<u64, Vec<u64>> = HashMap::new();
        for (_, event) in &done[0].received.events {
            let Event::Alloc { address, size, .. } = event else { panic!("{event:?} was not emitted") };
            emitted.entry(*size).or_default().push(address / 8 - 1);
        }
        for (thread, emitted) in emitted {
            assert_counts_to(&emitted, emitted.len() as u64);
            let count = counts[thread as usize];
            assert!(
                (count..=count + 1).contains(&(emitted.len() as u64)),
                "thread {thread}: {count} emitted, {} received",
                emitted.len()
            );
        }
    }
}

fn a_full_ring_blocks_the_program_until_it_is_drained() {
    let counters = Counters::create();
    let shared = Shared::create(&tiny(10, 8)).expect("a file can be made");
    let child = role(&shared, "emit 100000").env("RING_COUNTERS", &counters.path).spawn().expect("runs");
    // Once a busy machine has let it come so far, it gets time to continue, which it must not.
    await_until("it fills the ring", || counters.all()[0] > 300);
    std::thread::sleep(Duration::from_millis(300));
    let held = counters.all()[0];
    assert!(held <= 1024, "{held} events emitted into a ring of 1024 words");
    let mut tool = TestTool::new(shared);
    assert!(tool.follow(child).success());
    assert_counts_to(&numbers(&tool.done[0].received, 0), 100_000);
}

fn a_program_whose_tool_is_killed_goes_on() {
    for what in ["forever", "threads-forever 4"] {
        let counters = Counters::create();
        let mut tool = Command::new(std::env::current_exe().unwrap())
            .env("RING_ROLE", "tool")
            .stdout(Stdio::piped())
            .spawn()
            .expect("runs");
        let mut path = String::new();
        let output = tool.stdout.take().expect("it is a pipe");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut path)
            .expect("the tool prints its path");
        let path = path.trim().to_owned();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .env("RING_ROLE", what)
            .env("HEAPTOLL_RECORD", &path)
            .env("RING_COUNTERS", &counters.path)
            .spawn()
            .expect("runs");
        await_until("the tool drains", || counters.all()[0] >= 100_000);
        tool.kill().expect("it is our child");
        assert_eq!(tool.wait().expect("it is our child").signal(), Some(libc::SIGKILL));
        // Far more than the rings hold: it continues when it no longer waits for the tool.
        let before = counters.all()[0];
        let begin = Instant::now();
        await_until("the program continues", || counters.all()[0] > before + 100_000);
        println!("    {what}: continued within {} ms", begin.elapsed().as_millis());
        await_until("the file is removed", || !std::path::Path::new(&path).exists());
        child.kill().expect("it is our child");
        child.wait().expect("it is our child");
    }
}

fn a_program_whose_tool_closes_goes_on() {
    let counters = Counters::create();
    let shared = Shared::create(&tiny(10, 8)).expect("a file can be made");
    let path = shared.path().to_owned();
    let mut child = role(&shared, "emit 1000000").env("RING_COUNTERS", &counters.path).spawn().expect("runs");
    let mut tool = TestTool::new(shared);
    while tool.received() < 5000 {
        tool.step(100);
    }
    drop(tool);
    assert!(!path.exists());
    assert!(child.wait().expect("it is our child").success());
    assert_eq!(counters.all()[0], 1_000_000);
}

fn a_thousand_forks_one_after_another() {
    // Fewer entries and rings than processes: they are used again.
    let done = follow(&Options { processes: 64, ..tiny(10, 64) }, "forks 1000 10");
    assert_eq!(done.len(), 1001);
    for followed in &done[..] {
        let count = numbers(&followed.received, 0).len() as u64;
        assert!(count == 10 || count == 5, "{count} events of {:?}", followed.arrival);
        assert_counts_to(&numbers(&followed.received, 0), count);
    }
    let parent = done.iter().find(|followed| followed.arrival.image == 0).expect("the first image");
    assert!(
        done.iter()
            .filter(|one| one.arrival.image != 0)
            .all(|one| one.arrival.parent_pid == parent.arrival.pid)
    );
}

/// A regression found with 100,000 forks: entries and rings ran out while the tool lagged, and processes were left out.
fn forks_that_are_faster_than_the_tool_wait_for_it() {
    let shared = Shared::create(&Options { processes: 5, ..tiny(10, 4) }).expect("a file can be made");
    let child = role(&shared, "forks 100 10").spawn().expect("runs");
    let mut tool = TestTool::new(shared);
    tool.rest = Duration::from_millis(20);
    assert!(tool.follow(child).success());
    assert_eq!(tool.shared.left_out(), Default::default());
    assert_eq!(tool.done.len(), 101);
    assert!(tool.done.iter().all(|one| [5, 10].contains(&one.received.events.len())));
}

/// Takes a minute or more: runs only with `RING_LONG=1`.
fn a_hundred_thousand_forks_over_time() {
    if std::env::var_os("RING_LONG").is_none() {
        return println!("    skipped: takes a minute; set RING_LONG=1");
    }
    let shared = Shared::create(&Options::default()).expect("a file can be made");
    let child = role(&shared, "forks 100000 10").spawn().expect("runs");
    let mut tool = TestTool::new(shared);
    tool.patience = Duration::from_secs(1000);
    assert!(tool.follow(child).success());
    assert_eq!(tool.shared.left_out(), Default::default());
    assert_eq!(tool.done.len(), 100_001);
    assert!(tool.done.iter().all(|one| one.missing == 0 && [5, 10].contains(&one.received.events.len())));
    let used =
        std::os::unix::fs::MetadataExt::blocks(&tool.shared.path().metadata().expect("it is there")) / 2;
    println!("    the file holds {used} KiB after 100,000 processes");
    assert!(used < 64 << 10);
}

fn three_hundred_forks_at_once() {
    let done = follow(&Options { processes: 512, ..tiny(10, 512) }, "forks-at-once 300 200");
    assert_eq!(done.len(), 301);
    for followed in done.iter().filter(|one| one.arrival.image != 0) {
        assert_counts_to(&numbers(&followed.received, 0), 200);
    }
}

fn a_fork_by_clone_registers_again() {
    let done = follow(&tiny(10, 8), "clone 3000");
    assert_eq!(done.len(), 2);
    for followed in done {
        assert_counts_to(&numbers(&followed.received, 0), 3000);
    }
}

fn a_fork_registers_once() {
    let done = follow(&tiny(10, 8), "clone-within");
    let child = done.iter().find(|one| one.arrival.image != 0).expect("the child registered");
    assert_eq!(child.received.threads.len(), 1, "{:?}", child.received.threads);
    let site = common::Event::Definition { site: 7, frames: vec![4096] };
    assert_eq!(child.received.events, [(0, site), (0, roles::numbered(0))]);
}

fn a_child_of_vfork_counts_as_its_parent() {
    let done = follow(&tiny(10, 8), "vfork 100");
    assert_eq!(done.len(), 1);
    assert_counts_to(&numbers(&done[0].received, 0), 300);
}

fn an_exec_is_a_new_image() {
    let done = follow(&tiny(10, 8), "exec 50 emit 70");
    assert_eq!(done.len(), 2);
    assert_eq!(done[0].arrival.pid, done[1].arrival.pid);
    assert_ne!(done[0].arrival.image, done[1].arrival.image);
    let mut counts = done.iter().map(|one| numbers(&one.received, 0).len()).collect::<Vec<_>>();
    counts.sort_unstable();
    assert_eq!(counts, [50, 70]);
}

fn five_thousand_threads_one_after_another() {
    let done = follow(&tiny(10, 256), "threads-in-turn 5000 8");
    assert_eq!(done.len(), 1);
    assert_threads(&done[0].received, 5001, 8);
}

fn three_thousand_threads_at_once() {
    let done = follow(&tiny(10, 2048), "threads-at-once 3000 8");
    assert_eq!(done.len(), 1);
    assert_threads(&done[0].received, 3001, 8);
}

/// Checks that there are `threads` threads, of which all but one have emitted `events` events.
fn assert_threads(received: &Received, threads: usize, events: usize) {
    let mut counts: HashMap<u32, u64> = HashMap::new();
    for (thread, event) in &received.events {
        let count = counts.entry(*thread).or_default();
        assert_eq!(number(event), *count, "thread {thread}");
        *count += 1;
    }
    assert_eq!(counts.len(), threads);
    assert_eq!(counts.values().filter(|&&count| count == events as u64).count(), threads - 1);
    let mut known: Vec<u32> = received.threads.iter().map(|known| known.0).collect();
    known.sort_unstable();
    known.dedup();
    assert_eq!(known.len(), threads);
}

fn processes_without_an_entry_run_and_are_counted() {
    let shared = Shared::create(&Options { processes: 3, ..tiny(10, 8) }).expect("a file can be made");
    let child = role(&shared, "forks-at-once 5 200").spawn().expect("runs");
    let mut tool = TestTool::new(shared);
    assert!(tool.follow(child).success());
    assert_eq!(tool.done.len(), 3);
    assert_eq!(tool.shared.left_out().processes, 3);
}

fn a_dismissed_process_goes_on() {
    let counters = Counters::create();
    let shared = Shared::create(&tiny(10, 8)).expect("a file can be made");
    let child = role(&shared, "emit 300000").env("RING_COUNTERS", &counters.path).spawn().expect("runs");
    let mut tool = TestTool::new(shared);
    tool.dismiss = true;
    assert!(tool.follow(child).success());
    assert_eq!(counters.all()[0], 300_000);
    let received = numbers(&tool.done[0].received, 0);
    assert!(received.len() < 300_000);
    assert_counts_to(&received, received.len() as u64);
}

/// Starts to drain so late, and without a tick, that a waiting producer checks several times whether the tool runs.
fn follow_late(what: &str) -> bool {
    let shared = Shared::create(&tiny(8, 8)).expect("a file can be made");
    let child = role(&shared, what).spawn().expect("runs");
    std::thread::sleep(Duration::from_millis(300));
    let mut tool = TestTool::new(shared);
    let status = tool.follow(child);
    if status.code() == Some(77) {
        println!("    skipped: not permitted here");
        return false;
    }
    assert!(status.success(), "{what}: {status}");
    assert_counts_to(&numbers(&tool.done[0].received, 0), 5000);
    true
}

/// Without descriptors the tool cannot read /proc.
fn a_tool_without_descriptors_takes_no_process_for_dead() {
    let shared = Shared::create(&tiny(12, 16)).expect("a file can be made");
    let mut child = role(&shared, "slow 100000000").spawn().expect("the test program runs");
    let mut tool = TestTool::new(shared);
    while tool.received() == 0 {
        tool.step(1000);
    }
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: getrlimit writes to `limit`, a local variable.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) }, 0);
    let none = libc::rlimit { rlim_cur: 0, ..limit };
    // SAFETY: setrlimit reads `none`, a local variable; this program has one thread.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &none) }, 0);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(300) {
        tool.step(1000);
    }
    let done = tool.done.len();
    // SAFETY: setrlimit reads `limit`, a local variable; this program has one thread.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
    child.kill().expect("it is ours");
    tool.follow(child);
    assert_eq!((done, tool.done.len()), (0, 1));
}

fn a_changed_root_does_not_detach() {
    follow_late("chroot 5000");
}

fn no_descriptors_do_not_detach() {
    assert!(follow_late("closed 5000"));
}

fn a_limited_address_space_takes_fewer_rings() {
    let done = follow(&Options::default(), "limited 3000");
    assert_eq!(done.len(), 1);
    assert_counts_to(&numbers(&done[0].received, 0), 3000);
}

fn another_namespace_of_processes_is_followed() {
    let shared = Shared::create(&tiny(9, 8)).expect("a file can be made");
    let mut command = Command::new("unshare");
    command.args(["--fork", "--pid"]).arg(std::env::current_exe().unwrap());
    command.env("RING_ROLE", "slow 2000").env("HEAPTOLL_RECORD", shared.path());
    let Ok(child) = command.stderr(Stdio::null()).spawn() else {
        return println!("    skipped: no unshare here");
    };
    let mut tool = TestTool::new(shared);
    if !tool.follow(child).success() {
        return println!("    skipped: not permitted here");
    }
    assert_eq!(tool.done.len(), 1);
    assert_ne!(tool.done[0].arrival.pid, 1, "the number is not translated");
    assert_counts_to(&numbers(&tool.done[0].received, 0), 2000);
}

fn events_of_signal_handlers_come_out() {
    for flags in [Flags::default(), Flags { event_time: true, ..Flags::default() }] {
        let counters = Counters::create();
        let shared = Shared::create(&Options { flags, ..tiny(12, 16) }).expect("a file can be made");
        let child =
            role(&shared, "signals 400000").env("RING_COUNTERS", &counters.path).spawn().expect("runs");
        let mut tool = TestTool::new(shared);
        assert!(tool.follow(child).success());
        let received = &tool.done[0].received;
        let (handled, main): (Vec<&Event>, Vec<&Event>) = received
            .events
            .iter()
            .map(|(_, event)| event)
            .partition(|event| matches!(event, Event::Failed { .. }));
        let main: Vec<u64> = main.into_iter().map(number).collect();
        assert_counts_to(&main, 400_000);
        let left_out = tool.shared.left_out();
        let emitted = counters.all()[1];
        assert_eq!(handled.len() as u64 + u64::from(left_out.events), emitted);
        assert!(emitted > 20, "only {emitted} signals");
        println!("    {emitted} events of handlers, {} of them left out", left_out.events);
    }
}
