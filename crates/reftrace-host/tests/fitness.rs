//! Fitness of real objects under the real tracer, which the build has staged.

use std::path::{Path, PathBuf};

use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::launch::Invocation;
use heaptoll_experiment::places::Places;
use heaptoll_reftrace::{Clock, Event, Owner, Reference, Sink};
use heaptoll_reftrace_host::{Fitness, Options, Tracer, TracerError, fitness, trace};

fn places() -> Places {
    Places::at(&heaptoll_testing::staged::home())
}

fn of(preload: &[PathBuf]) -> Result<Fitness, TracerError> {
    let places = places();
    let tracer = Tracer::find(&places).expect("the tracer is staged: run `make build`");
    fitness(&tracer, &places.launcher(), preload, &[], &Interrupt::default())
}

/// The fitness of an object with this constructor, which recognises the tracer by the variables of its environment.
fn of_object(constructor: &str) -> Fitness {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, object) = (folder.path().join("object.c"), folder.path().join("object.so"));
    let source = format!(
        "#define _GNU_SOURCE\n#include <stdio.h>\n#include <stdlib.h>\n#include <sys/mman.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n\
         __attribute__((constructor)) static void begin(void) {{ {constructor} }}\n"
    );
    std::fs::write(&file, source).expect("writes");
    let made = std::process::Command::new("cc")
        .args(["-O1", "-shared", "-fPIC", "-o"])
        .args([&object, &file])
        .status()
        .expect("there is a compiler");
    assert!(made.success());
    of(&[object]).expect("the tracer is not at fault")
}

#[test]
fn glibc_does_what_it_does_natively() {
    assert_eq!(of(&[]).expect("the tracer is not at fault"), Fitness::Works);
}

#[test]
fn a_manager_that_needs_what_the_tracer_mends_works() {
    // More brk and more address space than Valgrind has, and restartable sequences.
    let needs = "extern const unsigned __rseq_size; \
                void *there = mmap(0, 1L << 43, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0); \
                if (sbrk(64 << 20) == (void *)-1 || there == MAP_FAILED || __rseq_size == 0) abort();";
    assert_eq!(of_object(needs), Fitness::Works);
}

#[test]
fn blocks_that_lie_elsewhere_under_the_tracer_are_seen() {
    let Fitness::OtherPath(why) = of_object("if (getenv(\"VALGRIND_LIB\")) if (!malloc(100)) abort();")
    else {
        panic!("it is the same path");
    };
    assert!(why.contains("places blocks otherwise") && why.contains("small"), "{why}");
}

#[test]
fn a_call_that_fails_under_the_tracer_alone_is_named() {
    // futex_waitv, which Valgrind 3.19 does not know.
    let Fitness::OtherPath(why) = of_object("syscall(449, 0L, 0L, 0L, 0L, 0L);") else {
        panic!("nothing was refused");
    };
    assert!(why.contains("futex_waitv"), "{why}");
}

#[test]
fn an_object_that_does_not_run_is_reported_with_its_output() {
    let dies = "if (getenv(\"VALGRIND_LIB\")) { fputs(\"not here\\n\", stderr); abort(); }";
    let Fitness::NotMeasurable(why) = of_object(dies) else { panic!("it runs") };
    assert!(why.contains("signal 6") && why.contains("not here"), "{why}");
}

/// Managers that the build has staged, and the system's.
fn managers() -> Vec<PathBuf> {
    let staged = std::fs::read_dir(places().managers()).expect("managers are staged: run `make build`");
    let installed =
        ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2", "libtbbmalloc_proxy.so.2"]
            .map(|name| Path::new("/usr/lib/x86_64-linux-gnu").join(name));
    let mut objects: Vec<PathBuf> = staged.map(|entry| entry.expect("an entry").path()).collect();
    objects.retain(|path| path.extension().is_some_and(|extension| extension == "so"));
    objects.extend(installed.into_iter().filter(|path| path.is_file()));
    objects.sort();
    objects
}

/// A manager that places blocks otherwise under the tracer, and the step of the probe that shows it: users are warned.
const OTHERWISE: (&str, &str) = ("libtbbmalloc_proxy.so.2", "steps of the probe: aligned)");

/// Seconds a manager: `cargo test -p heaptoll-reftrace-host --test fitness -- --ignored --nocapture`.
#[test]
#[ignore = "runs the probe under every manager that is staged or installed"]
fn every_manager_here_works() {
    let mut unfit = Vec::new();
    for object in managers() {
        let begun = std::time::Instant::now();
        let fitness = of(std::slice::from_ref(&object)).expect("the tracer is not at fault");
        println!("{:4.1} s  {}  {fitness:?}", begun.elapsed().as_secs_f64(), object.display());
        let known = object.ends_with(OTHERWISE.0)
            && matches!(&fitness, Fitness::OtherPath(why) if why.ends_with(OTHERWISE.1));
        if fitness != Fitness::Works && !known {
            unfit.push(object);
        }
    }
    assert!(unfit.is_empty(), "{unfit:?}");
}

struct NullSink;

impl Sink for NullSink {
    fn references(&mut self, _: Owner, _: &[Reference]) {}
    fn event(&mut self, _: &Event<'_>) {}
}

/// What each owner executed in a run of the probe without threads, whose schedule the system decides.
fn totals(preload: &[PathBuf]) -> [Clock; 3] {
    let places = places();
    let tracer = Tracer::find(&places).expect("the tracer is staged: run `make build`");
    let command = vec![places.tracer().join("probe").into_os_string(), "alone".into()];
    // The Boehm collector marks in threads of its own unless this forbids it.
    let environment = vec![("GC_MARKERS".to_string(), "1".to_string())];
    let invocation = Invocation { command, environment, preload: preload.to_vec(), ..Invocation::default() };
    let options = Options { references: true, ..Options::default() };
    let traced =
        trace(&tracer, &places.launcher(), &invocation, &options, &Interrupt::default(), |_| NullSink)
            .expect("the tracer is not at fault");
    traced.images[0].totals
}

#[test]
fn two_runs_agree_to_the_instruction() {
    let once = totals(&[]);
    assert!(once[Owner::Allocator as usize].instructions > 0);
    assert_eq!(once, totals(&[]));
}

#[test]
#[ignore = "runs the probe twice under every manager that is staged or installed"]
fn two_runs_agree_to_the_instruction_under_every_manager_here() {
    let mut unlike = Vec::new();
    for object in managers() {
        let (once, again) = (totals(std::slice::from_ref(&object)), totals(std::slice::from_ref(&object)));
        let counts = |totals: &[Clock; 3]| totals.map(|clock| clock.instructions);
        println!("{}  {:?}  {:?}", object.display(), counts(&once), counts(&again));
        if once != again {
            unlike.push(object);
        }
    }
    assert!(unlike.is_empty(), "{unlike:?}");
}
