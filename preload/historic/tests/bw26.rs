//! Version 2.6's heap against the model, and what is its own about it.

use heaptoll_historic::boehm::bw26::Bw26;

crate::kit::trial!(Bw26, reuses: false);
