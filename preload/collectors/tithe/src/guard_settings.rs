//! The settings of mode `guard`: how freed blocks are held, and what is done where too many wait.

/// What is done where freed blocks that words lead to reach the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtBound {
    /// A collection comes as often as the least budget allows.
    Collect,
    /// A warning, once; they grow on.
    Warn,
    /// The oldest become available, which is reported.
    Release,
}

impl AtBound {
    /// Its name in `TITHE_AT_BOUND`.
    pub const fn as_str(self) -> &'static str {
        match self {
            AtBound::Collect => "collect",
            AtBound::Warn => "warn",
            AtBound::Release => "release",
        }
    }
}

/// The settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuardSettings {
    /// `TITHE_WAITING`: bytes of freed blocks that may wait.
    pub waiting: Option<usize>,
    /// `TITHE_AT_BOUND`.
    pub at_bound: AtBound,
    /// `TITHE_CLEAR`: freed blocks are cleared.
    pub clear: bool,
    /// `TITHE_FAULT`: large blocks that were freed cannot be read or written.
    pub fault: bool,
    /// `TITHE_REPORT`: late writes are reported to standard error, not only to the log.
    pub to_stderr: bool,
}

impl GuardSettings {
    pub const fn new() -> GuardSettings {
        GuardSettings {
            waiting: None,
            at_bound: AtBound::Collect,
            clear: true,
            fault: false,
            to_stderr: false,
        }
    }
}
