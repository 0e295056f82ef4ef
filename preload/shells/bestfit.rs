//! `libbestfit.so`: see `heaptoll_knuth::bestfit`.
#![no_std]

heaptoll_runtime::preload!(heaptoll_knuth::bestfit::BestFitHeap);
