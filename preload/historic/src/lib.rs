//! The allocators and collectors of the papers. Each is a module that is read by itself, and uses no other but what they
//! share: [`blocks`], and for collectors [`support`].
#![no_std]

pub mod blocks;
pub mod boehm;
pub mod buddy;
pub mod bump;
pub mod cartesian;
pub mod haertel;
pub mod kingsley;
pub mod knuth;
pub mod lea;
pub mod support;
pub mod treadmill;
