//! `libbestfit.so`: see `heaptoll_historic::knuth::bestfit`.
#![no_std]

heaptoll_runtime::preload!(heaptoll_historic::knuth::bestfit::BestFitHeap);
