//! `libhaertel.so`: see `heaptoll_haertel`.
#![no_std]

heaptoll_floor::preload!(heaptoll_haertel::Haertel);
