//! One image while it is heard: its ring, its decoder, its sink, and what of its events is of interest to every command.

use std::collections::BTreeMap;
use std::path::PathBuf;

use heaptoll_reference::decoder::Damage;
use heaptoll_reference::event::Event;
use heaptoll_reference::word::Text;
use heaptoll_reference::{Clock, Decoder, Owner, Reference, Routine, Sink};

use crate::image::{Calls, Image, ImageEnding, TracedImage};
use crate::ring::{self, Ring};

/// A process may say as many different things.
const WARNINGS: usize = 32;

/// One image, heard.
pub struct Hearing<S> {
    pub(crate) image: Image,
    /// Its ring's file.
    pub(crate) path: PathBuf,
    /// Its process's start, as the system has it; `None` when it had ended before it was noticed.
    pub(crate) started: Option<u64>,
    ring: Ring,
    decoder: Decoder,
    witness: Witness<S>,
    damage: Option<Damage>,
    /// Why it was told to tell no more.
    stopped: Option<String>,
}

/// Stands before the sink and notes what is wanted of every image.
struct Witness<S> {
    sink: S,
    calls: Calls,
    routine_objects: BTreeMap<Routine, String>,
    refused: BTreeMap<(u32, u32), u64>,
    warnings: Vec<String>,
    ended: Option<i32>,
    before_main: Option<[Clock; 3]>,
    /// Whether the last that was told is that another image follows.
    exec: bool,
    /// Whether anything was told at all.
    any: bool,
}

impl<S: Sink> Sink for Witness<S> {
    #[inline]
    fn references(&mut self, owner: Owner, references: &[Reference]) {
        self.exec = false;
        self.sink.references(owner, references);
    }

    fn event(&mut self, event: &Event<'_>) {
        self.exec = false;
        self.any = true;
        match event {
            Event::Enter { routine, .. } if routine.frees() => self.calls.frees += 1,
            Event::Enter { routine, .. } if *routine != Routine::UsableSize => self.calls.allocations += 1,
            Event::Refused { syscall, errno } => {
                *self.refused.entry((*syscall, *errno)).or_default() += 1;
            }
            Event::Text { what: Text::RoutineObject, word, bytes } => {
                if let Some(routine) = Routine::from_number(*word) {
                    let object = String::from_utf8_lossy(bytes).into_owned();
                    self.routine_objects.entry(routine).or_insert(object);
                }
            }
            Event::Text { what: Text::Warning, bytes, .. } => {
                let words = String::from_utf8_lossy(bytes).trim().to_string();
                if self.warnings.len() < WARNINGS && !self.warnings.contains(&words) {
                    self.warnings.push(words);
                }
            }
            Event::Exec { .. } => self.exec = true,
            Event::End { status, .. } => self.ended = Some(*status),
            Event::Main { before } => self.before_main = Some(*before),
            _ => {}
        }
        self.sink.event(event);
    }

    fn passed(&mut self, owner: Owner, cost: Clock) {
        // Of an exec too, before its event.
        self.exec = false;
        self.sink.passed(owner, cost);
    }

    fn full(&self) -> Option<String> {
        self.sink.full()
    }
}

impl<S: Sink> Hearing<S> {
    pub(crate) fn new(ring: Ring, path: PathBuf, image: Image, started: Option<u64>, sink: S) -> Hearing<S> {
        let witness = Witness {
            sink,
            calls: Calls::default(),
            routine_objects: BTreeMap::new(),
            refused: BTreeMap::new(),
            warnings: Vec::new(),
            ended: None,
            before_main: None,
            exec: false,
            any: false,
        };
        Hearing { image, path, started, ring, decoder: Decoder::new(), witness, damage: None, stopped: None }
    }

    /// Takes at most `most` blocks; gives how many there were.
    pub(crate) fn drain(&mut self, most: u32) -> u32 {
        let Hearing { ring, decoder, witness, damage, .. } = self;
        let mut taken = 0;
        while taken < most {
            let done = ring.take(|words| {
                if damage.is_none() {
                    *damage = decoder.decode(words, witness).err();
                }
            });
            if done.is_none() {
                break;
            }
            taken += 1;
            // Clocks and frames behind it would be guesses.
            if damage.is_some() && taken == 1 {
                ring.dismiss();
            }
        }
        taken
    }

    /// Why the sink wants to hear no more, if so.
    pub(crate) fn full(&self) -> Option<String> {
        self.witness.full()
    }

    /// Tells the process that nobody wants to hear more. What is in its ring already, a few blocks at most, is heard.
    pub(crate) fn stop(&mut self, why: &str) {
        if self.stopped.is_none() {
            self.stopped = Some(why.into());
            self.ring.dismiss();
        }
    }

    pub(crate) fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Instructions so far.
    pub(crate) fn instructions(&self) -> u64 {
        self.decoder.totals().iter().map(|clock| clock.instructions).fold(0, u64::saturating_add)
    }

    /// Takes everything that a process which is gone has left. `followed`: by another image of the same process.
    pub(crate) fn end(mut self, followed: bool) -> TracedImage<S> {
        // No more than fits into the ring: a file that somebody goes on writing to would never end.
        self.drain(u32::try_from(self.ring.waiting()).unwrap_or(u32::MAX));
        let Hearing { image, mut ring, mut decoder, mut witness, mut damage, stopped, .. } = self;
        if damage.is_none() {
            damage = ring.rest(|words| decoder.decode(words, &mut witness)).err();
        }
        let ending = match (stopped, witness.ended) {
            (Some(why), _) => ImageEnding::Untold(why),
            (None, Some(status)) => ImageEnding::Ended(status),
            _ if witness.exec || followed => ImageEnding::Exec,
            _ if ring.said() & ring::GAVE_UP != 0 => {
                ImageEnding::Untold("the tracer went on without telling: heaptoll did not listen, or there was no memory for the ring".into())
            }
            _ => ImageEnding::Killed,
        };
        TracedImage {
            image,
            sink: witness.sink,
            totals: decoder.totals(),
            before_main: witness.before_main,
            calls: witness.calls,
            ending,
            damage,
            routine_objects: witness.routine_objects,
            refused: witness.refused,
            warnings: witness.warnings,
        }
    }

    /// Ends the hearing of a process that still runs and cannot be ended.
    pub(crate) fn leave(mut self, why: &str) -> TracedImage<S> {
        // Not all that comes, for it may never end.
        self.drain(u32::try_from(self.ring.waiting()).unwrap_or(u32::MAX));
        self.stop(why);
        let Hearing { image, decoder, witness, damage, .. } = self;
        TracedImage {
            image,
            sink: witness.sink,
            totals: decoder.totals(),
            before_main: witness.before_main,
            calls: witness.calls,
            ending: ImageEnding::Untold(why.into()),
            damage,
            routine_objects: witness.routine_objects,
            refused: witness.refused,
            warnings: witness.warnings,
        }
    }
}
