//! The sink of one process image: references, stored pointers and calls become events of a trace with pointers.
//!
//! A reference belongs to the object that contains its first byte; those of the program are touches. Every store
//! overwrites edges, by any owner. What a word then holds is recorded by the tracer where it may be a pointer.

use std::collections::{BTreeSet, HashMap};

use heaptoll_drag::objects::{Index, Objects};
use heaptoll_reftrace::word::{Place, Text};
use heaptoll_reftrace::{Clock, Event, Owner, Reference, Sink};
use heaptoll_trace::graph::{Access, Edge, FreeCause, LastTouch, Root, RootKind, Writer};
use heaptoll_trace::{Ending, Output, TraceError};
use rustc_hash::FxHashMap;

use crate::block::{Block, Resizing};
use crate::copying::{Copying, bytes_within};
use crate::kept::Kept;
use crate::sites::SiteNames;
use crate::words::{Cell, Words};

/// Aligned words that one store can reach: 1023 bytes, of which only vectors of up to 32 have pointers recorded.
const STORED_WORDS: usize = 6;

/// As in `tracer/clock.c`.
const INSTRUCTIONS_PER_NS: u64 = 2;

/// What was recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events, and the bytes that they take before compression.
    pub events: u64,
    /// See `events`.
    pub plain_bytes: u64,
    /// Of the events, those that the output refused.
    pub lost: u64,
    /// Objects, and their requested bytes.
    pub objects: u64,
    /// See `objects`.
    pub bytes: u64,
    /// Edges stored.
    pub edges: u64,
    /// Root points.
    pub root_points: u64,
    /// Requests that the program marked and that ended, with references.
    pub requests: u64,
    /// Frees and reallocs of blocks that are not known.
    pub unknown: u64,
}

/// A store whose words are being recorded.
#[derive(Debug, Clone, Copy)]
struct Store {
    address: u64,
    size: u64,
    /// Which of its words, from its first aligned one, hold pointers: a bit each.
    pointers: u8,
}

/// Records one process image.
pub struct Recorder<W> {
    pub(crate) writer: Writer<W>,
    pub(crate) objects: Objects<Block>,
    pub(crate) words: Words,
    /// The last reference, if it is a store.
    store: Option<Store>,
    /// The pointers in its words.
    stored_pointers: [u64; STORED_WORDS],
    copying: Copying,
    /// Of the threads that do not run.
    copying_of_others: HashMap<u32, Copying>,
    pub(crate) thread: u32,
    /// By thread: objects in a realloc that has not returned.
    pub(crate) resizing: FxHashMap<u32, Vec<Resizing>>,
    pub(crate) kept: Kept,
    roots: FxHashMap<(RootKind, u64), u64>,
    references: bool,
    /// Objects with lower numbers were there when `exit` began: what touches them afterwards is no use of them.
    after_exit: u64,
    /// Instructions executed, and ns that passed in waits.
    instructions: u64,
    waited_ns: u64,
    /// Threads in a request.
    requests: BTreeSet<u32>,
    sites: SiteNames,
    pub(crate) counts: Counts,
}

impl<W: Output> Recorder<W> {
    /// Records into a trace that begins. With `references` every load and store is recorded.
    pub fn new(mut writer: Writer<W>, references: bool) -> Recorder<W> {
        writer.time(0);
        Recorder {
            writer,
            objects: Objects::new(),
            words: Words::new(),
            store: None,
            stored_pointers: [0; STORED_WORDS],
            copying: Copying::default(),
            copying_of_others: HashMap::new(),
            thread: 0,
            resizing: FxHashMap::default(),
            kept: Kept::default(),
            roots: FxHashMap::default(),
            references,
            after_exit: 0,
            instructions: 0,
            waited_ns: 0,
            requests: BTreeSet::new(),
            sites: SiteNames::new(),
            counts: Counts::default(),
        }
    }

    /// What was recorded so far.
    pub fn counts(&self) -> Counts {
        Counts {
            events: self.writer.events(),
            plain_bytes: self.writer.plain_bytes(),
            objects: self.writer.objects(),
            bytes: self.writer.clock_bytes(),
            ..self.counts
        }
    }

