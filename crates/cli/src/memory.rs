//! The memory limit of commands that read traces: a trace may come from an untrusted source.

use clap::Args;
use heaptoll_trace::MEMORY_LIMIT;
use heaptoll_units::size_text;

use crate::bytes::bytes;

/// Option of commands that read traces.
#[derive(Debug, Clone, Copy, Args)]
pub struct MemoryArguments {
    /// Memory that the objects of the trace may take; a trace that needs more is refused, with the size it needs
    #[arg(long, value_name = "SIZE", default_value_t = Size(MEMORY_LIMIT), value_parser = parse)]
    memory_limit: Size,
}

#[derive(Debug, Clone, Copy)]
struct Size(u64);

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&size_text(self.0))
    }
}

fn parse(text: &str) -> Result<Size, String> {
    bytes(text).map(Size)
}

impl MemoryArguments {
    /// The limit, bytes.
    pub fn limit_bytes(self) -> u64 {
        self.memory_limit.0
    }
}
