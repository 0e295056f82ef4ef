//! `libknuth.so`: see `heaptoll_knuth`.
#![no_std]

heaptoll_floor::preload!(heaptoll_knuth::Knuth);
