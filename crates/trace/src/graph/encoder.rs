//! Events as columns: the content of one chunk. Objects are named as steps from the object named before, targets as
//! steps from the object that points to them.

use zstd::bulk::Compressor;

use super::call::{Access, Allocation, Edge, Root};
use super::event::{AllocationKind, LastTouch};
use super::format::{Head, column, op};
use crate::column::{ColumnWriter, zigzag};
use crate::event_writer::{Encode, Totals};
use crate::file_kind::FileKind;
use crate::format::{SITE_SLACK, THREAD_SLACK};
use crate::header::Header;
use crate::packed;

/// The columns of the chunk that is being filled.
pub struct Encoder {
    columns: [ColumnWriter; column::COUNT],
    /// Allocations so far, and the object named last.
    objects: u64,
    object: u64,
    thread: u32,
    /// µs, now and of the last object that was allocated or freed in this chunk; none where there is no time.
    time_us: Option<u64>,
    timed_us: u64,
    with_sites: bool,
    compressor: Option<Compressor<'static>>,
    /// Where the chunk began, and the events in it.
    head: Head,
    events: u32,
    /// Bytes of columns before compression, of the chunks before.
    plain_bytes: u64,
}

impl Encode for Encoder {
    const KIND: FileKind = FileKind::Graph;

    fn new(limit: u32, level: i32, header: &Header) -> Encoder {
        Encoder {
            columns: std::array::from_fn(|at| ColumnWriter::new(limit as usize * column::WIDTH[at])),
            objects: 0,
            object: 0,
            thread: 0,
            time_us: None,
            timed_us: 0,
            with_sites: header.sites,
            compressor: if level == 0 { None } else { Compressor::new(level).ok() },
            head: Head::default(),
            events: 0,
            plain_bytes: 0,
        }
    }

    #[inline]
    fn events(&self) -> u32 {
        self.events
    }

    #[inline]
    fn before(&self) -> u64 {
        self.head.first_event
    }

    fn cut(&mut self, totals: &Totals) -> Vec<u8> {
        let head = Head { events: self.events, columns: packed::filled(&self.columns), ..self.head };
        let mut payload = Vec::new();
        head.write(&mut payload);
        self.plain_bytes += packed::pack(&mut self.columns, &mut self.compressor, &mut payload) as u64;
        self.head = Head {
            first_event: self.position(),
            first_object: self.objects,
            clock_bytes: totals.clock_bytes,
            live_bytes: totals.live_bytes,
            thread: self.thread,
            ..Head::default()
        };
        self.events = 0;
        self.object = self.objects;
        self.timed_us = 0;
        payload
    }

    fn now_ns(&self) -> u64 {
        self.time_us.unwrap_or(0) * 1000
    }
}

impl Encoder {
    /// Number of the next event.
    fn position(&self) -> u64 {
        self.head.first_event + u64::from(self.events)
    }

    /// Number of the next object.
    pub(super) fn objects(&self) -> u64 {
        self.objects
    }

    pub(super) fn thread(&self) -> u32 {
        self.thread
    }

    pub(super) fn plain_bytes(&self) -> u64 {
        self.plain_bytes
    }

    /// It is so many µs since the beginning. A chunk has times of all its objects or of none.
    pub(super) fn time(&mut self, time_us: u64) {
        if self.time_us.is_some() || self.events == 0 {
            self.time_us = Some(time_us);
        }
    }

    #[inline]
    fn timed(&mut self) {
        if let Some(now) = self.time_us {
            let now = now.max(self.timed_us);
            self.number(column::TIMES, now - self.timed_us);
            self.timed_us = now;
        }
    }

    #[inline]
    fn number(&mut self, column: usize, value: u64) {
        self.columns[column].number(value);
    }

    #[inline]
    fn op(&mut self, op: u8) {
        self.events += 1;
        self.columns[column::OPS].byte(op);
    }

