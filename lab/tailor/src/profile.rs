//! What a trace shows of the sizes that a program requests: how often, how many blocks live at once, how short they
//! live. One pass, in bounded memory.

use heaptoll_trace::{Event, EventKind};
use heaptoll_trace_analysis::objects::{MAX_SIZE, Object, Objects};

/// Sizes are multiples of this, bytes: what C's alignment leaves.
pub const GRANULE: u64 = 16;
/// Sizes up to this are counted each by itself, bytes; larger ones are summed up by powers of two.
pub const LARGEST_EXACT: u64 = 32 << 10;
/// A block that is freed before this many bytes are allocated after it had a short life.
pub const SHORT_LIFE_BYTES: u64 = 32 << 10;
/// Bytes kept for each object that is live at the same time as others.
pub const EACH_OBJECT: usize = size_of::<LiveBlock>();

/// Granules of a request: of 0 bytes as of 1.
pub fn granules(bytes: u64) -> usize {
    bytes.min(MAX_SIZE).div_ceil(GRANULE).max(1) as usize
}

/// A live block: where it is counted, and when it was allocated.
#[derive(Debug, Clone, Copy, Default)]
pub struct LiveBlock {
    clock: u64,
    bytes: u64,
    is_live: bool,
}

impl Object for LiveBlock {
    #[inline(always)]
    fn is_alive(&self) -> bool {
        self.is_live
    }
}

/// Requests of one size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SizeProfile {
    /// Blocks allocated, or resized to it.
    pub requests: u64,
    /// Of these by realloc.
    pub reallocs: u64,
    /// Blocks that were freed, or resized to another size, after a short life.
    pub short_lives: u64,
    /// Blocks live now.
    pub live: u64,
    /// Most blocks that were live at once.
    pub peak_live: u64,
    /// Blocks live when the whole heap was largest, to 1/64 of its size.
    pub live_at_peak: u64,
}

/// Requests too large for a count of their own, from a power of two to below the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LargeProfile {
    /// Blocks allocated, or resized to such a size from another.
    pub requests: u64,
    /// Bytes of these.
    pub bytes: u64,
}

/// What a trace shows.
#[derive(Debug, Clone)]
pub struct Profile {
    /// By granules: entry 1 is for 1 to 16 bytes.
    pub sizes: Vec<SizeProfile>,
    /// By the binary logarithm of the size.
    pub large: [LargeProfile; 49],
    /// Allocations and resizes.
    pub requests: u64,
    /// Allocations alone.
    pub allocations: u64,
    /// Requests for more than 16 bytes of alignment.
    pub aligned: u64,
    /// Threads that allocated.
    pub threads: u32,
    /// Blocks freed by another thread than allocated them. Known from the threads of events.
    pub failed: u64,
    /// Largest sum of live blocks, rounded to granules, bytes.
    pub peak_bytes: u64,
    /// Requested bytes of them.
    pub peak_requested_bytes: u64,
    /// Largest request, bytes.
    pub largest_bytes: u64,
    /// Time of the last event, ns.
    pub time_ns: u64,
    /// Events.
    pub events: u64,
    clock: u64,
    live_bytes: u64,
    live_requested_bytes: u64,
    /// Live bytes when `live_at_peak` was last written.
    snapshot_bytes: u64,
    objects: Objects<LiveBlock>,
}

impl Default for Profile {
    fn default() -> Profile {
        Profile {
            sizes: vec![SizeProfile::default(); (LARGEST_EXACT / GRANULE) as usize + 1],
            large: [LargeProfile::default(); 49],
            requests: 0,
            allocations: 0,
            aligned: 0,
            threads: 0,
            failed: 0,
            peak_bytes: 0,
            peak_requested_bytes: 0,
            largest_bytes: 0,
            time_ns: 0,
            events: 0,
            clock: 0,
            live_bytes: 0,
            live_requested_bytes: 0,
            snapshot_bytes: 0,
            objects: Objects::default(),
        }
    }
}

impl Profile {
    /// Events that do not fit what was before them, as in a damaged trace.
    pub fn misfits(&self) -> u64 {
        self.objects.misfits()
    }

    /// The next events.
    pub fn events(&mut self, events: &[Event]) {
        events.iter().for_each(|event| self.event(event));
    }

    fn event(&mut self, event: &Event) {
        self.events += 1;
        self.time_ns = event.time_ns;
        match event.kind {
            kind if kind.allocates() => self.allocate(event),
            EventKind::Realloc => self.resize(event),
            kind if kind.frees() => self.free(event),
            EventKind::Failed => self.failed += 1,
            _ => {}
        }
    }

    fn allocate(&mut self, event: &Event) {
        let bytes = event.size.min(MAX_SIZE);
        self.allocations += 1;
        self.aligned += u64::from(event.align_log2 > 4);
        self.threads = self.threads.max(event.thread + 1);
        self.clock += bytes;
        self.begin(bytes, false);
        let block = LiveBlock { clock: self.clock, bytes, is_live: true };
        if let Some(before) = self.objects.born(event.slot, block) {
            self.end(before);
        }
        self.rise();
    }

    fn resize(&mut self, event: &Event) {
        let bytes = event.size.min(MAX_SIZE);
        let Some(block) = self.objects.resized(event.slot) else { return };
        let before = std::mem::replace(block, LiveBlock { bytes, ..*block });
        self.clock += bytes.saturating_sub(before.bytes);
        self.end(before);
        self.begin(bytes, true);
        self.rise();
    }

