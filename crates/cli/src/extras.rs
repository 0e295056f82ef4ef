//! Tables of a comparison that are shown on request.

use clap::Args;
use heaptoll_report::experiment::Extras;

/// Which tables are shown besides CPU, memory and verdict; the page has all.
#[derive(Debug, Args)]
pub struct ExtraTables {
    /// Show the lower bounds of overhead too: what memory management costs at least (docs/method/lower-bound.md)
    #[arg(long, help_heading = "Output")]
    pub bounds: bool,
    /// Show the garbage collections too, where a manager counts them
    #[arg(long, help_heading = "Output")]
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
