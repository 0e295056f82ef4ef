//! What an exhibit is made of.

use crate::definition::{Exhibit, Study};
use crate::figures::{Absent, Figures};

/// What an exhibit is made of.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub study: &'a Study,
    pub exhibit: &'a Exhibit,
    pub figures: &'a Figures,
    pub absent: &'a Absent,
}
