//! One image while it is read: its ring, its decoder, its sink, and the events that every command needs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use heaptoll_reftrace::decoder::Damage;
use heaptoll_reftrace::event::{Event, Origin};
use heaptoll_reftrace::word::Text;
use heaptoll_reftrace::{Clock, Decoder, Owner, Reference, Routine, Sink};

use crate::family_calls::Families;
use crate::image::{Calls, FunctionCount, Image, ImageEnding, TracedImage};
use crate::ring::{self, Ring};

/// Most distinct warnings of one process.
const WARNINGS: usize = 32;
/// Most functions of one process: ten times as many as a browser has.
const FUNCTIONS: usize = 5_000_000;

/// The bit of a mapping's protection.
const WRITE: u8 = 2;

/// Reads one image.
pub struct ImageReader<S> {
    pub(crate) image: Image,
    /// Its ring's file.
    pub(crate) path: PathBuf,
    /// Start of its process, in the system's unit; `None` when it had ended before it was attached.
    pub(crate) started: Option<u64>,
    ring: Ring,
    decoder: Decoder,
    observed: ObservedSink<S>,
    damage: Option<Damage>,
    /// Why its producer was stopped.
    stopped: Option<String>,
}

/// Wraps the sink and notes the events that every command needs.
struct ObservedSink<S> {
    sink: S,
    calls: Calls,
    /// Instructions by object and symbol: its own, the standard library's for it.
    functions: BTreeMap<(String, String), [u64; 2]>,
    families: Families,
    writable_bytes: u64,
    /// With the family for which it was recorded.
    routine_objects: BTreeMap<Routine, (u8, String)>,
    refused: BTreeMap<(u32, u32), u64>,
    warnings: Vec<String>,
    ended: Option<i32>,
    before_main: Option<[Clock; 3]>,
    /// Whether the last event announced that another image follows.
    exec: bool,
    /// Whether anything was recorded.
    any: bool,
}

impl<S: Sink> Sink for ObservedSink<S> {
    #[inline]
    fn references(&mut self, owner: Owner, references: &[Reference]) {
        self.exec = false;
        self.sink.references(owner, references);
    }

    fn event(&mut self, event: &Event<'_>) {
        self.exec = false;
        self.any = true;
        self.families.event(event);
        match event {
            Event::Enter { routine, .. } if routine.frees() => self.calls.frees += 1,
            Event::Enter { routine, .. } if !routine.queries() => self.calls.allocations += 1,
            Event::Refused { syscall, errno } => {
                *self.refused.entry((*syscall, *errno)).or_default() += 1;
            }
            Event::Text { what: Text::RoutineObject, word, bytes } => {
                if let (Some(routine), Ok(family)) =
                    (Routine::from_number(*word & 0xff), u8::try_from(*word >> 8))
                {
                    let object = (family, String::from_utf8_lossy(bytes).into_owned());
                    // Of C's family rather than of another that has this routine, too.
                    let known = self.routine_objects.entry(routine).or_insert_with(|| object.clone());
                    if object.0 < known.0 {
                        *known = object;
                    }
                }
            }
            Event::Text { what: Text::Warning, bytes, .. } => {
                let words = String::from_utf8_lossy(bytes).trim().to_string();
                if self.warnings.len() < WARNINGS && !self.warnings.contains(&words) {
                    self.warnings.push(words);
                }
            }
            Event::Text { what: what @ (Text::Function | Text::Caller), word, bytes }
                if self.functions.len() < FUNCTIONS =>
            {
                let text = String::from_utf8_lossy(bytes);
                // Path and symbol may have line feeds, and neither has a zero.
                let (object, symbol) = text.split_once('\0').unwrap_or(("", &text));
                // An exec that fails has recorded what was executed before it, and the end records the rest.
                let counted = self.functions.entry((object.to_owned(), symbol.to_owned())).or_default();
                let counted = &mut counted[usize::from(*what == Text::Caller)];
                *counted = counted.saturating_add(*word);
            }
            Event::Map {
                length, protection, origin: Origin::Mmap | Origin::Brk | Origin::Mremap, ..
            } if protection & WRITE != 0 => {
                self.writable_bytes = self.writable_bytes.saturating_add(*length);
            }
            Event::Exec { .. } => self.exec = true,
            Event::End { status, .. } => self.ended = Some(*status),
            Event::Main { before } => self.before_main = Some(*before),
            _ => {}
        }
        self.sink.event(event);
    }

    fn executed(&mut self, owner: Owner, cost: Clock) {
        // An exec's own counters too, which precede its event.
        self.exec = false;
        self.sink.executed(owner, cost);
    }

