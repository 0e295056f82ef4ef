//! The shared-memory rings through which the recording layer tells heaptoll every allocation.
#![cfg_attr(not(feature = "tool"), no_std)]

pub mod word;
