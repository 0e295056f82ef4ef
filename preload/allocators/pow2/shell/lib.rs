//! `libpow2.so`: see `heaptoll_pow2`.
#![no_std]

heaptoll_runtime::preload!(heaptoll_pow2::Pow2);
