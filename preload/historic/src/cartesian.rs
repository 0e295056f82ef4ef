//! Better fit on a Cartesian tree: C. J. Stephenson, "Fast Fits" (1983), as SunOS 4.1 had it and Zorn 1992 §2.1
//! describes it.
//!
//! The free blocks are the nodes of one binary tree that is ordered twice ([`Tree`]): what hangs to the left of a
//! block lies at lower addresses, what hangs to its right at higher ones, and nothing that hangs below a block is
//! larger than it. (Zorn writes that descendants on the left are *smaller than those on the right*. That is a slip:
//! addresses and sizes alone determine the tree, and no such tree exists for most sets of blocks. Vuillemin's
//! definition, which he cites, and SunOS's source have the order given here.)
//!
//! - Allocation descends from the root, which is the largest block, by size; freeing descends by address, finds both
//!   neighbours on its way, and coalesces.
//! - A block has one word of header, its size, and nothing at its end. Which blocks are free only the tree knows.
//! - No balancing is possible: the blocks determine the tree. At worst it is a list.
//! - Nothing recurses, the checks included: the tree may be as deep as there are free blocks.
//!
//! Where Zorn is silent this follows SunOS's source as illumos keeps it (`libbc`, `malloc.c`): the tie rules, the
//! lower part of a split block given out, no split unless more than four words are left, growth by the request
//! rounded to pages. The links are in the free blocks, where SunOS had a table of nodes apart, so that a program
//! could still read what it had just freed.

mod block;
mod heap;
mod order;
mod tree;

pub use block::{Block, HEADER, SMALLEST};
pub use heap::Cartesian;
pub use order::InOrder;
pub use tree::{Link, Neighbours, Tree};
