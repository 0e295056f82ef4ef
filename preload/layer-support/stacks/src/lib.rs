//! Call stacks for the recording layer: the call stack of an allocation, as a number.
//!
//! Programs are built without frame pointers, so a call stack is walked by the tables that exceptions need. A walk that
//! evaluates the tables takes microseconds, and a program allocates tens of millions of times a second; so a call takes
//! the first of these ways that succeeds:
//!
//! 1. The thread has been at this call stack, which is found by comparing the words that a walk would read
//!    ([`call_stack_cache`]).
//! 2. A walk by rules that have been computed before, one word for each address in the code ([`rules`]).
//! 3. A rule that is missing is computed from the tables ([`tables`]).
//!
//! Nothing here takes a lock or allocates on the heap; memory comes from the system, `errno` is untouched. A signal
//! handler that interrupts way 1 does without it. Call stacks end at 64 frames ([`MOST_FRAMES`]), at code without
//! tables (generated at run time), and where they are damaged. Recursion is folded ([`recursion`]).
#![no_std]

mod call_stack_cache;
pub mod closing;
mod elf_header;
mod hints;
mod loaded;
mod mappings;
mod numbers;
mod object;
mod objects;
mod recursion;
mod rule;
mod rules;
mod system;
mod tables;
mod threads;
mod walk;

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

#[doc(hidden)]
pub use crate::loaded::search_mappings_only;
use heaptoll_process::address_space;

use crate::numbers::{Numbers, digest};
use crate::objects::RecordedObjects;
use crate::rules::Rules;
pub use crate::system::readable;
use crate::threads::Threads;
use crate::walk::{Cursor, NoLog, ReadLog, Readable, Step};

/// Frames of a call stack, the innermost ones, at most.
pub const MOST_FRAMES: usize = 64;

/// Follows the frames of a definition: there were more.
pub const DEEPER: usize = 1;
/// Follows the frames of a definition: the walk could not go on.
pub const LOST: usize = 2;
/// Follows the frames of a definition, before the other marks: return addresses that occur more than twice were left
/// out from the third on.
pub const REPEATED: usize = 3;
/// No smaller number is an address of code: the first page is never mapped.
pub const LOWEST_ADDRESS: usize = 4096;

/// A definition's words: frames and what follows them. [`REPEATED`] takes the place of a frame that it stands for.
const WORDS: usize = MOST_FRAMES + 1;

/// The call stacks of a process.
pub struct CallStacks {
    state: AtomicPtr<State>,
    threads: Threads,
    /// The layer's object, whose frames are not recorded.
    own_start: AtomicUsize,
    own_bytes: AtomicUsize,
    /// Number of times that objects were unloaded.
    era: AtomicU32,
    /// Where unloaded objects lay: addresses there mean another function in each era.
    unloaded_start: AtomicUsize,
    unloaded_end: AtomicUsize,
}

struct State {
    rules: Rules,
    numbers: Numbers,
    objects: RecordedObjects,
}

/// Counts of each way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figures {
    /// Call stacks recognised. 0 without the feature `figures`.
    pub hits: u64,
    /// Walks.
    pub walks: u64,
    /// Rules computed from tables.
    pub rules: u64,
    /// Different call stacks.
    pub stacks: u64,
}

impl Default for CallStacks {
    fn default() -> CallStacks {
        CallStacks::new()
    }
}

impl CallStacks {
    /// Without memory yet; for a static of the layer.
    pub const fn new() -> CallStacks {
        CallStacks {
            state: AtomicPtr::new(ptr::null_mut()),
            threads: Threads::new(),
            own_start: AtomicUsize::new(0),
            own_bytes: AtomicUsize::new(0),
            era: AtomicU32::new(0),
            unloaded_start: AtomicUsize::new(usize::MAX),
            unloaded_end: AtomicUsize::new(0),
        }
    }

    /// Allocates memory; before it every site is 0. `own`: an address in the object whose frames are not to be
    /// recorded, the layer's, or 0. Call it once, while there is one thread. False: the system provides no memory, or a
    /// limit of memory leaves too little for the program, and sites stay 0.
    pub fn prepare(&self, own: usize) -> bool {
        if !address_space::private_fits(rules::BYTES + numbers::BYTES) {
            return false;
        }
        let (Some(rules), Some(numbers), Some(objects), Some(place)) =
            (Rules::new(), Numbers::new(), RecordedObjects::new(), system::map(size_of::<State>(), false))
        else {
            return false;
        };
        if let Some(object) = loaded::object(own) {
            self.own_start.store(object.start, Ordering::Relaxed);
            self.own_bytes.store(object.end - object.start, Ordering::Relaxed);
        }
        self.threads.prepare();
        let place = place.cast::<State>();
        // SAFETY: `map` returned new memory of the size of a `State`, aligned to a page, which nothing else uses.
        unsafe { place.write(State { rules, numbers, objects }) };
        self.state.store(place.as_ptr(), Ordering::Release);
        true
    }

