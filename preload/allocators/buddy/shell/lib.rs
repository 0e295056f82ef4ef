//! `libbuddy.so`: see `heaptoll_buddy`.
#![no_std]

heaptoll_floor::preload!(heaptoll_buddy::Buddy);
