//! `libbump.so`: see `heaptoll_bump`.
#![no_std]

heaptoll_floor::preload!(heaptoll_bump::Bump);