    /// Ends the trace: objects that live are kept to its end.
    ///
    /// # Errors
    /// The output refuses even the last chunk. What was refused before is a gap in the trace: its events are counted as
    /// lost, and the last value is the reason.
    pub fn finish(mut self, ending: &Ending) -> Result<(W, Counts, Option<String>), TraceError> {
        self.settle();
        let resizing = std::mem::take(&mut self.resizing);
        let objects = std::mem::take(&mut self.objects);
        let mut kept: Vec<Block> =
            resizing.into_values().flatten().map(|one| one.block).chain(objects.into_values()).collect();
        kept.sort_unstable_by_key(|block| block.number);
        kept.iter().for_each(|block| self.writer.kept(block.number, block.last_touch));
        let sites = self.sites.table();
        if sites.sites.len() > 1 {
            self.writer.sites(&sites);
        }
        let refused = self.writer.flush().err().map(|error| error.to_string());
        // The output may take chunks again, and events are lost all the same.
        let refused = refused.or_else(|| self.writer.loss().map(TraceError::to_string));
        let counts = self.counts();
        let counts = Counts { lost: counts.events - self.writer.written(), ..counts };
        Ok((self.writer.finish(ending)?, counts, refused))
    }

    /// The thread that runs, as the trace numbers it.
    pub(crate) fn thread_index(&self) -> u32 {
        self.thread.saturating_sub(1)
    }

    /// The program refers to an object.
    #[inline]
    fn touch(&mut self, index: Index) {
        let now = LastTouch { event: self.writer.events(), clock_bytes: self.writer.clock_bytes() };
        let after_exit = self.after_exit;
        let block = self.objects.get_mut(index);
        block.touched(now, after_exit);
        if block.point == self.counts.root_points {
            return;
        }
        block.point = self.counts.root_points;
        let number = block.number;
        self.writer.touch(number);
        // That event is before the touch, which goes on until the next one.
        self.objects.get_mut(index).touched(LastTouch { event: now.event + 1, ..now }, after_exit);
    }

    #[cold]
    fn access(&mut self, index: Index, reference: Reference) {
        let offset = reference.address() - self.objects.start(index);
        self.writer.access(&Access {
            object: self.objects.get(index).number,
            offset,
            size: reference.size(),
            store: reference.is_store(),
            thread: self.thread_index(),
        });
        let event = self.writer.events();
        let block = self.objects.get_mut(index);
        if let Some(touch) = block.last_touch {
            block.touched(LastTouch { event, ..touch }, self.after_exit);
        }
    }

    #[inline]
    fn refer(&mut self, owner: Owner, reference: Reference) {
        let is_program = owner == Owner::Program;
        if !is_program && !reference.is_store() {
            return;
        }
        let Some(index) = self.objects.find(reference.address()) else { return };
        if is_program {
            self.touch(index);
            if self.references {
                self.access(index, reference);
            }
        }
        if reference.is_store() {
            self.store = Some(Store { address: reference.address(), size: reference.size(), pointers: 0 });
        }
    }

    /// What the last store has written is known.
    #[inline(always)]
    fn stored(&mut self) {
        if let Some(store) = self.store.take() {
            self.overwrite(&store);
        }
    }

    fn overwrite(&mut self, store: &Store) {
        let end = store.address + store.size;
        let first = store.address & !7;
        let mut word = first;
        while word < end {
            let slot = ((word - first) / 8) as usize;
            let value =
                (slot < STORED_WORDS && store.pointers >> slot & 1 != 0).then(|| self.stored_pointers[slot]);
            let bytes = bytes_within(word, store.address, end);
            if bytes == 0xff {
                if self.copying.word == word {
                    self.copying = Copying::default();
                }
                self.hold(word, value);
            } else if self.copying.word == word {
                self.copying.add(bytes, value);
            } else {
                self.copied();
                self.copying = Copying::begin(word, bytes, value);
            }
            word += 8;
        }
    }

    /// The word that was stored in parts is stored, in whole or in part.
    fn copied(&mut self) {
        let copying = std::mem::take(&mut self.copying);
        if copying.word == 0 {
            return;
        }
        let held = self.words.get(copying.word);
        if copying.is_whole() || held.is_some_and(|held| Some(held.value) == copying.value) {
            self.hold(copying.word, copying.value);
        } else if held.is_some() {
            self.hold(copying.word, None);
        }
    }

    /// Everything before this is in effect.
    pub(crate) fn settle(&mut self) {
        self.stored();
        self.copied();
    }

