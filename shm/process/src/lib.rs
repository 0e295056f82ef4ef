//! What preloaded code needs of its process without the C library's help; the tool uses some of it too.
#![no_std]

pub mod environment;
pub mod populate;
pub mod tsc;
