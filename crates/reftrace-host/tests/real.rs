//! Real programs under the real tracer, which the build has staged.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::launch::Invocation;
use heaptoll_experiment::places::Places;
use heaptoll_launcher::Ended;
use heaptoll_reftrace::event::Event;
use heaptoll_reftrace::{Owner, Reference, Routine, Sink};
use heaptoll_reftrace_host::{Image, ImageEnding, Options, Traced, Tracer, TracerError, trace};

fn places() -> Places {
    Places::at(&heaptoll_testing::staged::home())
}

#[derive(Debug, Default)]
struct Received {
    references: u64,
    stores: u64,
    allocations: Vec<u64>,
    threads: u32,
    most: Option<u64>,
    /// Set when many references were recorded.
    much: Arc<AtomicBool>,
}

/// Many: as a program under way makes them.
const MUCH: u64 = 10_000;

impl Sink for Received {
    fn references(&mut self, _owner: Owner, references: &[Reference]) {
        self.references += references.len() as u64;
        self.much.fetch_or(self.references > MUCH, Ordering::Relaxed);
        self.stores += references.iter().filter(|reference| reference.is_store()).count() as u64;
    }

    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Leave { routine: Routine::Malloc, arguments, .. } => self.allocations.push(arguments[0]),
            Event::ThreadStart { .. } => self.threads += 1,
            _ => {}
        }
    }

    fn full(&self) -> Option<String> {
        self.most.filter(|&most| self.references > most).map(|most| format!("{most} references are enough"))
    }
}

fn sh(script: &str) -> Invocation {
    Invocation { command: ["/bin/sh", "-c", script].map(Into::into).to_vec(), ..Invocation::default() }
}

fn program(folder: &Path, name: &str, source: &str) -> Invocation {
    let (file, binary) = (folder.join(name).with_extension("c"), folder.join(name));
    std::fs::write(&file, source).expect("writes");
    let made = std::process::Command::new("cc")
        .args(["-O1", "-g", "-fno-builtin", "-pthread", "-o"])
        .args([&binary, &file])
        .status()
        .expect("there is a compiler");
    assert!(made.success());
    Invocation { command: vec![binary.into_os_string()], ..Invocation::default() }
}

fn all() -> Options {
    Options { references: true, ..Options::default() }
}

fn run_with(
    invocation: &Invocation,
    options: &Options,
    interrupt: &Interrupt,
    begin: impl FnMut(&Image) -> Received,
) -> Result<Traced<Received>, TracerError> {
    let places = places();
    let tracer = Tracer::find(&places).expect("the tracer is staged: run `make build`");
    trace(&tracer, &places.launcher(), invocation, options, interrupt, begin)
}

fn run(invocation: &Invocation, options: &Options) -> Traced<Received> {
    run_with(invocation, options, &Interrupt::default(), |_| Received::default()).expect("it is traced")
}

#[test]
fn what_a_program_does_is_recorded_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = "#include <stdio.h>\n#include <stdlib.h>\nint main(void) { for (int i = 1; i <= 1000; i++) { \
                  char *p = malloc(7000 + i); p[0] = 1; free(p); } puts(\"done\"); return 0; }";
    let traced = run(&program(folder.path(), "thousand", source), &all());
    assert!(
        traced.is_whole(),
        "{:?} {:?}",
        traced.stopped,
        traced.images.iter().map(|i| &i.ending).collect::<Vec<_>>()
    );
    assert_eq!(
        (traced.finished.ended, traced.finished.output_head.as_slice()),
        (Ended::Exit(0), &b"done\n"[..])
    );
    let [image] = &traced.images[..] else { panic!("{} images", traced.images.len()) };
    let ours = image.sink.allocations.iter().filter(|size| (7001..=8000).contains(*size)).count();
    assert_eq!((ours, &image.ending), (1000, &ImageEnding::Ended(0)));
    assert!(image.calls.frees >= 1000 && image.calls.allocations >= 1000);
    assert!(image.routine_objects[&Routine::Malloc].contains("libc"));
    let [program, allocator, collector] = image.totals;
    assert!(program.instructions > 10_000 && allocator.instructions > 1000 * 20, "{:?}", image.totals);
    assert_eq!(collector.instructions, 0);
    // Counters and references are two ways to the same figure; a reference of more than one kind counts in both.
    let counted = program.loads + program.stores + allocator.loads + allocator.stores;
    let ratio = image.sink.references as f64 / counted as f64;
    assert!((0.98..=1.02).contains(&ratio), "{} references, {counted} counted", image.sink.references);
}