    fn free(&mut self, event: &Event) {
        if let Some(before) = self.objects.ended(event.slot) {
            self.end(before);
        }
    }

    fn begin(&mut self, bytes: u64, by_realloc: bool) {
        self.requests += 1;
        self.largest_bytes = self.largest_bytes.max(bytes);
        self.live_bytes += granules(bytes) as u64 * GRANULE;
        self.live_requested_bytes += bytes;
        match self.sizes.get_mut(granules(bytes)) {
            Some(size) => {
                size.requests += 1;
                size.reallocs += u64::from(by_realloc);
                size.live += 1;
                size.peak_live = size.peak_live.max(size.live);
            }
            None => {
                let large = &mut self.large[bytes.ilog2() as usize];
                large.requests += 1;
                large.bytes = large.bytes.saturating_add(bytes);
            }
        }
    }

    fn end(&mut self, block: LiveBlock) {
        self.live_bytes -= granules(block.bytes) as u64 * GRANULE;
        self.live_requested_bytes -= block.bytes;
        if let Some(size) = self.sizes.get_mut(granules(block.bytes)) {
            size.live -= 1;
            size.short_lives += u64::from(self.clock - block.clock < SHORT_LIFE_BYTES);
        }
    }

    fn rise(&mut self) {
        if self.live_bytes > self.peak_bytes {
            self.peak_bytes = self.live_bytes;
            self.peak_requested_bytes = self.live_requested_bytes;
            if self.live_bytes > self.snapshot_bytes + self.snapshot_bytes / 64 {
                self.snapshot_bytes = self.live_bytes;
                self.sizes.iter_mut().for_each(|size| size.live_at_peak = size.live);
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An event of thread 0.
    pub fn event(kind: EventKind, slot: u32, size: u64) -> Event {
        Event {
            kind,
            moved: false,
            align_log2: 0,
            thread: 0,
            slot,
            site: 0,
            size,
            usable: size,
            time_ns: 0,
            latency_ns: 0,
        }
    }

    /// The profile of these events.
    pub fn profile(events: &[Event]) -> Profile {
        let mut profile = Profile::default();
        profile.events(events);
        profile
    }

    #[test]
    fn sizes_are_counted_by_16_bytes_and_nothing_counts_as_one() {
        let sizes = [0, 1, 16, 17, 32, LARGEST_EXACT, LARGEST_EXACT + 1, u64::MAX];
        let events: Vec<Event> =
            (0..).zip(sizes).map(|(slot, size)| event(EventKind::Malloc, slot, size)).collect();
        let profile = profile(&events);
        assert_eq!((profile.sizes[1].requests, profile.sizes[2].requests), (3, 2));
        assert_eq!(profile.sizes.last().map(|size| size.requests), Some(1));
        assert_eq!((profile.large[15].requests, profile.large[47].requests), (1, 1));
        assert_eq!((profile.requests, profile.allocations, profile.largest_bytes), (8, 8, MAX_SIZE));
    }

    #[test]
    fn a_resized_block_leaves_its_size_for_another() {
        let profile = profile(&[
            event(EventKind::Malloc, 0, 16),
            event(EventKind::Realloc, 0, 100),
            event(EventKind::Malloc, 1, 16),
            event(EventKind::Free, 0, 0),
        ]);
        assert_eq!((profile.sizes[1].peak_live, profile.sizes[1].live), (1, 1));
        assert_eq!((profile.sizes[7].peak_live, profile.sizes[7].live, profile.sizes[7].reallocs), (1, 0, 1));
        assert_eq!((profile.requests, profile.allocations), (3, 2));
        assert_eq!((profile.peak_bytes, profile.peak_requested_bytes), (128, 116));
    }

    #[test]
    fn a_life_is_short_by_the_bytes_allocated_after_it() {
        let lives = |between: u64| {
            profile(&[
                event(EventKind::Malloc, 0, 64),
                event(EventKind::Malloc, 1, between),
                event(EventKind::Free, 0, 0),
            ])
            .sizes[4]
                .short_lives
        };
        assert_eq!((lives(SHORT_LIFE_BYTES - 1), lives(SHORT_LIFE_BYTES)), (1, 0));
    }

    #[test]
    fn blocks_that_live_at_the_peak_are_counted_apart_from_earlier_ones() {
        let mut events: Vec<Event> = (0..10).map(|slot| event(EventKind::Malloc, slot, 160)).collect();
        events.extend((0..10).map(|slot| event(EventKind::Free, slot, 0)));
        events.push(event(EventKind::Malloc, 0, 4096));
        let profile = profile(&events);
        assert_eq!((profile.sizes[10].peak_live, profile.sizes[10].live_at_peak), (10, 0));
        assert_eq!(profile.sizes[256].live_at_peak, 1);
    }

    #[test]
    fn events_of_a_damaged_trace_are_counted_and_do_no_harm() {
        let profile = profile(&[
            event(EventKind::Free, 3, 0),
            event(EventKind::Realloc, 3, 10),
            event(EventKind::Malloc, 0, 10),
            event(EventKind::Malloc, 0, 20),
            event(EventKind::Free, 0, 0),
        ]);
        assert_eq!((profile.misfits(), profile.sizes[1].live, profile.sizes[2].live), (3, 0, 0));
    }
}
