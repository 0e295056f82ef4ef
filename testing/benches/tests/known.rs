//! Programs whose references, and whose misses, are known by calculation, under the real tracer and the real
//! simulators.

use heaptoll_callgrind::tools::{driver, run};
use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::launch::Invocation;
use heaptoll_experiment::places::Places;
use heaptoll_locality::simulation::{Profile, Settings, Simulation};
use heaptoll_reftrace::{Event, Owner, Reference, Routine, Sink};
use heaptoll_reftrace_host::{Options, Tracer, trace};

/// Constants of the programs.
const BEGINS: u64 = 0x10001;
const ENDS: u64 = 0x10003;
const LINE: u64 = 64;
const PAGE: u64 = 4096;

/// References to the program's block between the two marks. Addresses are offsets in the block.
struct Recorded {
    block: std::ops::Range<u64>,
    open: bool,
    references: Vec<(u64, u64, bool)>,
    kernel: Vec<(u64, u64, bool)>,
    simulation: Simulation,
}

impl Recorded {
    fn new() -> Recorded {
        let simulation = Simulation::new(&Settings::default()).expect("the default settings are good");
        Recorded { block: 0..0, open: false, references: vec![], kernel: vec![], simulation }
    }
}

impl Sink for Recorded {
    fn references(&mut self, owner: Owner, references: &[Reference]) {
        let own: Vec<Reference> = references
            .iter()
            .filter(|one| self.open && self.block.contains(&one.address()))
            .copied()
            .collect();
        self.simulation.references(owner, &own);
        let place = |one: &Reference| (one.address() - self.block.start, one.size(), one.is_store());
        self.references.extend(own.iter().map(place));
    }

    fn event(&mut self, event: &Event<'_>) {
        match *event {
            Event::Enter { routine: Routine::Malloc, arguments: [BEGINS, ..], .. } => self.open = true,
            Event::Enter { routine: Routine::Malloc, arguments: [ENDS, ..], .. } => self.open = false,
            // Some managers have one function for both.
            Event::Leave {
                routine: Routine::AlignedAlloc | Routine::Memalign, arguments, result, ..
            } => {
                self.block = result..result + arguments[1];
            }
            Event::Kernel { address, length, store, .. } if self.open && self.block.contains(&address) => {
                self.simulation.kernel(address, length);
                self.kernel.push((address - self.block.start, length, store));
            }
            _ => {}
        }
    }
}

fn places() -> Places {
    Places::at(&heaptoll_testing::staged::home())
}

/// Compiles a program and runs it under the tracer.
fn recorded(source: &str, arguments: &[&str]) -> Recorded {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, binary) = (folder.path().join("program.c"), folder.path().join("program"));
    std::fs::write(&file, source).expect("writes");
    let mut compile = driver(false);
    compile.args(["-O2", "-o"]).args([&binary, &file]);
    run(&mut compile, "compiling a program", "gcc libc6-dev").expect("compiles");
    let places = places();
    let tracer = Tracer::find(&places).expect("the tracer is staged: run `make build`");
    let command = std::iter::once(binary.into_os_string());
    let invocation = Invocation {
        command: command.chain(arguments.iter().map(|word| (*word).into())).collect(),
        ..Invocation::default()
    };
    let options = Options { references: true, ..Options::default() };
    let interrupt = Interrupt::default();
    let traced = trace(&tracer, &places.launcher(), &invocation, &options, &interrupt, |_| Recorded::new());
    let mut traced = traced.expect("it is traced");
    assert!(traced.is_whole(), "{:?}", traced.finished);
    traced.images.pop().expect("an image").sink
}

fn pattern(arguments: &[&str]) -> Recorded {
    recorded(include_str!("../c/patterns.c"), arguments)
}

/// Misses of fully associative caches of this many lines.
fn lines(profile: &Profile, lines: u64) -> u64 {
    profile.lines.as_ref().expect("a curve of lines").misses(lines).total.value
}

fn pages(profile: &Profile, pages: u64) -> u64 {
    profile.pages.as_ref().expect("a curve of pages").misses(pages).total.value
}

fn associative(profile: &Profile, sets: u64, ways: u32) -> u64 {
    profile.associative(sets, ways).expect("the cache is simulated").misses.total()
}

/// A loop over 64 KiB: every smaller cache misses a line once a round, and every other once in total. The least
/// recently used line is always the next.
#[test]
fn a_sweep_is_a_step_at_its_size() {
    let recorded = pattern(&["sweep", "65536", "5"]);
    let (words, all, rounds) = (65536 / 8, 65536 / LINE, 5);
    assert_eq!(recorded.references.len() as u64, words * rounds);
    assert!(
        recorded.references.iter().enumerate().all(|(n, &one)| one == ((n as u64 % words) * 8, 8, false))
    );
    let profile = recorded.simulation.finish();
    assert_eq!((lines(&profile, 1), lines(&profile, all - 1)), (all * rounds, all * rounds));
    assert_eq!((lines(&profile, all), lines(&profile, 4 * all)), (all, all));
    let all_pages = 65536 / PAGE;
    assert_eq!((pages(&profile, all_pages - 1), pages(&profile, all_pages)), (all_pages * rounds, all_pages));
    // 1024 lines in order fill 1024 sets of 1, 256 of 4, and are twice too many for 512 of 1.
    assert_eq!((associative(&profile, 1024, 1), associative(&profile, 256, 4)), (all, all));
    assert_eq!((associative(&profile, 512, 1), associative(&profile, 64, 8)), (all * rounds, all * rounds));
}

