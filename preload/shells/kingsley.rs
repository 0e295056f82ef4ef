//! `libkingsley.so`: see `heaptoll_kingsley`.
#![no_std]

heaptoll_runtime::preload!(heaptoll_kingsley::Kingsley);
