//! Columns as events: a chunk is unpacked, then decoded in parts. Events that name objects which are not live, or bytes
//! that they do not have, are left out and counted.

use zstd::bulk::Decompressor;

use super::event::{AllocationKind, Event, FreeCause, LastTouch, RootKind};
use super::format::{HEAD, Head, column, op};
use super::live::Live;
use crate::column::unzigzag;
use crate::event_reader::{Decode, Place};
use crate::file_kind::FileKind;
use crate::format::{CLOCK_MAX, EVENTS_MAX, SITE_SLACK, SIZE_MAX, THREAD_SLACK};
use crate::malformed::Malformed;
use crate::packed::{self, Column, Shape};

/// Events that lie within this many µs have the same time.
const SAME_US: u64 = 1000;

const SHORT: Malformed = Malformed("a column ends too early");

/// The chunk that is being decoded, and the state of the trace.
pub struct Decoder {
    columns: [Column; column::COUNT],
    decompressor: Option<Decompressor<'static>>,
    head: Head,
    /// Events not yet decoded.
    left: u32,
    /// The object named last.
    object: u64,
    thread: u32,
    /// Number of the next object, and the clock.
    objects: u64,
    clock_bytes: u64,
    /// µs: of the chunk's object that was allocated or freed last, of the trace's, and of the events decoded last.
    chunk_us: u64,
    time_us: u64,
    batch_us: u64,
    /// An event that is left since it is later than those before it.
    later: Option<Option<Event>>,
    in_roots: bool,
    /// Events decoded, of the whole trace, and bytes of their columns before compression.
    decoded: u64,
    plain_bytes: u64,
    /// Events left out.
    unknown: u64,
    live: Live,
}

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder {
            columns: std::array::from_fn(|_| Column::default()),
            decompressor: Decompressor::new().ok(),
            head: Head::default(),
            left: 0,
            object: 0,
            thread: 0,
            objects: 0,
            clock_bytes: 0,
            chunk_us: 0,
            time_us: 0,
            batch_us: 0,
            later: None,
            in_roots: false,
            decoded: 0,
            plain_bytes: 0,
            unknown: 0,
            live: Live::default(),
        }
    }
}

impl Decode for Decoder {
    const KIND: FileKind = FileKind::Graph;
    type Event = Event;

    fn place(&self) -> Place {
        Place {
            first_event: self.head.first_event,
            next_event: self.position(),
            left: self.left,
            decoded: self.decoded,
            numbered: self.objects,
            objects: self.objects,
            chunk_clock_bytes: self.head.clock_bytes,
            time_ns: self.batch_us * 1000,
        }
    }

    fn load(&mut self, payload: &[u8]) -> Result<(), Malformed> {
        self.left = 0;
        self.later = None;
        self.chunk_us = 0;
        let head = Head::parse(payload).ok_or(Malformed("its head is too short"))?;
        if head.events > EVENTS_MAX {
            return Err(Malformed("its head counts more events than a chunk may have"));
        }
        let beyond = [head.clock_bytes, head.first_event, head.first_object];
        if beyond.iter().any(|&number| number > CLOCK_MAX) {
            return Err(Malformed("its clocks are beyond reason"));
        }
        if head.first_object < self.objects || head.first_object > head.first_event {
            return Err(Malformed("its objects do not continue those before"));
        }
        if u64::from(head.thread) >= self.decoded.saturating_add(THREAD_SLACK) {
            return Err(Malformed("a thread's number is beyond reason"));
        }
        let shape = Shape { head: HEAD, events: head.events, columns: head.columns, widths: &column::WIDTH };
        packed::unpack(payload, shape, &mut self.columns, &mut self.decompressor)?;
        self.plain_bytes += self.columns.iter().map(|column| column.length() as u64).sum::<u64>();
        self.head = head;
        self.left = head.events;
        self.object = head.first_object;
        self.thread = head.thread;
        self.objects = head.first_object;
        self.clock_bytes = head.clock_bytes;
        Ok(())
    }

    /// Those of about the same time.
    fn decode(&mut self, count: u32, events: &mut Vec<Event>) -> Result<(), Malformed> {
        let mut began = None;
        for _ in 0..count.min(self.left) {
            let event = self.later.take().map_or_else(|| self.decode_event(), Ok);
            let batch_us = *began.get_or_insert(self.time_us);
            if event.is_ok() && self.time_us > batch_us + SAME_US {
                self.later = event.ok();
                break;
            }
            self.batch_us = batch_us;
            match event {
                Ok(Some(event)) => events.push(event),
                Ok(None) => self.unknown += 1,
                Err(malformed) => {
                    self.left = 0;
                    return Err(malformed);
                }
            }
            self.left -= 1;
            self.decoded += 1;
        }
        if self.left == 0 && self.columns.iter().any(|column| !column.is_used_up()) {
            return Err(Malformed("its columns do not fit its number of events"));
        }
        Ok(())
    }

