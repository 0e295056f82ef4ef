//! Profiles as jemalloc and gperftools write them, and what is none.

use super::*;

const LIMIT: u64 = 1 << 20;
const JEMALLOC: &str = "heap_v2/1\n  t*: 3: 300 [0: 0]\n  t0: 3: 300 [0: 0]\n@ 0x401010 0x401020\n  t*: 2: 200 [0: 0]\n  \
    t0: 1: 100 [0: 0]\n  t1: 1: 100 [0: 0]\n@ 0x401030\n  t*: 1: 100 [0: 0]\n\nMAPPED_LIBRARIES:\n\
    400000-402000 r-xp 00000000 08:01 7 /bin/a\n";
const GPERFTOOLS: &str = "heap profile:  3: 300 [ 5: 500] @ heapprofile\n  2: 200 [ 4: 400] @ 0x00401010 0x401020\n  \
    1: 100 [ 1: 100] @ 0x401030\n\nMAPPED_LIBRARIES:\n400000-402000 r-xp 00000000 08:01 7 /bin/a\n";

/// Frames without names: the file and the address in it.
fn unnamed(mapped: &[Mapped], addresses: &[u64]) -> Vec<Vec<Frame>> {
    let frame = |&address: &u64| {
        let file = mapped.iter().find(|file| (file.start..file.end).contains(&address));
        let (object, start) = file.map_or((String::new(), 0), |file| (file.path.clone(), file.start));
        vec![Frame { object, offset: address - start, ..Frame::default() }]
    };
    addresses.iter().map(frame).collect()
}

fn rows(text: &str) -> Vec<(Vec<String>, Vec<u64>)> {
    let found = read(text.as_bytes(), LIMIT, &mut unnamed).unwrap().profile;
    let row = |stack: heaptoll_profiles::Stack<'_>| {
        let names = found.frames_of(stack.call).map(|frame| frame.name().into_owned()).collect();
        (names, stack.values.to_vec())
    };
    found.stacks().map(row).collect()
}

#[test]
fn stacks_have_the_sums_of_all_threads() {
    assert!(is_heap_text(JEMALLOC.as_bytes()) && is_heap_text(GPERFTOOLS.as_bytes()));
    let stacks = [vec!["a+0x1010".to_owned(), "a+0x1020".to_owned()], vec!["a+0x1030".to_owned()]];
    let [first, second] = stacks;
    assert_eq!(rows(JEMALLOC), [(first.clone(), vec![2, 200]), (second.clone(), vec![1, 100])]);
    assert_eq!(rows(GPERFTOOLS), [(first, vec![2, 200, 4, 400]), (second, vec![1, 100, 1, 100])]);
}

#[test]
fn a_sampled_profile_is_scaled_and_states_so() {
    let sampled = GPERFTOOLS.replace("heapprofile", "heap_v2/100");
    let found = read(sampled.as_bytes(), LIMIT, &mut unnamed).unwrap();
    // Objects of 100 bytes each: one in 1 / (1 - 1/e) is not sampled.
    assert_eq!(found.profile.total(Measure::EndBytes), 316 + 158);
    assert_eq!(found.profile.measures(), [Measure::EndObjects, Measure::EndBytes]);
    assert!(found.remarks[0].contains("100 B") && found.remarks[1].contains("not what was allocated"));
}

#[test]
fn what_is_no_heap_or_not_whole_is_refused() {
    let refused = |text: &str| read(text.as_bytes(), LIMIT, &mut unnamed).unwrap_err();
    let growth = "heap profile: 1: 8 [1: 8] @ growthz\n";
    assert!(is_heap_text(growth.as_bytes()));
    assert!(matches!(refused(growth), ReadError::NoHeap { .. }));
    for text in [JEMALLOC, GPERFTOOLS] {
        for end in [text.len() / 3, text.len() / 2, text.find(MAPPINGS).unwrap()] {
            assert!(matches!(refused(&text[..end]), ReadError::Malformed { .. }), "{}", &text[..end]);
        }
    }
    assert!(matches!(read(JEMALLOC.as_bytes(), 100, &mut unnamed), Err(ReadError::Memory { .. })));
    assert!(!is_heap_text(b"heap_v2/x\n") && !is_heap_text(b"# callgrind format"));
}