    #[inline]
    fn on(&mut self, thread: u32) {
        // A number that a reader would take for damage is not written.
        let thread = if u64::from(thread) < THREAD_SLACK + self.head.first_event { thread } else { 0 };
        if self.thread != thread {
            self.columns[column::OPS].byte(op::THREAD);
            self.number(column::THREADS, u64::from(thread));
            self.thread = thread;
        }
    }

    #[inline]
    fn name(&mut self, object: u64) {
        self.number(column::OBJECTS, zigzag(object.wrapping_sub(self.object) as i64));
        self.object = object;
    }

    /// A new object; returns its number.
    pub(super) fn allocate(&mut self, call: &Allocation) -> u64 {
        self.on(call.thread);
        self.op(op::ALLOCATE | (call.kind as u8) << op::KIND_SHIFT);
        self.object = self.objects;
        self.objects += 1;
        self.timed();
        self.number(column::SIZES, call.size);
        if call.kind == AllocationKind::Aligned {
            self.columns[column::ALIGNS].byte(call.align_log2.min(63));
        }
        if self.with_sites {
            let site = if u64::from(call.site) < SITE_SLACK + self.head.first_event { call.site } else { 0 };
            self.number(column::SITES, u64::from(site));
        }
        self.object
    }

    /// A free, or the end of the trace; `position` is that of its event, `clock_bytes` the clock there.
    pub(super) fn end(
        &mut self,
        code: u8,
        object: u64,
        thread: u32,
        last: Option<LastTouch>,
        clock_bytes: u64,
    ) {
        self.on(thread);
        let position = self.position();
        self.op(code | if last.is_some() { op::TOUCHED } else { 0 });
        self.name(object);
        if code & 15 == op::FREE {
            self.timed();
        }
        if let Some(last) = last {
            self.number(column::TOUCH_EVENTS, position.saturating_sub(last.event));
            self.number(column::TOUCH_CLOCKS, clock_bytes.saturating_sub(last.clock_bytes));
        }
    }

    pub(super) fn edge(&mut self, edge: &Edge) {
        self.op(op::EDGE | if edge.to_offset != 0 { op::INTERIOR } else { 0 });
        self.name(edge.from);
        self.number(column::OFFSETS, edge.offset);
        self.number(column::TARGETS, zigzag(edge.to.wrapping_sub(edge.from) as i64));
        if edge.to_offset != 0 {
            self.number(column::TARGET_OFFSETS, edge.to_offset);
        }
    }

    pub(super) fn clear(&mut self, from: u64, offset: u64) {
        self.op(op::CLEAR);
        self.name(from);
        self.number(column::OFFSETS, offset);
    }

    pub(super) fn touch(&mut self, object: u64) {
        self.op(op::TOUCH);
        self.name(object);
    }

    pub(super) fn root(&mut self, root: &Root) {
        let interior = if root.offset != 0 { op::INTERIOR } else { 0 };
        self.op(op::ROOT | (root.kind as u8) << op::KIND_SHIFT | interior);
        self.name(root.object);
        if root.offset != 0 {
            self.number(column::OFFSETS, root.offset);
        }
    }

    pub(super) fn access(&mut self, access: &Access) {
        self.on(access.thread);
        let log2 = match access.size {
            size if size.is_power_of_two() && size <= 64 => size.trailing_zeros() as u8,
            _ => op::SIZE_OTHER,
        };
        self.op(op::ACCESS | if access.store { op::STORE } else { 0 } | log2 << op::SIZE_SHIFT);
        self.name(access.object);
        self.number(column::OFFSETS, access.offset);
        if log2 == op::SIZE_OTHER {
            self.number(column::SIZES, access.size);
        }
    }

    /// An event that is only an op.
    pub(super) fn mark(&mut self, code: u8) {
        self.op(code);
    }

    /// An event that is only an op, of a thread.
    pub(super) fn mark_on(&mut self, code: u8, thread: u32) {
        self.on(thread);
        self.op(code);
    }
}
