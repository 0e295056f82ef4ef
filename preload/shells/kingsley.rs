//! `libkingsley.so`: see `heaptoll_historic::kingsley`.
#![no_std]

heaptoll_runtime::preload!(heaptoll_historic::kingsley::Kingsley);
