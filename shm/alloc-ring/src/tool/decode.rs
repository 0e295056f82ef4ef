//! Decodes the words of one ring into events.
//!
//! Nothing that a program writes into a ring, however corrupted, leads a reader out of the ring.

use std::collections::HashSet;

use heaptoll_assertions::assert_internal;

use super::event::{RingEvent, Sink};
use super::head::Head;
use super::map::Map;
use super::usable::UsableSizes;
use crate::atomic::{AtomicU64, Ordering};
use crate::layout::SHARED;
use crate::word::{
    ADDRESS_BITS, ALLOC, ALLOC_LONG, DATA_MASK, FREE, FREE_DELETE, LAP, NEW, NOTE, PREFIX, RESIZE_BEGIN,
    RESIZE_END, TAG_SHIFT, TID_BITS, VALUE_MASK, address, alloc_kind, note, prefix, tag, which,
};

/// A prefix, which is not the word of an event itself.
const NOT_AN_EVENT: u64 = PREFIX << TAG_SHIFT;

/// The reader of one ring, at its position.
pub(crate) struct Reader {
    pub ring: usize,
    pub thread: u32,
    /// The kernel's number of the thread, as it recorded it at registration; 0: not known, or shared by threads.
    pub tid: i32,
    /// The ring's words; while it is unknown what follows, such that the next word is [`NOTHING`].
    words: *const AtomicU64,
    /// The next word.
    at: usize,
    /// Number of words that have memory.
    reach: usize,
    /// Whether their number is final: then the first follows the last.
    fixed: bool,
    /// The process's entry.
    process: usize,
    block_mask: usize,
    /// The lap bit of words that are written.
    lap: u64,
    /// Blocks drained, modulo 2^32.
    taken: u32,
    /// Whether a free is delivered only together with its latency.
    waits: bool,
    /// Whether a free's latency may follow it.
    latencies: bool,
    usable: UsableSizes,
    frames: Vec<u64>,
    /// In a ring that threads share: the threads that have recorded something.
    known: Option<HashSet<u32>>,
    /// The reader's position when it last published it to a waiting owner.
    last_published: Option<(u32, usize)>,
    /// Whether there may be words that cannot be read: there is no memory for their pages, or the ring's reach was
    /// overwritten.
    cut: bool,
}

/// A word that is never written.
static NOTHING: AtomicU64 = AtomicU64::new(0);

// SAFETY: a reader only reads the words, which are atomic, through a pointer into the mapping, which the `Arc<Map>` of
// its `Merge` keeps alive, or to the static `NOTHING`.
unsafe impl Send for Reader {}

impl Reader {
    pub fn new(map: &Map, process: usize, (ring, tid): (usize, i32), wants_latency: bool) -> Reader {
        let thread = map.control(ring).owner.0.thread.load(Ordering::Relaxed);
        let shared = thread == SHARED;
        let mut reader = Reader {
            ring,
            thread,
            tid,
            words: &raw const NOTHING,
            process,
            at: 0,
            reach: 0,
            fixed: false,
            block_mask: map.geometry.block_words() - 1,
            lap: LAP,
            taken: 0,
            waits: wants_latency && !shared,
            latencies: wants_latency && !shared,
            usable: UsableSizes::new(),
            frames: Vec::new(),
            known: shared.then(HashSet::new),
            last_published: None,
            cut: false,
        };
        reader.extend(map);
        reader
    }

    /// Reads whether the owner has reserved more, or never will.
    #[cold]
    #[inline(never)]
    pub fn extend(&mut self, map: &Map) {
        let word = map.control(self.ring).consumer.0.reach.load(Ordering::Acquire);
        let before = (self.reach / map.geometry.block_words()) as u32;
        let reached = map.geometry.reach(word).filter(|&(blocks, _)| {
            // The word may have been overwritten.
            blocks >= before && map.reserve(map.geometry.blocks(self.ring, before..blocks)).is_ok()
        });
        self.cut = reached.is_none();
        let Some((blocks, fixed)) = reached else { return };
        (self.reach, self.fixed) = (blocks as usize * map.geometry.block_words(), fixed);
        assert_internal!(self.at <= self.reach, "a reader is within the reach of its ring");
        if self.at < self.reach {
            self.words = map.words(self.ring);
        } else if fixed {
            self.words = map.words(self.ring);
            (self.at, self.lap) = (0, self.lap ^ LAP);
        }
    }

