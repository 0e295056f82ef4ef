//! The program of pairs: compiled when needed, and run under a stack by the clock or under callgrind.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use crate::compile::compile;
use crate::installation::scratch;
use crate::{Error, Stack};

const SOURCE: &str = include_str!("../../c/pair.c");

/// Slices of a run, and pairs in each: together some tenths of a second.
const SLICES: &str = "400";
const PAIRS: &str = "20000";
/// Pairs of the two runs whose difference is counted.
const COUNTED: [usize; 2] = [50_000, 150_000];

fn failed(stack: &Stack, reason: impl ToString) -> Error {
    Error::failed(format!("the program of pairs under {}", stack.name), reason)
}

/// The compiled program, in a folder that goes with it.
#[derive(Debug)]
pub struct Pair {
    _folder: tempfile::TempDir,
    path: PathBuf,
    bytes: String,
}

impl Pair {
    /// Compiles it with `cc`, for blocks of so many bytes.
    ///
    /// # Errors
    /// No temporary folder, no compiler, or one that refuses.
    pub fn build(bytes: usize) -> Result<Pair, Error> {
        let folder = scratch()?;
        let options = ["-std=gnu11", "-O2", "-fno-builtin", "-pthread"];
        let path = compile(folder.path(), "pair.c", SOURCE, &options)?;
        Ok(Pair { _folder: folder, path, bytes: bytes.to_string() })
    }

    /// The shortest time of a pair under a stack, ns; of several threads at once, the mean of their shortest.
    ///
    /// # Errors
    /// The program fails.
    pub fn time_ns(&self, stack: &Stack, threads: usize) -> Result<f64, Error> {
        let mut command = Command::new(&self.path);
        command
            .args([SLICES, PAIRS, &self.bytes, &threads.to_string()])
            .env("LD_PRELOAD", stack.ld_preload());
        let output =
            command.envs(stack.environment.iter().cloned()).output().map_err(|e| failed(stack, e))?;
        if !output.status.success() {
            return Err(failed(stack, output.status));
        }
        String::from_utf8_lossy(&output.stdout).trim().parse().map_err(|e| failed(stack, e))
    }

    /// Instructions of a pair under a stack; `None` without Valgrind.
    ///
    /// # Errors
    /// The program fails under it.
    pub fn instructions(&self, stack: &Stack) -> Result<Option<f64>, Error> {
        let mut counts = [0.0; COUNTED.len()];
        for (count, pairs) in counts.iter_mut().zip(COUNTED) {
            match self.count(stack, pairs)? {
                Some(instructions) => *count = instructions,
                None => return Ok(None),
            }
        }
        Ok(Some((counts[1] - counts[0]) / (COUNTED[1] - COUNTED[0]) as f64))
    }

    fn count(&self, stack: &Stack, pairs: usize) -> Result<Option<f64>, Error> {
        // By env, so that Valgrind itself runs without the stack.
        let mut preload = OsString::from("LD_PRELOAD=");
        preload.push(stack.ld_preload());
        let mut command = Command::new("valgrind");
        command
            .args(["--tool=callgrind", "--trace-children=yes", "--callgrind-out-file=/dev/null", "env"])
            .arg(preload)
            .args(stack.environment.iter().map(|(name, value)| format!("{name}={value}")))
            .arg(&self.path)
            .args(["1", &pairs.to_string(), &self.bytes]);
        let output = match command.output() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            output => output.map_err(|error| failed(stack, error))?,
        };
        let log = String::from_utf8_lossy(&output.stderr);
        // `==123== Collected : 4567890`, of env first and of the program that it becomes last.
        let collected = log.lines().rfind(|line| line.contains("Collected :"));
        let count = collected.and_then(|line| line.rsplit(' ').next()?.parse().ok());
        match count {
            Some(count) if output.status.success() => Ok(Some(count)),
            _ => Err(failed(stack, format!("valgrind: {}", output.status))),
        }
    }
}
