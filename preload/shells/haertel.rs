//! `libhaertel.so`: see `heaptoll_haertel`.
#![no_std]

heaptoll_runtime::preload!(heaptoll_haertel::Haertel);
