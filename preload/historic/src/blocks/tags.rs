//! Blocks with boundary tags: one word at each end, so that a block finds its neighbours on both sides in constant time
//! (Knuth vol. 1 §2.5).
//!
//! ```text
//!   address ≡ 8 mod 16   ┌──────────────┐
//!                        │ tag          │  header: size and state
//!   given out, ≡ 0       ├──────────────┤
//!                        │ next         │  ┐ links, while it is free;
//!                        │ previous     │  ┘ the program's, while it is not
//!                        │ ...          │
//!                        ├──────────────┤
//!                        │ tag          │  footer
//!                        └──────────────┘
//! ```
//!
//! What the tags contain is a parameter of the block ([`Tags`]): knuth and bestfit have the state at both ends
//! ([`BothEnds`]), lea and quickfit in the header only ([`InHeader`]).

mod block;
mod both_ends;
mod in_header;

#[cfg(test)]
mod properties;

pub use block::{Block, SMALLEST, TAGS, Tags};
pub use both_ends::BothEnds;
pub use in_header::InHeader;
