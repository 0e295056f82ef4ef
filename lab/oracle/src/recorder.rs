//! Follows the objects of a process image through the tracer's records.
//!
//! A touch is a reference of the program's, or a system call's on its behalf, to any byte of an object; what the malloc
//! family does in blocks is none. Two calls touch objects that the layer must have: `realloc`, whose copy reads the old
//! one, and `posix_memalign`, which may store its result in one. At a fork everything that is live is touched: the child
//! has it too, and its touches are not recorded.

use std::collections::{HashMap, HashSet};

use heaptoll_drag::objects::{Index, Objects};
use heaptoll_oracle_file::{LARGEST, MOST_SITES};
use heaptoll_reftrace::word::Text;
use heaptoll_reftrace::{Event, Owner, Reference, Routine, Sink};

use crate::recording::{Object, Recording, Site, Unusable};

/// Blocks of the manager under which programs are recorded, glibc's, begin at multiples of this.
const GRANULE: u64 = 16;
/// Most objects.
const MOST_OBJECTS: usize = 1 << 31;

/// A block that a `realloc` ends.
#[derive(Debug, Clone, Copy)]
enum Block {
    /// An object, by its index.
    Object(u32),
    /// One that was allocated before `main`: bytes.
    Early(u64),
}

/// The sink for one process image.
#[derive(Debug, Default)]
pub struct Recorder {
    recording: Recording,
    /// Live objects by address: their allocation index.
    live: Objects<u32>,
    /// Whether `main` has begun.
    begun: bool,
    /// Objects whose usable size the program requested: it may use bytes behind the requested ones, which nothing here
    /// shows. They last until they are freed.
    usable: HashSet<u32>,
    /// Live blocks that were allocated before, by address: bytes.
    early: HashMap<u64, u64>,
    /// Of a `realloc` that has not returned: the block's address, and what it is.
    resizing: Vec<(u64, Block)>,
    /// By the tracer's number of a site: its index.
    sites: HashMap<u32, u32>,
    frames: HashMap<u32, u64>,
    places: HashMap<u64, Site>,
    known: HashMap<Site, u32>,
    unusable: Option<Unusable>,
}

impl Recorder {
    /// The sink for a process image that begins.
    pub fn new() -> Recorder {
        Recorder::default()
    }

    /// What was recorded.
    ///
    /// # Errors
    /// Why it cannot be an oracle.
    pub fn recording(self) -> Result<Recording, Unusable> {
        let Recorder { mut recording, usable, unusable, .. } = self;
        let end = recording.objects.len() as u64;
        for object in usable {
            let object = &mut recording.objects[object as usize];
            object.last_use = object.freed.unwrap_or(end).max(object.last_use);
        }
        match unusable {
            Some(why) => Err(why),
            None if recording.objects.is_empty() => Err(Unusable::Nothing),
            None => Ok(recording),
        }
    }

    /// Allocations made so far.
    fn now(&self) -> u64 {
        self.recording.objects.len() as u64
    }

    #[inline(always)]
    fn touch(&mut self, address: u64) {
        if let Some(index) = self.live.find(address) {
            let object = *self.live.get(index) as usize;
            self.recording.objects[object].last_use = self.now();
        }
    }

    /// Touches every object that the range overlaps.
    #[inline(always)]
    fn touch_range(&mut self, address: u64, bytes: u64) {
        self.touch(address);
        // A vector load may begin before objects and end after them; all but the first begin at a granule's start.
        let last = address.saturating_add(bytes - 1);
        let mut at = (address | (GRANULE - 1)) + 1;
        while at <= last {
            self.touch(at);
            at += GRANULE;
        }
    }

    /// Touches every object that a system call's buffer overlaps, which may be large.
    fn touch_buffer(&mut self, address: u64, bytes: u64) {
        let end = address.saturating_add(bytes);
        let mut from = address;
        while let Some(index) = self.live.overlapping(from, end) {
            let (start, object) = (self.live.start(index), *self.live.get(index) as usize);
            let now = self.now();
            let object = &mut self.recording.objects[object];
            object.last_use = now;
            // The object found need not be the first one: those before it are found from its start downwards.
            if start > from {
                self.touch_buffer(from, start - from);
            }
            from = start.saturating_add(object_size(self.recording.objects[*self.live.get(index) as usize]));
            if from >= end {
                break;
            }
        }
    }

    fn take(&mut self, address: u64) -> Option<Block> {
        let object = self.live.remove(address).map(Block::Object);
        object.or_else(|| self.early.remove(&address).map(Block::Early))
    }

    fn enter(&mut self, routine: Routine, arguments: [u64; 3]) {
        let address = arguments[0];
        if routine.frees() && address != 0 {
            if let Some(block) = self.take(address) {
                self.free(block);
            }
        } else if routine.resizes() && address != 0 {
            if let Some(block) = self.take(address) {
                self.resizing.push((address, block));
            }
        } else if routine == Routine::UsableSize
            && let Some(index) = self.live.find(address)
        {
            self.usable.insert(*self.live.get(index));
        }
    }

    fn leave(&mut self, routine: Routine, arguments: [u64; 3], site: u32, result: u64) {
        let Some(size) = routine.requested(arguments) else { return };
        if routine.resizes() {
            return self.resized(arguments[0], size, site, result);
        }
        if result != 0 {
            self.allocated(result, size, site, None);
        }
        if routine == Routine::PosixMemalign {
            self.touch(arguments[0]);
        }
    }

