//! Events as columns: the content of one chunk of events. Knows nothing of objects but their slots and sizes.

use zstd::bulk::Compressor;

use crate::column::{ColumnWriter, zigzag};
use crate::event::EventKind;
use crate::event_writer::{Encode, Totals};
use crate::file_kind::FileKind;
use crate::format::{CLOCK_MAX, EVENT_TIMES, EventsHead, PREDICTED, SITE_SLACK, THREAD_SLACK, column, op};
use crate::header::{Ending, Header};
use crate::packed;
use crate::slots::Slots;

/// The columns' values of an allocating call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) op: u8,
    pub(crate) size: u64,
    pub(crate) usable: u64,
    pub(crate) align_log2: u8,
    pub(crate) site: u32,
}

/// The columns of the chunk that is being filled.
pub struct Encoder {
    columns: [ColumnWriter; column::COUNT],
    /// Usable size by requested size, as last seen in this chunk.
    predicted: Box<[u32; PREDICTED]>,
    pub(crate) slots: Slots,
    /// The slot last named or assigned.
    last_slot: u32,
    /// Where the chunk began, and the events in it.
    head: EventsHead,
    events: u32,
    /// Thread and time of the last event.
    thread: u32,
    time_ns: u64,
    /// Time of the next event.
    now_ns: u64,
    with_sites: bool,
    with_latencies: bool,
    with_times: bool,
    compressor: Option<Compressor<'static>>,
}

impl Encode for Encoder {
    const KIND: FileKind = FileKind::Trace;

    fn new(limit: u32, level: i32, header: &Header) -> Encoder {
        Encoder {
            columns: std::array::from_fn(|at| ColumnWriter::new(limit as usize * column::WIDTH[at])),
            predicted: Box::new([0; PREDICTED]),
            slots: Slots::default(),
            last_slot: 0,
            head: EventsHead::default(),
            events: 0,
            thread: 0,
            time_ns: 0,
            now_ns: 0,
            with_sites: header.sites,
            with_latencies: header.latency,
            with_times: header.event_time,
            // Without a compressor (no memory for it), columns are kept plain.
            compressor: if level == 0 { None } else { Compressor::new(level).ok() },
        }
    }

    #[inline(always)]
    fn events(&self) -> u32 {
        self.events
    }

    #[inline]
    fn before(&self) -> u64 {
        self.head.first_event
    }

    fn cut(&mut self, totals: &Totals) -> Vec<u8> {
        let head = EventsHead {
            events: self.events,
            columns: packed::filled(&self.columns),
            flags: if self.with_times { EVENT_TIMES } else { 0 },
            ..self.head
        };
        let mut payload = Vec::new();
        head.write(&mut payload);
        packed::pack(&mut self.columns, &mut self.compressor, &mut payload);
        self.head = EventsHead {
            first_event: self.head.first_event + u64::from(self.events),
            clock_bytes: totals.clock_bytes,
            live_bytes: totals.live_bytes,
            time_ns: self.time_ns,
            thread: self.thread,
            slots: self.slots.count(),
            ..EventsHead::default()
        };
        self.events = 0;
        self.last_slot = 0;
        self.predicted.fill(0);
        self.slots.begin_chunk();
        payload
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn complete(&self, ending: &mut Ending) {
        ending.slots = self.slots.count();
    }
}

impl Encoder {
    #[inline(always)]
    pub(crate) fn stamp(&mut self, time_ns: u64) {
        self.now_ns = self.now_ns.max(time_ns.min(CLOCK_MAX));
    }

    /// Precedes every event: thread and time, where they changed.
    #[inline(always)]
    fn begin(&mut self, thread: u32, latency_ns: u32) {
        self.events += 1;
        if self.thread != thread || self.now_ns != self.time_ns {
            self.time_and_thread(thread);
        } else if self.with_times {
            self.columns[column::TIMES].number(0);
        }
        if self.with_latencies {
            self.columns[column::LATENCIES].number(u64::from(latency_ns));
        }
    }

