//! `libknuth.so`: see `heaptoll_historic::knuth`.
#![no_std]

heaptoll_runtime::preload!(heaptoll_historic::knuth::Knuth);