    fn full(&self) -> Option<String> {
        self.sink.full()
    }
}

impl<S: Sink> ImageReader<S> {
    pub(crate) fn new(
        ring: Ring,
        path: PathBuf,
        image: Image,
        started: Option<u64>,
        sink: S,
    ) -> ImageReader<S> {
        let observed = ObservedSink {
            sink,
            calls: Calls::default(),
            functions: BTreeMap::new(),
            families: Families::default(),
            writable_bytes: 0,
            routine_objects: BTreeMap::new(),
            refused: BTreeMap::new(),
            warnings: Vec::new(),
            ended: None,
            before_main: None,
            exec: false,
            any: false,
        };
        ImageReader {
            image,
            path,
            started,
            ring,
            decoder: Decoder::new(),
            observed,
            damage: None,
            stopped: None,
        }
    }

    /// Drains at most `most` blocks; returns how many.
    pub(crate) fn drain(&mut self, most: u32) -> u32 {
        let ImageReader { ring, decoder, observed, damage, .. } = self;
        let mut taken = 0;
        while taken < most {
            let done = ring.take(|words| {
                if damage.is_none() {
                    *damage = decoder.decode(words, observed).err();
                }
            });
            if done.is_none() {
                break;
            }
            taken += 1;
            // Clocks and frames after damage would be guesses.
            if damage.is_some() && taken == 1 {
                ring.stop_producer();
            }
        }
        taken
    }

    /// Why the sink takes no more, if it does not.
    pub(crate) fn full(&self) -> Option<String> {
        self.observed.full()
    }

    /// Stops the producer. What is in its ring already, a few blocks at most, is decoded.
    pub(crate) fn stop(&mut self, why: &str) {
        if self.stopped.is_none() {
            self.stopped = Some(why.into());
            self.ring.stop_producer();
        }
    }

    pub(crate) fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Instructions so far.
    pub(crate) fn instructions(&self) -> u64 {
        self.decoder.totals().iter().map(|clock| clock.instructions).fold(0, u64::saturating_add)
    }

    /// Drains what an exited process has left. `replaced`: another image of the same process has followed.
    pub(crate) fn end(mut self, replaced: bool) -> TracedImage<S> {
        // No more blocks than the ring holds: a file to which another process goes on writing would never end.
        self.drain(u32::try_from(self.ring.waiting()).unwrap_or(u32::MAX));
        if self.damage.is_none() {
            let ImageReader { ring, decoder, observed, .. } = &mut self;
            self.damage = ring.rest(|words| decoder.decode(words, observed)).err();
        }
        let ending = match (self.stopped.take(), self.observed.ended) {
            (Some(why), _) => ImageEnding::Incomplete(why),
            (None, Some(status)) => ImageEnding::Ended(status),
            _ if self.observed.exec || replaced => ImageEnding::Exec,
            _ if self.ring.producer_flags() & ring::GAVE_UP != 0 => {
                ImageEnding::Incomplete("the tracer went on without recording: heaptoll did not read the ring, or there was no memory for it".into())
            }
            _ => ImageEnding::Unrecorded,
        };
        self.traced(ending)
    }

    /// Stops reading a process that still runs and cannot be ended.
    pub(crate) fn leave(mut self, why: &str) -> TracedImage<S> {
        // Not until the ring is empty: that may never be.
        self.drain(u32::try_from(self.ring.waiting()).unwrap_or(u32::MAX));
        self.stop(why);
        self.traced(ImageEnding::Incomplete(why.into()))
    }

    /// What was recorded of it.
    fn traced(self, ending: ImageEnding) -> TracedImage<S> {
        let ImageReader { image, decoder, observed, damage, .. } = self;
        let (families, inlined) = observed.families.finish();
        TracedImage {
            image,
            sink: observed.sink,
            totals: decoder.totals(),
            before_main: observed.before_main,
            calls: observed.calls,
            functions: listed(observed.functions),
            ending,
            damage,
            families,
            writable_bytes: observed.writable_bytes,
            inlined,
            routine_objects: objects(observed.routine_objects),
            refused: observed.refused,
            warnings: observed.warnings,
        }
    }
}

/// The objects alone.
fn objects(of: BTreeMap<Routine, (u8, String)>) -> BTreeMap<Routine, String> {
    of.into_iter().map(|(routine, (_, object))| (routine, object)).collect()
}

fn listed(functions: BTreeMap<(String, String), [u64; 2]>) -> Vec<FunctionCount> {
    let one = |((object, symbol), [instructions, for_it]): ((String, String), [u64; 2])| FunctionCount {
        object,
        symbol,
        instructions,
        for_it,
    };
    functions.into_iter().map(one).collect()
}