    /// The aligned word at this address holds a pointer, or no pointer.
    pub(crate) fn hold(&mut self, word: u64, value: Option<u64>) {
        let held = self.words.get(word);
        if held.is_none() && value.is_none() {
            return;
        }
        let Some(from) = self.objects.find(word) else { return };
        let (number, offset) = (self.objects.get(from).number, word - self.objects.start(from));
        let target = value.and_then(|value| Some((value, self.objects.find(value)?)));
        let Some((value, to)) = target else {
            if let Some(held) = self.words.clear(word) {
                self.cleared(number, offset, held);
            }
            return;
        };
        let cell = Cell { value, to: self.objects.get(to).number };
        if held == Some(cell) {
            return;
        }
        self.words.set(word, cell);
        if held.is_none() {
            self.objects.get_mut(from).edges += 1;
        }
        self.edge(number, offset, word, to, value);
    }

    /// Records an edge whose word is set.
    pub(crate) fn edge(&mut self, from: u64, offset: u64, word: u64, to: Index, value: u64) {
        let start = self.objects.start(to);
        let block = self.objects.get_mut(to);
        let number = block.number;
        self.counts.edges += 1;
        self.writer.edge(&Edge { from, offset, to: number, to_offset: value - start });
        if block.pointed_from(word) {
            let words = &mut self.words;
            block.thin(|word| words.get(word).is_some_and(|cell| cell.to == number));
        }
    }

    /// Records that a word does not hold an edge any more, unless that ended with its target.
    fn cleared(&mut self, from: u64, offset: u64, held: Cell) {
        if self.leads_to(held).is_some() {
            self.writer.clear(from, offset);
        }
    }

    /// The object to which a word led, if it is still live.
    pub(crate) fn leads_to(&mut self, held: Cell) -> Option<Index> {
        self.objects.find(held.value).filter(|index| self.objects.get(*index).number == held.to)
    }

    /// The kernel refers to memory in a system call.
    fn kernel(&mut self, owner: Owner, address: u64, length: u64, store: bool) {
        let end = address.saturating_add(length);
        if owner == Owner::Program {
            let mut ranges = vec![(address, end)];
            while let Some((from, to)) = ranges.pop() {
                let Some(index) = self.objects.overlapping(from, to) else { continue };
                self.touch(index);
                let start = self.objects.start(index);
                ranges.extend([(from, start), (start + self.objects.get(index).size.max(1), to)]);
            }
        }
        if store {
            for word in self.words.within(address, end) {
                self.hold(word, None);
            }
        }
    }

    fn roots(&mut self, begin: bool) {
        if begin {
            self.roots.clear();
            return;
        }
        self.counts.root_points += 1;
        let mut roots: Vec<Root> =
            self.roots.drain().map(|((kind, object), offset)| Root { object, kind, offset }).collect();
        roots.sort_unstable_by_key(|root| (root.kind, root.object));
        self.writer.roots(&roots);
    }

    fn root(&mut self, value: u64, place: Place) {
        let Some(index) = self.objects.find(value) else { return };
        let kind = match place {
            Place::Register => RootKind::Register,
            Place::Stack => RootKind::Stack,
            Place::Static => RootKind::Static,
            Place::Mapping => RootKind::Mapping,
        };
        let offset = value - self.objects.start(index);
        let lowest = self.roots.entry((kind, self.objects.get(index).number)).or_insert(offset);
        *lowest = offset.min(*lowest);
    }

    fn request(&mut self, begin: bool) {
        self.settle();
        let thread = self.thread_index();
        if begin {
            self.writer.request_begin(thread)
        } else {
            self.writer.request_end(thread)
        }
        let was_open = if begin { self.requests.insert(thread) } else { self.requests.remove(&thread) };
        self.counts.requests += u64::from(!begin && was_open);
    }

    fn switch(&mut self, thread: u32) {
        let others = self.copying_of_others.remove(&thread).unwrap_or_default();
        let mine = std::mem::replace(&mut self.copying, others);
        if mine.word != 0 {
            self.copying_of_others.insert(self.thread, mine);
        }
        self.thread = thread;
    }

    /// Removes the edges from an object whose memory is its own no more; gives them.
    pub(crate) fn take_edges(&mut self, start: u64, block: &Block) -> Vec<(u64, Cell)> {
        if block.edges == 0 {
            return Vec::new();
        }
        let words = self.words.within(start, start + block.size);
        words
            .into_iter()
            .filter(|word| *word >= start)
            .filter_map(|word| Some((word - start, self.words.clear(word)?)))
            .collect()
    }

