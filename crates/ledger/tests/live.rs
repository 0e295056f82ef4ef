//! The ledger of live processes whose layout is known: C programs that report their blocks and wait.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;
use std::time::Instant;

use heaptoll_ledger::{Block, How, LedgerError, Observer, Options, Snapshot, Term};
use tempfile::TempDir;

/// A running probe, killed when the value is dropped.
struct Probe {
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
    /// The first word it reported, read ahead: then it is itself, and not about to become it.
    ahead: Option<u64>,
    _folder: Rc<TempDir>,
}

/// A probe's report about itself.
struct Report {
    blocks: Vec<Block>,
    /// Resident bytes that were requested, and of the slack after them, as the probe itself sees them.
    live: u64,
    internal: u64,
}

impl Probe {
    fn new(name: &str) -> Probe {
        let (program, folder) = Probe::build(name);
        Probe::start(&program, folder)
    }

    /// Compiles a probe; returns its path, which goes with the folder.
    fn build(name: &str) -> (PathBuf, Rc<TempDir>) {
        let source =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name).with_extension("c");
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join(name);
        let built = Command::new("cc")
            .args(["-O1", "-pthread", "-o"])
            .args([&program, &source])
            .status()
            .expect("a C compiler");
        assert!(built.success(), "{name} does not compile");
        (program, Rc::new(folder))
    }

    fn start(program: &Path, folder: Rc<TempDir>) -> Probe {
        let mut child = Command::new(program)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let (stdin, stdout) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let mut probe = Probe { child, stdin, stdout, ahead: None, _folder: folder };
        probe.ahead = Some(probe.word());
        probe
    }

    fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    fn observer(&self) -> Observer {
        Observer::new(self.pid(), Options { manager: "glibc".into(), ..Options::default() })
    }

    fn word(&mut self) -> u64 {
        if let Some(word) = self.ahead.take() {
            return word;
        }
        let mut bytes = [0; 8];
        self.stdout.read_exact(&mut bytes).expect("the probe reports");
        u64::from_ne_bytes(bytes)
    }

    fn report(&mut self) -> Report {
        let (count, live, internal) = (self.word(), self.word(), self.word());
        let blocks = (0..count)
            .map(|_| Block {
                address: self.word(),
                requested: self.word(),
                usable: self.word(),
                ..Block::default()
            })
            .collect();
        Report { blocks, live, internal }
    }

    /// Takes a sample, and checks against the probe's report and the kernel's counter what must always hold.
    fn sample(&mut self, observer: &mut Observer) -> (Report, Snapshot) {
        let report = self.report();
        let snapshot = observer.observe(1, 2, &report.blocks, None).expect("samples");
        assert!(snapshot.closes(), "{snapshot:#?}");
        assert_eq!(snapshot.difference_bytes, 0, "all threads are stopped: {snapshot:#?}");
        assert_eq!(snapshot.no_pagemap, None);
        assert_eq!(snapshot.defects, Default::default());
        assert_eq!(snapshot.live_blocks, report.blocks.len() as u64);
        let requested: u64 = report.blocks.iter().map(|block| block.requested).sum();
        let usable: u64 = report.blocks.iter().map(|block| block.usable).sum();
        assert_eq!(snapshot.amount(Term::Live).total(), requested);
        assert_eq!(snapshot.amount(Term::Internal).total(), usable - requested);
        assert_eq!(snapshot.amount(Term::Live).resident, report.live);
        assert_eq!(snapshot.amount(Term::Internal).resident, report.internal);
        // The kernel's counter of a process lags by up to 64 pages a core and kind, or twice as many as there are
        // cores: of all cores, those included that a container may not use.
        // SAFETY: sysconf takes no pointers and reads a constant of the system.
        let cores = u64::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) }).expect("a count");
        let lag = 3 * (2 * cores).max(64) * 4096 * cores;
        assert!(snapshot.vm_rss_bytes.abs_diff(snapshot.rss_bytes) <= lag, "{snapshot:#?}");
        (report, snapshot)
    }

    fn go_on(&mut self) {
        self.stdin.write_all(b"g").expect("the probe reads");
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn blocks_written_freed_and_released_are_distinguished() {
    let mut probe = Probe::new("halves");
    let mut observer = probe.observer();
    let (_, all) = probe.sample(&mut observer);
    assert_eq!(all.amount(Term::Live).total(), 10_000 << 10);
    // A header before each block.
    assert_eq!(all.amount(Term::Metadata).total(), 80_000);
    // Headers are written, one at least on every page.
    assert!(all.amount(Term::Live).resident > 9_900 << 10, "{all:#?}");
    assert!(all.amount(Term::External).total() < 16 << 10, "{all:#?}");

    probe.go_on();
    let (_, half) = probe.sample(&mut observer);
    assert_eq!(half.amount(Term::Live).total(), 5_000 << 10);
    // Every page still has a block: what was freed is pinned, 1040 bytes each with slack and header.
    let pinned = half.amount(Term::External).resident;
    assert!((5_200_000 - 8192..=5_200_000 + 8192).contains(&pinned), "{half:#?}");
    // glibc releases nothing of it.
    assert!(half.rss_bytes.abs_diff(all.rss_bytes) < 64 << 10, "{} {}", half.rss_bytes, all.rss_bytes);

    probe.go_on();
    let (_, one) = probe.sample(&mut observer);
    assert_eq!(one.live_blocks, 1);
    assert!(one.amount(Term::External).total() < 4096, "{one:#?}");
    // The thread's cache holds blocks near the top, so that glibc lowers nothing.
    assert!(one.amount(Term::Caches).resident > 9 << 20, "{one:#?}");

    // After malloc_trim the pages are gone and the address space is not.
    probe.go_on();
    let (_, trimmed) = probe.sample(&mut observer);
    assert!(trimmed.amount(Term::Caches).resident < 200 << 10, "{trimmed:#?}");
    assert!(trimmed.amount(Term::Caches).absent > 9 << 20, "{trimmed:#?}");
}

#[test]
fn a_large_block_is_resident_where_it_was_written_and_its_neighbour_is_not_heap() {
    let mut probe = Probe::new("large");
    let mut observer = probe.observer();
    let (report, snapshot) = probe.sample(&mut observer);
    // Ten pages, and the rest of the one with the header: its block begins 16 bytes into it.
    let large = report.blocks[1];
    assert_eq!(large.address % 4096, 16);
    assert_eq!(snapshot.amount(Term::Live).resident, 100 + 10 * 4096 + (4096 - 16));
    assert_eq!(snapshot.amount(Term::Live).absent, (64 << 20) - 10 * 4096 - (4096 - 16));
    assert!(snapshot.amount(Term::OtherAnonymous).resident >= 8 << 20, "{snapshot:#?}");
    assert!(snapshot.amount(Term::Caches).resident < 200 << 10, "{snapshot:#?}");
}

#[test]
fn huge_pages_are_resident_whole() {
    let enabled = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    if !enabled.contains("[always]") && !enabled.contains("[madvise]") {
        eprintln!("skipped: no transparent huge pages here");
        return;
    }
    let mut probe = Probe::new("huge");
    let mut observer = probe.observer();
    let (_, snapshot) = probe.sample(&mut observer);
    if snapshot.huge_bytes == 0 {
        eprintln!("skipped: the kernel had no huge page free");
        return;
    }
    assert!(snapshot.amount(Term::Live).resident >= snapshot.huge_bytes, "{snapshot:#?}");
    assert_eq!(snapshot.huge_bytes % (2 << 20), 0);
    assert_eq!(snapshot.huge_free_bytes, 0);
}

#[test]
fn arenas_and_stacks_of_threads_are_found() {
    let mut probe = Probe::new("threads");
    let mut observer = probe.observer();
    let (report, snapshot) = probe.sample(&mut observer);
    assert_eq!(report.blocks.len(), 12_001);
    assert!(snapshot.amount(Term::Stacks).resident > 4 * (100 << 10), "{snapshot:#?}");
    // The blocks' arenas: nothing but a few pages of them is anything else.
    assert!(snapshot.amount(Term::Caches).resident < 1 << 20, "{snapshot:#?}");
    assert!(snapshot.amount(Term::OtherAnonymous).resident < 400 << 10, "{snapshot:#?}");
}

#[test]
fn swapped_pages_are_not_resident() {
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    if swaps.lines().count() < 2 {
        eprintln!("skipped: no swap device here");
        return;
    }
    let mut probe = Probe::new("out");
    let mut observer = probe.observer();
    let (_, snapshot) = probe.sample(&mut observer);
    assert!(snapshot.amount(Term::Live).swapped > 7 << 20, "{snapshot:#?}");
}

#[test]
fn a_process_that_has_ended_is_an_error() {
    let mut probe = Probe::new("halves");
    let mut observer = probe.observer();
    let report = probe.report();
    probe.child.kill().expect("ours");
    // Not waited for yet: there is a process without memory.
    assert!(wait_until_dead(probe.pid()).is_some());
    let sampled = observer.observe(0, 0, &report.blocks, None);
    assert!(matches!(sampled, Err(LedgerError::Ended { .. })), "{sampled:?}");
    probe.child.wait().expect("ends");
    let sampled = observer.observe(0, 0, &report.blocks, None);
    assert!(matches!(sampled, Err(LedgerError::Ended { .. })), "{sampled:?}");
}

#[test]
fn a_process_that_ends_while_it_is_sampled_has_no_partial_snapshot() {
    const ROUNDS: u32 = 40;
    let (program, folder) = Probe::build("pieces");
    let mut ended = 0;
    for round in 0..ROUNDS {
        let mut probe = Probe::start(&program, Rc::clone(&folder));
        let mut observer = Observer::new(probe.pid(), Options::default());
        let report = probe.report();
        let begun = Instant::now();
        let whole = observer.observe(0, 0, &report.blocks, None).expect("samples");
        let takes = begun.elapsed();
        let pid = probe.pid();
        let killer = std::thread::spawn(move || {
            std::thread::sleep(takes * round / ROUNDS);
            // SAFETY: kill takes no pointers; the child is not reaped before this thread has been joined, so its number
            // is its own.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        });
        // Two samples, as the first may be over before.
        for _ in 0..2 {
            match observer.observe(0, 0, &report.blocks, None) {
                Ok(snapshot) => {
                    assert_eq!(snapshot.defects, Default::default(), "round {round}");
                    assert_eq!(snapshot.amount(Term::Live), whole.amount(Term::Live), "round {round}");
                    assert_eq!(
                        (snapshot.rss_bytes, snapshot.difference_bytes),
                        (whole.rss_bytes, 0),
                        "round {round}"
                    );
                }
                Err(LedgerError::Ended { .. }) => ended += 1,
                Err(error) => panic!("round {round}: {error}"),
            }
        }
        killer.join().expect("kills");
    }
    assert!(ended > 0);
}

/// Waits until a child has ended, without reaping it: its state in `/proc` is `Z`.
fn wait_until_dead(pid: i32) -> Option<()> {
    let path: PathBuf = format!("/proc/{pid}/stat").into();
    (0..1000).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(2));
        let text = std::fs::read_to_string(&path).ok()?;
        text.rsplit_once(") ")?.1.starts_with('Z').then_some(())
    })
}

#[test]
fn a_record_that_is_not_the_processs_is_a_defect() {
    let mut probe = Probe::new("halves");
    let mut observer = probe.observer();
    let mut report = probe.report();
    // A block nowhere, and one within another.
    report.blocks.push(Block { address: 0x1000, requested: 100, usable: 104, ..Block::default() });
    let first = report.blocks[0];
    report.blocks.push(Block { address: first.address + 16, requested: 10, usable: 24, ..Block::default() });
    let snapshot = observer.observe(0, 0, &report.blocks, None).expect("looks");
    assert!(snapshot.closes());
    assert_eq!((snapshot.defects.unmapped_blocks, snapshot.defects.unmapped_bytes), (1, 104));
    assert_eq!(snapshot.defects.unmapped_address, 0x1000);
    assert_eq!((snapshot.defects.overlapping_blocks, snapshot.defects.overlapping_bytes), (1, 24));
    assert!(snapshot.lines.iter().all(|line| line.how == How::Counted));
}