    fn miss(&mut self, events: &mut Vec<Event>) {
        if std::mem::take(&mut self.in_roots) {
            events.push(Event::RootsEnd { whole: false });
        }
    }

    fn needs_bytes(&self, each_object_bytes: u64) -> u64 {
        self.live.bytes() + self.live.most().saturating_mul(each_object_bytes)
    }

    fn most_live(&self) -> u32 {
        u32::try_from(self.live.most()).unwrap_or(u32::MAX)
    }

    fn can_count(&self) -> bool {
        false
    }

    fn warnings(&self) -> Vec<String> {
        let (unknown, open) = (self.unknown, self.live.len());
        let left_out =
            (unknown > 0).then(|| format!("{unknown} events name objects that are not live: left out"));
        let open =
            (open > 0).then(|| format!("the end of {open} objects is missing, and their last touch with it"));
        left_out.into_iter().chain(open).collect()
    }
}

impl Decoder {
    /// Number of the next event, as counted by the recorder.
    fn position(&self) -> u64 {
        self.head.first_event + u64::from(self.head.events - self.left)
    }

    /// Bytes of the events before compression, so far.
    pub(super) fn plain_bytes(&self) -> u64 {
        self.plain_bytes
    }

    /// The next event; none if it names what is not there.
    fn decode_event(&mut self) -> Result<Option<Event>, Malformed> {
        let code = self.code()?;
        let kind = code >> op::KIND_SHIFT & op::KIND;
        Ok(match code & 15 {
            op::ALLOCATE => Some(self.allocation(kind)?),
            op::FREE => {
                let cause = match kind {
                    0 => FreeCause::Free,
                    1 => FreeCause::Resized,
                    2 => FreeCause::Lost,
                    _ => return Err(Malformed("it has an unknown cause of a free")),
                };
                let (object, last_touch) = self.end(code)?;
                let thread = self.thread;
                self.live.remove(object).map(|_| Event::Free { object, thread, cause, last_touch })
            }
            op::KEPT => {
                let (object, last_touch) = self.end(code)?;
                self.live.remove(object).map(|_| Event::Kept { object, last_touch })
            }
            op::EDGE => self.edge(code)?,
            op::CLEAR => {
                let (from, offset) = (self.name()?, self.number(column::OFFSETS)?);
                self.holds(from, offset).then_some(Event::Clear { from, offset })
            }
            op::TOUCH => {
                let object = self.name()?;
                self.live.size(object).map(|_| Event::Touch { object })
            }
            op::ROOTS_BEGIN | op::ROOT | op::ROOTS_END => self.roots(code, kind)?,
            op::ACCESS => self.access(code)?,
            op::REQUEST_BEGIN => Some(Event::RequestBegin { thread: self.thread }),
            op::REQUEST_END => Some(Event::RequestEnd { thread: self.thread }),
            _ => return Err(Malformed("it has an unknown kind of event")),
        })
    }

    /// The op of the next event.
    fn code(&mut self) -> Result<u8, Malformed> {
        let code = self.byte(column::OPS)?;
        if code & 15 != op::THREAD {
            return Ok(code);
        }
        let thread = self.number(column::THREADS)?;
        if thread >= self.decoded.saturating_add(THREAD_SLACK) {
            return Err(Malformed("a thread's number is beyond reason"));
        }
        self.thread = u32::try_from(thread).map_err(|_| Malformed("a thread's number is beyond reason"))?;
        self.byte(column::OPS)
    }

    fn allocation(&mut self, kind: u8) -> Result<Event, Malformed> {
        let kind = match kind {
            0 => AllocationKind::Plain,
            1 => AllocationKind::Zeroed,
            2 => AllocationKind::Aligned,
            _ => AllocationKind::Resized,
        };
        self.timed()?;
        let size = self.number(column::SIZES)?;
        if size > SIZE_MAX || self.clock_bytes + size > CLOCK_MAX {
            return Err(Malformed("a size is beyond reason"));
        }
        let align_log2 = if kind == AllocationKind::Aligned { self.byte(column::ALIGNS)? } else { 0 };
        if align_log2 > 63 {
            return Err(Malformed("an alignment is beyond reason"));
        }
        let site = if self.columns[column::SITES].is_empty() { 0 } else { self.number(column::SITES)? };
        let site = u32::try_from(site).ok().filter(|&site| u64::from(site) < self.decoded + SITE_SLACK);
        let site = site.ok_or(Malformed("a site's number is beyond reason"))?;
        let object = self.objects;
        self.objects += 1;
        self.object = object;
        self.clock_bytes += size;
        self.live.insert(object, size);
        Ok(Event::Allocate { object, size, site, thread: self.thread, kind, align_log2 })
    }

