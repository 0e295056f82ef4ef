//! `libhaertel.so`: see `heaptoll_historic::haertel`.
#![no_std]

heaptoll_runtime::preload!(heaptoll_historic::haertel::Haertel);
