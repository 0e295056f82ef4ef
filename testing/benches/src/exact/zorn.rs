//! `zorn`: Figures 4 to 7 of Zorn 1992 section 5.3 with current programs: page faults and cache misses under the BSD
//! allocator, with a program's own allocator and without, and under conservative collectors that ignore frees.
//!
//! Information with a verdict. The memory at which faults are compared is chosen before the results are known: half of
//! the pages that the program touches under the BSD allocator. Zorn's 2 MB was chosen where his programs differed
//! (section 5.3); it is shown too, and for most current programs it is either far too little or more than they need.

mod verdict;

use heaptoll_catalog::Prepared;
use heaptoll_experiment::manager::Manager;
use heaptoll_locality::simulation::{Profile, Settings};
use heaptoll_reftrace_host::Options as TracerOptions;
use heaptoll_units::number;

use self::verdict::{Verdict, ratio};
use super::setup::{Choice, Setup};
use super::simulated::SimulationSink;
use super::traced::{self, Run};
use crate::Error;
use crate::installation::machine_line;
use crate::table::table;

/// The BSD allocator of 4.2, which represents explicit management in Zorn's figures.
const EXPLICIT: &str = "kingsley";
/// Boehm and Weiser's collector as Zorn measured it, a later one, ours and libgc's with frees ignored; and the two that
/// also reclaim at a free.
const COLLECTORS: [&str; 6] = ["bw16", "bw26", "tithe-collect", "bdw-nofree", "tithe", "bdw"];
/// Programs of the catalog without threads. Python is in it twice: with its own allocator for small objects, as Zorn's
/// "optimised" programs had theirs, and without.
const PROGRAMS: [&str; 10] = [
    "cfrac",
    "espresso",
    "gawk",
    "ghostscript",
    "lua",
    "make",
    "perl",
    "python",
    "python:pymalloc",
    "sqlite",
];
/// The program of Figures 5 and 7.
const CURVES: &str = "gawk";

/// Bytes of a page.
const PAGE: u64 = 4096;
/// Bytes of Zorn's cache lines.
const LINE: u64 = 32;
/// Figure 4's memory, bytes.
const MEMORY: u64 = 2 << 20;
/// Sets of direct-mapped caches as powers of two: 16 KiB to 4 MiB.
const SETS: std::ops::RangeInclusive<u32> = 9..=17;
/// Figure 6's cache: 128 KiB of lines of 32 bytes.
const FIGURE_6: u64 = (128 << 10) / LINE;

/// The command line of `zorn`.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    choice: Choice,
}

/// One program under one manager.
struct Measured {
    program: String,
    manager: String,
    profile: Profile,
}

impl Measured {
    fn faults(&self, pages: u64) -> u64 {
        self.profile.pages.as_ref().map_or(0, |curve| curve.misses(pages).total.value)
    }

    fn touched(&self) -> u64 {
        self.profile.pages.as_ref().map_or(0, |curve| curve.distinct)
    }

    /// Misses of a direct-mapped cache, of 100 references.
    fn miss_rate(&self, sets: u64) -> f64 {
        let misses = self.profile.associative(sets, 1).map_or(0, |cache| cache.misses.total());
        misses as f64 / self.profile.references.total().max(1) as f64 * 100.0
    }
}

/// Measures. The figures are information: true unless a program fails under a manager.
///
/// # Errors
/// The tracer is missing, or a program cannot run at all.
pub fn run(options: &Options) -> Result<bool, Error> {
    let setup = Setup::open(options.choice.timeout)?;
    let collectors = setup.installation.managers(&options.choice.managers, &COLLECTORS)?;
    let explicit = setup.installation.managers(&[], &[EXPLICIT])?;
    let programs = setup.programs(&options.choice, &PROGRAMS)?;
    println!("{}; inputs: {}", machine_line(), options.choice.size);
    let (mut all, mut well) = (Vec::new(), true);
    for program in &programs {
        let mut measured: Vec<Measured> = Vec::new();
        for manager in explicit.iter().chain(&collectors) {
            eprintln!("{} under {}", program.name, manager.name);
            match measure(&setup, program, manager) {
                Ok(one) => measured.push(one),
                Err(error @ Error::Failed { .. }) => {
                    well = false;
                    eprintln!("heaptoll-bench: {error}");
                }
                Err(error) => return Err(error),
            }
        }
        all.push(measured);
    }
    figure_4(&all);
    figure_6(&all);
    for measured in all.iter().filter(|measured| measured.first().is_some_and(|one| one.program == CURVES)) {
        figure_5(measured);
        figure_7(measured);
    }
    Ok(well)
}

fn measure(setup: &Setup, program: &Prepared, manager: &Manager) -> Result<Measured, Error> {
    let settings = Settings {
        line_bytes: LINE,
        page_bytes: PAGE,
        lines: false,
        sets: Some(SETS),
        pages: true,
        ..Settings::default()
    };
    let empty = SimulationSink::new(&settings)?;
    let options = TracerOptions { references: true, ..TracerOptions::default() };
    let run = Run { options, announced: true, ..Run::default() };
    let traced = traced::trace(setup, program, manager, run, |_| empty.clone())?;
    let (simulation, _) = traced::main(setup, program, manager, traced)?;
    Ok(Measured {
        program: program.name.clone(),
        manager: manager.name.clone(),
        profile: simulation.finish(),
    })
}

