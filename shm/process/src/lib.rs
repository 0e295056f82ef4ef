//! What preloaded code needs of its process without the C library's help; the tool uses some of it too.
#![no_std]

pub mod address_space;
pub mod environment;
pub mod populate;
#[cfg(feature = "tool")]
pub mod proc_files;
mod system_call;
pub mod tsc;

pub use system_call::system_call;
