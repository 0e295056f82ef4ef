//! `liblea.so`: see `heaptoll_lea`.
#![no_std]

heaptoll_floor::preload!(heaptoll_lea::Lea);
