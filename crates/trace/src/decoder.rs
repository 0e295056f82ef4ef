//! Columns as events: a chunk is unpacked, then decoded in parts.

use zstd::bulk::Decompressor;

use crate::column::{ColumnReader, SLACK, unzigzag};
use crate::event::{Event, EventKind};
use crate::format::{
    CLOCK_MAX, COLUMN_HEAD, EVENT_TIMES, EVENTS_HEAD, EVENTS_MAX, EventsHead, PLAIN, PREDICTED, SITE_SLACK,
    SIZE_MAX, THREAD_SLACK, ZSTD, column, op, u32_at,
};
use crate::live::Live;

/// A column unpacked.
#[derive(Debug, Default)]
struct Column {
    /// Its bytes and [`SLACK`] zeroes.
    bytes: Vec<u8>,
    length: usize,
    at: usize,
}

/// The chunk that is being decoded.
pub(crate) struct Decoder {
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
}

/// The defect of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

/// The state of the whole trace so far.
#[derive(Debug, Default)]
pub(crate) struct TraceState {
    pub(crate) live: Live,
    /// Events decoded.
    pub(crate) events: u64,
    /// Sum of all sizes: bounds every sum that can be formed of them.
    pub(crate) sizes: u64,
}

impl Decoder {
    pub(crate) fn new() -> Decoder {
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
        }
    }

    pub(crate) fn head(&self) -> &EventsHead {
        &self.head
    }

    /// Events not yet decoded.
    pub(crate) fn left(&self) -> u32 {
        self.left
    }

    /// Slots in use and time at this position, according to the file.
    pub(crate) fn position(&self) -> (u32, u64) {
        (self.slots, self.time_ns)
    }

    /// Drops the rest of the chunk.
    pub(crate) fn drop_rest(&mut self) {
        self.left = 0;
    }

    /// Unpacks a chunk that comes after `events` events.
    pub(crate) fn load(&mut self, payload: &[u8], events: u64) -> Result<(), Malformed> {
        self.left = 0;
        let head = EventsHead::parse(payload).ok_or(Malformed("its head is too short"))?;
        if head.events > EVENTS_MAX {
            return Err(Malformed("its head counts more events than a chunk may have"));
        }
        if head.time_ns > CLOCK_MAX || head.clock_bytes > CLOCK_MAX || head.first_event > CLOCK_MAX {
            return Err(Malformed("its clocks are beyond reason"));
        }
        if u64::from(head.thread) >= events.saturating_add(THREAD_SLACK) {
            return Err(Malformed("a thread's number is beyond reason"));
        }
        for column in &mut self.columns {
            column.bytes.clear();
            column.bytes.resize(SLACK, 0);
            column.length = 0;
            column.at = 0;
        }
        let columns = head.columns as usize;
        let mut data = EVENTS_HEAD + columns * COLUMN_HEAD;
        if payload.len() < data {
            return Err(Malformed("its list of columns is too short"));
        }
        let mut there = [false; column::COUNT];
        for row in payload[EVENTS_HEAD..data].chunks_exact(COLUMN_HEAD) {
            let (length, stored) = (u32_at(row, 4) as usize, u32_at(row, 8) as usize);
            let bytes = payload.get(data..data + stored).ok_or(Malformed("a column is too short"))?;
            data += stored;
            // Columns of later versions are skipped.
            let Some(column) = self.columns.get_mut(row[0] as usize) else { continue };
            if length > head.events as usize * column::WIDTH[row[0] as usize] {
                return Err(Malformed("a column is longer than its events can fill"));
            }
            // Unpacked repeatedly, a few bytes could keep a reader busy for minutes.
            if std::mem::replace(&mut there[row[0] as usize], true) {
                return Err(Malformed("a column is there twice"));
            }
            column.bytes.clear();
            match row[1] {
                PLAIN if stored == length => column.bytes.extend_from_slice(bytes),
                ZSTD => {
                    column.bytes.reserve(length + SLACK);
                    column.bytes.resize(length, 0);
                    let unpacked = self
                        .decompressor
                        .as_mut()
                        .and_then(|unpack| unpack.decompress_to_buffer(bytes, &mut column.bytes[..]).ok());
                    if unpacked != Some(length) {
                        column.bytes.clear();
                        return Err(Malformed("a column cannot be unpacked"));
                    }
                }
                _ => return Err(Malformed("a column is packed in an unknown way")),
            }
            column.bytes.resize(length + SLACK, 0);
            column.length = length;
        }
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

    /// Decodes about `count` more events. On an error, the events before it are returned.
    pub(crate) fn decode(
        &mut self,
        count: u32,
        state: &mut TraceState,
        events: &mut Vec<Event>,
    ) -> Result<(), Malformed> {
        let result = if state.live.missing() {
            self.run::<true>(count, state, events)
        } else {
            self.run::<false>(count, state, events)
        };
        if result.is_err() {
            self.left = 0;
        }
        result
    }

    fn run<const MISSING: bool>(
        &mut self,
        count: u32,
        state: &mut TraceState,
        events: &mut Vec<Event>,
    ) -> Result<(), Malformed> {
        const SHORT: Malformed = Malformed("a column ends too early");
        const WRONG_SLOT: Malformed = Malformed("it names an object that cannot be");
        let count = count.min(self.left);
        let mut columns =
            self.columns.each_ref().map(|column| ColumnReader { bytes: &column.bytes, at: column.at });
        let with_sites = self.columns[column::SITES].length != 0;
        let with_latencies = self.columns[column::LATENCIES].length != 0;
        let with_times = self.head.flags & EVENT_TIMES != 0;
        let each = with_latencies || with_times;
        let threads = state.events.saturating_add(THREAD_SLACK);
        let sites = state.events.saturating_add(SITE_SLACK);
        let mut last_slot = self.last_slot;
        let mut thread = self.thread;
        let mut time_ns = self.time_ns;
        let mut sizes = state.sizes;
        let live = &mut state.live;
        // At most one Lost is added for each.
        events.reserve(count as usize + 1);
        let mut result = Ok(());
        let mut done = 0;
        while done < count {
            // An immediately called closure so that `?` ends one event.
            let step = (|| {
                let mut code = columns[column::OPS].byte().ok_or(SHORT)?;
                while code & 15 >= op::STAMP {
                    match code {
                        op::STAMP => {
                            let elapsed = columns[column::TIMES].number().ok_or(SHORT)?;
                            time_ns = time_ns.saturating_add(elapsed).min(CLOCK_MAX);
                        }
                        op::THREAD => {
                            let number = columns[column::THREADS].number().ok_or(SHORT)?;
                            if number >= threads {
                                return Err(Malformed("a thread's number is beyond reason"));
                            }
                            thread = number as u32;
                        }
                        _ => return Err(Malformed("it holds an unknown kind of event")),
                    }
                    code = columns[column::OPS].byte().ok_or(SHORT)?;
                }
                let mut latency_ns = 0;
                if each {
                    if with_times {
                        let elapsed = columns[column::TIMES].number().ok_or(SHORT)?;
                        time_ns = time_ns.saturating_add(elapsed).min(CLOCK_MAX);
                    }
                    if with_latencies {
                        latency_ns = columns[column::LATENCIES].number().ok_or(SHORT)? as u32;
                    }
                }
                let mut event = Event {
                    kind: EventKind::Malloc,
                    moved: false,
                    align_log2: 0,
                    thread,
                    slot: 0,
                    site: 0,
                    size: 0,
                    usable: 0,
                    time_ns,
                    latency_ns,
                };
                let which = code & 15;
                match which {
                    op::FREE | op::DELETE | op::REALLOC_FREE | op::LOST => {
                        let slot = next_slot(&mut columns[column::SLOTS], last_slot).ok_or(SHORT)?;
                        last_slot = slot;
                        event.kind = match which {
                            op::FREE => EventKind::Free,
                            op::DELETE => EventKind::Delete,
                            op::REALLOC_FREE => EventKind::ReallocFree,
                            _ => EventKind::Lost,
                        };
                        self.freed.push(slot);
                        match live.find(slot) {
                            Some(known) if live.clear(known) => event.slot = known,
                            _ if MISSING => event.kind = EventKind::Foreign,
                            _ => return Err(WRONG_SLOT),
                        }
                        events.push(event);
                        return Ok(());
                    }
                    op::FOREIGN => {
                        event.kind = EventKind::Foreign;
                        events.push(event);
                        return Ok(());
                    }
                    op::FAILED => {
                        event.kind = EventKind::Failed;
                        event.size = columns[column::SIZES].number().ok_or(SHORT)?;
                        if with_sites {
                            event.site = next_site(&mut columns[column::SITES], sites)?;
                        }
                        events.push(event);
                        return Ok(());
                    }
                    _ => {}
                }
                // Calls that allocate or resize an object.
                let resizes = matches!(which, op::REALLOC | op::REALLOC_MOVED);
                let mut fresh = false;
                let slot = if code & op::SLOT != 0 || resizes {
                    next_slot(&mut columns[column::SLOTS], last_slot).ok_or(SHORT)?
                } else if let Some(slot) = self.freed.pop() {
                    slot
                } else {
                    fresh = true;
                    let slot = self.slots;
                    self.slots = slot.checked_add(1).filter(|&next| next < u32::MAX).ok_or(WRONG_SLOT)?;
                    slot
                };
                last_slot = slot;
                let size = columns[column::SIZES].number().ok_or(SHORT)?;
                sizes = sizes.saturating_add(size);
                if size > SIZE_MAX || sizes > CLOCK_MAX {
                    return Err(Malformed("it holds sizes beyond reason"));
                }
                event.size = size;
                if code & op::ALIGN != 0 {
                    event.align_log2 = columns[column::ALIGNS].byte().ok_or(SHORT)?;
                    if event.align_log2 > 63 {
                        return Err(Malformed("it holds an alignment beyond reason"));
                    }
                }
                let entry = self.predicted.get_mut(size as usize);
                if code & op::USABLE != 0 {
                    let excess = unzigzag(columns[column::USABLES].number().ok_or(SHORT)?);
                    event.usable = size.wrapping_add(excess as u64);
                    if event.usable > CLOCK_MAX {
                        return Err(Malformed("it holds usable sizes beyond reason"));
                    }
                    if let Some(entry) = entry {
                        *entry = u32::try_from(event.usable).unwrap_or(0);
                    }
                } else if let Some(entry) = entry {
                    event.usable = u64::from(*entry);
                }
                if with_sites {
                    event.site = next_site(&mut columns[column::SITES], sites)?;
                }
                if resizes {
                    event.kind = EventKind::Realloc;
                    event.moved = which == op::REALLOC_MOVED;
                    match live.find(slot) {
                        Some(known) if live.is_live(known) => {
                            event.slot = known;
                            events.push(event);
                            return Ok(());
                        }
                        // The object's allocation is missing: treated as a realloc of an unknown block.
                        _ if MISSING => {
                            event.kind = EventKind::Malloc;
                            event.moved = false;
                        }
                        _ => return Err(WRONG_SLOT),
                    }
                } else {
                    event.kind = match which {
                        op::MALLOC => EventKind::Malloc,
                        op::CALLOC => EventKind::Calloc,
                        op::ALIGNED => EventKind::Aligned,
                        _ => EventKind::New,
                    };
                }
                let known = if fresh && !MISSING {
                    live.next()
                } else {
                    live.slot_for_allocation(slot).ok_or(WRONG_SLOT)?
                };
                if !live.set(known) {
                    if !MISSING {
                        return Err(WRONG_SLOT);
                    }
                    events.push(Event {
                        kind: EventKind::Lost,
                        slot: known,
                        size: 0,
                        usable: 0,
                        site: 0,
                        align_log2: 0,
                        latency_ns: 0,
                        ..event
                    });
                }
                event.slot = known;
                events.push(event);
                Ok(())
            })();
            if let Err(error) = step {
                result = Err(error);
                break;
            }
            done += 1;
        }
        let ends = columns.map(|column| column.at);
        for (column, at) in self.columns.iter_mut().zip(ends) {
            column.at = at;
        }
        self.left -= done;
        self.last_slot = last_slot;
        self.thread = thread;
        self.time_ns = time_ns;
        state.sizes = sizes.min(CLOCK_MAX);
        state.events += u64::from(done);
        if self.left == 0 && result.is_ok() && self.columns.iter().any(|column| column.at != column.length) {
            return Err(Malformed("its columns do not fit its number of events"));
        }
        result
    }
}

#[inline(always)]
fn next_slot(column: &mut ColumnReader<'_>, last: u32) -> Option<u32> {
    let step = unzigzag(column.number()?);
    u32::try_from(i64::from(last).wrapping_add(step)).ok()
}

#[inline(always)]
fn next_site(column: &mut ColumnReader<'_>, sites: u64) -> Result<u32, Malformed> {
    let site = column.number().ok_or(Malformed("a column ends too early"))?;
    if site >= sites {
        return Err(Malformed("a site's number is beyond reason"));
    }
    u32::try_from(site).map_err(|_| Malformed("a site's number is beyond reason"))
}