    /// Object and last touch of an end.
    fn end(&mut self, code: u8) -> Result<(u64, Option<LastTouch>), Malformed> {
        let object = self.name()?;
        if code & 15 == op::FREE {
            self.timed()?;
        }
        if code & op::TOUCHED == 0 {
            return Ok((object, None));
        }
        let before = self.number(column::TOUCH_EVENTS)?;
        let event = self.position().checked_sub(before);
        let clock_bytes = self.clock_bytes.checked_sub(self.number(column::TOUCH_CLOCKS)?);
        match (event, clock_bytes) {
            (Some(event), Some(clock_bytes)) => Ok((object, Some(LastTouch { event, clock_bytes }))),
            _ => Err(Malformed("a last touch lies before the beginning")),
        }
    }

    /// Takes the time of an object, where there is one.
    fn timed(&mut self) -> Result<(), Malformed> {
        if self.columns[column::TIMES].is_empty() {
            return Ok(());
        }
        self.chunk_us = self.chunk_us.saturating_add(self.number(column::TIMES)?);
        if self.chunk_us > CLOCK_MAX / 1000 {
            return Err(Malformed("its times are beyond reason"));
        }
        self.time_us = self.time_us.max(self.chunk_us);
        Ok(())
    }

    fn edge(&mut self, code: u8) -> Result<Option<Event>, Malformed> {
        let (from, offset) = (self.name()?, self.number(column::OFFSETS)?);
        let to = from.wrapping_add(unzigzag(self.number(column::TARGETS)?) as u64);
        let to_offset = if code & op::INTERIOR != 0 { self.number(column::TARGET_OFFSETS)? } else { 0 };
        let known = self.holds(from, offset) && self.holds(to, to_offset);
        Ok(known.then_some(Event::Edge { from, offset, to, to_offset }))
    }

    fn roots(&mut self, code: u8, kind: u8) -> Result<Option<Event>, Malformed> {
        match code & 15 {
            op::ROOTS_BEGIN if self.in_roots => Err(Malformed("a root point begins within another")),
            op::ROOTS_BEGIN => {
                self.in_roots = true;
                Ok(Some(Event::RootsBegin { clock_bytes: self.clock_bytes }))
            }
            op::ROOTS_END => {
                let open = std::mem::take(&mut self.in_roots);
                Ok(open.then_some(Event::RootsEnd { whole: true }))
            }
            _ => {
                let object = self.name()?;
                let offset = if code & op::INTERIOR != 0 { self.number(column::OFFSETS)? } else { 0 };
                let kind = match kind {
                    0 => RootKind::Register,
                    1 => RootKind::Stack,
                    2 => RootKind::Static,
                    _ => RootKind::Mapping,
                };
                let known = self.in_roots && self.holds(object, offset);
                Ok(known.then_some(Event::Root { object, offset, kind }))
            }
        }
    }

    fn access(&mut self, code: u8) -> Result<Option<Event>, Malformed> {
        let (object, offset) = (self.name()?, self.number(column::OFFSETS)?);
        let size = match code >> op::SIZE_SHIFT {
            op::SIZE_OTHER => self.number(column::SIZES)?,
            log2 => 1 << log2,
        };
        let (store, thread) = (code & op::STORE != 0, self.thread);
        let known = self.holds(object, offset);
        Ok(known.then_some(Event::Access { object, offset, size, store, thread }))
    }

    /// Whether an object is live and has this byte. One of size 0 has one.
    fn holds(&self, object: u64, offset: u64) -> bool {
        self.live.size(object).is_some_and(|size| offset < size.max(1))
    }

    /// The next object named.
    fn name(&mut self) -> Result<u64, Malformed> {
        self.object = self.object.wrapping_add(unzigzag(self.number(column::OBJECTS)?) as u64);
        Ok(self.object)
    }

    fn number(&mut self, column: usize) -> Result<u64, Malformed> {
        let mut reader = self.columns[column].reader();
        let number = reader.number();
        self.columns[column].at = reader.at;
        number.ok_or(SHORT)
    }

    fn byte(&mut self, column: usize) -> Result<u8, Malformed> {
        let mut reader = self.columns[column].reader();
        let byte = reader.byte();
        self.columns[column].at = reader.at;
        byte.ok_or(SHORT)
    }
}