#[test]
fn stores_are_recorded_as_stores() {
    let recorded = pattern(&["write", "8192", "3"]);
    assert_eq!(recorded.references.len(), 3 * 1024);
    assert!(recorded.references.iter().all(|&(_, size, store)| size == 8 && store));
    assert_eq!(lines(&recorded.simulation.finish(), 8192 / LINE), 8192 / LINE);
}

/// Sixteen addresses 4096 bytes apart are one set of 64: they need 16 ways, however large the cache is.
#[test]
fn a_stride_of_the_sets_needs_ways_and_not_size() {
    let recorded = pattern(&["stride", "4096", "16", "10"]);
    let profile = recorded.simulation.finish();
    assert_eq!(profile.references.total(), 160);
    assert_eq!((lines(&profile, 15), lines(&profile, 16)), (160, 16));
    // 64 sets: all in one. 128: in two, of 8 each. 1024: each has its own.
    assert_eq!((associative(&profile, 64, 8), associative(&profile, 128, 8)), (160, 16));
    assert_eq!((associative(&profile, 128, 4), associative(&profile, 512, 1)), (160, 160));
    assert_eq!(associative(&profile, 1024, 1), 16);
}

/// Random lines of N, in an LRU cache of a share c of them: once it is full, it contains every line with probability c.
/// Until then it contains the lines that were touched, 1 - e^(-t / N) of all after t references, which costs N (c + (1
/// - c) ln(1 - c)) more misses.
#[test]
fn random_references_miss_in_proportion() {
    let (bytes, count) = (256u64 << 10, 200_000u64);
    let recorded = pattern(&["random", &bytes.to_string(), &count.to_string()]);
    let profile = recorded.simulation.finish();
    let all = bytes / LINE;
    assert_eq!(profile.references.total(), count);
    for part in [8, 4, 2] {
        let share = 1.0 / part as f64;
        let filling = all as f64 * (share + (1.0 - share) * (1.0 - share).ln());
        let off = lines(&profile, all / part) as f64 / (count as f64 * (1.0 - share) + filling) - 1.0;
        // Three standard deviations of the largest are 0.67 %.
        assert!(off.abs() < 0.007, "{off} of 1/{part}");
    }
    assert_eq!(lines(&profile, all), all);
}

/// A cycle through all lines in random order: no smaller cache contains the next one, whatever the order.
#[test]
fn a_chase_misses_always_or_never() {
    let recorded = pattern(&["chase", "131072", "4"]);
    let (all, rounds) = (131_072 / LINE, 4);
    let mut places: Vec<u64> = recorded.references.iter().map(|one| one.0).collect();
    assert_eq!(places.len() as u64, all * rounds);
    places.sort_unstable();
    places.dedup();
    assert_eq!(places.len() as u64, all);
    let profile = recorded.simulation.finish();
    assert_eq!((lines(&profile, all - 1), lines(&profile, all)), (all * rounds, all));
    assert_eq!(associative(&profile, all / 8, 8), all);
}

/// A load over the border of two lines is one reference, which misses once when both are missing.
#[test]
fn a_load_over_two_lines_misses_once() {
    let recorded = pattern(&["straddle", "4096", "3"]);
    assert_eq!(recorded.references.len(), 3 * 63);
    assert_eq!(recorded.references[..2], [(60, 8, false), (124, 8, false)]);
    let profile = recorded.simulation.finish();
    assert_eq!(profile.straddling.total(), 3 * 63);
    // The first load misses two lines, each other one line, the second of its two; once in all in a cache of 64.
    assert_eq!((lines(&profile, 64), lines(&profile, 63)), (63, 3 * 63));
}

#[test]
fn what_the_kernel_loads_and_stores_is_recorded() {
    let recorded = pattern(&["copy", "10000"]);
    assert_eq!(recorded.kernel, [(0, 10_000, false), (0, 10_000, true)]);
    let profile = recorded.simulation.finish();
    let all = 10_000_u64.div_ceil(LINE);
    assert_eq!((profile.references.system, lines(&profile, all)), (2 * all, all));
}

/// Instruction by instruction: offset, bytes, whether it stores.
#[test]
fn every_kind_of_instruction_makes_the_references_it_makes() {
    let recorded = recorded(include_str!("../c/references.c"), &[]);
    let (load, store) = (false, true);
    let mut expected = vec![
        (0, 1, load),
        (2, 2, load),
        (4, 4, load),
        (8, 8, load),
        (16, 16, load),
        (32, 1, store),
        (34, 2, store),
        (36, 4, store),
        (40, 8, store),
        (48, 16, store),
    ];
    expected.extend([(64, 8, load), (64, 8, store)]);
    // Valgrind translates these to a load, and a compare-and-exchange that loads once more; its own tools count both.
    expected.extend([72, 80].into_iter().flat_map(|at| [(at, 8, load), (at, 8, load), (at, 8, store)]));
    expected.extend([(96, 8, load), (96, 8, store)]);
    expected.extend((128..152).map(|at| (at, 1, store)));
    expected.extend((0..3).flat_map(|word| [(192 + word * 8, 8, load), (256 + word * 8, 8, store)]));
    expected.extend([(316, 8, load), (4092, 8, load)]);
    if std::is_x86_feature_detected!("avx2") {
        expected.extend([(384, 32, load), (416, 32, store)]);
        // The mask, then the lanes 0 and 2 that it selects.
        expected.extend([(4096, 16, load), (512, 4, load), (520, 4, load)]);
        // Mask and indices; of four addresses to gather from, 0 and 100.
        expected.extend([(4096, 16, load), (4160, 16, load), (1024, 4, load), (1424, 4, load)]);
    }
    assert_eq!(recorded.references, expected);
}