    /// Whether an address lies in the part of the calling thread's own stack that is in use. False where the stack is
    /// not known: on one that the program allocated.
    pub fn is_on_stack(&self, address: usize) -> bool {
        let here = 0_usize;
        let pointer = &raw const here as usize;
        let Some(mut guard) = self.threads.claim().and_then(threads::Thread::enter) else { return false };
        let stack = &mut guard.local().stack;
        stack.begin(pointer);
        stack.own() && (pointer..stack.end()).contains(&address)
    }

    /// The number of the call stack from which this is called, from 1; 0 when none is available. The first call from a
    /// call stack passes its number and return addresses, innermost first, to `define`, followed by
    /// [`REPEATED`], [`DEEPER`] or [`LOST`] where they apply; objects that they lie in are passed before as definitions of site 0 ([`objects`]). No
    /// lock or guard is held meanwhile.
    #[inline(always)]
    pub fn site(&self, define: impl FnMut(u32, &[usize])) -> u32 {
        let (place, pointer, base): (usize, usize, usize);
        // SAFETY: the instructions only read the instruction, stack and frame pointers. (The walk may begin at any
        // instruction of this function: the tables describe its frame at each.)
        unsafe {
            core::arch::asm!(
                "lea {}, [rip]",
                "mov {}, rsp",
                "mov {}, rbp",
                out(reg) place, out(reg) pointer, out(reg) base,
                options(nomem, nostack, preserves_flags),
            );
        }
        let at = Cursor::new(place + 1, pointer, base);
        match self.recognise(at) {
            0 => self.discover(at, define),
            site => site,
        }
    }

    fn state(&self) -> Option<&State> {
        // SAFETY: null, or the state that `prepare` published, which is never unmapped.
        unsafe { self.state.load(Ordering::Acquire).as_ref() }
    }

    #[inline(always)]
    fn own(&self, frame: usize) -> bool {
        frame.wrapping_sub(self.own_start.load(Ordering::Relaxed)) < self.own_bytes.load(Ordering::Relaxed)
    }

    /// Way 1: 0 when it fails.
    #[inline(never)]
    fn recognise(&self, at: Cursor) -> u32 {
        self.recognised(at).unwrap_or(0)
    }

    #[inline(always)]
    fn recognised(&self, at: Cursor) -> Option<u32> {
        let mut guard = self.threads.current()?.enter()?;
        let rules = &self.state()?.rules;
        let local = guard.local();
        let stack = &mut local.stack;
        stack.begin(at.pointer);
        let hint = local.hints.hint(&at, rules, |frame| self.own(frame), stack);
        // SAFETY: `at` is a frame of the calling thread's current stack, this call's caller, and `stack` began there.
        let site = unsafe { local.call_stack_cache.find(&at, hint, self.era.load(Ordering::Relaxed), stack) };
        if cfg!(feature = "figures") && site != 0 {
            guard.thread().hits.add(1);
        }
        Some(site)
    }

    /// Ways 2 and 3.
    #[cold]
    #[inline(never)]
    fn discover(&self, at: Cursor, mut define: impl FnMut(u32, &[usize])) -> u32 {
        let mut words = [0; WORDS];
        match self.discovered(at, &mut words) {
            None => 0,
            Some((site, 0)) => site,
            Some((site, count)) => {
                if let Some(state) = self.state() {
                    words[..count]
                        .iter()
                        .for_each(|&word| state.objects.record(word.wrapping_sub(1), &mut define));
                }
                define(site, &words[..count]);
                site
            }
        }
    }

    /// The site, and how many words its definition has when it is new.
    fn discovered(&self, at: Cursor, words: &mut [usize; WORDS]) -> Option<(u32, usize)> {
        let state = self.state()?;
        let era = self.era.load(Ordering::Relaxed);
        let mut guard = self.threads.claim().and_then(|thread| thread.enter());
        let mut local = guard.as_mut().map(|guard| guard.local());
        let mut stack = local.as_ref().map_or(Readable::new(0), |local| local.stack);
        stack.begin(at.pointer);
        let (mut computed, mut hint) = (0, 0);
        if let Some(local) = &mut local {
            self.compute_hint_rules(state, at, &mut stack, &mut computed);
            hint = local.hints.hint(&at, &state.rules, |frame| self.own(frame), &mut stack);
        }
        let call_stack_cache = local.as_mut().map(|local| local.call_stack_cache.entry(&at, hint));
        let (number, count) = match call_stack_cache {
            Some(entry) => {
                entry.begin(&at, era, stack.own());
                let count = self.walk(state, at, &mut stack, entry, words, &mut computed);
                let number = state.numbers.number(self.digest(&words[..count], era))?;
                entry.finish(number.number);
                (number, count)
            }
            None => {
                let count = self.walk(state, at, &mut stack, &mut NoLog, words, &mut computed);
                (state.numbers.number(self.digest(&words[..count], era))?, count)
            }
        };
        if let Some(local) = local {
            local.stack = stack;
        }
        if let Some(guard) = &guard {
            guard.thread().walks.add(1);
            guard.thread().rules.add(computed);
        }
        Some((number.number, if number.new { count } else { 0 }))
    }

