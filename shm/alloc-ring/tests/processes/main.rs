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

use heaptoll_ring::{Flags, Options, Shared};

use common::{Event, Heard, tiny};
use follow::{Followed, Follower};
use roles::{Counters, number};

fn main() {
    if let Some(role) = std::env::var_os("RING_ROLE") {
        return roles::play(&role.to_string_lossy());
    }
    let only: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let tests: &[(&str, fn())] = &[
        ("a_process_is_heard_to_its_end", a_process_is_heard_to_its_end),
        ("what_was_told_before_a_kill_comes_out", what_was_told_before_a_kill_comes_out),
        ("what_threads_told_before_a_kill_comes_out", what_threads_told_before_a_kill_comes_out),
        (
            "a_full_ring_holds_the_program_up_and_lets_it_go_on",
            a_full_ring_holds_the_program_up_and_lets_it_go_on,
        ),
        ("a_program_whose_tool_is_killed_goes_on", a_program_whose_tool_is_killed_goes_on),
        ("a_program_whose_tool_closes_goes_on", a_program_whose_tool_closes_goes_on),
        ("a_thousand_forks_one_after_another", a_thousand_forks_one_after_another),
        ("forks_that_are_faster_than_the_tool_wait_for_it", forks_that_are_faster_than_the_tool_wait_for_it),
        ("a_hundred_thousand_forks_over_time", a_hundred_thousand_forks_over_time),
        ("three_hundred_forks_at_once", three_hundred_forks_at_once),
        ("a_fork_by_clone_registers_anew", a_fork_by_clone_registers_anew),
        ("a_fork_registers_once", a_fork_registers_once),
        ("a_child_of_vfork_counts_as_its_parent", a_child_of_vfork_counts_as_its_parent),
        ("an_exec_is_a_new_image", an_exec_is_a_new_image),
        ("five_thousand_threads_one_after_another", five_thousand_threads_one_after_another),
        ("three_thousand_threads_at_once", three_thousand_threads_at_once),
        ("processes_without_an_entry_run_and_are_counted", processes_without_an_entry_run_and_are_counted),
        ("a_dismissed_process_goes_on", a_dismissed_process_goes_on),
        (
            "a_tool_without_descriptors_takes_nobody_for_dead",
            a_tool_without_descriptors_takes_nobody_for_dead,
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

fn follow(options: &Options, what: &str) -> Vec<Followed> {
    let shared = Shared::create(options).expect("a file can be made");
    let child = role(&shared, what).spawn().expect("the test program runs");
    let mut follower = Follower::new(shared);
    let status = follower.follow(child);
    assert!(status.success(), "{what}: {status}");
    assert_eq!(follower.shared.left_out(), Default::default());
    follower.done
}

/// Waits for what comes as soon as the machine lets it: for what would come late on an idle one, and never where it is
/// broken.
fn await_until(what: &str, mut is: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{what}: not within 20 s");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The numbers of a sequence of [`roles::numbered`] events, which must be those events exactly.
fn numbers(heard: &Heard, thread: u32) -> Vec<u64> {
    heard.events.iter().filter(|(teller, _)| *teller == thread).map(|(_, event)| number(event)).collect()
}

fn assert_counts_to(numbers: &[u64], count: u64) {
    assert_eq!(numbers.len() as u64, count);
    assert!(numbers.iter().enumerate().all(|(n, &number)| n as u64 == number), "not in order");
}

fn a_process_is_heard_to_its_end() {
    for ring_log2 in [7, 8, 12, 17] {
        let done = follow(&tiny(ring_log2, 8), "tell 20000");
        assert_eq!(done.len(), 1);
        assert_counts_to(&numbers(&done[0].heard, 0), 20000);
        assert_eq!(done[0].missing, 0);
        assert_eq!(done[0].arrival.exe, std::env::current_exe().unwrap());
        assert_eq!(done[0].arrival.parent_pid, std::process::id() as i32);
    }
}

/// Kills `what` after `after`; gives what came out and what the counters say was told.
fn kill(options: &Options, what: &str, after: Duration, slow: bool) -> (Vec<Followed>, Vec<u64>) {
    let counters = Counters::create();
    let shared = Shared::create(options).expect("a file can be made");
    let mut child = role(&shared, what).env("RING_COUNTERS", &counters.path).spawn().expect("runs");
    let mut follower = Follower::new(shared);
    let begin = Instant::now();
    while follower.heard() == 0 {
        follower.step(1000);
        assert!(begin.elapsed() < Duration::from_secs(20), "{what} tells nothing");
    }
    let begin = Instant::now();
    while begin.elapsed() < after {
        follower.step(if slow { 50 } else { 1 << 20 });
    }
    child.kill().expect("it is our child");
    let status = follower.follow(child);
    assert_eq!(status.signal(), Some(libc::SIGKILL));
    (follower.done, counters.all())
}

fn what_was_told_before_a_kill_comes_out() {
    for round in 0..60u64 {
        let after = Duration::from_micros(round * 397 % 9000);
        let (done, counts) = kill(&tiny(7 + round as u32 % 6, 8), "forever", after, round % 2 == 0);
        assert_eq!(done.len(), 1);
        let told = numbers(&done[0].heard, 0);
        assert_counts_to(&told, told.len() as u64);
        let count = counts[0];
        assert!((count..=count + 1).contains(&(told.len() as u64)), "{count} told, {} heard", told.len());
    }
}

fn what_threads_told_before_a_kill_comes_out() {
    for round in 0..60u64 {
        let after = Duration::from_micros(round * 397 % 9000);
        // With two rings, the threads share one.
        let rings = if round % 3 == 0 { 2 } else { 32 };
        let (done, counts) =
            kill(&tiny(7 + round as u32 % 6, rings), "threads-forever 6", after, round % 2 == 0);
        assert_eq!(done.len(), 1);
        assert!(done[0].missing <= 6, "{} events missing of 6 threads", done[0].missing);
        // Threads say by the size of their events which they are; their indices come as they register.
        let mut told: HashMap<u64, Vec<u64>> = HashMap::new();
        for (_, event) in &done[0].heard.events {
            let Event::Alloc { address, size, .. } = event else { panic!("{event:?} was not told") };
            told.entry(*size).or_default().push(address / 8 - 1);
        }
        for (thread, told) in told {
            assert_counts_to(&told, told.len() as u64);
            let count = counts[thread as usize];
            assert!(
                (count..=count + 1).contains(&(told.len() as u64)),
                "thread {thread}: {count} told, {} heard",
                told.len()
            );
        }
    }
}

fn a_full_ring_holds_the_program_up_and_lets_it_go_on() {
    let counters = Counters::create();
    let shared = Shared::create(&tiny(10, 8)).expect("a file can be made");
    let child = role(&shared, "tell 100000").env("RING_COUNTERS", &counters.path).spawn().expect("runs");
    // When a busy machine has let it come so far, it is given time to go on where it must not.
    await_until("it fills the ring", || counters.all()[0] > 300);
    std::thread::sleep(Duration::from_millis(300));
    let held = counters.all()[0];
    assert!(held <= 1024, "{held} events told into a ring of 1024 words");
    let mut follower = Follower::new(shared);
    assert!(follower.follow(child).success());
    assert_counts_to(&numbers(&follower.done[0].heard, 0), 100_000);
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
        let said = tool.stdout.take().expect("it is a pipe");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(said), &mut path)
            .expect("the tool says its path");
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
        // Far more than the rings hold: it goes on when it no longer waits for anyone.
        let before = counters.all()[0];
        let begin = Instant::now();
        await_until("the program goes on", || counters.all()[0] > before + 100_000);
        println!("    {what}: went on within {} ms", begin.elapsed().as_millis());
        await_until("the file is removed", || !std::path::Path::new(&path).exists());
        child.kill().expect("it is our child");
        child.wait().expect("it is our child");
    }
}

fn a_program_whose_tool_closes_goes_on() {
    let counters = Counters::create();
    let shared = Shared::create(&tiny(10, 8)).expect("a file can be made");
    let path = shared.path().to_owned();
    let mut child = role(&shared, "tell 1000000").env("RING_COUNTERS", &counters.path).spawn().expect("runs");
    let mut follower = Follower::new(shared);
    while follower.heard() < 5000 {
        follower.step(100);
    }
    drop(follower);
    assert!(!path.exists());
    assert!(child.wait().expect("it is our child").success());
    assert_eq!(counters.all()[0], 1_000_000);
}

fn a_thousand_forks_one_after_another() {
    // Fewer entries and rings than processes: they are used again.
    let done = follow(&Options { processes: 64, ..tiny(10, 64) }, "forks 1000 10");
    assert_eq!(done.len(), 1001);
    for followed in &done[..] {
        let count = numbers(&followed.heard, 0).len() as u64;
        assert!(count == 10 || count == 5, "{count} events of {:?}", followed.arrival);
        assert_counts_to(&numbers(&followed.heard, 0), count);
    }
    let parent = done.iter().find(|followed| followed.arrival.image == 0).expect("the first image");
    assert!(
        done.iter()
            .filter(|one| one.arrival.image != 0)
            .all(|one| one.arrival.parent_pid == parent.arrival.pid)
    );
}

/// Seen with a hundred thousand: entries and rings ran out while the tool was behind, and processes were left out.
fn forks_that_are_faster_than_the_tool_wait_for_it() {
    let shared = Shared::create(&Options { processes: 5, ..tiny(10, 4) }).expect("a file can be made");
    let child = role(&shared, "forks 100 10").spawn().expect("runs");
    let mut follower = Follower::new(shared);
    follower.rest = Duration::from_millis(20);
    assert!(follower.follow(child).success());
    assert_eq!(follower.shared.left_out(), Default::default());
    assert_eq!(follower.done.len(), 101);
    assert!(follower.done.iter().all(|one| [5, 10].contains(&one.heard.events.len())));
}

/// A minute or more: only when asked for, by `RING_LONG=1`.
fn a_hundred_thousand_forks_over_time() {
    if std::env::var_os("RING_LONG").is_none() {
        return println!("    left out: takes a minute; set RING_LONG=1");
    }
    let shared = Shared::create(&Options::default()).expect("a file can be made");
    let child = role(&shared, "forks 100000 10").spawn().expect("runs");
    let mut follower = Follower::new(shared);
    follower.patience = Duration::from_secs(1000);
    assert!(follower.follow(child).success());
    assert_eq!(follower.shared.left_out(), Default::default());
    assert_eq!(follower.done.len(), 100_001);
    assert!(follower.done.iter().all(|one| one.missing == 0 && [5, 10].contains(&one.heard.events.len())));
    let used =
        std::os::unix::fs::MetadataExt::blocks(&follower.shared.path().metadata().expect("it is there")) / 2;
    println!("    the file holds {used} KiB after 100,000 processes");
    assert!(used < 64 << 10);
}

fn three_hundred_forks_at_once() {
    let done = follow(&Options { processes: 512, ..tiny(10, 512) }, "forks-at-once 300 200");
    assert_eq!(done.len(), 301);
    for followed in done.iter().filter(|one| one.arrival.image != 0) {
        assert_counts_to(&numbers(&followed.heard, 0), 200);
    }
}

fn a_fork_by_clone_registers_anew() {
    let done = follow(&tiny(10, 8), "clone 3000");
    assert_eq!(done.len(), 2);
    for followed in done {
        assert_counts_to(&numbers(&followed.heard, 0), 3000);
    }
}

fn a_fork_registers_once() {
    let done = follow(&tiny(10, 8), "clone-within");
    let child = done.iter().find(|one| one.arrival.image != 0).expect("the child registered");
    assert_eq!(child.heard.threads.len(), 1, "{:?}", child.heard.threads);
    let site = common::Event::Definition { site: 7, frames: vec![4096] };
    assert_eq!(child.heard.events, [(0, site), (0, roles::numbered(0))]);
}

fn a_child_of_vfork_counts_as_its_parent() {
    let done = follow(&tiny(10, 8), "vfork 100");
    assert_eq!(done.len(), 1);
    assert_counts_to(&numbers(&done[0].heard, 0), 300);
}

fn an_exec_is_a_new_image() {
    let done = follow(&tiny(10, 8), "exec 50 tell 70");
    assert_eq!(done.len(), 2);
    assert_eq!(done[0].arrival.pid, done[1].arrival.pid);
    assert_ne!(done[0].arrival.image, done[1].arrival.image);
    let mut counts = done.iter().map(|one| numbers(&one.heard, 0).len()).collect::<Vec<_>>();
    counts.sort_unstable();
    assert_eq!(counts, [50, 70]);
}

fn five_thousand_threads_one_after_another() {
    let done = follow(&tiny(10, 256), "threads-in-turn 5000 8");
    assert_eq!(done.len(), 1);
    assert_threads(&done[0].heard, 5001, 8);
}

fn three_thousand_threads_at_once() {
    let done = follow(&tiny(10, 2048), "threads-at-once 3000 8");
    assert_eq!(done.len(), 1);
    assert_threads(&done[0].heard, 3001, 8);
}

/// `threads` threads, of which all but one have told `events` events.
fn assert_threads(heard: &Heard, threads: usize, events: usize) {
    let mut counts: HashMap<u32, u64> = HashMap::new();
    for (thread, event) in &heard.events {
        let count = counts.entry(*thread).or_default();
        assert_eq!(number(event), *count, "thread {thread}");
        *count += 1;
    }
    assert_eq!(counts.len(), threads);
    assert_eq!(counts.values().filter(|&&count| count == events as u64).count(), threads - 1);
    let mut known: Vec<u32> = heard.threads.iter().map(|known| known.0).collect();
    known.sort_unstable();
    known.dedup();
    assert_eq!(known.len(), threads);
}

fn processes_without_an_entry_run_and_are_counted() {
    let shared = Shared::create(&Options { processes: 3, ..tiny(10, 8) }).expect("a file can be made");
    let child = role(&shared, "forks-at-once 5 200").spawn().expect("runs");
    let mut follower = Follower::new(shared);
    assert!(follower.follow(child).success());
    assert_eq!(follower.done.len(), 3);
    assert_eq!(follower.shared.left_out().processes, 3);
}

fn a_dismissed_process_goes_on() {
    let counters = Counters::create();
    let shared = Shared::create(&tiny(10, 8)).expect("a file can be made");
    let child = role(&shared, "tell 300000").env("RING_COUNTERS", &counters.path).spawn().expect("runs");
    let mut follower = Follower::new(shared);
    follower.dismiss = true;
    assert!(follower.follow(child).success());
    assert_eq!(counters.all()[0], 300_000);
    let heard = numbers(&follower.done[0].heard, 0);
    assert!(heard.len() < 300_000);
    assert_counts_to(&heard, heard.len() as u64);
}

/// A follower that comes so late that who waits asks several times whether it lives, and does not tick.
fn follow_late(what: &str) -> bool {
    let shared = Shared::create(&tiny(8, 8)).expect("a file can be made");
    let child = role(&shared, what).spawn().expect("runs");
    std::thread::sleep(Duration::from_millis(300));
    let mut follower = Follower::new(shared);
    let status = follower.follow(child);
    if status.code() == Some(77) {
        println!("    left out: not permitted here");
        return false;
    }
    assert!(status.success(), "{what}: {status}");
    assert_counts_to(&numbers(&follower.done[0].heard, 0), 5000);
    true
}

/// It cannot read /proc then.
fn a_tool_without_descriptors_takes_nobody_for_dead() {
    let shared = Shared::create(&tiny(12, 16)).expect("a file can be made");
    let mut child = role(&shared, "slow 100000000").spawn().expect("the test program runs");
    let mut follower = Follower::new(shared);
    while follower.heard() == 0 {
        follower.step(1000);
    }
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid place.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) }, 0);
    let none = libc::rlimit { rlim_cur: 0, ..limit };
    // SAFETY: a valid limit; this program has one thread.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &none) }, 0);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(300) {
        follower.step(1000);
    }
    let done = follower.done.len();
    // SAFETY: as above.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
    child.kill().expect("it is ours");
    follower.follow(child);
    assert_eq!((done, follower.done.len()), (0, 1));
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
    assert_counts_to(&numbers(&done[0].heard, 0), 3000);
}

