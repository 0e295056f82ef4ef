//! The unwind rule of one address in the code: where the caller's return address, stack pointer and frame pointer of a
//! function interrupted there are. DWARF's tables can express far more than compilers put into them; what these do
//! express for x86-64 at a call fits into 30 bits, and so an address and its rule fit into one word, which is read and
//! written whole.
//!
//! CFA, the canonical frame address, is DWARF's name for the caller's stack pointer (DWARF 5, section 6.4). The return
//! address always lies in the word below it: the `call` instruction put it there.

/// A rule, packed. Bits 0 to 2 the kind of its CFA rule, 3 to 7 the position of the frame pointer, 8 to 29 an offset in
/// words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule(u32);

/// How the CFA is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CfaRule {
    /// The CFA is the stack pointer plus this many bytes.
    Stack(usize),
    /// The CFA is the frame pointer plus this many bytes.
    Base(isize),
    /// The CFA is in the word at the frame pointer plus this many bytes: of functions that align their own frame.
    Indirect(isize),
    /// The kernel called a signal handler here: registers are in the context that it left on the stack.
    Signal,
    /// There is no caller: the first function of a thread or of the program.
    Outermost,
    /// No table covers the address, or its rule has no form here.
    Unknown,
}

/// Where the caller's frame pointer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base {
    /// Untouched, in its register.
    Same,
    /// This many bytes below the CFA.
    Below(usize),
    /// In the word that the frame pointer points to.
    Pointed,
}

/// Bits that a packed rule takes.
pub const BITS: u32 = 30;

const OFFSET_BITS: u32 = 22;
const POINTED: u32 = 31;

impl Rule {
    /// The rule of addresses without a known one.
    pub const UNKNOWN: Rule = Rule(6);

    /// Packs a rule; [`Rule::UNKNOWN`] when it does not fit.
    pub fn new(cfa_rule: CfaRule, base: Base) -> Rule {
        let (kind, bytes) = match cfa_rule {
            CfaRule::Stack(bytes) => (1, bytes as isize),
            CfaRule::Base(bytes) => (2, bytes),
            CfaRule::Indirect(bytes) => (3, bytes),
            CfaRule::Signal => (4, 0),
            CfaRule::Outermost => (5, 0),
            CfaRule::Unknown => return Rule::UNKNOWN,
        };
        let base = match base {
            Base::Same => 0,
            Base::Below(bytes) if bytes.is_multiple_of(8) && (1..POINTED as usize).contains(&(bytes / 8)) => {
                bytes as u32 / 8
            }
            Base::Below(_) => return Rule::UNKNOWN,
            Base::Pointed => POINTED,
        };
        let words = bytes / 8;
        let fits = (-(1 << (OFFSET_BITS - 1))..1 << (OFFSET_BITS - 1)).contains(&words);
        if bytes % 8 != 0 || !fits {
            return Rule::UNKNOWN;
        }
        let words = words as u32 & ((1 << OFFSET_BITS) - 1);
        Rule(kind | base << 3 | words << 8)
    }

    /// From the packed form, which [`Rule::packed`] returned.
    #[inline(always)]
    pub fn from_packed(packed: u32) -> Rule {
        Rule(packed)
    }

    /// [`BITS`] bits, not all zero.
    #[inline(always)]
    pub fn packed(self) -> u32 {
        self.0
    }

    #[inline(always)]
    fn bytes(self) -> isize {
        ((self.0 << 2) as i32 >> 10) as isize * 8
    }

    /// The offsets, in bytes, of a rule as most functions have: the CFA is the stack pointer plus the first, and the
    /// frame pointer lies the second below the CFA, or is untouched where that is 0.
    #[inline(always)]
    pub fn by_stack_pointer(self) -> Option<(usize, usize)> {
        let base = self.0 >> 3 & 31;
        (self.0 & 7 == 1 && base != POINTED).then(|| (self.bytes() as usize, base as usize * 8))
    }

    /// How the CFA is found.
    #[inline(always)]
    pub fn cfa_rule(self) -> CfaRule {
        let bytes = self.bytes();
        match self.0 & 7 {
            1 => CfaRule::Stack(bytes as usize),
            2 => CfaRule::Base(bytes),
            3 => CfaRule::Indirect(bytes),
            4 => CfaRule::Signal,
            5 => CfaRule::Outermost,
            _ => CfaRule::Unknown,
        }
    }

    /// Where the caller's frame pointer is.
    #[inline(always)]
    pub fn base(self) -> Base {
        match self.0 >> 3 & 31 {
            0 => Base::Same,
            POINTED => Base::Pointed,
            words => Base::Below(words as usize * 8),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn packing_keeps_everything(kind in 1..4, words in -(1isize << 21)..1 << 21, base in 0usize..=31) {
            let cfa_rule = match kind {
                1 => CfaRule::Stack(words.unsigned_abs().min((1 << 21) - 1) * 8),
                2 => CfaRule::Base(words * 8),
                _ => CfaRule::Indirect(words * 8),
            };
            let base = match base {
                0 => Base::Same,
                31 => Base::Pointed,
                words => Base::Below(words * 8),
            };
            let rule = Rule::from_packed(Rule::new(cfa_rule, base).packed());
            prop_assert_eq!((rule.cfa_rule(), rule.base()), (cfa_rule, base));
            let by_stack_pointer = match (cfa_rule, base) {
                (CfaRule::Stack(bytes), Base::Same) => Some((bytes, 0)),
                (CfaRule::Stack(bytes), Base::Below(below)) => Some((bytes, below)),
                _ => None,
            };
            prop_assert_eq!(rule.by_stack_pointer(), by_stack_pointer);
            prop_assert!(rule.packed() < 1 << BITS && rule.packed() != 0);
        }
    }

    #[test]
    fn what_does_not_fit_is_unknown() {
        for (cfa_rule, base) in [
            (CfaRule::Stack(1 << 24), Base::Same),
            (CfaRule::Stack(12), Base::Same),
            (CfaRule::Base(-(1 << 24) - 8), Base::Same),
            (CfaRule::Stack(8), Base::Below(31 * 8)),
            (CfaRule::Stack(8), Base::Below(4)),
            (CfaRule::Unknown, Base::Same),
        ] {
            assert_eq!(Rule::new(cfa_rule, base), Rule::UNKNOWN);
        }
        assert_eq!(Rule::UNKNOWN.cfa_rule(), CfaRule::Unknown);
        assert_eq!(Rule::new(CfaRule::Signal, Base::Same).cfa_rule(), CfaRule::Signal);
        assert_eq!(Rule::new(CfaRule::Outermost, Base::Same).cfa_rule(), CfaRule::Outermost);
    }
}
