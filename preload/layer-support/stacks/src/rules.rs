//! Rules that have been computed, by address: a table without locks for all threads and signal handlers.
//!
//! An element is one 64-bit word: the bits of the address that the element's index does not imply, and the rule. The
//! address is scrambled by a product with an odd number, which can be undone; so the index and the remaining bits
//! together are the address, and two addresses are never taken for one another. Later rules overwrite earlier ones: a
//! table that forgets only costs time.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::rule::{BITS, Rule};
use crate::system;

/// Bits of a user-space address.
const ADDRESS_BITS: u32 = 47;
/// Sets of two elements: 2^13, 128 KiB in all.
const SET_BITS: u32 = ADDRESS_BITS + BITS - u64::BITS;
pub const BYTES: usize = 2 << SET_BITS << 3;

/// Odd, with its bits spread.
const SCRAMBLE: u64 = 0x9E37_79B9_7F4A_7C15;

/// The table.
pub struct Rules {
    elements: NonNull<AtomicU64>,
}

// SAFETY: the elements are atomics, and the memory is never unmapped, so any thread may use it.
unsafe impl Sync for Rules {}
// SAFETY: the elements are atomics, and the memory is never unmapped, so any thread may use it.
unsafe impl Send for Rules {}

/// Index of an address's set, and the remaining bits of the address above a rule's.
#[inline(always)]
fn index_of(address: usize) -> (usize, u64) {
    let mixed = (address as u64).wrapping_mul(SCRAMBLE) & ((1 << ADDRESS_BITS) - 1);
    // Upper bits of the product are the mixed ones.
    let set = mixed >> (ADDRESS_BITS - SET_BITS);
    (set as usize * 2, mixed << BITS)
}

impl Rules {
    /// An empty table; `None` when the system provides no memory.
    pub fn new() -> Option<Rules> {
        Some(Rules { elements: system::map(BYTES, false)?.cast() })
    }

    #[inline(always)]
    fn element(&self, at: usize) -> &AtomicU64 {
        debug_assert!(at < BYTES / 8);
        // SAFETY: `at` is below the number of mapped elements (checked by the assertion; `index_of` returns no larger
        // index), which are zeroed or written as atomics.
        unsafe { self.elements.add(at).as_ref() }
    }

    /// The rule that was kept for an address.
    #[inline(always)]
    pub fn get(&self, address: usize) -> Option<Rule> {
        let (at, rest) = index_of(address);
        for at in [at, at + 1] {
            let word = self.element(at).load(Ordering::Relaxed);
            let packed = word as u32 & ((1 << BITS) - 1);
            if word & !((1 << BITS) - 1) == rest && packed != 0 {
                return Some(Rule::from_packed(packed));
            }
        }
        None
    }

    /// Keeps a rule for an address.
    pub fn put(&self, address: usize, rule: Rule) {
        if address >> ADDRESS_BITS != 0 {
            return;
        }
        let (at, rest) = index_of(address);
        let first = self.element(at);
        let old = first.load(Ordering::Relaxed);
        // The newer one goes first, and moves the previous one to the second element.
        first.store(rest | u64::from(rule.packed()), Ordering::Relaxed);
        self.element(at + 1).store(old, Ordering::Relaxed);
    }

    /// Forgets everything: code was unloaded.
    pub fn clear(&self) {
        for at in 0..BYTES / 8 {
            let element = self.element(at);
            if element.load(Ordering::Relaxed) != 0 {
                element.store(0, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use proptest::prelude::*;
    use std::collections::HashMap;

    use crate::rule::{Base, CfaRule};

    use super::*;

    proptest! {
        #[test]
        fn it_never_returns_a_rule_of_another_address(
            addresses in prop::collection::vec(prop_oneof![1usize..3000, (1usize << 46)..1 << 47], 1..4000),
        ) {
            let rules = Rules::new().unwrap();
            let mut model = HashMap::new();
            for (n, &address) in addresses.iter().enumerate() {
                let rule = Rule::new(CfaRule::Stack(n * 8), Base::Same);
                rules.put(address, rule);
                model.insert(address, rule);
                prop_assert_eq!(rules.get(address), Some(rule));
            }
            for (&address, &rule) in &model {
                prop_assert!([None, Some(rule)].contains(&rules.get(address)));
            }
            rules.clear();
            prop_assert!(addresses.iter().all(|&address| rules.get(address).is_none()));
        }
    }

    #[test]
    fn address_zero_is_not_there_before_it_was_put() {
        let rules = Rules::new().unwrap();
        assert_eq!(rules.get(0), None);
        rules.put(0, Rule::UNKNOWN);
        assert_eq!(rules.get(0), Some(Rule::UNKNOWN));
        rules.put(1 << 47, Rule::UNKNOWN);
        assert_eq!(rules.get(1), None);
    }
}
