#![no_std]
pub mod rule;
pub mod rules;
pub mod system;
pub mod tables;
pub mod word;
