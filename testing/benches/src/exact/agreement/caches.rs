//! Misses of set-associative caches in the simulators and in cachegrind, with every difference explained.
//!
//! The tracer records more than cachegrind: the kernel's loads and stores in system calls. A simulation without these
//! must have cachegrind's figures, to the last miss; one with them shows what they add. An instruction that loads and
//! stores one address is one read to cachegrind and two references here, of which the second always hits.

use heaptoll_callgrind::cachegrind::Cache;
use heaptoll_catalog::Prepared;
use heaptoll_experiment::manager::Manager;
use heaptoll_locality::hierarchy::{Hierarchy, all};
use heaptoll_locality::machine::Machine;
use heaptoll_locality::simulation::{Settings, Simulation};
use heaptoll_reftrace::{Event, Owner, Reference, Sink};
use heaptoll_reftrace_host::Options as TracerOptions;
use heaptoll_units::number;

use super::options::Options;
use crate::Error;
use crate::exact::difference::{difference, per_cent};
use crate::exact::profiled;
use crate::exact::setup::Setup;
use crate::exact::traced::{self, Run};
use crate::table::table;

/// Bytes of a line in all caches.
const LINE: u64 = 64;
/// The first level that is compared: sets as a power of two, and ways. 32 KiB, as in processors; 64 KiB direct-mapped;
/// 4 KiB, in which errors show most.
const FIRST: [(u32, u32); 3] = [(6, 8), (10, 1), (5, 2)];
/// The last level.
const LAST: Cache = Cache { size: 1 << 20, line: LINE, ways: 16 };

/// Compares all programs under all managers. False if misses or loads differ by more than the tolerance.
///
/// # Errors
/// A program fails, or a tool is missing.
pub fn run(
    setup: &Setup,
    programs: &[Prepared],
    managers: &[Manager],
    options: &Options,
) -> Result<bool, Error> {
    println!(
        "Misses of the first level in the simulators and in cachegrind, without system calls; and what these add"
    );
    let mut comparison = Comparison {
        setup,
        tolerance: options.tolerance,
        rows: Vec::new(),
        totals: Vec::new(),
        agreed: true,
    };
    for program in programs {
        for manager in managers {
            comparison.add(program, manager)?;
        }
    }
    let agreed = comparison.agreed;
    comparison.show();
    Ok(agreed)
}

/// Rows of the two tables, and whether all figures agree so far.
struct Comparison<'a> {
    setup: &'a Setup,
    tolerance: f64,
    /// A row a cache of the first level.
    rows: Vec<Vec<String>>,
    /// A row a program under a manager: references, and the last level.
    totals: Vec<Vec<String>>,
    agreed: bool,
}

impl Comparison<'_> {
    /// Traces a program under a manager once, and has cachegrind simulate each cache of the first level.
    fn add(&mut self, program: &Prepared, manager: &Manager) -> Result<(), Error> {
        let run =
            Run { options: TracerOptions { references: true, ..TracerOptions::default() }, ..Run::default() };
        let empty = ComparedCaches::new()?;
        let traced = traced::trace(self.setup, program, manager, run, |_| empty.clone())?;
        let (compared, instructions) = traced::main(self.setup, program, manager, traced)?;
        let levels = compared.hierarchy.misses();
        let last = levels.get(1).map_or(0, |level| all(level).process());
        let [loads, stores] = compared.references;
        let (without_kernel, with_kernel) = (compared.without_kernel.finish(), compared.with_kernel.finish());
        for (power, ways) in FIRST {
            let sets = 1u64 << power;
            let first = Cache { size: sets * u64::from(ways) * LINE, line: LINE, ways: ways.into() };
            let theirs = profiled::caches(self.setup, program, manager, first, LAST)?;
            let both = theirs.reads.plus(theirs.writes);
            let misses = |profile: &heaptoll_locality::simulation::Profile| {
                profile.associative(sets, ways).map_or(Default::default(), |cache| cache.misses)
            };
            let (ours, with_calls) = (misses(&without_kernel).process(), misses(&with_kernel));
            self.agreed &= per_cent(ours, both.first_misses).abs() <= self.tolerance;
            self.rows.push(vec![
                program.name.clone(),
                manager.name.clone(),
                format!("{} KB, {ways}-way", first.size / 1024),
                number(both.first_misses),
                number(ours),
                difference(ours, both.first_misses),
                format!("{:+.4}", per_cent(ours, both.first_misses)),
                difference(with_calls.process(), ours),
                number(with_calls.system),
            ]);
            if (power, ways) == FIRST[0] {
                self.agreed &= per_cent(loads, theirs.reads.made).abs() <= self.tolerance;
                self.totals.push(vec![
                    program.name.clone(),
                    manager.name.clone(),
                    difference(instructions, theirs.instructions),
                    number(loads),
                    difference(loads, theirs.reads.made),
                    number(stores),
                    difference(stores, theirs.writes.made),
                    number(both.last_misses),
                    difference(last, both.last_misses),
                    number(theirs.instruction_last_misses),
                ]);
            }
        }
        Ok(())
    }

    /// Prints both tables.
    fn show(self) {
        let headings = [
            "program",
            "manager",
            "cache",
            "cachegrind",
            "ours",
            "difference",
            "off by %",
            "system calls change",
            "and miss themselves",
        ];
        println!("{}", table(&headings, 3, self.rows));
        println!(
            "\nThe same runs: references (a store that an instruction makes where it has just loaded is none to cachegrind), \
             and misses of the last level, 1 MB, 16-way (cachegrind's is shared with instructions, whose misses come last)"
        );
        let headings = [
            "program",
            "manager",
            "instructions, difference",
            "loads",
            "to cachegrind's",
            "stores",
            "to cachegrind's",
            "LL misses of cachegrind",
            "ours, difference",
            "LL misses of instructions",
        ];
        println!("{}", table(&headings, 2, self.totals));
        println!();
    }
}

/// Two simulations of the same references, without and with the kernel's accesses, and one of two levels without.
#[derive(Clone)]
struct ComparedCaches {
    without_kernel: Simulation,
    with_kernel: Simulation,
    hierarchy: Hierarchy,
    references: [u64; 2],
}

impl ComparedCaches {
    fn new() -> Result<ComparedCaches, Error> {
        let settings = Settings {
            line_bytes: LINE,
            lines: false,
            pages: false,
            sets: Some(5..=10),
            ..Settings::default()
        };
        let machine: Machine = format!("32K/8,{}/{}", LAST.size, LAST.ways).parse()?;
        let simulation = Simulation::new(&settings)?;
        let hierarchy = Hierarchy::new(&machine);
        Ok(ComparedCaches {
            without_kernel: simulation.clone(),
            with_kernel: simulation,
            hierarchy,
            references: [0; 2],
        })
    }
}

impl Sink for ComparedCaches {
    fn references(&mut self, owner: Owner, references: &[Reference]) {
        self.without_kernel.references(owner, references);
        self.with_kernel.references(owner, references);
        self.hierarchy.references(owner, references);
        for reference in references {
            self.references[usize::from(reference.is_store())] += 1;
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        if let Event::Kernel { address, length, .. } = *event {
            self.with_kernel.kernel(address, length);
        }
    }
}
