//! Where the memory of a process is: one sum that closes against its resident set.
//!
//! The recorder pauses a program, knows every live block, and has an [`Observer`] look at the process: mappings, pages,
//! and what the manager says. A [`Moment`] is what it saw, a [`Ledger`] all of a run, [`Pace`] says when to look.

mod attribution;
mod block;
mod census;
mod coarse;
mod error;
mod ledger;
mod mapping;
mod moment;
mod observer;
mod places;
mod residency;
mod seen;
mod share;
mod tenants;

pub use block::{Block, Blocks};
pub use census::{Census, Held, Source};
pub use coarse::{EACH_OBJECT, Point, coarse};
pub use error::LedgerError;
pub use ledger::{EXTRA, Ledger, Pace};
pub use moment::{Amount, Defects, How, Line, Moment, TERMS, Term};
pub use observer::{Observer, Options};
