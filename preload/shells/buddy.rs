//! `libbuddy.so`: see `heaptoll_buddy`.
#![no_std]

heaptoll_runtime::preload!(heaptoll_buddy::Buddy);
