//! `libquickfit.so`: see `heaptoll_historic::lea::quickfit`.
#![no_std]

heaptoll_runtime::preload!(heaptoll_historic::lea::quickfit::QuickFit);
