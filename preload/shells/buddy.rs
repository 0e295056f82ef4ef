//! `libbuddy.so`: see `heaptoll_historic::buddy`.
#![no_std]

heaptoll_runtime::preload!(heaptoll_historic::buddy::Buddy);
