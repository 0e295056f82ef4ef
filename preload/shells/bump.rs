//! `libbump.so`: see `heaptoll_historic::bump`.
#![no_std]

heaptoll_runtime::preload!(heaptoll_historic::bump::Bump);
