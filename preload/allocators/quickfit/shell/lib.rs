//! `libquickfit.so`: see `heaptoll_quickfit`.
#![no_std]

heaptoll_runtime::preload!(heaptoll_quickfit::QuickFit);