    /// Whether the next words may lie after those known to have memory.
    #[inline(always)]
    fn is_at_the_edge(&self) -> bool {
        !self.fixed && self.at + self.block_mask >= self.reach
    }

    /// Whether the ring may have words that could not be read the last time.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// Threads that have recorded something in it.
    pub fn threads(&self) -> usize {
        self.known.as_ref().map_or(1, |known| known.len().max(1))
    }

    /// Words for which the ring has memory.
    pub fn reach(&self) -> usize {
        self.reach
    }

    /// What comes next.
    #[inline(always)]
    pub fn head(&self) -> Head {
        let word = self.word(self.at);
        if !self.written(word) || self.waits && self.waiting() {
            Head::Nothing
        } else if tag(word) == PREFIX && which(word) == prefix::SEQ {
            Head::Numbered(word & VALUE_MASK)
        } else {
            Head::Plain
        }
    }

    /// Whether all that has been written was read.
    pub fn empty(&self) -> bool {
        !self.written(self.word(self.at))
    }

    /// Whether the next event is a free whose latency is not written yet.
    pub fn waiting(&self) -> bool {
        let word = self.word(self.at);
        if !self.waits || !self.written(word) {
            return false;
        }
        let mut at = self.at;
        let mut word = word;
        while tag(word) == PREFIX && at & self.block_mask != self.block_mask {
            at += 1;
            word = self.word(at);
        }
        tag(word) == FREE && self.after(at).is_none()
    }

    /// Whether the next event is such a free, and has no number.
    pub fn holds_back_unnumbered(&self) -> bool {
        let word = self.word(self.at);
        self.waiting() && !(tag(word) == PREFIX && which(word) == prefix::SEQ)
    }

    /// Wakes an owner that waits although the reader has nothing to read. The second time at the same position, words
    /// were overwritten, since a waiting owner has filled the ring: the rest of the block is skipped. Returns the
    /// number of words skipped.
    pub fn unblock(&mut self, map: &Map) -> usize {
        let waits = map.control(self.ring).consumer.0.waiting.load(Ordering::SeqCst) != 0;
        // In this order: what was recorded before the owner waited is visible.
        if !waits || !self.empty() && !self.waiting() {
            return 0;
        }
        let here = (self.taken, self.at);
        if self.last_published != Some(here) {
            self.last_published = Some(here);
            self.publish(map);
            return 0;
        }
        if self.at == self.reach {
            return 0;
        }
        let words = (self.at | self.block_mask) + 1 - self.at;
        self.advance(map, words);
        words
    }

    /// Stops waiting for latencies, because the thread has ended.
    pub fn stop_waiting(&mut self) {
        self.waits = false;
    }

    /// Delivers events without numbers, at most about `budget` words; returns how many there were.
    #[inline(always)]
    pub fn plain(&mut self, map: &Map, budget: usize, sink: &mut impl Sink) -> usize {
        if self.is_at_the_edge() {
            self.extend(map);
        }
        let mut read = 0;
        while read < budget {
            read += self.run(map, budget - read, sink);
            let word = self.word(self.at);
            if !self.written(word) {
                break;
            }
            match tag(word) {
                ALLOC | NEW => {}
                FREE if !self.latencies => {}
                PREFIX if which(word) == prefix::SEQ => break,
                _ => match self.group(map, sink) {
                    0 => break,
                    words => read += words,
                },
            }
        }
        read
    }

    /// Delivers events of a single word, and those that have a call stack before it, to the end of the block at most;
    /// returns how many words.
    #[inline(always)]
    fn run(&mut self, map: &Map, budget: usize, sink: &mut impl Sink) -> usize {
        let begin = self.at;
        let end = ((begin | self.block_mask) + 1).min(begin.saturating_add(budget));
        let (lap, latencies, thread) = (self.lap, self.latencies, self.thread);
        let mut at = begin;
        while at < end {
            let word = self.word(at);
            if (word ^ lap) & LAP != 0 {
                break;
            }
            if !self.one_word(thread, word, latencies, sink) {
                // A group of two words ends in its block, unless it was overwritten.
                let has_site = tag(word) == PREFIX && which(word) == prefix::SITE;
                if !has_site || at & self.block_mask == self.block_mask {
                    break;
                }
                let event = self.word(at + 1);
                if !matches!(tag(event), ALLOC | NEW) {
                    break;
                }
                self.single_word(thread, event, (word & VALUE_MASK) as u32, sink);
                at += 1;
            }
            at += 1;
        }
        let words = at - begin;
        if words > 0 {
            self.advance(map, words);
        }
        words
    }

