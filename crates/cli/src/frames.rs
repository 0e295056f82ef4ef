//! How much of a call stack is shown, for all commands that show call sites.

use clap::Args;

/// Option of commands that show call sites.
#[derive(Debug, Clone, Copy, Args)]
pub struct FramesArguments {
    /// Frames of the program's own code that a call site is shown by; sites that read alike are one row
    #[arg(long, value_name = "N", default_value_t = heaptoll_callsites::FRAMES as u8,
        value_parser = clap::value_parser!(u8).range(1..))]
    frames: u8,
}

impl FramesArguments {
    /// How many.
    pub fn shown(self) -> usize {
        self.frames.into()
    }
}
