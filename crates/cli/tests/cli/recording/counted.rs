//! Every call is there: the counting layer, right after the recording one, has counted as many.

use heaptoll_trace::EventKind;

use super::Trace;
use crate::fixture::{CommandOutput, Fixture};

/// A statistics page as include/heaptoll.h describes it.
pub struct Page {
    path: String,
}

/// One process's counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    pub pid: i32,
    pub exe: String,
    pub malloc: u64,
    pub realloc: u64,
    pub free: u64,
    pub failed: u64,
    pub requested: u64,
}

const HEADER_BYTES: usize = 4096;
const SLOT_BYTES: usize = 512;
const SLOTS: usize = 256;

impl Page {
    pub fn new(fixture: &Fixture) -> Page {
        let mut bytes = vec![0; HEADER_BYTES + SLOTS * SLOT_BYTES];
        bytes[..8].copy_from_slice(b"HEAPTOLL");
        for (at, value) in [(8, 1), (12, HEADER_BYTES), (16, SLOT_BYTES), (20, SLOTS)] {
            bytes[at..at + 4].copy_from_slice(&(value as u32).to_le_bytes());
        }
        let path = fixture.at("page");
        std::fs::write(&path, bytes).expect("writes");
        Page { path }
    }

    /// Puts the counting layer after the recording one.
    pub fn count(&self, command: &mut std::process::Command) {
        command.env("LD_PRELOAD", heaptoll_testing::staged::file("layers/libheaptoll_count.so"));
        command.env("HEAPTOLL_STATS", &self.path);
    }

    /// What was counted, by process; heaptoll and its helpers are among them.
    pub fn counts(&self) -> Vec<Counts> {
        let bytes = std::fs::read(&self.path).expect("reads");
        let word = |slot: &[u8], at: usize| u64::from_le_bytes(slot[at..at + 8].try_into().expect("8 bytes"));
        bytes[HEADER_BYTES..]
            .chunks(SLOT_BYTES)
            .filter(|slot| slot[0] == 2)
            .map(|slot| Counts {
                pid: word(slot, 8) as i32,
                exe: String::from_utf8_lossy(&slot[64..256]).trim_end_matches('\0').to_string(),
                malloc: word(slot, 288),
                realloc: word(slot, 296),
                free: word(slot, 304),
                failed: word(slot, 328),
                requested: word(slot, 336),
            })
            .collect()
    }

    /// What was counted in a process image.
    pub fn of(&self, pid: i32, exe: &str) -> Option<Counts> {
        self.counts().into_iter().find(|counts| counts.pid == pid && counts.exe == exe)
    }
}

/// How the trace and the counts of the same process differ, as text; empty when they agree. `slack` threads may be
/// between recording a call and making it.
pub fn differences(trace: &Trace, counts: &Counts, slack: u64) -> Vec<String> {
    let resized = trace.of(&[EventKind::Realloc, EventKind::ReallocFree]);
    let mut found = Vec::new();
    let mut compare = |what: &str, recorded: u64, counted: u64| {
        if recorded.abs_diff(counted) > slack {
            found.push(format!("{what}: {recorded} recorded, {counted} counted"));
        }
    };
    // Failed calls have no kind.
    let failed = trace.of(&[EventKind::Failed]);
    compare("made, resized or failed", trace.made() + resized + failed, counts.malloc + counts.realloc);
    compare("failed", failed, counts.failed);
    compare("freed", trace.freed(), counts.free);
    if failed == 0 && slack == 0 {
        compare("resized", resized, counts.realloc);
        compare("bytes", trace.requested, counts.requested);
    }
    let strange = trace.of(&[EventKind::Foreign, EventKind::Lost]);
    if strange > 0 {
        found.push(format!("{strange} foreign or lost"));
    }
    found
}