    /// Delivers the next event, which has a number, as [`Reader::head`] has shown, and the events without one that
    /// follow it; returns how many words there were, and what comes next.
    #[inline(always)]
    pub fn numbered(&mut self, map: &Map, sink: &mut impl Sink) -> (usize, Head) {
        // A group of two words ends in its block, unless it was overwritten.
        let word =
            if self.at & self.block_mask == self.block_mask { NOT_AN_EVENT } else { self.word(self.at + 1) };
        let mut words = if self.one_word(self.thread, word, self.latencies, sink) {
            self.advance(map, 2);
            2
        } else {
            self.group(map, sink)
        };
        let mut head = self.head();
        if head == Head::Plain {
            words += self.plain(map, self.reach, sink);
            head = self.head();
        }
        (words, head)
    }

    /// Delivers an event that is one word; false where it is not.
    #[inline(always)]
    fn one_word(&self, thread: u32, word: u64, latencies: bool, sink: &mut impl Sink) -> bool {
        match tag(word) {
            ALLOC | NEW => self.single_word(thread, word, 0, sink),
            FREE if !latencies => {
                let delete = word & FREE_DELETE != 0;
                sink.event(thread, RingEvent::Free { address: address(word, 0), delete, latency_ns: 0 });
            }
            _ => return false,
        }
        true
    }

    #[inline(always)]
    fn single_word(&self, thread: u32, word: u64, site: u32, sink: &mut impl Sink) {
        let size = word >> ADDRESS_BITS & 0xffff;
        let event = RingEvent::Alloc {
            address: address(word, 0),
            size,
            usable: self.usable.predicted(size),
            kind: alloc_kind(word),
            align_log2: 0,
            site,
            latency_ns: 0,
        };
        sink.event(thread, event);
    }

    /// Delivers the next group, which is written; returns how many words it had. 0: it must wait for the latency of a
    /// free.
    #[inline(never)]
    fn group(&mut self, map: &Map, sink: &mut impl Sink) -> usize {
        if self.waits && self.waiting() {
            return 0;
        }
        let begin = self.at;
        let mut at = begin;
        let (mut site, mut latency_ns, mut rest, mut usable) = (0, 0, 0, None);
        let mut word = self.word(at);
        while tag(word) == PREFIX && at & self.block_mask != self.block_mask {
            let value = word & VALUE_MASK;
            match which(word) {
                prefix::USABLE => usable = Some(value),
                prefix::SITE => site = value as u32,
                prefix::LATENCY => latency_ns = value as u32,
                prefix::ADDRESS => rest = value,
                prefix::TIME => sink.event(self.thread, RingEvent::Time { ns: value }),
                _ => {}
            }
            at += 1;
            word = self.word(at);
        }
        let mut latency_words = 0;
        let address = address(word, rest);
        match tag(word) {
            ALLOC | NEW => {
                let size = word >> ADDRESS_BITS & 0xffff;
                let usable = self.usable.of(size, usable);
                let kind = alloc_kind(word);
                sink.event(
                    self.thread,
                    RingEvent::Alloc { address, size, usable, kind, align_log2: 0, site, latency_ns },
                );
            }
            ALLOC_LONG => {
                at = self.next(at);
                let size = self.word(at) & DATA_MASK;
                let kind = (word >> ADDRESS_BITS & 15) as u8;
                if address == 0 {
                    sink.event(self.thread, RingEvent::without_block(kind, size, site, latency_ns));
                } else {
                    let usable = self.usable.of(size, usable);
                    let align_log2 = (word >> (ADDRESS_BITS + 4) & 63) as u8;
                    sink.event(
                        self.thread,
                        RingEvent::Alloc { address, size, usable, kind, align_log2, site, latency_ns },
                    );
                }
            }
            FREE => {
                if self.known.is_none()
                    && let Some(after) = self.after(at)
                    && tag(after) == NOTE
                    && which(after) == note::LATENCY
                {
                    latency_ns = (after & VALUE_MASK) as u32;
                    latency_words = 1;
                }
                sink.event(
                    self.thread,
                    RingEvent::Free { address, delete: word & FREE_DELETE != 0, latency_ns },
                );
            }
            RESIZE_BEGIN => sink.event(self.thread, RingEvent::ResizeBegin { address }),
            RESIZE_END => {
                at = self.next(at);
                let size = self.word(at) & DATA_MASK;
                let usable = usable.unwrap_or(0);
                sink.event(self.thread, RingEvent::ResizeEnd { address, size, usable, site, latency_ns });
            }
            NOTE => at = self.note(map, word, at, sink),
            _ => {}
        }
        let words = at + 1 - begin;
        self.advance(map, words);
        if latency_words > 0 {
            self.advance(map, latency_words);
        }
        words + latency_words
    }

