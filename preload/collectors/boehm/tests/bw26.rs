//! Version 2.6's heap against the model, and what is its own about it.

use heaptoll_boehm::bw26::Bw26;

heaptoll_testkit::trial!(Bw26, reuses: false);
