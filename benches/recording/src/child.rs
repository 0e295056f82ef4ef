//! A command run to its end, with its time and peak memory; and heaptoll itself as such a command.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use heaptoll_catalog::{Catalog, Prepared, Program, Size};
use heaptoll_experiment::places::Places;

use crate::BenchError;

/// Time and memory of a finished command.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    /// Wall time, s.
    pub wall_s: f64,
    /// Peak resident set, KiB. A parent's own peak is a lower limit of it: this process is a few MiB.
    pub peak_rss_kib: u64,
}

/// Runs a command to its end; its output is thrown away.
///
/// # Errors
/// It cannot be started, or does not end with status 0.
pub fn run(command: &mut Command) -> Result<Usage, BenchError> {
    let errors = tempfile::tempfile().map_err(BenchError::system("temporary file"))?;
    let copy = errors.try_clone().map_err(BenchError::system("temporary file"))?;
    let begun = Instant::now();
    let child = command.stdout(Stdio::null()).stderr(copy).spawn().map_err(BenchError::system("start"))?;
    let pid =
        i32::try_from(child.id()).map_err(|_| BenchError::Unexpected("no such process number".into()))?;
    let mut status = 0;
    // SAFETY: all zeroes is a valid `rusage`; `wait4` writes to `status` and `usage`, both live locals. The child is
    // waited for here only.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        while libc::wait4(pid, &mut status, 0, &mut usage) < 0 {
            let cause = std::io::Error::last_os_error();
            if cause.kind() != std::io::ErrorKind::Interrupted {
                return Err(BenchError::System { what: "wait".into(), cause });
            }
        }
        usage
    };
    let wall_s = begun.elapsed().as_secs_f64();
    let status = ExitStatus::from_raw(status);
    if !status.success() {
        return Err(BenchError::Ended {
            command: format!("{command:?}"),
            how: status.to_string(),
            errors: tail(errors),
        });
    }
    Ok(Usage { wall_s, peak_rss_kib: u64::try_from(usage.ru_maxrss).unwrap_or(0) })
}

/// The last 500 bytes of a file.
fn tail(mut file: File) -> String {
    use std::io::{Read, Seek, SeekFrom};
    let mut bytes = Vec::new();
    // What cannot be read is missing from the error; the status is in it.
    let _ = file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(500)..]).trim().to_owned()
}

/// The heaptoll next to this binary, and the catalog.
pub struct Installation {
    heaptoll: PathBuf,
    places: Places,
    catalog: Catalog,
}

impl Installation {
    /// Finds them.
    ///
    /// # Errors
    /// No installation.
    pub fn find() -> Result<Installation, BenchError> {
        let places = Places::find()?;
        let own = std::env::current_exe().map_err(BenchError::system("own path"))?;
        let catalog = Catalog::load(&places.catalog())?;
        Ok(Installation { heaptoll: own.with_file_name("heaptoll"), places, catalog })
    }

    /// A heaptoll command.
    pub fn heaptoll(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.heaptoll);
        command.args(arguments).stdin(Stdio::null());
        command
    }

    /// Programs of the catalog that are installed here and no servers.
    pub fn programs(&self) -> impl Iterator<Item = &Program> {
        let folders = self.folders();
        self.catalog
            .programs()
            .filter(move |program| program.missing(&folders).is_none() && !program.is_server())
    }

    fn folders(&self) -> heaptoll_catalog::Places {
        heaptoll_catalog::Places {
            bin: self.places.programs(),
            added: Places::added(),
            inputs_cache: Places::inputs(),
        }
    }

    /// A program with its input.
    ///
    /// # Errors
    /// Unknown, or its input cannot be made.
    pub fn prepare(&self, name: &str, size: Size) -> Result<Prepared, BenchError> {
        Ok(self.catalog.find(name)?.prepare(size, &self.folders())?)
    }

    /// The program as it is.
    ///
    /// # Errors
    /// Its input cannot be opened.
    pub fn plain(&self, program: &Prepared) -> Result<Command, BenchError> {
        let words = &program.command;
        let first = words
            .first()
            .ok_or_else(|| BenchError::Unexpected(format!("{} has no command", program.name)))?;
        let mut command = Command::new(first);
        command.args(&words[1..]);
        self.give(program, command)
    }

    /// The program recorded into a file.
    ///
    /// # Errors
    /// Its input cannot be opened.
    pub fn recorded(&self, program: &Prepared, into: &Path, options: &[&str]) -> Result<Command, BenchError> {
        let mut command = self.heaptoll(&["record", "--force", "-o"]);
        command.arg(into).args(options).arg("--").args(&program.command);
        self.give(program, command)
    }

    fn give(&self, program: &Prepared, mut command: Command) -> Result<Command, BenchError> {
        command.envs(program.environment.iter().map(|(name, value)| (name, value)));
        match &program.stdin {
            Some(path) => {
                command.stdin(File::open(path).map_err(BenchError::system(&path.display().to_string()))?)
            }
            None => command.stdin(Stdio::null()),
        };
        Ok(command)
    }
}
