//! `libquickfit.so`: see `heaptoll_quickfit`.
#![no_std]

heaptoll_floor::preload!(heaptoll_quickfit::QuickFit);
