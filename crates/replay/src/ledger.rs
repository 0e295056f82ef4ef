//! The ledger of a replay: what a manager makes of exactly the calls of a trace, page by page, with blocks attributed to
//! the call sites that allocated them in the recorded run.
//!
//! The driver stops at marks and hands its live blocks over ([`crate::live_blocks`]); the process is then sampled as a
//! recorded one is. Slots are those of the trace, so that reading the trace up to the mark again gives each block's site.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use heaptoll_ledger::{Block, Observer, Options, Snapshot};
use heaptoll_trace::{Memory, tables};

use crate::error::ReplayError;
use crate::flatten::{EACH_OBJECT, Flattening, flatten};
use crate::job::{Job, Pass, Touch};
use crate::live_blocks::{LiveBlock, let_go, read_mark, read_pid};
use crate::origins::{EACH_ORIGIN, Origins};
use crate::program::{Facts, Index, Program};
use crate::source::FileSource;
use crate::start::{Ended, Stack, Starter};
use crate::study::{available, fits};

/// Snapshots of a replay where the trace does not name where it wants them.
const EVENLY: u64 = 40;

/// What is requested.
#[derive(Debug, Clone)]
pub struct Request {
    /// The trace.
    pub trace: PathBuf,
    /// Events of the trace after which the process is sampled, in order; of none, some spread evenly.
    pub after: Vec<u64>,
    /// What is done with blocks.
    pub touch: Touch,
    /// Bytes of memory that may be taken to make the trace ready.
    pub memory_limit_bytes: u64,
    /// Longest that a run may take.
    pub timeout: Duration,
    /// The driver.
    pub driver: PathBuf,
}

/// A trace made ready to be replayed with a ledger.
pub struct Prepared {
    request: Request,
    program: Program,
}

/// A manager under which it is replayed.
#[derive(Debug, Clone)]
pub struct Manager {
    /// How it is loaded.
    pub stack: Stack,
    /// Its own name, without layers and options: the layout of some is known.
    pub name: String,
}

/// A process at one mark.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sampled {
    /// Events of the trace until then.
    pub events: u64,
    /// Resident bytes less those before the first call and the driver's own.
    pub resident_bytes: u64,
    /// The ledger. Its resident set has the driver's memory in it.
    pub snapshot: Snapshot,
}

/// What came of a replay.
#[derive(Debug, Clone, PartialEq)]
pub enum Replayed {
    /// It was made: a sample a mark.
    Sampled(Vec<Sampled>),
    /// It was not, or not to its end: why.
    Failed(String),
    /// The user cancelled it.
    Interrupted,
}

impl Prepared {
    /// Makes a trace ready.
    ///
    /// # Errors
    /// It is no trace, cannot be read, has no call, or this machine has no memory for it.
    pub fn new(request: Request) -> Result<Prepared, ReplayError> {
        if !request.driver.is_file() {
            return Err(ReplayError::Missing { what: "the replay driver", path: request.driver });
        }
        let memory = memory(&request, EACH_OBJECT as u64);
        let after = match request.after.is_empty() {
            true => evenly(tables(&request.trace)?.ending.map_or(0, |ending| ending.events)),
            false => request.after.clone(),
        };
        let how =
            Flattening { mark_after: Some(after), most_in_memory: available() / 4, ..Flattening::default() };
        let program = flatten(vec![Box::new(FileSource::open(&request.trace, memory)?)], &how)?;
        if program.facts.calls == 0 {
            let trace = request.trace.display().to_string();
            return Err(ReplayError::Empty { trace, skipped: program.facts.skipped() });
        }
        fits(&program, request.touch != Touch::None, available())?;
        Ok(Prepared { request, program })
    }

    /// What was found while it was made ready.
    pub fn facts(&self) -> &Facts {
        &self.program.facts
    }

    /// Replays it under a manager.
    ///
    /// # Errors
    /// The system gives no process or no file. A manager that fails is no error.
    pub fn replay(&self, manager: &Manager, interrupt: &AtomicBool) -> Result<Replayed, ReplayError> {
        let starter =
            Starter { driver: self.request.driver.clone(), interrupt, timeout: self.request.timeout };
        let collector = match self.probe(&starter, manager)? {
            Ok(collector) => collector,
            Err(ended) => return Ok(ended),
        };
        let (ours, theirs) =
            UnixStream::pair().map_err(ReplayError::system("make a socket for the driver"))?;
        let job = Job { ledger: Some(theirs.as_raw_fd()), ..self.job(Pass::Ledger, self.request.touch) };
        let sampler = Sampler {
            request: &self.request,
            marked_after: &self.program.marked_after,
            options: Options { manager: manager.name.clone(), collector, ..Options::default() },
        };
        let (ended, sampled) = std::thread::scope(|scope| {
            let sampling = std::thread::Builder::new().spawn_scoped(scope, move || sampler.run(ours))?;
            let ended = starter.run(&manager.stack, &self.program, &job, 0);
            // The sampler reads to the end, which comes when neither of the two has the socket.
            drop(theirs);
            Ok::<_, std::io::Error>((ended, sampling.join()))
        })
        .map_err(ReplayError::system("start a thread"))?;
        Ok(match (ended?, sampled) {
            (Ended::Interrupted, _) => Replayed::Interrupted,
            (Ended::Failed(why), _) => Replayed::Failed(why),
            (Ended::Done(..), Ok(sampled)) => match sampled? {
                Ok(all) => Replayed::Sampled(all),
                Err(why) => Replayed::Failed(why),
            },
            (Ended::Done(..), Err(_)) => Replayed::Failed("sampling the process failed".into()),
        })
    }

