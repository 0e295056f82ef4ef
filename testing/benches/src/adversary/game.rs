//! One game: a strategy against a manager, and its outcome.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;
use thiserror::Error;

/// The adversary's strategies, in the order of the table. Each is a file of `programs/robson`.
pub const STRATEGIES: [&str; 6] = ["robson", "roving", "best-fit", "classes", "pages", "buddy"];

/// Ranges of addresses, bytes, in each of which the strategy `pages` keeps one block: a manager's page is the one that
/// costs it most.
const PAGES: [u64; 3] = [4 << 10, 16 << 10, 64 << 10];

/// The rules of the games.
#[derive(Debug, Clone)]
pub struct Game {
    /// The adversary's binary.
    pub program: PathBuf,
    /// M, bytes: what may be live at once, headers included.
    pub live_bytes: u64,
    /// n, bytes: the largest block, header included; rounded down to a power of two of units.
    pub largest_bytes: u64,
    /// Bytes of the smallest block, header included; a power of two.
    pub unit_bytes: u64,
    /// Bytes of addresses used at which a game stops.
    pub limit_bytes: u64,
    /// Seconds after which a game stops.
    pub seconds: f64,
    /// Set in the adversary's environment.
    pub environment: Vec<(String, String)>,
}

/// The adversary's result. Bytes, and factors of them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Outcome {
    /// File that malloc came from.
    pub object: PathBuf,
    /// The strategy.
    pub strategy: String,
    /// Why the game ended early; empty if it did not.
    pub stopped: String,
    /// Smallest block.
    pub unit_bytes: u64,
    /// Bytes of each block that the program does not get: headers, as measured by the distance of neighbours.
    pub overhead_bytes: u64,
    /// The range in which `pages` kept one block.
    pub page_bytes: u64,
    /// M.
    pub live_bytes: u64,
    /// n.
    pub largest_bytes: u64,
    /// Most requested bytes that were live at once.
    pub most_requested_bytes: u64,
    /// The same with headers and rounding.
    pub most_taken_bytes: u64,
    /// High-water mark of the heap.
    pub memory_bytes: u64,
    /// Source of that figure: `census` (the manager), `resident` (the kernel) or `addresses` (the adversary).
    pub memory_from: String,
    /// Most resident anonymous memory that was seen, above what was there before the first block.
    pub resident_bytes: u64,
    /// Most that was mapped, as the manager reports; 0 when it does not.
    pub census_bytes: u64,
    /// Distinct addresses that were ever in a block.
    pub address_bytes: u64,
    /// Highest minus lowest of them, summed over pieces that lie far apart.
    pub span_bytes: u64,
    /// How many such pieces.
    pub pieces: u64,
    /// `memory_bytes` over `most_requested_bytes`.
    pub factor: f64,
    /// `memory_bytes` over `most_taken_bytes`.
    pub factor_grain: f64,
    /// `address_bytes` over `most_taken_bytes`.
    pub factor_addresses: f64,
    /// Robson's bound over M.
    pub bound_factor: f64,
    /// `factor_grain` over `bound_factor`.
    pub share: f64,
    /// Blocks requested.
    pub mallocs: u64,
    /// Blocks freed.
    pub frees: u64,
}

impl Outcome {
    /// M in units.
    pub fn live_units(&self) -> u64 {
        self.live_bytes / self.unit_bytes
    }

    /// n in units.
    pub fn largest_units(&self) -> u64 {
        self.largest_bytes / self.unit_bytes
    }
}

/// A game that could not be played.
#[derive(Debug, Error)]
pub enum GameError {
    /// The adversary could not be started.
    #[error("{program}: {reason}; build it with `make -C programs`")]
    Start {
        /// Its path.
        program: String,
        /// The system's error.
        reason: String,
    },
    /// The adversary, or the manager in it, failed.
    #[error("strategy {strategy}: the adversary ended with {status}: {message}")]
    Failed {
        /// The strategy.
        strategy: String,
        /// How it ended.
        status: String,
        /// The end of its standard error.
        message: String,
    },
    /// It did not end.
    #[error("strategy {strategy}: not done after {seconds:.0} s, {grace} s more than it was given")]
    Hung {
        /// The strategy.
        strategy: String,
        /// Seconds waited.
        seconds: f64,
        /// Seconds beyond the time of the game.
        grace: u64,
    },
    /// Its output is no outcome.
    #[error("strategy {strategy}: the adversary's line cannot be read ({reason}): {line}")]
    Unreadable {
        /// The strategy.
        strategy: String,
        /// What is wrong.
        reason: String,
        /// Its output.
        line: String,
    },
    /// The manager was not what the program's malloc came from.
    #[error("strategy {strategy}: malloc came from {found}, not from {wanted}")]
    NotBound {
        /// The strategy.
        strategy: String,
        /// What malloc was bound to.
        found: String,
        /// The manager's object.
        wanted: String,
    },
}

