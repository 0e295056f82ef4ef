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
    // As gperftools writes it: what is in use, twice.
    let sampled = GPERFTOOLS.replace("heapprofile", "heap_v2/100").replace("4: 400", "2: 200");
    let found = read(sampled.as_bytes(), LIMIT, &mut unnamed).unwrap();
    // Objects of 100 bytes each: one in 1 / (1 - 1/e) is not sampled.
    assert_eq!(found.profile.total(Measure::EndBytes), 316 + 158);
    assert_eq!(found.profile.measures(), [Measure::EndObjects, Measure::EndBytes]);
    assert!(found.remarks[0].contains("100 B") && found.remarks[1].contains("not bytes allocated"));
}

/// Before, they were dropped in each sampled profile of this layout, and pprof showed them.
#[test]
fn bytes_allocated_of_a_sampled_profile_are_read_where_they_can_be_true() {
    let sampled = GPERFTOOLS.replace("heapprofile", "heap_v2/100");
    let allocated = |text: &str| {
        let found = read(text.as_bytes(), LIMIT, &mut unnamed).unwrap();
        let is_there = found.profile.measures().contains(&Measure::AllocatedBytes);
        is_there.then(|| found.profile.total(Measure::AllocatedBytes))
    };
    assert_eq!(allocated(&sampled), Some(633 + 158));
    for less in ["1: 400", "4: 100", "0: 0"] {
        assert_eq!(allocated(&sampled.replace("4: 400", less)), None, "{less}");
    }
}

#[test]
fn a_first_line_with_another_sum_than_the_call_stacks_is_remarked() {
    let remarks = |text: &str| read(text.as_bytes(), LIMIT, &mut unnamed).unwrap().remarks;
    assert_eq!(remarks(GPERFTOOLS), Vec::<String>::new());
    let other = GPERFTOOLS.replace("3: 300 [", "3: 900 [");
    assert_eq!(remarks(&other), ["its first line has 900 B in use, its call stacks have 300 B"]);
}

#[test]
fn what_is_no_heap_or_not_whole_is_refused() {
    let refused = |text: &str| read(text.as_bytes(), LIMIT, &mut unnamed).unwrap_err();
    let growth = "heap profile: 1: 8 [1: 8] @ growthz\n";
    assert!(is_heap_text(growth.as_bytes()));
    assert!(matches!(refused(growth), ReadError::NoHeap { .. }));
    for text in [JEMALLOC, GPERFTOOLS] {
        for end in [text.len() / 3, text.len() / 2, text.find("MAPPED").unwrap()] {
            assert!(matches!(refused(&text[..end]), ReadError::Malformed { .. }), "{}", &text[..end]);
        }
    }
    assert!(matches!(read(JEMALLOC.as_bytes(), 100, &mut unnamed), Err(ReadError::Memory { .. })));
    assert!(!is_heap_text(b"heap_v2/x\n") && !is_heap_text(b"# callgrind format"));
}

/// Before, a banner in front made it "no trace of heaptoll: it seems to be text".
#[test]
fn what_stands_in_front_is_passed_over_and_its_names_are_used() {
    let banner = "<jemalloc>: Leak approximation summary: ~300 bytes\n<jemalloc>: Run jeprof\n";
    for text in [JEMALLOC, GPERFTOOLS] {
        assert!(is_heap_text(format!("{banner}{text}").as_bytes()));
        assert_eq!(rows(&format!("{banner}{text}")), rows(text));
        let names = "--- symbol\nbinary=/bin/a\n0x401010 inner--outer\n0x40102f of_call\n---\n--- heap\n";
        let named = format!("{names}{text}");
        assert!(is_heap_text(named.as_bytes()) && is_heap_text(&named.as_bytes()[..30]));
        let found: Vec<Vec<String>> = rows(&named).into_iter().map(|(names, _)| names).collect();
        assert_eq!(found, [vec!["inner", "outer", "a+0x1020"], vec!["of_call"]]);
    }
    assert!(!is_heap_text(b"\x7fELF\0\nheap_v2/524288\n"));
}

#[test]
fn text_of_go_has_names_and_lines() {
    let go = "heap profile: 1: 1000 [3: 3000] @ heap/2\n1: 1000 [3: 3000] @ 0x47a2b5 0x47a100\n#\t0x47a2b4\tmain.leak+0x14\t\
              /tmp/x.go:10\n#\t0x47a0ff\tmain.main+0x3f\t/tmp/x.go:20\n\n\n# runtime.MemStats\n# Alloc = 5\n";
    assert_eq!(rows(go), [(vec!["main.leak".to_owned(), "main.main".to_owned()], vec![1, 1000, 3, 3000])]);
    let cut = &go[..go.find("# runtime").unwrap()];
    assert!(matches!(read(cut.as_bytes(), LIMIT, &mut unnamed), Err(ReadError::Malformed { .. })));
}

#[test]
fn a_wrong_line_is_named_with_its_number() {
    let wrong = JEMALLOC.replace("@ 0x401030", "@ 0x401030 zzz");
    let error = read(wrong.as_bytes(), LIMIT, &mut unnamed).unwrap_err().to_string();
    assert!(error.contains("line 8, `@ 0x401030 zzz`"), "{error}");
}
