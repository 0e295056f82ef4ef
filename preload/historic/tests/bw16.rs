//! Version 1.6's heap against the model, and what is its own about it.

use heaptoll_historic::boehm::bw16::Bw16;

crate::kit::trial!(Bw16, reuses: false);
