//! Tithe: malloc and a conservative collector on one heap.
#![no_std]

pub mod log;
pub mod policy;
pub mod settings;
