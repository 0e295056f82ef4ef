//! The treadmill against the model of all heaps, and of all collectors.

use heaptoll_treadmill::Treadmill;

heaptoll_testkit::trial!(Treadmill, reuses: false);
heaptoll_testkit::collector_trials!(collector, Treadmill);
