//! `libknuth.so`: see `heaptoll_knuth`.
#![no_std]

heaptoll_runtime::preload!(heaptoll_knuth::Knuth);
