//! `libtithe.so`: see `heaptoll_tithe`.
#![no_std]

heaptoll_runtime::preload!(static TITHE: heaptoll_tithe::Process = {
    // SAFETY: the value of a static.
    unsafe { heaptoll_tithe::Process::new() }
});
heaptoll_tithe::tithe_api!(TITHE);
heaptoll_roots::interpose_kernel_calls!();
