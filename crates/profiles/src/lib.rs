//! A profile: call stacks with values. Every way of showing stacks takes this and nothing else, whatever was measured:
//! allocations of a trace, instructions of a routine, drag.
//!
//! A [`Profile`] is made by a [`Builder`] and then only read. Call stacks are a tree from the threads' first functions
//! down to the allocations ([`Call`]), so that a million stacks, which share nearly all their callers, take some tens of
//! megabytes; a parent is before its children. A [`Stack`](Profile::stacks) is a call and a value for each [`Measure`]:
//! its own, without those of the functions that it calls.
//!
//! ```
//! use heaptoll_profiles::{Builder, Frame, Measure};
//!
//! let mut builder = Builder::new(vec![Measure::AllocatedObjects, Measure::AllocatedBytes]);
//! let parse = builder.frame(Frame { function: "parse".into(), ..Frame::default() });
//! let main = builder.frame(Frame { function: "main".into(), ..Frame::default() });
//! builder.stack(&[parse, main], &[2, 96]); // innermost first
//! let profile = builder.finish();
//! assert_eq!(profile.total(Measure::AllocatedBytes), 96);
//! ```

mod builder;
mod frame;
mod life;
mod measure;
mod profile;
mod track;

pub use builder::Builder;
pub use frame::{Frame, inlined};
pub use life::{Life, Lives};
pub use measure::{Clock, Measure, Phase, Unit};
pub use profile::{Call, Profile, Stack, Subject};
pub use track::{Counter, Slice, SliceTrack, Tracks};
