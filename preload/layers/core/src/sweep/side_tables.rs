//! Side tables that know every live block of any malloc, by address.
//!
//! A collector over an unknown malloc must find for any word the live block that it points into, mark that block, and
//! find those that were not marked. The tables record each block as it is handed out and freed, and keep four bits for
//! each 16 bytes of address space near them: whether a block starts there, ends there, in the middle or not, and is
//! marked. That is 3 % of what they describe. Blocks of 64 KiB and more cost nothing a page.
//!
//! - From below: [`bitmap`] is the word for 256 bytes, [`chunk`] describes 1 MiB, [`directory`] finds a chunk,
//!   [`large`] has large blocks by number, [`tables`] joins these, [`large_blocks`] records large blocks in
//!   them; [`seek`] finds the [`block`] of an address, [`order`] the next. [`mark`] marks, [`marking`] with several
//!   threads, [`dead`] finds what was not reached, [`check`] proves the whole structure.
//! - Memory comes from mmap only, so that the tables work over any malloc.
//! - Threads insert and remove at once without a lock but for large blocks and new chunks. While blocks are marked and
//!   the dead are found they are stopped, none of them within a call into the tables.

mod bitmap;
mod block;
mod check;
mod chunk;
mod count;
mod dead;
mod directory;
mod large;
mod large_blocks;
mod lock;
mod mark;
mod marking;
mod order;
mod seek;
mod tables;

pub use block::{Block, NoMemory};
pub use check::Damage;
pub use chunk::LARGE;
pub use marking::{Marked, Marking, Roots};
pub use tables::Tables;
