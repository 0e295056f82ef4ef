//! `libbump.so`: see `heaptoll_bump`.
#![no_std]

heaptoll_runtime::preload!(heaptoll_bump::Bump);
