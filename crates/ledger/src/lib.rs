//! Where the memory of a process is: one sum that closes against its resident set.
//!
//! The recorder pauses a program, knows every live block, and has an [`Observer`] sample the process: mappings, pages,
//! and the manager's figures. A [`Snapshot`] is the result, a [`Ledger`] has all of a run, [`Pace`] decides when to
//! sample.

mod attribution;
mod block;
mod block_history;
mod canvas;
mod census;
mod coarse;
mod error;
mod freed_blocks;
mod heap_ranges;
mod laid_pages;
mod ledger;
mod line;
mod live_holders;
mod mapped;
mod mapping;
mod mapping_owners;
mod observer;
mod pace;
mod picture;
mod pins;
mod residency;
mod share;
mod snapshot;
mod static_data;

pub use block::{Block, Blocks};
pub use census::{Census, HeldByRoots, Source};
pub use coarse::{EACH_OBJECT, Point, coarse};
pub use error::LedgerError;
pub use freed_blocks::FreedBlocks;
pub use ledger::{EXTRA, Ledger, LivePeak, STEP};
pub use line::{Amount, How, LedgerLine, TERMS, Term};
pub use live_holders::{LiveHolder, LiveHolders};
pub use mapped::{Mapped, Mapper};
pub use observer::{Observer, Options};
pub use pace::{Level, Pace};
pub use picture::{Around, Cell, FreedBytes, Holder, Picture};
pub use pins::{Pin, Pins};
pub use snapshot::{Defects, Snapshot};
pub use static_data::{StaticData, StaticVariable};
