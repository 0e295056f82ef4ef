//! What can go wrong with a tool and with what it wrote.

use std::path::PathBuf;

/// A tool that is missing or failed, or a file of its that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A tool is not installed.
    #[error("`{tool}` is not installed; install it with: apt-get install {package}")]
    NoTool {
        /// The command.
        tool: String,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// A tool failed.
    #[error("{step} failed ({status})\ncommand: {command}\n{message}")]
    Step {
        /// What the command was to do.
        step: String,
        /// How it ended.
        status: String,
        /// The command line.
        command: String,
        /// The end of what it wrote.
        message: String,
    },
    /// A file cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A profile that does not hold what it must.
    #[error("{path}: {reason}", path = path.display())]
    Profile {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A file is not a shared object that can be read.
    #[error("{path} is not a readable ELF shared object: {message}", path = path.display())]
    NotElf {
        /// The file.
        path: PathBuf,
        /// Why.
        message: String,
    },
}
