//! `libbestfit.so`: see `heaptoll_bestfit`.
#![no_std]

heaptoll_floor::preload!(heaptoll_bestfit::BestFitHeap);