/// Seconds that a game may take beyond its own time: the probes, and one slow call of the manager.
const GRACE_S: u64 = 30;

impl Game {
    /// Plays a strategy against a manager, `None` being the C library's. Of `pages` it is the worst of several sizes.
    ///
    /// # Errors
    /// The program cannot be run, fails, hangs, or is not served by the manager.
    pub fn play(&self, strategy: &str, object: Option<&Path>) -> Result<Outcome, GameError> {
        let mut worst = self.play_once(strategy, PAGES[0], object)?;
        let others = if strategy == "pages" { &PAGES[1..] } else { &[] };
        for &page in others {
            let outcome = self.play_once(strategy, page, object)?;
            if outcome.factor > worst.factor {
                worst = outcome;
            }
        }
        Ok(worst)
    }

    fn play_once(&self, strategy: &str, page: u64, object: Option<&Path>) -> Result<Outcome, GameError> {
        let mut command = Command::new(&self.program);
        command
            .args(["--json", "--strategy", strategy])
            .args(["-M", &self.live_bytes.to_string(), "-n", &self.largest_bytes.to_string()])
            .args(["--unit", &self.unit_bytes.to_string(), "--limit", &self.limit_bytes.to_string()])
            .args(["--page", &page.to_string()])
            .args(["--seconds", &self.seconds.to_string()])
            .env_remove("LD_PRELOAD")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(object) = object {
            command.env("LD_PRELOAD", object);
        }
        let start = |error: std::io::Error| GameError::Start {
            program: self.program.display().to_string(),
            reason: error.to_string(),
        };
        let mut child = command.spawn().map_err(start)?;
        let end = Instant::now() + Duration::from_secs_f64(self.seconds) + Duration::from_secs(GRACE_S);
        // Its output is one line, which a pipe holds.
        let status = loop {
            match child.try_wait().map_err(start)? {
                Some(status) => break status,
                None if Instant::now() > end => {
                    let killed = child.kill().and_then(|()| child.wait());
                    killed.map_err(start)?;
                    return Err(GameError::Hung {
                        strategy: strategy.into(),
                        seconds: self.seconds + GRACE_S as f64,
                        grace: GRACE_S,
                    });
                }
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        let read = |pipe: Option<&mut dyn Read>| {
            let mut bytes = vec![];
            if let Some(pipe) = pipe {
                // What cannot be read is missing from the message, or makes the outcome unreadable.
                let _ = pipe.read_to_end(&mut bytes);
            }
            String::from_utf8_lossy(&bytes).trim().to_string()
        };
        let line = read(child.stdout.as_mut().map(|pipe| pipe as &mut dyn Read));
        let message = read(child.stderr.as_mut().map(|pipe| pipe as &mut dyn Read));
        if !status.success() {
            return Err(GameError::Failed {
                strategy: strategy.into(),
                status: status.to_string(),
                message: if message.is_empty() { line } else { message },
            });
        }
        let outcome: Outcome = serde_json::from_str(&line).map_err(|error| GameError::Unreadable {
            strategy: strategy.into(),
            reason: error.to_string(),
            line: line.clone(),
        })?;
        let same = |a: &Path, b: &Path| match (a.canonicalize(), b.canonicalize()) {
            (Ok(a), Ok(b)) => a == b,
            _ => a == b,
        };
        match object {
            Some(object) if !same(object, &outcome.object) => Err(GameError::NotBound {
                strategy: strategy.into(),
                found: outcome.object.display().to_string(),
                wanted: object.display().to_string(),
            }),
            _ => Ok(outcome),
        }
    }
}
