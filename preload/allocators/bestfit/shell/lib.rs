//! `libbestfit.so`: see `heaptoll_bestfit`.
#![no_std]

heaptoll_runtime::preload!(heaptoll_bestfit::BestFitHeap);