    /// Ends the objects in unmapped memory.
    fn unmapped(&mut self, address: u64, length: u64) {
        let (mut from, end) = (address, address.saturating_add(length));
        while let Some(index) = self.objects.overlapping(from, end) {
            let (start, object_end) =
                (self.objects.start(index), self.objects.start(index) + self.objects.get(index).size.max(1));
            if start >= address && object_end <= end {
                self.end(index, FreeCause::Lost);
            } else {
                from = object_end;
            }
        }
    }
}

impl<W: Output> Recorder<W> {
    /// By the clock of the tracer.
    fn time_passes(&mut self) {
        let ns = (self.instructions / INSTRUCTIONS_PER_NS).saturating_add(self.waited_ns);
        self.writer.time(ns / 1000);
    }
}

impl<W: Output> Sink for Recorder<W> {
    fn executed(&mut self, _: Owner, cost: Clock) {
        self.instructions = self.instructions.saturating_add(cost.instructions);
        self.time_passes();
    }

    #[inline]
    fn references(&mut self, owner: Owner, references: &[Reference]) {
        for reference in references {
            self.stored();
            self.refer(owner, *reference);
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        if let Event::Pointer { value, word } = *event {
            if let Some(store) = &mut self.store
                && let Some(pointer) = self.stored_pointers.get_mut(usize::from(word))
            {
                *pointer = value;
                store.pointers |= 1 << word;
            }
            return;
        }
        self.stored();
        match *event {
            Event::Waited { ns } => {
                self.waited_ns = self.waited_ns.saturating_add(ns);
                self.time_passes();
            }
            Event::Enter { routine, arguments, .. } => self.enter(routine, arguments),
            Event::Leave { routine, arguments, site, result, .. } => {
                self.leave(routine, arguments, site, result);
            }
            Event::Main { .. } => self.kept.main_begins(self.writer.objects()),
            Event::Abandon { routine, .. } => self.abandon(routine),
            Event::Thread { thread } => self.switch(thread),
            Event::Kernel { owner, address, length, store } => self.kernel(owner, address, length, store),
            Event::WordAt { address, value } => self.hold(address, Some(value)),
            Event::Roots { begin } => {
                self.settle();
                self.roots(begin);
            }
            Event::Root { value, place } => self.root(value, place),
            // A handler may call exit again.
            Event::Exit if self.after_exit == 0 => {
                self.settle();
                self.after_exit = self.writer.objects();
                self.writer.exit_begins();
            }
            Event::Request { begin } if self.references => self.request(begin),
            Event::Unmap { address, length } => self.unmapped(address, length),
            Event::Site { site, frames } => self.sites.define(site, frames),
            Event::Text { what: Text::Frame, word, bytes } => self.sites.codes.name(word, bytes),
            Event::Text { what: Text::FrameObject, word, bytes } => self.sites.codes.locate(word, bytes),
            _ => {}
        }
    }
}

impl<W> std::fmt::Debug for Recorder<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder")
            .field("live", &self.objects.len())
            .field("words", &self.words.alive())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use heaptoll_trace::graph::{Allocation, AllocationKind};
    use heaptoll_trace::{Header, Settings};

    use super::*;

    /// A disk that is full for a while.
    struct FullForAWhile {
        calls: usize,
    }

    impl Output for FullForAWhile {
        fn add(&mut self, _: &[u8]) -> io::Result<()> {
            self.calls += 1;
            if (3..6).contains(&self.calls) { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
        }

        fn conclude(&mut self, _: &[u8]) -> io::Result<()> {
            Ok(())
        }

        fn name(&self) -> String {
            "the disk".into()
        }
    }

    #[test]
    fn events_that_a_full_disk_refused_are_reported_though_it_takes_the_last() {
        let settings = Settings { level: 1, events_per_chunk: 100 };
        let mut writer =
            Writer::new(FullForAWhile { calls: 0 }, &Header::default(), &settings).expect("takes the header");
        for _ in 0..1000 {
            let kind = AllocationKind::Plain;
            writer.allocate(&Allocation { size: 8, site: 0, thread: 0, kind, align_log2: 0 });
        }
        let (_, counts, refused) =
            Recorder::new(writer, false).finish(&Ending::default()).expect("takes the ending");
        assert_eq!((counts.events, counts.lost), (1000, 300));
        assert!(refused.is_some_and(|why| why.contains("the disk")));
    }
}