/// The explicit allocator's figures, if any, and all others'.
fn split(measured: &[Measured]) -> Option<(&Measured, &[Measured])> {
    let (first, rest) = measured.split_first()?;
    (first.manager == EXPLICIT).then_some((first, rest))
}

fn figure_4(all: &[Vec<Measured>]) {
    println!(
        "\nFigure 4: page faults under LRU at a tight memory: half of the pages touched under {EXPLICIT}; and at 2 MB"
    );
    let mut rows = Vec::new();
    let mut verdicts = Vec::new();
    for (explicit, rest) in all.iter().filter_map(|measured| split(measured)) {
        let tight = explicit.touched().div_ceil(2);
        for one in std::iter::once(explicit).chain(rest) {
            let (faults, zorns) = (one.faults(tight), one.faults(MEMORY / PAGE));
            let compared = one.manager != explicit.manager;
            let over =
                |now, before| if compared { format!("{:.2}", ratio(now, before)) } else { String::new() };
            let verdict = Verdict::of(faults, explicit.faults(tight));
            rows.push(vec![
                one.program.clone(),
                one.manager.clone(),
                number(one.profile.references.total()),
                number(one.touched()),
                number(tight),
                number(faults),
                over(faults, explicit.faults(tight)),
                if compared { verdict.label().into() } else { String::new() },
                number(zorns),
                over(zorns, explicit.faults(MEMORY / PAGE)),
                if compared { worst(one, explicit) } else { String::new() },
            ]);
            if compared {
                verdicts.push((one.manager.clone(), one.program.clone(), verdict));
            }
        }
    }
    let headings = [
        "program",
        "manager",
        "references",
        "pages touched",
        "tight, pages",
        "faults",
        "over kingsley",
        "an order of magnitude?",
        "faults at 2 MB",
        "over kingsley",
        "most over kingsley, at KB",
    ];
    println!("{}", table(&headings, 2, rows));
    verdict::summary(&verdicts).iter().for_each(|line| println!("{line}"));
}

/// Memories, in pages: from 256 KB on, two in each doubling, and the first that holds all pages touched.
fn memories(most: u64) -> Vec<u64> {
    let sizes = (0..).map(|step| (f64::from(step) / 2.0).exp2() * 64.0).map(|pages| pages as u64);
    sizes.take_while(|pages| *pages < most).chain([most]).collect()
}

/// The largest ratio of a manager's faults to the explicit allocator's, and its memory: no choice of a tight memory
/// makes it larger.
fn worst(one: &Measured, explicit: &Measured) -> String {
    let of = |pages: u64| (ratio(one.faults(pages), explicit.faults(pages)), pages);
    let all = memories(one.touched().max(explicit.touched())).into_iter().map(of);
    all.max_by(|a, b| a.0.total_cmp(&b.0))
        .map_or(String::new(), |(ratio, pages)| format!("{ratio:.1}, {}", number(pages * PAGE / 1024)))
}

fn figure_5(measured: &[Measured]) {
    println!("\nFigure 5: page faults of {CURVES} a million references, by memory");
    let headings: Vec<&str> =
        std::iter::once("memory, KB").chain(measured.iter().map(|one| one.manager.as_str())).collect();
    let most = measured.iter().map(Measured::touched).max().unwrap_or(0);
    let sizes = memories(most);
    let rows: Vec<Vec<String>> = sizes
        .iter()
        .map(|pages| {
            let rate = |one: &Measured| {
                let references = one.profile.references.total().max(1) as f64;
                format!("{:.2}", one.faults(*pages) as f64 / references * 1e6)
            };
            std::iter::once(number(pages * PAGE / 1024)).chain(measured.iter().map(rate)).collect()
        })
        .collect();
    println!("{}", table(&headings, 0, rows));
}

fn figure_6(all: &[Vec<Measured>]) {
    println!(
        "\nFigure 6: misses of 100 references, direct-mapped cache of 128 KB, lines of 32 bytes (Zorn: 3 to 10 times)"
    );
    let mut rows = Vec::new();
    for (explicit, rest) in all.iter().filter_map(|measured| split(measured)) {
        for one in std::iter::once(explicit).chain(rest) {
            let (rate, before) = (one.miss_rate(FIGURE_6), explicit.miss_rate(FIGURE_6));
            let over =
                if one.manager == explicit.manager { String::new() } else { format!("{:.2}", rate / before) };
            rows.push(vec![one.program.clone(), one.manager.clone(), format!("{rate:.2}"), over]);
        }
    }
    println!("{}", table(&["program", "manager", "misses %", "over kingsley"], 2, rows));
}

fn figure_7(measured: &[Measured]) {
    println!("\nFigure 7: misses of 100 references of {CURVES}, direct-mapped caches, lines of 32 bytes");
    let headings: Vec<&str> =
        std::iter::once("cache, KB").chain(measured.iter().map(|one| one.manager.as_str())).collect();
    let rows: Vec<Vec<String>> = SETS
        .map(|power| {
            let sets = 1u64 << power;
            let rates = measured.iter().map(|one| format!("{:.2}", one.miss_rate(sets)));
            std::iter::once(number(sets * LINE / 1024)).chain(rates).collect()
        })
        .collect();
    println!("{}", table(&headings, 0, rows));
}
