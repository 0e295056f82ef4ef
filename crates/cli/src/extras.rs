//! Tables of a comparison that are shown on request.

use clap::Args;
use heaptoll_report::experiment::Extras;

/// Which tables are shown besides CPU, memory and verdict; the page has all.
#[derive(Debug, Args)]
pub struct ExtraTables {
    /// Also show the lower bounds of overhead: the least that memory management costs (docs/method/lower-bound.md)
    #[arg(long)]
    pub bounds: bool,
    /// Also show the garbage collections of managers that count them
    #[arg(long)]
    pub collections: bool,
    /// Show all notes on a table; without it, the two that change its reading most
    #[arg(long, help_heading = "Output")]
    pub explain: bool,
}

impl From<&ExtraTables> for Extras {
    fn from(tables: &ExtraTables) -> Extras {
        Extras {
            bounds: tables.bounds,
            collections: tables.collections,
            explain: tables.explain,
            ..Extras::default()
        }
    }
}
