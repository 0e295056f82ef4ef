//! A time on both clocks.

use std::ops::{Index, IndexMut};

use heaptoll_reftrace::numbered;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

numbered! {
    /// A clock that advances while a program runs.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum Clock {
        /// Instructions that the program itself has executed, summed over all threads: not the malloc family, and no
        /// collection, so that it is the same under all managers.
        Instructions = 0,
        /// Bytes allocated by the whole program: new objects, and growth by reallocs.
        Bytes = 1,
    }
}

/// The values of both clocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stamp(pub [u64; 2]);

impl Index<Clock> for Stamp {
    type Output = u64;

    #[inline(always)]
    fn index(&self, clock: Clock) -> &u64 {
        &self.0[clock as usize]
    }
}

impl IndexMut<Clock> for Stamp {
    #[inline(always)]
    fn index_mut(&mut self, clock: Clock) -> &mut u64 {
        &mut self.0[clock as usize]
    }
}