    /// Whether the manager is a collector; or how probing it ended.
    fn probe(&self, starter: &Starter, manager: &Manager) -> Result<Result<bool, Replayed>, ReplayError> {
        let job = Job { index: Index::default(), ..self.job(Pass::Probe, Touch::None) };
        Ok(match starter.run(&manager.stack, &self.program, &job, 0)? {
            Ended::Interrupted => Err(Replayed::Interrupted),
            Ended::Failed(why) => Err(Replayed::Failed(why)),
            Ended::Done(outcome, _) => {
                let file = Path::new(&outcome.served_by).file_name().unwrap_or_default();
                match !manager.stack.preload.is_empty() && file.to_string_lossy().starts_with("libc.so") {
                    true => Err(Replayed::Failed(
                        "malloc still comes from the C library; is it a manager?".into(),
                    )),
                    false => Ok(outcome.collector.is_some()),
                }
            }
        })
    }

    fn job(&self, pass: Pass, touch: Touch) -> Job {
        let index = self.program.index.clone();
        Job { pass, touch, repetitions: 1, checkpoints: 0, null: false, ledger: None, index }
    }
}

fn memory(request: &Request, each_object_bytes: u64) -> Memory {
    Memory { limit_bytes: request.memory_limit_bytes, each_object_bytes }
}

/// Numbers of events up to all of them, spread evenly.
fn evenly(events: u64) -> Vec<u64> {
    let mut all: Vec<u64> = (1..=EVENLY).map(|part| events * part / EVENLY).filter(|at| *at > 0).collect();
    all.dedup();
    all
}

/// The tool's end of the socket.
struct Sampler<'a> {
    request: &'a Request,
    marked_after: &'a [u64],
    options: Options,
}

impl Sampler<'_> {
    /// Samples the process at each mark, until the driver closes the socket. The inner error is of the process.
    fn run(self, mut socket: UnixStream) -> Result<Result<Vec<Sampled>, String>, ReplayError> {
        let mut origins = Origins::open(&self.request.trace, memory(self.request, EACH_ORIGIN as u64))?;
        let Ok(pid) = read_pid(&mut socket) else { return Ok(Err("the driver did not begin".into())) };
        let begun = Instant::now();
        let mut live = Vec::new();
        // Before the first call there is one mark more.
        let Ok(Some(_)) = read_mark(&mut socket, &mut live) else {
            return Ok(Err("the driver ended before its first call".into()));
        };
        let mut observer = Observer::new(pid, self.options);
        let mut observe = |clock_bytes, blocks: &Vec<Block>| {
            let time_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
            observer.observe(time_ns, clock_bytes, blocks, None).map_err(|error| error.to_string())
        };
        let base = match observe(0, &Vec::new()) {
            Ok(snapshot) => snapshot.rss_bytes,
            Err(why) => return Ok(Err(why)),
        };
        let mut sampled = Vec::with_capacity(self.marked_after.len());
        for &events in self.marked_after {
            if let_go(&mut socket).is_err() {
                break;
            }
            let own = match read_mark(&mut socket, &mut live) {
                Ok(Some(own)) => own,
                Ok(None) | Err(_) => break,
            };
            origins.read_to(events)?;
            let blocks: Vec<Block> = live.iter().map(|block| with_origin(block, &origins)).collect();
            match observe(origins.clock_bytes(), &blocks) {
                Ok(snapshot) => sampled.push(Sampled {
                    events,
                    resident_bytes: snapshot.rss_bytes.saturating_sub(base.saturating_add(own)),
                    snapshot: Snapshot { events, ..snapshot },
                }),
                Err(why) => return Ok(Err(why)),
            }
        }
        // What is left to do does not wait for us.
        let _ = let_go(&mut socket);
        drain(&mut socket);
        let missing = self.marked_after.len() - sampled.len();
        Ok(if missing == 0 { Ok(sampled) } else { Err(format!("{missing} marks were not reached")) })
    }
}

fn with_origin(block: &LiveBlock, origins: &Origins) -> Block {
    let origin = origins.of(block.slot);
    Block {
        address: block.address,
        requested: block.requested,
        usable: block.usable,
        site: origin.site,
        allocated_at_bytes: origin.allocated_at_bytes,
    }
}

/// Reads what still comes, so that the driver never waits for a reader.
fn drain(socket: &mut UnixStream) {
    let _ = io::copy(socket, &mut io::sink());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_spread_evenly_and_the_last_is_the_end() {
        assert_eq!(evenly(0), [0_u64; 0]);
        assert_eq!(evenly(3), [1, 2, 3]);
        let many = evenly(100_001);
        assert_eq!((many.len(), many.last()), (EVENLY as usize, Some(&100_001)));
        assert!(many.is_sorted());
    }
}
