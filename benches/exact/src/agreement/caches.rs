//! Misses of set-associative caches, the simulators' beside cachegrind's, with every difference explained.
//!
//! The tracer hears more than cachegrind: what the kernel loads and stores in system calls. A simulation that is deaf to
//! these must say what cachegrind says, to the last miss; one that hears them says what they add.
//! An instruction that loads and stores one place is one read to cachegrind and two references here, of which the second
//! always hits.

use heaptoll_callgrind::cachegrind::Cache;
use heaptoll_catalog::Prepared;
use heaptoll_lab::manager::Manager;
use heaptoll_locality::hierarchy::{Hierarchy, all};
use heaptoll_locality::machine::Machine;
use heaptoll_locality::simulation::{Settings, Simulation};
use heaptoll_reference::{Event, Owner, Reference, Sink};
use heaptoll_tracer::Options as Told;

use super::Options;
use crate::Error;
use crate::profiled;
use crate::sheet::{difference, per_cent, print, thousands};
use crate::traced::{self, Run};
use crate::workshop::Workshop;

/// Bytes of a line in all caches.
const LINE: u64 = 64;
/// The first level that is compared: sets as a power of two, and ways. 32 KiB, as processors have it; 64 KiB
/// direct-mapped; 4 KiB, in which most that can go wrong does.
const FIRST: [(u32, u32); 3] = [(6, 8), (10, 1), (5, 2)];
/// The last level.
const LAST: Cache = Cache { size: 1 << 20, line: LINE, ways: 16 };

/// Compares all programs under all managers. False when misses or loads differ by more than the tolerance.
///
/// # Errors
/// A program fails, or a tool is missing.
pub fn run(
    workshop: &Workshop,
    programs: &[Prepared],
    managers: &[Manager],
    options: &Options,
) -> Result<bool, Error> {
    println!(
        "Misses of the first level, the simulators' beside cachegrind's, system calls left out; and what these add"
    );
    let (mut rows, mut totals) = (Vec::new(), Vec::new());
    let mut agreed = true;
    for program in programs {
        for manager in managers {
            let told = Run { options: Told { references: true, ..Told::default() }, ..Run::default() };
            let empty = Ears::new()?;
            let heard = traced::trace(workshop, program, manager, told, |_| empty.clone())?;
            let (ears, instructions) = traced::main(workshop, program, manager, heard)?;
            let [loads, stores] = ears.references;
            let levels = ears.hierarchy.misses();
            let (deaf, hearing) = (ears.deaf.finish(), ears.hearing.finish());
            for (power, ways) in FIRST {
                let sets = 1u64 << power;
                let first = Cache { size: sets * u64::from(ways) * LINE, line: LINE, ways: ways.into() };
                let theirs = profiled::caches(workshop, program, manager, first, LAST)?;
                let both = theirs.reads.plus(theirs.writes);
                let misses = |profile: &heaptoll_locality::simulation::Profile| {
                    profile.associative(sets, ways).map_or(Default::default(), |cache| cache.misses)
                };
                let (ours, with_calls) = (misses(&deaf).process(), misses(&hearing));
                agreed &= per_cent(ours, both.first_misses).abs() <= options.tolerance;
                rows.push(vec![
                    program.name.clone(),
                    manager.name.clone(),
                    format!("{} KB, {ways}-way", first.size / 1024),
                    thousands(both.first_misses),
                    thousands(ours),
                    difference(ours, both.first_misses),
                    format!("{:+.4}", per_cent(ours, both.first_misses)),
                    difference(with_calls.process(), ours),
                    thousands(with_calls.system),
                ]);
                if (power, ways) == FIRST[0] {
                    agreed &= per_cent(loads, theirs.reads.made).abs() <= options.tolerance;
                    let last = levels.get(1).map_or(0, |level| all(level).process());
                    totals.push(vec![
                        program.name.clone(),
                        manager.name.clone(),
                        difference(instructions, theirs.instructions),
                        thousands(loads),
                        difference(loads, theirs.reads.made),
                        thousands(stores),
                        difference(stores, theirs.writes.made),
                        thousands(both.last_misses),
                        difference(last, both.last_misses),
                        thousands(theirs.instruction_last_misses),
                    ]);
                }
            }
        }
    }
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
    print(&headings, 3, &rows);
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
    print(&headings, 2, &totals);
    println!();
    Ok(agreed)
}

/// Two simulations of the same references, without and with what the kernel does, and one of two levels without.
#[derive(Clone)]
struct Ears {
    deaf: Simulation,
    hearing: Simulation,
    hierarchy: Hierarchy,
    references: [u64; 2],
}

impl Ears {
    fn new() -> Result<Ears, Error> {
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
        Ok(Ears { deaf: simulation.clone(), hearing: simulation, hierarchy, references: [0; 2] })
    }
}

impl Sink for Ears {
    fn references(&mut self, owner: Owner, references: &[Reference]) {
        self.deaf.references(owner, references);
        self.hearing.references(owner, references);
        self.hierarchy.references(owner, references);
        for reference in references {
            self.references[usize::from(reference.is_store())] += 1;
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        if let Event::Kernel { address, length, .. } = *event {
            self.hearing.kernel(address, length);
        }
    }
}
