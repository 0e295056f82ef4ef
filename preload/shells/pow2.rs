//! `libpow2.so`: see `heaptoll_kingsley::pow2`.
#![no_std]

heaptoll_runtime::preload!(heaptoll_kingsley::pow2::Pow2);
