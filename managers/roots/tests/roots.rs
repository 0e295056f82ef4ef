//! Roots: a pointer that lies in one place only is found there, and what cannot hold one is not read.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Mapping, Secret, alone, search, search_without};

#[test]
fn a_word_that_is_nowhere_is_not_found() {
    let _alone = alone(None, 5000);
    for _ in 0..20 {
        assert!(!search(Secret::new()).any());
    }
}

#[test]
fn a_word_in_anonymous_memory_is_found_and_left_out_with_its_range() {
    let _alone = alone(None, 5000);
    let secret = Secret::new();
    let mapping = Mapping::anonymous(1 << 20);
    for offset in [0, 4096, 8 * 4096 - 8, (1 << 20) - 8] {
        secret.write(mapping.word(offset));
        assert_eq!(search(secret).mapping, 1, "at {offset}");
        assert!(!search_without(&[mapping.range()], secret).any());
        let at = mapping.start + offset;
        assert!(!search_without(&[at..at + 8], secret).any(), "at {offset}");
        assert!(!search_without(&[at + 1..at + 2], secret).any(), "at {offset}");
        assert_eq!(
            search_without(&[mapping.start..at, at + 8..mapping.start + (1 << 20)], secret).mapping,
            1
        );
        // SAFETY: the word is the test's.
        unsafe { mapping.word(offset).write(0) };
    }
    assert!(!search(secret).any());
}

#[test]
fn a_static_word_is_found() {
    static ZEROED: AtomicUsize = AtomicUsize::new(0);
    static DATA: AtomicUsize = AtomicUsize::new(1);
    let _alone = alone(None, 5000);
    for place in [&ZEROED, &DATA] {
        let secret = Secret::new();
        secret.write(place.as_ptr());
        assert_eq!(search(secret).statics, 1);
        place.store(0, Ordering::Relaxed);
    }
}
