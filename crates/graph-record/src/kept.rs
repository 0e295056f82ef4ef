//! Objects that are kept whatever the program frees: for a run in which no block is given back, so that what leads to an
//! object shows beyond its free, too. What was allocated before `main` is freed as the program does.

use heaptoll_drag::objects::Index;
use heaptoll_trace::Output;
use heaptoll_trace::graph::{Allocation, AllocationKind};

use crate::recorder::Recorder;

/// Which objects are kept.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Kept {
    is_on: bool,
    /// The first of them, once `main` has begun.
    from: Option<u64>,
}

impl Kept {
    /// The first object of `main` has this number.
    pub fn main_begins(&mut self, number: u64) {
        if self.is_on {
            self.from.get_or_insert(number);
        }
    }

    /// Whether the object of this number is kept.
    pub fn has(self, number: u64) -> bool {
        self.from.is_some_and(|from| number >= from)
    }
}

impl<W: Output> Recorder<W> {
    /// Records a program of which nothing is freed that it allocates from `main` on.
    pub fn keeping(mut self) -> Recorder<W> {
        self.kept.is_on = true;
        self
    }

    /// The kept object that begins at an address.
    pub(crate) fn kept_at(&mut self, address: u64) -> Option<Index> {
        let index = self.objects.find(address).filter(|index| self.objects.start(*index) == address)?;
        self.kept.has(self.objects.get(index).number).then_some(index)
    }

    /// A realloc of a kept object has made another one, with a copy of its words.
    pub(crate) fn resized_kept(&mut self, old: Index, size: u64, site: u32, result: u64) {
        if result == 0 {
            return;
        }
        let (start, copied) = (self.objects.start(old), size.min(self.objects.get(old).size));
        let thread = self.thread_index();
        self.allocated(
            result,
            Allocation { size, site, thread, kind: AllocationKind::Resized, align_log2: 0 },
        );
        for word in self.words.within(start, start + copied) {
            let cell = self.words.get(word).filter(|_| word >= start && word + 8 <= start + copied);
            if let Some(cell) = cell
                && self.leads_to(cell).is_some()
            {
                self.hold(result + (word - start), Some(cell.value));
            }
        }
    }
}
