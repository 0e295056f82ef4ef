//! The walk up a stack, a rule a frame, within memory that can be read.
//!
//! Correct tables on a sound stack lead from frame to frame and to its end. Neither is certain: the tables of assembly
//! can be wrong, and programs overrun buffers. So a walk goes upwards only, word by word aligned, and reads no page
//! that is not known to be readable.

use crate::rule::{Base, CfaRule, Rule};
use crate::system::{PAGE, readable};

/// How far beyond the known stack a walk searches for more: a frame larger than this ends it. 32 MiB.
const FARTHEST: usize = 32 << 20;

/// Stack that can be read: whole pages.
///
/// Of the stack that the thread began on, its own, pages that could be read once can be read as long as the thread
/// runs. Other stacks (of coroutines, of signal handlers) may be unmapped by the program, and something smaller mapped
/// there: their readable range is forgotten after each walk.
#[derive(Debug, Clone, Copy, Default)]
pub struct Readable {
    low: usize,
    high: usize,
    /// The known range of the thread's own stack, to its end. Both are the end while nothing is known.
    own_low: usize,
    own_high: usize,
    /// Whether the walk is on the thread's own stack.
    own: bool,
}

impl Readable {
    /// Nothing known yet. `end`: where the thread's own stack ends, an address in its last page; 0: not known.
    pub const fn new(end: usize) -> Readable {
        let end = (end + PAGE - 1) & !(PAGE - 1);
        Readable { low: 0, high: 0, own_low: end, own_high: end, own: false }
    }

    /// Begins a walk at a stack pointer in use, whose page can therefore be read.
    #[inline(always)]
    pub fn begin(&mut self, pointer: usize) {
        self.low = pointer & !(PAGE - 1);
        if (self.own_low..self.own_high).contains(&pointer) {
            (self.high, self.own) = (self.own_high, true);
        } else {
            self.lower(pointer);
        }
    }

    #[cold]
    fn lower(&mut self, pointer: usize) {
        let near = pointer < self.own_low && self.own_low - self.low <= FARTHEST;
        self.own = near && (self.low..self.own_low).step_by(PAGE).all(readable);
        if self.own {
            (self.own_low, self.high) = (self.low, self.own_high);
        } else {
            self.high = self.low + PAGE;
        }
    }

    /// The end of the readable part of the stack, as far as known.
    pub fn end(&self) -> usize {
        self.high
    }

    /// Whether this is the thread's own stack, where words once read can be read again.
    #[inline(always)]
    pub fn own(&self) -> bool {
        self.own
    }

    /// The word at an address, if it is one of the stack's.
    #[inline(always)]
    pub fn read(&mut self, place: usize) -> Option<usize> {
        if place < self.low || !place.is_multiple_of(8) || (place >= self.high && !self.reach(place)) {
            return None;
        }
        // SAFETY: an aligned word in a page between `low` and `high`, which `begin` and `reach` have found readable.
        Some(unsafe { (place as *const usize).read_volatile() })
    }

    #[cold]
    fn reach(&mut self, place: usize) -> bool {
        // There are no frames after a stack's end.
        if self.own || place - self.high > FARTHEST {
            return false;
        }
        while self.high <= place {
            if !readable(self.high) {
                return false;
            }
            self.high += PAGE;
        }
        true
    }
}

/// Receives what a walk reads: the same words at the same addresses make the same walk.
pub trait ReadLog {
    /// A word on the stack.
    fn word(&mut self, place: usize, value: usize);
    /// The frame pointer's register, as it was at the beginning.
    fn base(&mut self);
    /// A signal's context, which leads to another position on another stack.
    fn signal(&mut self);
}

/// Ignores what a walk reads.
pub struct NoLog;

impl ReadLog for NoLog {
    #[inline(always)]
    fn word(&mut self, _: usize, _: usize) {}
    #[inline(always)]
    fn base(&mut self) {}
    #[inline(always)]
    fn signal(&mut self) {}
}

/// Where the frame pointer of the current frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BaseLocation {
    /// In its register since the beginning.
    Register,
    /// Read and logged.
    Logged,
    /// In this word, unread.
    At(usize),
}

/// A frame of the walk.
#[derive(Debug, Clone, Copy)]
pub struct Cursor {
    /// The return address to it; of an interrupted function, the address after the one interrupted. So the byte before
    /// it always lies in the code that is being executed.
    pub frame: usize,
    /// Its stack pointer, when execution returns there.
    pub pointer: usize,
    base: usize,
    base_location: BaseLocation,
}

/// The result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The cursor is at the caller.
    Caller,
    /// There is none.
    Outermost,
    /// No rule, or one that does not lead on.
    Lost,
}

impl Cursor {
    /// A walk's beginning.
    #[inline(always)]
    pub fn new(frame: usize, pointer: usize, base: usize) -> Cursor {
        Cursor { frame, pointer, base, base_location: BaseLocation::Register }
    }

