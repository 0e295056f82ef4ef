//! Why a text is no log of collections.

use thiserror::Error;

/// A log that cannot be read. Lines are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GcLogError {
    /// It holds nothing: the virtual machine ended before its collector began.
    #[error("the log of collections is empty: the virtual machine ended before it made its heap")]
    Empty,
    /// A line without the decorations.
    #[error(
        "line {line} of the log of collections does not begin with [TIMEns][LEVEL][TAGS]; write it with \
         -Xlog:gc*:file=NAME:tn,level,tags"
    )]
    Decorations {
        /// Which.
        line: usize,
    },
    /// A number that is too large, or a pause that is longer than the clock had run.
    #[error(
        "line {line} of the log of collections: {what} is not a possible figure of a collection; the file is \
         damaged"
    )]
    Figure {
        /// Which.
        line: usize,
        /// What it is of.
        what: &'static str,
    },
    /// Not text.
    #[error("line {line} of the log of collections is not text; the file is damaged")]
    NotText {
        /// Which.
        line: usize,
    },
}
