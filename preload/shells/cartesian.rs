//! `libcartesian.so`: see `heaptoll_historic::cartesian`.
#![no_std]

heaptoll_runtime::preload!(heaptoll_historic::cartesian::Cartesian);