    /// Writes the time, and the thread where it changed.
    #[cold]
    fn time_and_thread(&mut self, thread: u32) {
        // A number that a reader would take for damage is not written.
        let thread = if u64::from(thread) < THREAD_SLACK + self.head.first_event { thread } else { 0 };
        let elapsed = self.now_ns - self.time_ns;
        if self.with_times {
            self.columns[column::TIMES].number(elapsed);
        } else if elapsed != 0 {
            self.columns[column::OPS].byte(op::STAMP);
            self.columns[column::TIMES].number(elapsed);
        }
        self.time_ns = self.now_ns;
        if self.thread != thread {
            self.columns[column::OPS].byte(op::THREAD);
            self.columns[column::THREADS].number(u64::from(thread));
            self.thread = thread;
        }
    }

    /// An allocation that gets the slot which a reader predicts, or another.
    #[inline(always)]
    pub(crate) fn allocate(&mut self, call: Call, thread: u32, latency_ns: u32, slot: u32, predicted: bool) {
        self.begin(thread, latency_ns);
        let mut call = call;
        if !predicted {
            call.op |= op::SLOT;
            self.slot(slot);
        }
        self.last_slot = slot;
        self.call(call);
    }

    #[inline(always)]
    pub(crate) fn resize(&mut self, call: Call, thread: u32, latency_ns: u32, slot: u32) {
        self.begin(thread, latency_ns);
        self.slot(slot);
        self.call(call);
    }

    #[inline(always)]
    pub(crate) fn free(&mut self, op: u8, thread: u32, latency_ns: u32, slot: u32) {
        self.begin(thread, latency_ns);
        self.slot(slot);
        self.columns[column::OPS].byte(op);
    }

    pub(crate) fn failed(&mut self, size: u64, site: u32, thread: u32, latency_ns: u32) {
        self.begin(thread, latency_ns);
        self.columns[column::OPS].byte(op::FAILED);
        self.columns[column::SIZES].number(size);
        if self.with_sites {
            self.site(site);
        }
    }

    pub(crate) fn foreign(&mut self, thread: u32, latency_ns: u32) {
        self.begin(thread, latency_ns);
        self.columns[column::OPS].byte(op::FOREIGN);
    }

    #[inline(always)]
    fn slot(&mut self, slot: u32) {
        self.columns[column::SLOTS].number(zigzag(i64::from(slot) - i64::from(self.last_slot)));
        self.last_slot = slot;
    }

    #[inline(always)]
    fn call(&mut self, call: Call) {
        let mut op = call.op;
        self.columns[column::SIZES].number(call.size);
        if call.align_log2 != 0 {
            op |= op::ALIGN;
            self.columns[column::ALIGNS].byte(call.align_log2);
        }
        if let Some(entry) = self.predicted.get_mut(call.size as usize) {
            if u64::from(*entry) != call.usable {
                *entry = u32::try_from(call.usable).unwrap_or(0);
                op |= op::USABLE;
            }
        } else if call.usable != 0 {
            op |= op::USABLE;
        }
        if op & op::USABLE != 0 {
            let excess = call.usable.wrapping_sub(call.size) as i64;
            self.columns[column::USABLES].number(zigzag(excess));
        }
        self.columns[column::OPS].byte(op);
        if self.with_sites {
            self.site(call.site);
        }
    }

    #[inline(always)]
    fn site(&mut self, site: u32) {
        // As in `time_and_thread`: a number that a reader would take for damage is not written.
        let site = if u64::from(site) < SITE_SLACK + self.head.first_event { site } else { 0 };
        self.columns[column::SITES].number(u64::from(site));
    }
}

/// The op of a kind; of a realloc, that which stays in place.
#[inline(always)]
pub(crate) fn op_of(kind: EventKind) -> u8 {
    match kind {
        EventKind::Malloc => op::MALLOC,
        EventKind::Calloc => op::CALLOC,
        EventKind::Aligned => op::ALIGNED,
        EventKind::New => op::NEW,
        EventKind::Realloc => op::REALLOC,
        EventKind::Free => op::FREE,
        EventKind::Delete => op::DELETE,
        EventKind::ReallocFree => op::REALLOC_FREE,
        EventKind::Failed => op::FAILED,
        EventKind::Foreign => op::FOREIGN,
        EventKind::Lost => op::LOST,
    }
}