    /// Delivers a note; returns the position of its last word.
    fn note(&mut self, map: &Map, word: u64, at: usize, sink: &mut impl Sink) -> usize {
        let value = word & VALUE_MASK;
        match which(word) {
            note::PAD => at.saturating_add(value as usize).min(at | self.block_mask),
            note::THREAD => {
                if let Some(known) = &mut self.known
                    && value >> TID_BITS < map.threads(self.process).into()
                {
                    self.thread = (value >> TID_BITS) as u32;
                    if known.insert(self.thread) {
                        sink.thread(self.thread, (value & ((1 << TID_BITS) - 1)) as i32);
                    }
                }
                at
            }
            note::SITE | note::MAPPED => {
                let end = (at + (value >> 32) as usize).min(at | self.block_mask);
                let mut frames = std::mem::take(&mut self.frames);
                frames.clear();
                frames.extend((at + 1..=end).map(|n| self.word(n) & DATA_MASK));
                sink.event(self.thread, RingEvent::of_words(which(word), value as u32, &frames));
                self.frames = frames;
                end
            }
            _ => at,
        }
    }

    #[inline(always)]
    fn word(&self, at: usize) -> u64 {
        assert_internal!(at < self.reach || at == self.at, "a word is read within the reach of its ring");
        // SAFETY: `at` is within the words of the ring that `extend` has found to have memory, in the mapping that the
        // tap keeps; or it is the position after them, and `leave_block` has set `words` such that NOTHING lies there.
        unsafe { (*self.words.wrapping_add(at)).load(Ordering::Acquire) }
    }

    #[inline(always)]
    fn written(&self, word: u64) -> bool {
        (word ^ self.lap) & LAP == 0
    }

    /// The word after the one at `at`, which may be in the next block, if it is written.
    fn after(&self, at: usize) -> Option<u64> {
        let (at, lap) = match at + 1 {
            end if end == self.reach && !self.fixed => return None,
            end if end == self.reach => (0, self.lap ^ LAP),
            at => (at, self.lap),
        };
        let word = self.word(at);
        ((word ^ lap) & LAP == 0).then_some(word)
    }

    /// The position after `at`, in the same block.
    fn next(&self, at: usize) -> usize {
        if at & self.block_mask == self.block_mask { at } else { at + 1 }
    }

    /// Advances by `words`, which do not cross the end of a block; at its end, publishes the position to the producer.
    #[inline(always)]
    fn advance(&mut self, map: &Map, words: usize) {
        assert_internal!(
            (self.at & self.block_mask) + words <= self.block_mask + 1,
            "words are read within their block"
        );
        self.at += words;
        if self.at & self.block_mask == 0 {
            self.leave_block(map);
        }
    }

    #[cold]
    #[inline(never)]
    fn leave_block(&mut self, map: &Map) {
        if self.at == self.reach && self.fixed {
            self.at = 0;
            self.lap ^= LAP;
        } else if self.at == self.reach {
            // The words there must not be touched.
            self.words = (&raw const NOTHING).wrapping_sub(self.at);
            self.extend(map);
        }
        assert_internal!(self.at & self.block_mask == 0, "a reader leaves a block at its end");
        self.taken = self.taken.wrapping_add(1);
        self.publish(map);
    }

    /// Publishes to the owner how far the reader is.
    fn publish(&self, map: &Map) {
        let consumer = &map.control(self.ring).consumer.0;
        // Either the producer sees this, or we see that it waits.
        consumer.taken.store(self.taken, Ordering::SeqCst);
        if consumer.waiting.load(Ordering::SeqCst) != 0 {
            consumer.waiting.store(0, Ordering::Relaxed);
            crate::sys::futex_wake(&consumer.taken);
        }
    }
}
