//! Finds what distinguishes call stacks of one stack pointer, without a walk.
//!
//! The call-stack cache is searched by the stack pointer and by the two innermost return addresses outside the layer,
//! since a function that wraps `malloc` is called from many places at one depth. Rules state where these return
//! addresses lie: at an offset from the stack pointer or from the frame pointer. The offsets are kept here by code
//! address, so that a look-up evaluates no rule. An offset that does not hold any more, because code was unloaded, leads
//! to another entry of the cache, which does not match: it costs a walk, and nothing else.

use crate::rule::CfaRule;
use crate::rules::Rules;
use crate::walk::{Cursor, NoLog, Readable, Step};

/// Places in the layer from which call stacks are requested: an instance for each function that allocates.
const PLACES: usize = 16;
/// Functions that call the layer.
const CALLERS: usize = 64;

/// The layer's frames at one place in its code.
#[derive(Debug, Clone, Copy)]
struct OwnFrames {
    /// 0: none is kept.
    place: usize,
    /// From the stack pointer to that of the layer's caller, bytes. 0: no frame is the layer's.
    above: usize,
    /// Whether the caller's frame pointer is in a word of the stack; otherwise it is in its register.
    saves_base: bool,
    /// From the stack pointer to that word, bytes.
    base: usize,
}

/// Where a caller's own return address lies.
#[derive(Debug, Clone, Copy)]
struct Caller {
    /// The return address to it. 0: none is kept.
    frame: usize,
    from: From,
    /// To the end of the word with the return address, bytes.
    offset: isize,
}

#[repr(u8)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    Unknown = 0,
    StackPointer,
    FramePointer,
}

/// The offsets that a thread has used. All zeroes is valid: none.
#[derive(Debug)]
pub struct Hints {
    own_frames: [OwnFrames; PLACES],
    callers: [Caller; CALLERS],
}

/// An index below `entries`, a power of two, by a code address.
#[inline(always)]
fn index(address: usize, entries: usize) -> usize {
    address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (usize::BITS - entries.trailing_zeros())
}

impl Hints {
    /// A number by which call stacks with the stack pointer of `at` differ, the beginning of a walk; 0 where rules are
    /// missing. `own`: whether a return address is the layer's.
    #[inline(always)]
    pub fn hint(
        &mut self,
        at: &Cursor,
        rules: &Rules,
        own: impl Fn(usize) -> bool,
        stack: &mut Readable,
    ) -> usize {
        let mut frames = self.own_frames[index(at.frame, PLACES)];
        if frames.place != at.frame {
            match self.learn_own_frames(*at, rules, own, stack) {
                Some(learnt) => frames = learnt,
                None => return 0,
            }
        }
        let pointer = at.pointer.wrapping_add(frames.above);
        let frame = if frames.above == 0 { Some(at.frame) } else { stack.read(pointer.wrapping_sub(8)) };
        let Some(frame) = frame else { return 0 };
        let mut caller = self.callers[index(frame, CALLERS)];
        if caller.frame != frame {
            match self.learn_caller(frame, rules) {
                Some(learnt) => caller = learnt,
                None => return frame,
            }
        }
        let from = match caller.from {
            From::StackPointer => pointer,
            From::FramePointer if !frames.saves_base => at.register(),
            From::FramePointer => stack.read(at.pointer.wrapping_add(frames.base)).unwrap_or(0),
            From::Unknown => return frame,
        };
        let second = stack.read(from.wrapping_add_signed(caller.offset).wrapping_sub(8)).unwrap_or(0);
        frame ^ second.rotate_left(31)
    }

    #[cold]
    #[inline(never)]
    fn learn_own_frames(
        &mut self,
        mut at: Cursor,
        rules: &Rules,
        own: impl Fn(usize) -> bool,
        stack: &mut Readable,
    ) -> Option<OwnFrames> {
        let (place, pointer) = (at.frame, at.pointer);
        while own(at.frame) {
            // A frame that is found by the frame pointer is at no constant offset from the stack pointer.
            rules.get(at.code()).filter(|rule| matches!(rule.cfa_rule(), CfaRule::Stack(_)))?;
            if at.step(rules.get(at.code())?, stack, &mut NoLog) != Step::Caller {
                return None;
            }
        }
        let saved = at.saved_base();
        let learnt = OwnFrames {
            place,
            above: at.pointer.wrapping_sub(pointer),
            saves_base: saved.is_some(),
            base: saved.map_or(0, |saved| saved.wrapping_sub(pointer)),
        };
        self.own_frames[index(place, PLACES)] = learnt;
        Some(learnt)
    }

