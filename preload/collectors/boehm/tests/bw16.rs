//! Version 1.6's heap against the model, and what is its own about it.

use heaptoll_boehm::bw16::Bw16;

heaptoll_testkit::trial!(Bw16, reuses: false);
