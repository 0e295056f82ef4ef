//! `libquickfit.so`: see `heaptoll_lea::quickfit`.
#![no_std]

heaptoll_runtime::preload!(heaptoll_lea::quickfit::QuickFit);
