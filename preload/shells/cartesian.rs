//! `libcartesian.so`: see `heaptoll_cartesian`.
#![no_std]

heaptoll_runtime::preload!(heaptoll_cartesian::Cartesian);