    /// The frame pointer at the walk's beginning.
    #[inline(always)]
    pub fn register(&self) -> usize {
        self.base
    }

    /// The address of the word with the frame pointer; `None` while it is in its register, or was read.
    pub fn saved_base(&self) -> Option<usize> {
        match self.base_location {
            BaseLocation::At(place) => Some(place),
            BaseLocation::Register | BaseLocation::Logged => None,
        }
    }

    /// The address by which the rule is found.
    #[inline(always)]
    pub fn code(&self) -> usize {
        self.frame.wrapping_sub(1)
    }

    #[inline(always)]
    fn base(&mut self, stack: &mut Readable, log: &mut impl ReadLog) -> Option<usize> {
        match self.base_location {
            BaseLocation::Register => log.base(),
            BaseLocation::Logged => {}
            BaseLocation::At(place) => {
                self.base = stack.read(place)?;
                log.word(place, self.base);
                self.base_location = BaseLocation::Logged;
            }
        }
        Some(self.base)
    }

    /// Goes to the caller.
    #[inline(always)]
    pub fn step(&mut self, rule: Rule, stack: &mut Readable, log: &mut impl ReadLog) -> Step {
        if let Some((bytes, below)) = rule.by_stack_pointer() {
            let cfa = self.pointer.wrapping_add(bytes);
            let stepped = self.return_to(cfa, stack, log);
            if below != 0 && stepped.is_some() {
                self.base_location = BaseLocation::At(cfa.wrapping_sub(below));
            }
            return stepped.unwrap_or(Step::Lost);
        }
        match rule.cfa_rule() {
            CfaRule::Outermost => Step::Outermost,
            CfaRule::Unknown => Step::Lost,
            CfaRule::Signal => self.interrupted(stack, log).map_or(Step::Lost, |()| Step::Caller),
            cfa_rule => self.called(cfa_rule, rule.base(), stack, log).unwrap_or(Step::Lost),
        }
    }

    #[inline(always)]
    fn called(
        &mut self,
        cfa_rule: CfaRule,
        base: Base,
        stack: &mut Readable,
        log: &mut impl ReadLog,
    ) -> Option<Step> {
        let cfa = match cfa_rule {
            CfaRule::Stack(bytes) => self.pointer.wrapping_add(bytes),
            CfaRule::Base(bytes) => self.base(stack, log)?.wrapping_add_signed(bytes),
            _ => {
                let CfaRule::Indirect(bytes) = cfa_rule else { return None };
                let place = self.base(stack, log)?.wrapping_add_signed(bytes);
                let cfa = stack.read(place)?;
                log.word(place, cfa);
                cfa
            }
        };
        let base_location = match base {
            Base::Same => self.base_location,
            Base::Below(bytes) => BaseLocation::At(cfa.wrapping_sub(bytes)),
            Base::Pointed => BaseLocation::At(self.base(stack, log)?),
        };
        let step = self.return_to(cfa, stack, log)?;
        self.base_location = base_location;
        Some(step)
    }

    /// To the frame whose stack pointer is `cfa`, below which the return address to it lies.
    #[inline(always)]
    fn return_to(&mut self, cfa: usize, stack: &mut Readable, log: &mut impl ReadLog) -> Option<Step> {
        if cfa <= self.pointer {
            return None;
        }
        let frame = stack.read(cfa.wrapping_sub(8))?;
        log.word(cfa - 8, frame);
        (self.frame, self.pointer) = (frame, cfa);
        // The C library's `clone` leaves 0 below a thread's first function.
        Some(if frame == 0 { Step::Outermost } else { Step::Caller })
    }