    #[cold]
    #[inline(never)]
    fn learn_caller(&mut self, frame: usize, rules: &Rules) -> Option<Caller> {
        let (from, offset) = match rules.get(frame.wrapping_sub(1))?.cfa_rule() {
            CfaRule::Stack(bytes) => (From::StackPointer, bytes as isize),
            CfaRule::Base(bytes) => (From::FramePointer, bytes),
            _ => (From::Unknown, 0),
        };
        let learnt = Caller { frame, from, offset };
        self.callers[index(frame, CALLERS)] = learnt;
        Some(learnt)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use crate::rule::{Base, Rule};

    /// A stack of the layer's frame at word 0 (16 bytes), its caller's at word 2 and the caller's caller's return
    /// address in word 5.
    fn words(caller: usize, second: usize) -> [usize; 16] {
        let mut words = [0; 16];
        (words[1], words[5]) = (caller, second);
        words
    }

    fn hint(hints: &mut Hints, rules: &Rules, words: &[usize; 16], base: usize) -> usize {
        let start = words.as_ptr() as usize;
        let mut stack = Readable::new(0);
        stack.begin(start);
        hints.hint(&Cursor::new(0x100, start, base), rules, |frame| frame == 0x100, &mut stack)
    }

    fn empty() -> std::boxed::Box<Hints> {
        // SAFETY: all zeroes is valid: nothing kept, as the type states.
        unsafe { std::boxed::Box::new_zeroed().assume_init() }
    }

    #[test]
    fn both_return_addresses_distinguish_call_stacks_of_one_stack_pointer() {
        let rules = Rules::new().unwrap();
        let mut hints = empty();
        assert_eq!(hint(&mut hints, &rules, &words(0x200, 0x300), 0), 0, "no rule for the layer's frame yet");
        rules.put(0xff, Rule::new(CfaRule::Stack(16), Base::Same));
        assert_eq!(hint(&mut hints, &rules, &words(0x200, 0x300), 0), 0x200, "no rule for its caller yet");
        rules.put(0x1ff, Rule::new(CfaRule::Stack(32), Base::Same));
        let one = hint(&mut hints, &rules, &words(0x200, 0x300), 0);
        assert_eq!(one, hint(&mut hints, &rules, &words(0x200, 0x300), 0), "learnt");
        assert_ne!(one, hint(&mut hints, &rules, &words(0x200, 0x301), 0));
        rules.clear();
        assert_eq!(one, hint(&mut hints, &rules, &words(0x200, 0x300), 0), "kept without the rules");
    }

    #[test]
    fn a_caller_with_a_frame_pointer_is_found_by_it_in_its_register_or_where_the_layer_saved_it() {
        let rules = Rules::new().unwrap();
        rules.put(0x1ff, Rule::new(CfaRule::Base(16), Base::Below(16)));
        for saved in [false, true] {
            rules.put(0xff, Rule::new(CfaRule::Stack(16), if saved { Base::Below(16) } else { Base::Same }));
            let (mut one, mut other) = (words(0x200, 0), words(0x200, 0));
            (one[9], other[9]) = (0x300, 0x301);
            let mut hints = empty();
            let mut at = |words: &mut [usize; 16]| {
                let base = &raw const words[8] as usize;
                words[0] = if saved { base } else { 0 };
                hint(&mut hints, &rules, words, if saved { 1 } else { base })
            };
            assert_ne!(at(&mut one), at(&mut other));
            assert_eq!(at(&mut one), at(&mut one));
        }
    }

    #[test]
    fn an_offset_out_of_the_stack_is_not_read() {
        let rules = Rules::new().unwrap();
        rules.put(0xff, Rule::new(CfaRule::Stack(16), Base::Same));
        rules.put(0x1ff, Rule::new(CfaRule::Base(16), Base::Below(16)));
        for base in [0, 3, usize::MAX - 7, 1 << 47] {
            assert_eq!(hint(&mut empty(), &rules, &words(0x200, 0x300), base), 0x200, "{base:x}");
        }
    }
}
