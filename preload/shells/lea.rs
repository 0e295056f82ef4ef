//! `liblea.so`: see `heaptoll_lea`.
#![no_std]

heaptoll_runtime::preload!(heaptoll_lea::Lea);