#[test]
fn two_runs_agree_to_the_instruction() {
    let one = run(&sh("echo a b c | sort"), &Options::default());
    let other = run(&sh("echo a b c | sort"), &Options::default());
    let totals = |traced: &Traced<Received>| traced.main().map(|image| image.totals);
    assert_eq!(totals(&one), totals(&other));
}

#[test]
fn every_process_has_a_stream_of_its_own() {
    let traced = run(&sh("/bin/true; (exit 3); /bin/echo x"), &Options::default());
    let names: Vec<&str> = traced.images.iter().map(|image| image.image.name()).collect();
    // The shell, its child that forked and became true, the subshell, the child that became echo; the shell may have
    // exec'd the last itself.
    assert!(names.contains(&"true") && names.contains(&"echo"), "{names:?}");
    assert!(traced.images.len() >= 5, "{names:?}");
    assert!(traced.is_whole(), "{:?}", traced.images.iter().map(|image| &image.ending).collect::<Vec<_>>());
    assert!(traced.images.iter().any(|image| image.ending == ImageEnding::Ended(3)));
    let execs = traced.images.iter().filter(|image| image.ending == ImageEnding::Exec).count();
    assert!(execs >= 2, "{execs}");
    assert!(std::str::from_utf8(&traced.finished.output_head) == Ok("x\n"));
}

#[test]
fn threads_are_recorded_on_one_stream() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = "#include <pthread.h>\n#include <stdlib.h>\nstatic void *work(void *n) { for (int i = 0; i < 500; i++) \
                  free(malloc(3000 + i)); return n; }\nint main(void) { pthread_t t[4]; for (int i = 0; i < 4; i++) \
                  pthread_create(&t[i], 0, work, 0); for (int i = 0; i < 4; i++) pthread_join(t[i], 0); return 0; }";
    let traced = run(&program(folder.path(), "threads", source), &all());
    assert!(traced.is_whole());
    let sink = &traced.images[0].sink;
    assert_eq!(sink.threads, 4);
    assert_eq!(sink.allocations.iter().filter(|size| (3000..3500).contains(*size)).count(), 2000);
}

/// Valgrind's own most is 500, and it ends the process there.
#[test]
fn six_hundred_threads_live_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = "#include <pthread.h>\n#include <stdlib.h>\nstatic pthread_barrier_t b;\nstatic void *work(void *n) { \
                  free(malloc(3000)); pthread_barrier_wait(&b); return n; }\nint main(void) { static pthread_t t[600]; \
                  pthread_attr_t a; pthread_attr_init(&a); pthread_attr_setstacksize(&a, 65536); \
                  pthread_barrier_init(&b, 0, 600); for (int i = 0; i < 600; i++) if (pthread_create(&t[i], &a, work, 0)) \
                  return 1; for (int i = 0; i < 600; i++) pthread_join(t[i], 0); return 0; }";
    let traced = run(&program(folder.path(), "crowd", source), &Options::default());
    assert_eq!((traced.finished.ended, &traced.warnings[..]), (Ended::Exit(0), &[][..]));
    assert!(traced.is_whole() && traced.images[0].sink.threads == 600);
}

/// The tracer keeps the files that Valgrind leaves open away from the program.
#[test]
fn a_program_finds_the_descriptors_that_it_has_natively() {
    let list = "ls /proc/self/fd; (ls /proc/self/fd)";
    let of = |listing: &[u8]| -> Vec<u32> {
        // Valgrind's own are above those that a program may open.
        let numbers =
            String::from_utf8_lossy(listing).lines().filter_map(|line| line.parse().ok()).collect::<Vec<_>>();
        numbers.into_iter().filter(|&number| number < 1000).collect()
    };
    let mut natively = std::process::Command::new("/bin/sh");
    let natively = natively.args(["-c", list]).stdin(std::process::Stdio::null()).output().expect("runs");
    let traced = run(&sh(list), &Options::default());
    assert_eq!(of(&traced.finished.output_head), of(&natively.stdout));
}

#[test]
fn a_crash_keeps_its_status_and_what_was_recorded() {
    let traced = run(&sh("kill -SEGV $$"), &Options::default());
    assert_eq!(traced.finished.ended, Ended::Signal(libc::SIGSEGV));
    assert!(traced.images[0].instructions() > 1000);
    let traced = run(&sh("exit 42"), &Options::default());
    assert_eq!(traced.finished.ended, Ended::Exit(42));
    assert_eq!(traced.images[0].ending, ImageEnding::Ended(42));
}

