//! The company effect on a ratio of runs at once on one processor: how far it lies from that of runs alone, by the
//! number of stacks, the length of their time slices, and the memory that they touch.
//!
//! `arena.c` forwards to glibc and reads an arena of a settable size, line by line, between its calls: caches that are
//! colder after each switch cost it more the larger that is, up to what the caches hold. Catalog programs under real
//! managers are measured, too.

use std::path::Path;

use heaptoll_catalog::Size;
use heaptoll_experiment::comparison::Metric;
use heaptoll_experiment::experiment::{Pairing, Protocol};
use heaptoll_experiment::side::Sides;

use super::protocol::protocol;
use crate::compile::{OBJECT, compile};
use crate::installation::{Installation, scratch};
use crate::table::print_figure;
use crate::{Error, NoProgress, Stack};

/// Sizes of the arena, KiB.
const ARENAS_KIB: [u32; 4] = [256, 1024, 10 << 10, 64 << 10];
/// Slices, milliseconds; `None` is the kernel's own.
const SLICES_MS: [Option<u32>; 4] = [None, Some(10), Some(30), Some(100)];
/// Programs of the catalog, under a manager that differs most from glibc there.
const PROGRAMS: [(&str, &str); 3] = [("lua", "snmalloc"), ("espresso", "snmalloc"), ("gawk", "snmalloc")];
/// A ratio that lies further from that of runs alone is a missed target.
const TARGET: f64 = 0.01;

/// A pair whose ratio is measured: the second stack over the first.
struct Pair {
    what: String,
    program: &'static str,
    stacks: [Stack; 2],
}

/// A mean of log ratios, and its standard error.
#[derive(Clone, Copy)]
struct Mean {
    log: f64,
    error: f64,
}

impl Mean {
    fn of(values: &[Option<f64>]) -> Option<Mean> {
        let values: Vec<f64> = values.iter().flatten().copied().collect();
        let count = values.len() as f64;
        let log = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - log).powi(2)).sum();
        (values.len() > 2).then(|| Mean { log, error: (squares / (count - 1.0) / count).sqrt() })
    }
}

fn arena(name: &str, object: &Path, kib: u32) -> Stack {
    let environment = vec![("ARENA_KIB".into(), kib.to_string())];
    Stack { preload: vec![object.into()], environment, ..Stack::plain(name) }
}

fn pairs(installation: &Installation, object: &Path) -> Vec<Pair> {
    let mut all = Vec::new();
    for kib in ARENAS_KIB {
        let stacks = [arena("none", object, 0), arena("arena", object, kib)];
        all.push(Pair { what: format!("cfrac, an arena of {kib} KiB"), program: "cfrac", stacks });
    }
    for (program, name) in PROGRAMS {
        let Ok(stack) = installation.stack(name) else { continue };
        let stacks = [Stack::plain("glibc"), Stack { reports_statistics: false, ..stack }];
        all.push(Pair { what: format!("{program}, {name}"), program, stacks });
    }
    all
}

/// Log ratios of the pair by repetition.
struct Ratios {
    /// Of runs at once with the others.
    together: Vec<Option<f64>>,
    /// Of the runs alone in the same experiment.
    alone: Vec<Option<f64>>,
}

/// Runs the pair in a company of so many stacks.
fn measured(
    installation: &Installation,
    pair: &Pair,
    company: usize,
    slice_ms: Option<u32>,
    n: u32,
) -> Result<Ratios, Error> {
    let mut stacks = pair.stacks.to_vec();
    // The others are of either kind in turn, as in a table of several managers.
    for number in stacks.len()..company {
        let like = &pair.stacks[number % 2];
        stacks.push(Stack { name: format!("{}#{number}", like.name), ..like.clone() });
    }
    let program = installation.program(pair.program, Size::Quick)?;
    let slice_s = slice_ms.map(|ms| f64::from(ms) / 1e3);
    let protocol = Protocol { slice_s, ..protocol(n, 1994, Pairing::Lockstep) };
    let experiment = installation.run(&program, &stacks, protocol, &mut NoProgress)?;
    let sides = Sides::of(&experiment, pair.program);
    let side = |stack: &Stack| sides.find(&stack.name);
    let ratios = side(&pair.stacks[0]).zip(side(&pair.stacks[1])).map(|(base, side)| Ratios {
        together: side.log_ratios(base, Metric::Cpu, n),
        alone: side.log_ratios_by_itself(base, n),
    });
    ratios.ok_or_else(|| Error::Unexpected(format!("{} did not run", pair.what)))
}

/// The experiments.
#[derive(Debug, clap::Args)]
pub struct Plan {
    /// Repetitions of each
    #[arg(short, default_value_t = 8)]
    n: u32,
    /// Numbers of stacks that run at once
    #[arg(long = "at-once", value_delimiter = ',', default_value = "2,5,8", value_parser = company)]
    companies: Vec<usize>,
    /// Only the pairs with this in their names
    #[arg(long, default_value = "")]
    only: String,
}

/// A number of stacks that run at once: two at least.
fn company(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&stacks| stacks >= 2).ok_or_else(|| "give two stacks or more".into())
}

/// Measures the pairs in each company and with each slice. The runs alone of all of them are the ratio that each is
/// compared with.
pub fn run(plan: &Plan) -> Result<(), Error> {
    let installation = Installation::find()?;
    let folder = scratch()?;
    let object = compile(folder.path(), "arena.c", include_str!("../../c/arena.c"), &OBJECT)?;
    let chosen = pairs(&installation, &object).into_iter().filter(|pair| pair.what.contains(&plan.only));
    for pair in chosen {
        let (mut together, mut alone) = (Vec::new(), Vec::new());
        for &company in &plan.companies {
            for slice_ms in SLICES_MS {
                let ratios = measured(&installation, &pair, company, slice_ms, plan.n)?;
                alone.extend(ratios.alone);
                together.push((company, slice_ms, ratios.together));
            }
        }
        let unmeasured = || Error::Unexpected(format!("{} did not run to its end", pair.what));
        let alone = Mean::of(&alone).ok_or_else(unmeasured)?;
        println!("{}: {:.3} alone (+-{:.1} %)", pair.what, alone.log.exp(), 200.0 * alone.error);
        for (company, slice_ms, ratios) in together {
            let together = Mean::of(&ratios).ok_or_else(unmeasured)?;
            let off = (together.log - alone.log).exp() - 1.0;
            let slice = slice_ms.map_or("the kernel's slices".to_owned(), |ms| format!("{ms} ms"));
            print_figure(
                &format!("  {company} at once, {slice}: ratio, off by (+- 2 standard errors)"),
                format!(
                    "{:.3}, {:+.1} (+-{:.1}) %",
                    together.log.exp(),
                    100.0 * off,
                    200.0 * together.error.hypot(alone.error)
                ),
                "within 1 %",
                off.abs() <= TARGET,
            );
        }
    }
    Ok(())
}
