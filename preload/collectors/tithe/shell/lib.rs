//! `libtithe.so`: see `heaptoll_tithe`.
#![no_std]

heaptoll_runtime::preload!(static TITHE: heaptoll_tithe::Process = heaptoll_tithe::Process::new());
heaptoll_tithe::tithe_api!(TITHE);
