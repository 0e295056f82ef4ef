//! The treadmill against the model of all heaps, and of all collectors.

use heaptoll_historic::treadmill::Treadmill;

crate::kit::trial!(Treadmill, reuses: false);
crate::kit::collector::collector_trials!(collector, Treadmill);
