//! Assertions of two grades. Each states an invariant in words, which are its name: the message of the panic, by which
//! `testing/faults/faults.toml` names the assertion that finds a seeded fault.
//!
//! - [`assert_internal!`] costs a few instructions and is evaluated at each pass.
//! - [`assert_expensive!`] walks a structure. It is evaluated at the first passes through its place, and then at every
//!   N-th ([`Passes`]): a defect that lasts is found, and a test of a million steps stays one of seconds.
//! - [`assert_sound!`] is expensive too: a function that checks a structure returns the invariant that does not hold.
//!
//! All of them are in builds with debug assertions: the tests, and the shells of the profile `checked`. Elsewhere
//! [`INTERNAL`] and [`EXPENSIVE`] are false, and the compiler removes condition and message. No feature and no cfg of
//! cargo's selects a grade: features are unified over a workspace, and a cfg builds everything twice.
#![no_std]

use core::sync::atomic::{AtomicU32, Ordering};

/// Whether internal assertions are evaluated.
pub const INTERNAL: bool = cfg!(debug_assertions);

/// Whether expensive assertions are evaluated, at the passes that [`Passes`] selects.
pub const EXPENSIVE: bool = cfg!(debug_assertions);

/// An expensive assertion is evaluated at its first passes, so many.
const FIRST: u32 = 32;
/// After these at every pass whose number is a multiple of this.
const EVERY: u32 = 64;

/// Counts the passes through the place of one expensive assertion.
#[derive(Debug)]
pub struct Passes(AtomicU32);

impl Passes {
    /// None yet.
    pub const fn new() -> Passes {
        Passes(AtomicU32::new(0))
    }

    /// Counts one pass; returns whether the assertion is to be evaluated.
    pub fn is_due(&self) -> bool {
        let passes = self.0.fetch_add(1, Ordering::Relaxed);
        passes < FIRST || passes.is_multiple_of(EVERY)
    }
}

impl Default for Passes {
    fn default() -> Passes {
        Passes::new()
    }
}

/// Panics with the invariant's name unless the condition holds. The name is a literal, the invariant in words.
#[macro_export]
macro_rules! assert_internal {
    ($condition:expr, $name:literal $(,)?) => {
        if $crate::INTERNAL {
            ::core::assert!($condition, $name);
        }
    };
}

/// As [`assert_internal!`], for a condition that takes more than a few instructions: evaluated at some passes.
#[macro_export]
macro_rules! assert_expensive {
    ($condition:expr, $name:literal $(,)?) => {
        if $crate::EXPENSIVE {
            static PASSES: $crate::Passes = $crate::Passes::new();
            if PASSES.is_due() {
                ::core::assert!($condition, $name);
            }
        }
    };
}

/// As [`assert_expensive!`], for a check that returns what is wrong: an error with a member `invariant`, which is the
/// name.
#[macro_export]
macro_rules! assert_sound {
    ($check:expr $(,)?) => {
        if $crate::EXPENSIVE {
            static PASSES: $crate::Passes = $crate::Passes::new();
            if PASSES.is_due()
                && let ::core::result::Result::Err(damage) = $check
            {
                ::core::panic!("{}", damage.invariant);
            }
        }
    };
}

/// Asserts the size and all offsets of a structure that processes of several builds have in common. It fails to compile.
#[macro_export]
macro_rules! layout {
    ($struct:ty, $bytes:expr, $($member:ident $offset:expr),* $(,)?) => {
        const _: () = {
            assert!(::core::mem::size_of::<$struct>() == $bytes);
            $(assert!(::core::mem::offset_of!($struct, $member) == $offset);)*
        };
    };
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::panic::{UnwindSafe, catch_unwind};
    use std::string::String;

    use super::*;

    struct Damage {
        invariant: &'static str,
    }

    fn message_of(action: impl FnOnce() + UnwindSafe) -> Option<String> {
        let payload = catch_unwind(action).err()?;
        let text = payload.downcast_ref::<&str>().map(|text| String::from(*text));
        text.or_else(|| payload.downcast_ref::<String>().cloned())
    }

    #[test]
    fn the_message_of_each_grade_is_the_name_of_the_invariant() {
        let holds = core::hint::black_box(false);
        let name = Some(String::from("lists end"));
        assert_eq!(message_of(|| assert_internal!(holds, "lists end")), name);
        assert_eq!(message_of(|| assert_expensive!(holds, "lists end")), name);
        let check = || if holds { Ok(()) } else { Err(Damage { invariant: "lists end" }) };
        assert_eq!(message_of(|| assert_sound!(check())), name);
    }

    #[test]
    fn what_holds_does_not_panic() {
        assert_eq!(message_of(|| assert_internal!(EXPENSIVE, "tests have debug assertions")), None);
        assert_eq!(message_of(|| assert_expensive!(INTERNAL, "tests have debug assertions")), None);
        assert_eq!(message_of(|| assert_sound!(Ok::<(), Damage>(()))), None);
    }

    #[test]
    fn an_expensive_assertion_is_evaluated_at_the_first_passes_and_then_at_some() {
        let passes = Passes::new();
        let evaluated = (0..1024).filter(|_| passes.is_due()).count();
        assert_eq!(evaluated, FIRST as usize + 1024 / EVERY as usize - 1);
        let mut count = 0;
        for _ in 0..1024 {
            assert_expensive!(
                {
                    count += 1;
                    true
                },
                "each place counts its own passes"
            );
        }
        assert_eq!(count, evaluated);
    }
}