    fn resized(&mut self, address: u64, size: u64, site: u32, result: u64) {
        let at = self.resizing.iter().rposition(|(other, _)| *other == address);
        match (at.map(|at| self.resizing.remove(at).1), result) {
            (None, 0) => {}
            (None, result) => self.allocated(result, size, site, None),
            (Some(block), 0) if size == 0 => self.free(block),
            (Some(block), 0) => self.put_back(address, block),
            (Some(block), result) => {
                let old = match block {
                    Block::Early(bytes) => bytes,
                    Block::Object(object) => self.recording.objects[object as usize].size,
                };
                self.allocated(result, size, site, Some(old));
                if let Block::Object(object) = block {
                    // The copy reads it, after the new object is there.
                    self.recording.objects[object as usize].last_use = self.now();
                }
                self.free(block);
            }
        }
    }

    /// A `realloc` was left by `longjmp`: the object stays where it was.
    fn abandon(&mut self, routine: Routine) {
        if routine.resizes()
            && let Some((address, block)) = self.resizing.pop()
        {
            self.put_back(address, block);
        }
    }

    fn put_back(&mut self, address: u64, block: Block) {
        match block {
            Block::Object(object) => {
                // The call that failed was given it.
                self.recording.objects[object as usize].last_use = self.now();
                self.place(address, object);
            }
            Block::Early(bytes) => {
                self.early.insert(address, bytes);
            }
        }
    }

    fn free(&mut self, block: Block) {
        if let Block::Object(object) = block {
            self.recording.objects[object as usize].freed = Some(self.now());
        }
    }

    fn allocated(&mut self, address: u64, size: u64, site: u32, resized: Option<u64>) {
        if !self.begun {
            self.early.insert(address, size);
            return;
        }
        if self.unusable.is_some() {
            return;
        }
        self.early.remove(&address);
        if self.recording.objects.len() >= MOST_OBJECTS {
            self.unusable = Some(Unusable::Objects);
            return;
        }
        let site = self.site(site);
        if size > LARGEST || u64::from(site) >= MOST_SITES {
            self.unusable = Some(Unusable::TooLarge);
            return;
        }
        let index = self.recording.objects.len() as u32;
        let last_use = self.now() + 1;
        let made = Object { size, site, resized, last_use, freed: None, unreachable: None };
        self.recording.objects.push(made);
        self.place(address, index);
    }

    fn place(&mut self, address: u64, object: u32) {
        let size = object_size(self.recording.objects[object as usize]);
        while let Some(other) = self.live.overlapping(address, address.saturating_add(size)) {
            // Memory that the program gave back in a way that is not recorded, for instance by `munmap`.
            self.live.take(other);
        }
        // What has no address of the program's cannot be touched.
        let _: Result<Index, _> = self.live.insert(address, size, object);
    }

    fn site(&mut self, site: u32) -> u32 {
        if let Some(known) = self.sites.get(&site) {
            return *known;
        }
        let place =
            self.frames.get(&site).and_then(|frame| self.places.get(frame)).cloned().unwrap_or_default();
        let sites = &mut self.recording.sites;
        let index = *self.known.entry(place.clone()).or_insert_with(|| {
            sites.push(place);
            (sites.len() - 1) as u32
        });
        self.sites.insert(site, index);
        index
    }

    /// `1139 /usr/bin/x`: the address in the object file, in hexadecimal.
    fn locate(&mut self, frame: u64, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        if let Some((address, object)) = text.split_once(' ')
            && let Ok(address) = u64::from_str_radix(address, 16)
        {
            self.places.insert(frame, Site { object: object.to_owned(), address });
        }
    }
}

/// Bytes that an object takes among addresses.
fn object_size(object: Object) -> u64 {
    object.size.max(1)
}

impl Sink for Recorder {
    #[inline]
    fn references(&mut self, owner: Owner, references: &[Reference]) {
        if owner == Owner::Program {
            for reference in references {
                self.touch_range(reference.address(), reference.size());
            }
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        match *event {
            Event::Enter { routine, arguments, .. } => self.enter(routine, arguments),
            Event::Leave { routine, arguments, site, result, .. } => {
                self.leave(routine, arguments, site, result);
            }
            Event::Abandon { routine, .. } => self.abandon(routine),
            Event::Kernel { owner: Owner::Program, address, length, .. } => {
                self.touch_buffer(address, length);
            }
            Event::Main { .. } => self.begun = true,
            Event::Fork { .. } => {
                let now = self.now();
                for (_, object) in self.live.iter() {
                    self.recording.objects[*object as usize].last_use = now;
                }
            }
            Event::ThreadStart { .. } => {
                self.unusable.get_or_insert(Unusable::Threads);
            }
            Event::Site { site, frames } => {
                if let Some(frame) = frames.first() {
                    self.frames.insert(site, *frame);
                }
            }
            Event::Text { what: Text::FrameObject, word, bytes } => self.locate(word, bytes),
            _ => {}
        }
    }

    fn full(&self) -> Option<String> {
        self.unusable.map(|why| why.to_string())
    }
}

#[cfg(test)]
mod tests;
