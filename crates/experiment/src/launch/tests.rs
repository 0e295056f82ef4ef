//! Launching, with scripts in the launcher's place where it has to misbehave.

use std::process::Command;
use std::time::Instant;

use super::readers::{KEPT_ERROR, KEPT_OUTPUT};
use super::*;

/// A launcher that is a shell script; `$2` is the descriptor of its report.
fn script(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("launch");
    let text = format!("#!/bin/sh\nsend() {{ echo \"$*\" >/proc/self/fd/$report; }}\nreport=$2\n{text}\n");
    heaptoll_scratch::write_executable(&path, &text).expect("writes");
    (folder, path)
}

fn is_gone(pid: i32) -> bool {
    let until = Instant::now() + Duration::from_secs(5);
    while Path::new(&format!("/proc/{pid}")).exists() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    !Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn preload_paths_with_separators_are_refused() {
    assert!(matches!(preload_value(&["/a b.so".into()]), Err(LaunchError::PreloadPath(_))));
    assert_eq!(preload_value(&["/a.so".into(), "/b.so".into()]).ok().as_deref(), Some("/a.so:/b.so"));
}

#[test]
fn output_is_digested_and_only_its_head_kept() {
    static LONG: [u8; 3 * KEPT_OUTPUT] = [b'x'; 3 * KEPT_OUTPUT];
    let output = readers::digest(Some(&LONG[..]), None).and_then(|reader| reader.all()).expect("reads");
    assert_eq!((output.bytes, output.head.len()), (3 * KEPT_OUTPUT as u64, KEPT_OUTPUT));
    // The well-known digest of nothing.
    let nothing = readers::digest(Some(&b""[..]), None).and_then(|reader| reader.all()).expect("reads");
    assert!(nothing.digest().starts_with("e3b0c44298fc1c14"));
    let error = readers::tail(Some(&LONG[..]), None).and_then(|reader| reader.all()).expect("reads");
    assert_eq!(error.len(), KEPT_ERROR);
}

#[test]
fn a_missing_launcher_is_named() {
    let error = run(Path::new("/nonexistent/launch"), &Invocation::default(), &Interrupt::default());
    assert!(matches!(error, Err(LaunchError::Launcher { .. })));
}

#[test]
fn a_launcher_that_breaks_the_protocol_is_ended_and_reaped() {
    let (folder, launcher) = script("echo $$ >${0%/*}/pid; send bonjour; while :; do sleep 1; done");
    let interrupt = Interrupt::default();
    let error = run(&launcher, &Invocation::default(), &interrupt).expect_err("no message");
    assert!(error.to_string().contains("`bonjour`"), "{error}");
    let pid: i32 =
        std::fs::read_to_string(folder.path().join("pid")).expect("reads").trim().parse().expect("pid");
    // A zombie would still have its entry.
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
    assert!(interrupt.is_idle());
}

#[test]
fn what_is_dropped_without_waiting_is_ended_and_forgotten() {
    let (_folder, launcher) = script("send started $$; while :; do sleep 1; done");
    let interrupt = Interrupt::default();
    let running = start(&launcher, &Invocation::default(), &interrupt).expect("starts");
    let pid = running.pid().expect("a number");
    assert!(!interrupt.is_idle());
    drop(running);
    assert!(is_gone(pid));
    assert!(interrupt.is_idle());
}

#[test]
fn a_signal_reaches_only_a_living_child_of_the_launcher() {
    // An unrelated process that has the number which the program had.
    let mut unrelated = Command::new("sleep").arg("60").spawn().expect("starts");
    let (_folder, launcher) = script(&format!("send started {}; sleep 1", unrelated.id()));
    let running = start(&launcher, &Invocation::default(), &Interrupt::default()).expect("starts");
    running.signal(libc::SIGKILL);
    std::thread::sleep(Duration::from_millis(100));
    assert!(matches!(unrelated.try_wait(), Ok(None)), "the unrelated process was signalled");
    unrelated.kill().expect("ours");
    unrelated.wait().expect("ours");
    drop(running);

    let (_folder, launcher) =
        script("sleep 60 & send started $!; wait $!; send ended exit $? 1 0 0 0 0 0 0 0 0 0 0 - - - -");
    let running = start(&launcher, &Invocation::default(), &Interrupt::default()).expect("starts");
    running.signal(libc::SIGKILL);
    assert_eq!(running.wait().expect("reports").ended, Ended::Exit(128 + libc::SIGKILL));
}

#[test]
fn a_survivor_that_holds_the_pipes_does_not_hold_us() {
    let (_folder, launcher) = script(
        "sleep 30 & echo $!; echo so far >&2; send started $!; send ended timeout 0 1 0 0 0 0 0 0 0 0 0 1 - - - -",
    );
    let begun = Instant::now();
    let finished = run(&launcher, &Invocation::default(), &Interrupt::default()).expect("reports");
    // It lives for 30.
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let survivor: i32 =
        String::from_utf8_lossy(&finished.output_head).trim().parse().expect("its number is kept");
    assert_eq!(
        finished.error_tail,
        "so far\nheaptoll could not kill 1 process of another user; it still runs\n"
    );
    assert_eq!(finished.output_bytes, finished.output_head.len() as u64);
    // SAFETY: kill takes plain numbers; `survivor` is the sleep that the script left.
    unsafe { libc::kill(survivor, libc::SIGKILL) };
}
