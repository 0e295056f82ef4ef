//! Effects of calls of the malloc family on objects and edges.

use heaptoll_reftrace::Routine;
use heaptoll_trace::Output;
use heaptoll_trace::graph::{Allocation, AllocationKind, FreeCause};

use crate::block::{Block, Resizing};
use crate::recorder::Recorder;
use crate::words::Cell;
use heaptoll_drag::objects::Index;

impl<W: Output> Recorder<W> {
    pub(crate) fn enter(&mut self, routine: Routine, arguments: [u64; 3]) {
        let address = arguments[0];
        if address == 0 || !(routine.frees() || routine.resizes()) {
            return;
        }
        self.settle();
        let Some(index) = self.objects.find(address).filter(|index| self.objects.start(*index) == address)
        else {
            self.counts.unknown += 1;
            return;
        };
        if self.kept.has(self.objects.get(index).number) {
            return;
        }
        if routine.frees() {
            return self.end(index, FreeCause::Free);
        }
        // An object allocated there before the realloc returns is another thread's.
        let block = self.objects.take(index);
        let edges = self.take_edges(address, &block);
        self.resizing.entry(self.thread).or_default().push(Resizing { address, block, edges });
    }

    pub(crate) fn leave(&mut self, routine: Routine, arguments: [u64; 3], site: u32, result: u64) {
        let Some(size) = routine.requested(arguments) else { return };
        if routine.resizes() {
            return self.resized(arguments[0], size, site, result);
        }
        let (kind, alignment) = match routine {
            Routine::Calloc => (AllocationKind::Zeroed, 0),
            Routine::Memalign | Routine::AlignedAlloc => (AllocationKind::Aligned, arguments[0]),
            Routine::PosixMemalign | Routine::NewAligned => (AllocationKind::Aligned, arguments[1]),
            Routine::Valloc => (AllocationKind::Aligned, 4096),
            _ => (AllocationKind::Plain, 0),
        };
        if result == 0 {
            return;
        }
        self.settle();
        let align_log2 = alignment.checked_ilog2().map_or(0, |log2| log2 as u8);
        self.allocated(result, Allocation { size, site, thread: self.thread_index(), kind, align_log2 });
        if routine == Routine::PosixMemalign && arguments[0].is_multiple_of(8) {
            // It was stored there before the block was one.
            self.hold(arguments[0], Some(result));
        }
    }

    /// A realloc was left by `longjmp`: the object stays where it was.
    pub(crate) fn abandon(&mut self, routine: Routine) {
        if routine.resizes()
            && let Some(resizing) = self.resizing.get_mut(&self.thread).and_then(Vec::pop)
        {
            self.put_back(resizing);
        }
    }

    fn put_back(&mut self, resizing: Resizing) {
        let Resizing { address, block, edges } = resizing;
        for (offset, cell) in edges {
            self.words.set(address + offset, cell);
        }
        self.place(address, block);
    }

    /// A new object; gives its number.
    pub(crate) fn allocated(&mut self, address: u64, call: Allocation) -> u64 {
        // Objects there have ended, whether or not that was seen.
        let end = address.saturating_add(call.size.max(1));
        while let Some(other) = self.objects.overlapping(address, end) {
            let cause = if self.objects.get(other).size == 0 { FreeCause::Free } else { FreeCause::Lost };
            self.end(other, cause);
        }
        let number = self.writer.allocate(&call);
        self.place(address, Block::new(number, call.size, self.counts.root_points));
        number
    }

    fn place(&mut self, address: u64, block: Block) {
        let (number, size, last_touch) = (block.number, block.size, block.last_touch);
        if self.objects.insert(address, size, block).is_err() {
            // No program has memory there.
            self.writer.free(number, size, self.thread_index(), FreeCause::Lost, last_touch);
        }
    }

    /// Ends an object.
    pub(crate) fn end(&mut self, index: Index, cause: FreeCause) {
        let start = self.objects.start(index);
        let block = self.objects.take(index);
        self.take_edges(start, &block);
        self.ended(&block, cause);
    }

    fn ended(&mut self, block: &Block, cause: FreeCause) {
        self.writer.free(block.number, block.size, self.thread_index(), cause, block.last_touch);
    }

    fn resized(&mut self, address: u64, size: u64, site: u32, result: u64) {
        self.settle();
        if let Some(old) = self.kept_at(address) {
            return self.resized_kept(old, size, site, result);
        }
        let pending = self.resizing.get_mut(&self.thread).and_then(|pending| {
            let at = pending.iter().rposition(|one| one.address == address)?;
            Some(pending.remove(at))
        });
        let thread = self.thread_index();
        let call = |kind| Allocation { size, site, thread, kind, align_log2: 0 };
        match (pending, result) {
            (None, 0) => {}
            (None, result) => {
                self.allocated(result, call(AllocationKind::Plain));
            }
            (Some(old), 0) if size == 0 => self.ended(&old.block, FreeCause::Free),
            (Some(old), 0) => self.put_back(old),
            (Some(old), result) => {
                self.allocated(result, call(AllocationKind::Resized));
                self.copy_edges(old, result, size);
            }
        }
    }

    /// The new object gets the edges of the old one, as far as they were copied. Where the block has stayed in place,
    /// words that point to the old object point to the new one. Then the old one ends.
    fn copy_edges(&mut self, old: Resizing, result: u64, size: u64) {
        let Resizing { address, mut block, edges } = old;
        let copied = size.min(block.size);
        for (offset, cell) in edges.iter().filter(|(offset, _)| offset + 8 <= copied) {
            // Words that pointed to the old object itself follow below.
            if cell.to != block.number && self.leads_to(*cell).is_some() {
                self.hold(result + offset, Some(cell.value));
            }
        }
        if result == address {
            let own = edges.iter().filter(|(offset, cell)| offset + 8 <= copied && cell.to == block.number);
            own.for_each(|(offset, cell)| self.hold(result + offset, Some(cell.value)));
            let mut incoming = block.take_incoming();
            incoming.sort_unstable();
            incoming.dedup();
            for word in incoming {
                let held: Option<Cell> = self.words.get(word).filter(|held| held.to == block.number);
                if let Some(held) = held {
                    self.hold(word, Some(held.value));
                }
            }
        }
        self.ended(&block, FreeCause::Resized);
    }
}
