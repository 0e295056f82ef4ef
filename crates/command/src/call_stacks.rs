//! The call stacks of a trace, summed up while its events are read, for the flame graph of a page.

use std::io::Read;

use heaptoll_profiles::{Measure, Profile};
use heaptoll_report::document::{Flame, Item};
use heaptoll_trace::{Batch, Header, Memory, Reader, Sites};
use heaptoll_trace_analysis::profile::{EACH_OBJECT, StackSums, Window};

/// Sums of a trace by call stack, where they are requested and the trace has stacks.
pub struct CallStacks(Option<StackSums>);

impl CallStacks {
    /// No events yet. The reader has these limits so far.
    pub fn new<R: Read>(requested: bool, reader: &mut Reader<R>, memory: Memory) -> CallStacks {
        if !requested || !reader.header().sites {
            return CallStacks(None);
        }
        let each_object_bytes = memory.each_object_bytes + EACH_OBJECT as u64;
        reader.limit(Memory { each_object_bytes, ..memory });
        CallStacks(Some(StackSums::new(Window::default(), false)))
    }

    /// Consumes the next events.
    pub fn batch(&mut self, batch: &Batch) {
        if let Some(sums) = &mut self.0 {
            sums.batch(batch);
        }
    }

    /// The profile, when all was read.
    pub fn finish(self, header: &Header, sites: &Sites, end_ns: u64) -> Option<Profile> {
        Some(self.0?.finish(header, sites, end_ns).0)
    }
}

/// A flame graph of the profile; it begins with this measure.
pub fn flame(profile: Profile, first: Measure) -> Item {
    Item::Flame(Flame {
        title: "Call stacks that allocate".into(),
        caption: "An object counts for the call stack that allocated it, with its requested bytes; so does growth by \
        realloc. Lifetimes are sums over all objects, to the free or to the end of the trace."
            .into(),
        profile,
        first,
        base: None,
    })
}
