//! `libcartesian.so`: see `heaptoll_cartesian`.
#![no_std]

heaptoll_floor::preload!(heaptoll_cartesian::Cartesian);