fn another_namespace_of_processes_is_followed() {
    let shared = Shared::create(&tiny(9, 8)).expect("a file can be made");
    let mut command = Command::new("unshare");
    command.args(["--fork", "--pid"]).arg(std::env::current_exe().unwrap());
    command.env("RING_ROLE", "slow 2000").env("HEAPTOLL_RECORD", shared.path());
    let Ok(child) = command.stderr(Stdio::null()).spawn() else {
        return println!("    left out: no unshare here");
    };
    let mut follower = Follower::new(shared);
    if !follower.follow(child).success() {
        return println!("    left out: not permitted here");
    }
    assert_eq!(follower.done.len(), 1);
    assert_ne!(follower.done[0].arrival.pid, 1, "the number is not translated");
    assert_counts_to(&numbers(&follower.done[0].heard, 0), 2000);
}

fn events_of_signal_handlers_come_out() {
    for flags in [Flags::default(), Flags { event_time: true, ..Flags::default() }] {
        let counters = Counters::create();
        let shared = Shared::create(&Options { flags, ..tiny(12, 16) }).expect("a file can be made");
        let child =
            role(&shared, "signals 400000").env("RING_COUNTERS", &counters.path).spawn().expect("runs");
        let mut follower = Follower::new(shared);
        assert!(follower.follow(child).success());
        let heard = &follower.done[0].heard;
        let (handled, main): (Vec<&Event>, Vec<&Event>) = heard
            .events
            .iter()
            .map(|(_, event)| event)
            .partition(|event| matches!(event, Event::Failed { .. }));
        let main: Vec<u64> = main.into_iter().map(number).collect();
        assert_counts_to(&main, 400_000);
        let left_out = follower.shared.left_out();
        let told = counters.all()[1];
        assert_eq!(handled.len() as u64 + u64::from(left_out.events), told);
        assert!(told > 20, "only {told} signals");
        println!("    {told} events of handlers, {} of them left out", left_out.events);
    }
}
