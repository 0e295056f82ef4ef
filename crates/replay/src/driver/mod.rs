//! The driver's parts.

mod area;
mod clock;
mod crew;
mod execute;
mod manager;
pub mod own_memory;
mod process;
mod tables;
mod watch;

use std::fs::File;

use heaptoll_replay::job::{Job, Outcome, Pass, Touch};

use self::crew::Crew;

/// Does what is asked.
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
        Pass::Throughput => Crew::<watch::Nothing, TOUCH, GENERATIONS>::new(job, program)?.go(),
        Pass::Latency => Crew::<watch::Stopwatch, TOUCH, GENERATIONS>::new(job, program)?.go(),
        Pass::Memory => Crew::<watch::Bookkeeper, TOUCH, GENERATIONS>::new(job, program)?.go(),
    }
}