    /// Over a signal handler's frame, to what it interrupted. The handler returns to code whose stack pointer is at the
    /// kernel's `struct ucontext` (Linux, arch/x86/include/uapi/asm/sigcontext.h).
    #[cold]
    fn interrupted(&mut self, stack: &mut Readable, log: &mut impl ReadLog) -> Option<()> {
        const RBP: usize = 40 + 10 * 8;
        const RSP: usize = 40 + 15 * 8;
        const RIP: usize = 40 + 16 * 8;
        let context = self.pointer;
        let base = stack.read(context + RBP)?;
        let pointer = stack.read(context + RSP)?;
        let place = stack.read(context + RIP)?;
        log.signal();
        *self = Cursor { frame: place.wrapping_add(1), pointer, base, base_location: BaseLocation::Logged };
        stack.begin(pointer);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    /// Words as a stack, and the address of the first.
    fn stack(words: &[usize]) -> (Readable, usize) {
        let start = words.as_ptr() as usize;
        let mut stack = Readable::new(0);
        stack.begin(start);
        (stack, start)
    }

    #[derive(Default)]
    struct Logged(std::vec::Vec<usize>, bool);

    impl ReadLog for Logged {
        fn word(&mut self, place: usize, value: usize) {
            // SAFETY: an address that the walk has just read.
            assert_eq!(unsafe { (place as *const usize).read() }, value);
            self.0.push(place);
        }
        fn base(&mut self) {
            self.1 = true;
        }
        fn signal(&mut self) {
            panic!("no signal");
        }
    }

    #[test]
    fn frames_with_and_without_a_frame_pointer() {
        let mut words = [0usize; 12];
        let at = |n: usize| words.as_ptr() as usize + n * 8;
        let (second_base, third_base) = (at(6), at(9));
        // First: no frame pointer, two words. Second: saved the caller's, its own is at word 6. Third: as the second.
        words[1] = 0x2222;
        words[5] = 1;
        words[6] = third_base;
        words[7] = 0x3333;
        words[9] = 77;
        words[10] = 0;
        let (mut stack, start) = stack(&words);
        let mut log = Logged::default();
        let mut cursor = Cursor::new(0x1111, start, second_base);
        let first = Rule::new(CfaRule::Stack(16), Base::Same);
        assert_eq!(cursor.step(first, &mut stack, &mut log), Step::Caller);
        assert_eq!((cursor.frame, cursor.pointer, log.1), (0x2222, start + 16, false));
        let framed = Rule::new(CfaRule::Base(16), Base::Below(16));
        assert_eq!(cursor.step(framed, &mut stack, &mut log), Step::Caller);
        assert_eq!((cursor.frame, cursor.pointer, log.1), (0x3333, start + 64, true));
        assert_eq!(cursor.step(framed, &mut stack, &mut log), Step::Outermost);
        // Both return addresses, the third's base, and the 0 that ends it.
        assert_eq!(log.0, [start + 8, start + 56, start + 48, start + 80]);
    }

    #[test]
    fn no_rule_leads_downwards_or_out_of_the_stack() {
        let words = [0usize; 64];
        let (mut stack, start) = stack(&words);
        let downwards = Rule::new(CfaRule::Base(16), Base::Same);
        for base in [0, start - 16, start - 1024, start + 3, usize::MAX - 7, 1 << 47, start + (40 << 20)] {
            let mut cursor = Cursor::new(0x1111, start, base);
            assert_eq!(cursor.step(downwards, &mut stack, &mut NoLog), Step::Lost, "{base:x}");
        }
        let mut cursor = Cursor::new(0x1111, start, 0);
        assert_eq!(cursor.step(Rule::UNKNOWN, &mut stack, &mut NoLog), Step::Lost);
        assert_eq!(
            cursor.step(Rule::new(CfaRule::Indirect(-8), Base::Pointed), &mut stack, &mut NoLog),
            Step::Lost
        );
    }

    #[test]
    fn another_stack_begins_without_known_pages() {
        let place = crate::system::map(8 * PAGE, false).unwrap();
        let start = place.as_ptr() as usize;
        // SAFETY: the pages were mapped by this test; no reference to them exists.
        unsafe { libc::mprotect(place.as_ptr().add(4 * PAGE).cast(), PAGE, libc::PROT_NONE) };
        let mut stack = Readable::new(start + 8 * PAGE - 100);
        stack.begin(start + 6 * PAGE);
        assert!(stack.own());
        assert_eq!(stack.read(start + 7 * PAGE), Some(0));
        assert_eq!(stack.read(start + 5 * PAGE), None, "below the beginning");
        assert_eq!(stack.read(start + 8 * PAGE), None, "after the end");
        stack.begin(start + 5 * PAGE);
        assert!(stack.own());
        assert_eq!(stack.read(start + 7 * PAGE), Some(0));
        // Below the guard page: a stack of its own.
        stack.begin(start + 2 * PAGE + 64);
        assert!(!stack.own());
        assert_eq!(stack.read(start + 3 * PAGE), Some(0));
        assert_eq!(stack.read(start + 4 * PAGE), None);
        assert_eq!(stack.read(start + 5 * PAGE), None);
        stack.begin(start + 6 * PAGE);
        assert!(stack.own());
        // SAFETY: this test mapped it and uses it no more.
        unsafe { crate::system::unmap(place, 8 * PAGE) };
    }

    #[test]
    fn pages_of_a_stack_that_was_unmapped_are_not_read() {
        let place = crate::system::map(4 * PAGE, false).unwrap();
        let start = place.as_ptr() as usize;
        let mut stack = Readable::new(0);
        stack.begin(start + 64);
        assert_eq!(stack.read(start + 3 * PAGE), Some(0));
        // A smaller one in its place.
        // SAFETY: the pages were mapped by this test; no reference to them exists.
        unsafe { libc::munmap(place.as_ptr().add(PAGE).cast(), 3 * PAGE) };
        stack.begin(start + 64);
        assert_eq!(stack.read(start + 128), Some(0));
        assert_eq!(stack.read(start + PAGE), None);
        // SAFETY: this test mapped it and uses it no more.
        unsafe { crate::system::unmap(place, PAGE) };
    }
}
