//! `liblea.so`: see `heaptoll_historic::lea`.
#![no_std]

heaptoll_runtime::preload!(heaptoll_historic::lea::Lea);
