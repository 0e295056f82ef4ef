//! The proof of a collector: C and C++ programs that keep their only pointers in every possible place, build random
//! graphs with a shadow copy of what is reachable, fork, throw, block, run out of memory, and free wrong addresses.
//!
//! Each case is a process with the manager preloaded, as in the conformance suite, whose helpers and runner are used
//! here. The cases hold under any manager; those about collections do not apply to one that does not collect.

pub mod program;
pub mod subject;
pub mod verdict;