/// On programs of a single image, which gcbench's processes and a server are not.
fn counts_agree_on(programs: &[&str]) {
    let only_larger = ["exchange", "ghostscript", "larson", "perl-threads"];
    let mut seen = 0;
    let mut wrong = Vec::new();
    for &program in programs {
        let size = if only_larger.contains(&program) { "quick" } else { "tiny" };
        let fixture = Fixture::new();
        let page = Page::new(&fixture);
        let mut command = fixture.command(&["record", "-o", "t", "--program", program, "--size", size]);
        page.count(&mut command);
        let output: CommandOutput =
            command.current_dir(fixture.path(".")).output().expect("heaptoll starts").into();
        if output.code == Some(2) {
            eprintln!("{program} is left out: {}", output.err);
            continue;
        }
        let output = output.exits(0);
        let trace = Trace::read(fixture.path("t")).whole();
        let Some(own) = page.of(trace.header.pid, &trace.header.exe) else {
            panic!("{program} was not counted: {:?}\n{}", page.counts(), output.err);
        };
        let differences = differences(&trace, &own, 0);
        if !differences.is_empty() {
            wrong.push(format!("{program}: {differences:?}"));
        }
        seen += 1;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(seen * 2 >= programs.len(), "hardly any program is installed here");
}

#[test]
fn counts_agree_on_programs_of_the_catalog() {
    counts_agree_on(&["cfrac", "lua", "make", "perl-threads"]);
}

#[test]
#[ignore = "slow: nine CPU seconds; four other programs are in the fast tests"]
fn counts_agree_on_every_other_program_of_the_catalog() {
    counts_agree_on(&[
        "espresso",
        "exchange",
        "gawk",
        "gcbench",
        "ghostscript",
        "larson",
        "perl",
        "python",
        "reverse",
        "sqlite",
    ]);
}

#[test]
fn a_hundred_threads_at_once_are_all_recorded() {
    let fixture = Fixture::new();
    let page = Page::new(&fixture);
    // Blocks wander from thread to thread, grow there and end there.
    let program = fixture.program(
        "hundred",
        "#include <pthread.h>\n#include <stdatomic.h>\nstatic _Atomic(void *) slots[512]; \
         static void *work(void *seed) { unsigned x = (unsigned)(long)seed * 2654435761u + 1; \
         for (int i = 0; i < 3000; i++) { x = x * 1103515245u + 12345; void *p = x & 64 ? malloc(x >> 20) : calloc(3, x >> 22); \
         p = atomic_exchange(&slots[x >> 8 & 511], p); if (x & 128) p = realloc(p, (x >> 19) + 1); \
         p = atomic_exchange(&slots[x >> 16 & 511], p); free(p); } return 0; } \
         int main(void) { pthread_t t[100]; for (long i = 0; i < 100; i++) pthread_create(t + i, 0, work, (void *)i); \
         for (int i = 0; i < 100; i++) pthread_join(t[i], 0); for (int i = 0; i < 512; i++) free(slots[i]); return 0; }",
    );
    let mut command = fixture.command(&["record", "-o", "t", "--", &program]);
    page.count(&mut command);
    let output: CommandOutput = command.current_dir(fixture.path(".")).output().expect("starts").into();
    output.exits(0);
    let trace = Trace::read(fixture.path("t")).whole();
    assert_eq!(trace.threads, 101);
    let own = page.of(trace.header.pid, &program).expect("it was counted");
    assert_eq!(differences(&trace, &own, 0), [""; 0]);
    assert_eq!(trace.ending.expect("an ending").threads.len(), 101);
}

#[test]
fn a_program_killed_at_any_time_leaves_a_trace_with_all_its_calls() {
    let fixture = Fixture::new();
    let program = fixture.program(
        "killed",
        "#include <pthread.h>\nstatic void *work(void *_) { void *kept[64] = {0}; \
         for (unsigned i = 0;; i++) { free(kept[i & 63]); kept[i & 63] = malloc(i & 1023); \
         if (i % 7 == 0) kept[i & 63] = realloc(kept[i & 63], 2000); } } \
         int main(int c, char **v) { pthread_t t; for (int i = 1; i < atoi(v[1]); i++) pthread_create(&t, 0, work, 0); work(0); }",
    );
    for (threads, wait_ms) in [(1, 0), (1, 3), (1, 30), (1, 300), (3, 2), (3, 50), (3, 250)] {
        let page = Page::new(&fixture);
        let mut command = fixture.command(&["record", "-f", "-o", "t", "--", &program, &threads.to_string()]);
        page.count(&mut command);
        let child = command
            .current_dir(fixture.path("."))
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("starts");
        let begun = |counts: &Counts| counts.exe == program && counts.malloc > 100;
        let pid = loop {
            if let Some(counts) = page.counts().into_iter().find(begun) {
                break counts.pid;
            }
            std::thread::sleep(std::time::Duration::from_micros(100));
        };
        std::thread::sleep(std::time::Duration::from_millis(wait_ms));
        // SAFETY: `kill` takes no pointers; the program does not end by itself, so that its number is still its own.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        let output: CommandOutput = child.wait_with_output().expect("ends").into();
        output.exits(137);
        let trace = Trace::read(fixture.path("t")).whole();
        assert_eq!(trace.how(), "killed by signal 9");
        let counts = page.of(pid, &program).expect("it was counted");
        assert_eq!(differences(&trace, &counts, threads), [""; 0], "{threads} threads after {wait_ms} ms");
        assert!(trace.made() > 100);
    }
}
