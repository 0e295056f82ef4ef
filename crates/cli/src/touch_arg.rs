//! What a replay does with blocks, as an option.

use clap::ValueEnum;
use heaptoll_experiments::replay::Touch;

/// Accesses to blocks in addition to the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TouchArg {
    /// Nothing
    None,
    /// Write each in full when it is allocated
    Write,
    /// Also read and compare each before it is freed
    All,
}

impl From<TouchArg> for Touch {
    fn from(word: TouchArg) -> Touch {
        match word {
            TouchArg::None => Touch::None,
            TouchArg::Write => Touch::Write,
            TouchArg::All => Touch::All,
        }
    }
}