#[test]
fn a_process_killed_by_sigkill_has_recorded_what_it_did() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = "#include <signal.h>\n#include <stdlib.h>\n#include <unistd.h>\nint main(void) { for (int i = 0; i < 800; \
                  i++) free(malloc(5000 + i)); kill(getpid(), SIGKILL); return 0; }";
    let traced = run(&program(folder.path(), "killed", source), &all());
    assert_eq!(traced.finished.ended, Ended::Signal(libc::SIGKILL));
    let image = &traced.images[0];
    assert_eq!(image.ending, ImageEnding::Killed);
    assert_eq!(image.sink.allocations.iter().filter(|size| (5000..5800).contains(*size)).count(), 800);
    assert!(image.damage.is_none());
}

#[test]
fn an_interrupt_keeps_what_was_recorded() {
    // What a shell starts in the background ignores Ctrl-C, and so would the program.
    // SAFETY: the default disposition has no handler, and no other test depends on this signal.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
    let interrupt = Interrupt::default();
    let (interrupter, much) = (interrupt.clone(), Arc::new(AtomicBool::new(false)));
    let recorded = Arc::clone(&much);
    // A busy machine may start a tracer late.
    let interrupting = std::thread::spawn(move || {
        let until = Instant::now() + Duration::from_secs(60);
        while !recorded.load(Ordering::Relaxed) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        interrupter.set();
        Instant::now()
    });
    let endless = sh("while :; do :; done");
    let begin = |_: &Image| Received { much: Arc::clone(&much), ..Received::default() };
    let traced = run_with(&endless, &all(), &interrupt, begin).expect("it was recorded in part");
    let interrupted_at = interrupting.join().expect("it has interrupted");
    assert!(interrupted_at.elapsed() < Duration::from_secs(20), "{:?}", interrupted_at.elapsed());
    assert_eq!(traced.finished.ended, Ended::Signal(libc::SIGINT), "it is the program's");
    assert!(traced.images[0].sink.references > MUCH && !traced.is_whole());
}

#[test]
fn the_time_limit_keeps_what_was_recorded() {
    // A busy machine may start a tracer late.
    let recorded = [3, 10, 30].into_iter().any(|seconds| {
        let endless = Invocation { timeout: Duration::from_secs(seconds), ..sh("while :; do :; done") };
        let traced = run(&endless, &all());
        assert_eq!(traced.finished.ended, Ended::Timeout);
        traced.images.first().is_some_and(|image| {
            assert_eq!(image.ending, ImageEnding::Killed);
            image.sink.references > MUCH
        })
    });
    assert!(recorded, "nothing was kept");
}

#[test]
fn a_sink_that_has_enough_ends_the_run_and_keeps_its_part() {
    let begin = |_: &Image| Received { most: Some(500_000), ..Received::default() };
    let traced =
        run_with(&sh("while :; do :; done"), &all(), &Interrupt::default(), begin).expect("is traced");
    assert_eq!(traced.stopped.as_deref(), Some("500000 references are enough"));
    assert!(matches!(&traced.images[0].ending, ImageEnding::Incomplete(why) if why.contains("enough")));
    assert!(traced.images[0].sink.references >= 500_000);
}

#[test]
fn a_program_that_cannot_be_run_is_reported_with_valgrinds_message() {
    let missing = Invocation { command: vec!["/nowhere/at/all".into()], ..Invocation::default() };
    let error = run_with(&missing, &Options::default(), &Interrupt::default(), |_| Received::default())
        .expect_err("there is no such program");
    let text = error.to_string();
    assert!(text.contains("/nowhere/at/all") && text.contains("No such file"), "{text}");
}

#[test]
fn no_file_is_left_after_a_run() {
    let mine = || {
        let names = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
        let of = |name: &str| name.starts_with(heaptoll_scratch::PREFIX);
        names
            .filter(|entry| of(&entry.file_name().to_string_lossy()))
            .map(|entry| entry.path())
            .collect::<Vec<_>>()
    };
    let mut during = Vec::new();
    let traced = run_with(&sh(":"), &all(), &Interrupt::default(), |image| {
        during =
            mine().into_iter().filter(|folder| folder.join(format!("{}.0", image.pid)).exists()).collect();
        Received::default()
    });
    assert!(traced.is_ok());
    assert!(during.iter().all(|folder| !folder.exists()), "{during:?}");
}
