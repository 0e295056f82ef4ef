//! `libpow2.so`: see `heaptoll_historic::kingsley::pow2`.
#![no_std]

heaptoll_runtime::preload!(heaptoll_historic::kingsley::pow2::Pow2);
