//! Why a file is no ELF file of use.

use std::io;

/// Why a file is no ELF file of use; the texts follow a file's name.
#[derive(Debug, thiserror::Error)]
pub enum ElfError {
    /// It cannot be read.
    #[error("{0}")]
    Io(#[source] io::Error),
    /// It is not ELF at all; the text names its likely type.
    #[error("{0}")]
    NotElf(String),
    /// ELF for something else, which the text names.
    #[error("it is built for {0}")]
    Foreign(String),
    /// ELF whose tables lead out of the file.
    #[error("{0}")]
    Damaged(String),
}

/// What `object` finds wrong in a file whose header is ELF.
pub(crate) fn damaged(error: object::Error) -> ElfError {
    ElfError::Damaged(error.to_string())
}