    /// Computes the rules that a hint needs: of the layer's frames, and of its caller.
    fn compute_hint_rules(&self, state: &State, mut at: Cursor, stack: &mut Readable, computed: &mut u64) {
        while self.own(at.frame)
            && at.step(state.rule(at.code(), computed), stack, &mut NoLog) == Step::Caller
        {}
        state.rule(at.code(), computed);
    }

    /// Walks to the end, and folds recursion; returns the number of words.
    fn walk(
        &self,
        state: &State,
        at: Cursor,
        stack: &mut Readable,
        log: &mut impl ReadLog,
        words: &mut [usize; WORDS],
        computed: &mut u64,
    ) -> usize {
        let (frames, mark) = self.walk_all(state, at, stack, log, words, computed);
        let count = recursion::fold(words, frames);
        match mark {
            None => count,
            Some(mark) => {
                words[count] = mark;
                count + 1
            }
        }
    }

    /// Walks to the end; returns the number of frames, and what the stack ends with if it goes on.
    fn walk_all(
        &self,
        state: &State,
        mut at: Cursor,
        stack: &mut Readable,
        log: &mut impl ReadLog,
        words: &mut [usize; WORDS],
        computed: &mut u64,
    ) -> (usize, Option<usize>) {
        let mut count = 0;
        for _ in 0..2 * MOST_FRAMES {
            if count == MOST_FRAMES {
                break;
            }
            // The layer's frames can be in between: it intercepts `dlclose`, too.
            if !self.own(at.frame) {
                words[count] = at.frame;
                count += 1;
            }
            let rule = state.rule(at.code(), computed);
            match at.step(rule, stack, log) {
                Step::Caller => {}
                Step::Outermost => return (count, None),
                Step::Lost => return (count, Some(LOST)),
            }
        }
        (count, Some(DEEPER))
    }

    fn digest(&self, words: &[usize], era: u32) -> u64 {
        let unloaded = self.unloaded_start.load(Ordering::Relaxed)..self.unloaded_end.load(Ordering::Relaxed);
        let mut sum = words.len() as u64;
        for &word in words {
            sum = digest(sum, word);
            if unloaded.contains(&word) {
                sum = digest(sum, era as usize);
            }
        }
        digest(sum, 0)
    }

    /// Called before an object is unloaded: returns the bytes in memory of the one that an address lies in.
    pub fn closing(&self, address: usize) -> Option<(usize, usize)> {
        self.state()?;
        loaded::object(address).map(|object| (object.start, object.end))
    }

    /// Called after `dlclose`: if the object was unloaded, everything about its code is forgotten, since other code may
    /// be loaded there.
    pub fn closed(&self, object: (usize, usize)) {
        let Some(state) = self.state() else { return };
        if loaded::remains(object.0) {
            return;
        }
        self.unloaded_start.fetch_min(object.0, Ordering::Relaxed);
        self.unloaded_end.fetch_max(object.1, Ordering::Relaxed);
        self.era.fetch_add(1, Ordering::Relaxed);
        state.objects.forget(object.0);
        state.rules.clear();
    }

    /// Counts of each way, so far.
    pub fn figures(&self) -> Figures {
        let [hits, walks, rules] = self.threads.figures();
        Figures { hits, walks, rules, stacks: self.state().map_or(0, |state| state.numbers.assigned()) }
    }
}

impl State {
    #[inline(always)]
    fn rule(&self, code: usize, computed: &mut u64) -> rule::Rule {
        match self.rules.get(code) {
            Some(rule) => rule,
            None => {
                *computed += 1;
                self.compute(code)
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn compute(&self, code: usize) -> rule::Rule {
        let rule = tables::rule(code);
        // An address outside of all objects may lie in one later.
        if rule != rule::Rule::UNKNOWN || loaded::object(code).is_some() {
            self.rules.put(code, rule);
        }
        rule
    }
}
