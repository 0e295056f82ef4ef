//! Columns as events: a chunk is unpacked, then decoded in parts.

mod part;

use zstd::bulk::Decompressor;

use self::part::Part;
use crate::event::Event;
use crate::event_reader::{Decode, Place};
use crate::file_kind::FileKind;
use crate::format::{
    CLOCK_MAX, EVENT_TIMES, EVENTS_HEAD, EVENTS_MAX, EventsHead, PREDICTED, SITE_SLACK, THREAD_SLACK, column,
};
use crate::live::Live;
use crate::malformed::Malformed;
use crate::packed::{self, Column, Shape};

/// Most slots that are renumbered while objects are counted.
const RENAMED_MAX: usize = 1 << 22;

/// The chunk that is being decoded, and the state of the trace.
pub struct Decoder {
    columns: [Column; column::COUNT],
    decompressor: Option<Decompressor<'static>>,
    head: EventsHead,
    /// Events not yet decoded.
    left: u32,
    predicted: Box<[u32; PREDICTED]>,
    /// Slots freed in this chunk, as the file numbers them.
    freed: Vec<u32>,
    /// Slots in use by the file's numbers.
    slots: u32,
    last_slot: u32,
    thread: u32,
    time_ns: u64,
    live: Live,
    /// Events decoded, of the whole trace.
    decoded: u64,
    /// Sum of all sizes: bounds every sum that can be formed of them.
    sizes: u64,
}

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder {
            columns: std::array::from_fn(|_| Column::default()),
            decompressor: Decompressor::new().ok(),
            head: EventsHead::default(),
            left: 0,
            predicted: Box::new([0; PREDICTED]),
            freed: Vec::new(),
            slots: 0,
            last_slot: 0,
            thread: 0,
            time_ns: 0,
            live: Live::default(),
            decoded: 0,
            sizes: 0,
        }
    }
}

impl Decode for Decoder {
    const KIND: FileKind = FileKind::Trace;
    type Event = Event;

    fn place(&self) -> Place {
        Place {
            first_event: self.head.first_event,
            next_event: self.head.first_event + u64::from(self.head.events - self.left),
            left: self.left,
            decoded: self.decoded,
            numbered: self.slots.into(),
            objects: self.live.slots().into(),
            chunk_clock_bytes: self.head.clock_bytes,
            time_ns: 0,
        }
    }

    fn load(&mut self, payload: &[u8]) -> Result<(), Malformed> {
        self.left = 0;
        let head = EventsHead::parse(payload).ok_or(Malformed("its head is too short"))?;
        if head.events > EVENTS_MAX {
            return Err(Malformed("its head counts more events than a chunk may have"));
        }
        if head.time_ns > CLOCK_MAX || head.clock_bytes > CLOCK_MAX || head.first_event > CLOCK_MAX {
            return Err(Malformed("its clocks are beyond reason"));
        }
        if u64::from(head.thread) >= self.decoded.saturating_add(THREAD_SLACK) {
            return Err(Malformed("a thread's number is beyond reason"));
        }
        let shape =
            Shape { head: EVENTS_HEAD, events: head.events, columns: head.columns, widths: &column::WIDTH };
        packed::unpack(payload, shape, &mut self.columns, &mut self.decompressor)?;
        self.head = head;
        self.left = head.events;
        self.predicted.fill(0);
        self.freed.clear();
        self.slots = head.slots;
        self.last_slot = 0;
        self.thread = head.thread;
        // Time does not run backwards, whatever a chunk contains.
        self.time_ns = self.time_ns.max(head.time_ns);
        Ok(())
    }

    fn decode(&mut self, count: u32, events: &mut Vec<Event>) -> Result<(), Malformed> {
        let result = match self.live.missing() {
            true => self.run::<true>(count, events),
            false => self.run::<false>(count, events),
        };
        if result.is_err() {
            self.left = 0;
        }
        result
    }

    fn miss(&mut self, _: &mut Vec<Event>) {
        self.live.miss();
    }

    fn needs_bytes(&self, each_object_bytes: u64) -> u64 {
        self.live.needs_bytes(each_object_bytes)
    }

    fn most_live(&self) -> u32 {
        self.live.slots()
    }

    fn can_count(&self) -> bool {
        self.live.renamed() < RENAMED_MAX
    }
}

impl Decoder {
    fn run<const MISSING: bool>(&mut self, count: u32, events: &mut Vec<Event>) -> Result<(), Malformed> {
        let count = count.min(self.left);
        // At most one Lost is added for each.
        events.reserve(count as usize + 1);
        let mut part = Part::<MISSING> {
            columns: self.columns.each_ref().map(Column::reader),
            with_sites: !self.columns[column::SITES].is_empty(),
            with_latencies: !self.columns[column::LATENCIES].is_empty(),
            with_times: self.head.flags & EVENT_TIMES != 0,
            threads: self.decoded.saturating_add(THREAD_SLACK),
            sites: self.decoded.saturating_add(SITE_SLACK),
            predicted: &mut self.predicted,
            freed: &mut self.freed,
            slots: self.slots,
            last_slot: self.last_slot,
            thread: self.thread,
            time_ns: self.time_ns,
            sizes: self.sizes,
            live: &mut self.live,
            events,
        };
        let mut result = Ok(());
        let mut done = 0;
        while done < count {
            if let Err(error) = part.decode_event() {
                result = Err(error);
                break;
            }
            done += 1;
        }
        let ends = part.columns.map(|column| column.at);
        self.left -= done;
        self.slots = part.slots;
        self.last_slot = part.last_slot;
        self.thread = part.thread;
        self.time_ns = part.time_ns;
        self.sizes = part.sizes.min(CLOCK_MAX);
        self.decoded += u64::from(done);
        for (column, at) in self.columns.iter_mut().zip(ends) {
            column.at = at;
        }
        if self.left == 0 && result.is_ok() && self.columns.iter().any(|column| !column.is_used_up()) {
            return Err(Malformed("its columns do not fit its number of events"));
        }
        result
    }
}
