//! The smallest heap in which a program completes (Sareen and Blackburn 2022, §4).
//!
//! [`Search`] chooses the heap to try next and records the outcome; it never assumes that a program behaves the same
//! way twice. [`overheads`] sets what it found against a baseline that is not searched for but reported: the pages that
//! hold a live block when unreachable blocks are given back at once.

mod overheads;
mod search;

pub use overheads::{Mean, Overhead, geometric_mean, overheads};
pub use search::{Answer, End, Outcome, Question, Search, Step, Tried};
