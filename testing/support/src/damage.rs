//! Damages files and texts, the same way for the same seed, so that a test names the seed that fails and can be run for
//! a few seeds or for millions. Readers of files from outside are tested with it: traces, experiments, studies,
//! descriptions of programs and managers.

mod bytes;
mod dice;
mod text;
mod trace;

pub use bytes::bytes;
pub use dice::Dice;
pub use text::text;
pub use trace::trace;
