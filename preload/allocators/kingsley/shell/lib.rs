//! `libkingsley.so`: see `heaptoll_kingsley`.
#![no_std]

heaptoll_floor::preload!(heaptoll_kingsley::Kingsley);
