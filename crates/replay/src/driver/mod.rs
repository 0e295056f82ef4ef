//! The driver's parts.

mod area;
mod clock;
mod execute;
mod ledger_watch;
mod manager;
pub mod own_memory;
mod process;
mod tables;
mod watch;
mod workers;

use std::fs::File;

use heaptoll_replay::job::{Job, Outcome, Pass, Touch};

use self::workers::Workers;

/// Carries out a job.
pub fn drive(job: Job, program: File) -> Result<Outcome, String> {
    let identity = manager::Identity::of_malloc()?;
    if job.pass == Pass::Probe {
        let collector = identity.collects();
        return Ok(Outcome { served_by: identity.object, collector, ..Outcome::default() });
    }
    if job.null {
        identity.forget();
    }
    let outcome = match (job.touch, job.index.generations) {
        (Touch::None, false) => of_pass::<0, false>(job, program),
        (Touch::None, true) => of_pass::<0, true>(job, program),
        (Touch::Write, false) => of_pass::<1, false>(job, program),
        (Touch::Write, true) => of_pass::<1, true>(job, program),
        (Touch::All, false) => of_pass::<2, false>(job, program),
        (Touch::All, true) => of_pass::<2, true>(job, program),
    }?;
    Ok(Outcome { served_by: identity.object, ..outcome })
}

fn of_pass<const TOUCH: u8, const GENERATIONS: bool>(job: Job, program: File) -> Result<Outcome, String> {
    match job.pass {
        Pass::Probe => Ok(Outcome::default()),
        Pass::Throughput => Workers::<watch::Unwatched, TOUCH, GENERATIONS>::new(job, program)?.replay(),
        Pass::Latency => Workers::<watch::Stopwatch, TOUCH, GENERATIONS>::new(job, program)?.replay(),
        Pass::Memory => Workers::<watch::MemoryWatch, TOUCH, GENERATIONS>::new(job, program)?.replay(),
        Pass::Ledger => Workers::<ledger_watch::LedgerWatch, TOUCH, GENERATIONS>::new(job, program)?.replay(),
    }
}
