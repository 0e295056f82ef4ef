//! Made-up traces under every plan, each replay a process of its own.

mod common;

use std::path::Path;
use std::process::Command;

use common::{Scenario, program_of, trace_of};
use heaptoll_graph_replay::prepare::prepare;
use heaptoll_mmtk::collector;
use heaptoll_moving_answers::{Prepared, Replayed, Simulated};

const MIB: u64 = 1 << 20;

type Builder = Scenario<Vec<u8>>;

fn replay(program: &Path, plan: &str, heap_bytes: u64) -> Replayed {
    let output = Command::new(env!("CARGO_BIN_EXE_heaptoll-mmtk"))
        .arg("replay")
        .arg(program)
        .args([plan, &heap_bytes.to_string(), "1", "check"])
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{plan} in {heap_bytes} bytes: {}: {error}", output.status);
    let answer: Replayed = serde_json::from_slice(&output.stdout).unwrap();
    assert!(!answer.collections.is_wrong(), "{plan}: {:?}", answer.collections);
    answer
}

/// Replays under each plan that collects.
fn under_each_plan(
    heap_bytes: u64,
    make: impl FnOnce(&mut Builder),
    mut see: impl FnMut(&str, &Replayed),
) -> Prepared {
    let (_folder, trace) = trace_of(make);
    let program = program_of(&trace);
    let prepared = prepare(&trace, &program, 1 << 30).unwrap();
    for collector in collector::all().filter(|collector| collector.collects()) {
        let answer = replay(&program, collector.name(), heap_bytes);
        see(collector.name(), &answer);
    }
    prepared
}

fn fits(plan: &str, answer: &Replayed) {
    assert!(answer.fits, "{plan}: {answer:?}");
    assert!(answer.collections.checked > 0, "{plan}: {answer:?}");
}

/// Lists of a mebibyte each; `link` sees the first and the last node of each.
fn lists(scenario: &mut Builder, count: u64, mut link: impl FnMut(&mut Builder, u64, u64)) {
    for _ in 0..count {
        let first = scenario.allocate(1024);
        let mut last = first;
        for _ in 1..1024 {
            let node = scenario.allocate(1024);
            scenario.set(node, 0, last);
            last = node;
        }
        link(scenario, first, last);
    }
}

#[test]
fn lists_that_are_dropped_are_collected() {
    under_each_plan(16 * MIB, |scenario| lists(scenario, 48, |scenario, _, _| scenario.roots(&[])), fits);
}

#[test]
fn cycles_that_are_dropped_are_collected() {
    let drop_cycle = |scenario: &mut Builder, first, last| {
        scenario.set(first, 0, last);
        scenario.roots(&[]);
    };
    under_each_plan(16 * MIB, |scenario| lists(scenario, 48, drop_cycle), fits);
}

#[test]
fn lists_that_are_roots_do_not_fit_and_the_answer_states_what_was_live() {
    let mut roots = Vec::new();
    let keep = |scenario: &mut Builder, _, last| {
        roots.push(last);
        scenario.roots(&roots);
    };
    under_each_plan(
        16 * MIB,
        |scenario| lists(scenario, 48, keep),
        |plan, answer| {
            assert!(!answer.fits, "{plan}: {answer:?}");
            assert!((4 * MIB..17 * MIB).contains(&answer.live_bytes), "{plan}: {answer:?}");
        },
    );
}

#[test]
fn an_interior_pointer_keeps_an_object_that_is_not_touched_again() {
    let make = |scenario: &mut Builder| {
        let holder = scenario.allocate(64);
        let kept = scenario.allocate(4096);
        scenario.touch(kept);
        scenario.set_inside(holder, 3, kept, 4000);
        lists(scenario, 48, |scenario, _, _| scenario.roots(&[holder]));
        scenario.touch(holder);
    };
    under_each_plan(16 * MIB, make, |plan, answer| {
        fits(plan, answer);
        let each = &answer.collections;
        assert!(each.reached_objects >= 2 * each.checked, "{plan}: {answer:?}");
        assert_eq!(each.hidden, 0, "{plan}: {answer:?}");
    });
}

#[test]
fn an_object_is_kept_to_its_last_touch_although_nothing_points_to_it_and_is_counted() {
    let make = |scenario: &mut Builder| {
        let hidden = scenario.allocate(4096);
        let inner = scenario.allocate(64);
        scenario.set(hidden, 0, inner);
        lists(scenario, 48, |scenario, _, _| scenario.roots(&[]));
        scenario.touch(hidden);
        lists(scenario, 4, |scenario, _, _| scenario.roots(&[hidden]));
    };
    under_each_plan(16 * MIB, make, |plan, answer| {
        fits(plan, answer);
        assert!(answer.collections.hidden > 0, "{plan}: {answer:?}");
        // What it points to is reached through it.
        assert_eq!(answer.collections.most_hidden, 1, "{plan}: {answer:?}");
    });
}

#[test]
fn an_edge_that_is_overwritten_lets_go_and_one_that_is_kept_does_not() {
    let make = |words: u64| {
        move |scenario: &mut Builder| {
            let holder = scenario.allocate(8 * words);
            for round in 0..48 * 1024 {
                let node = scenario.allocate(1000);
                scenario.set(holder, round % words, node);
                if round % 256 == 0 {
                    scenario.roots(&[holder]);
                }
            }
            scenario.touch(holder);
        }
    };
    under_each_plan(16 * MIB, make(100), fits);
    under_each_plan(16 * MIB, make(48 * 1024), |plan, answer| assert!(!answer.fits, "{plan}: {answer:?}"));
}

#[test]
fn a_word_that_pointed_to_a_freed_object_keeps_it_no_longer() {
    let make = |scenario: &mut Builder| {
        let holder = scenario.allocate(8 * 48);
        let mut word = 0;
        lists(scenario, 48, |scenario, _, last| {
            scenario.set(holder, word, last);
            word += 1;
            scenario.free(last);
            scenario.roots(&[holder]);
        });
        scenario.touch(holder);
    };
    let prepared = under_each_plan(16 * MIB, make, fits);
    assert_eq!(prepared.dangling, 48);
}

#[test]
fn objects_of_megabytes_hold_references_too() {
    let make = |scenario: &mut Builder| {
        let words = 3 * MIB / 8;
        let large = scenario.allocate(3 * MIB);
        let kept = scenario.allocate(48);
        scenario.set(large, words - 1, kept);
        lists(scenario, 48, |scenario, _, _| scenario.roots(&[large]));
        scenario.touch(large);
    };
    under_each_plan(24 * MIB, make, |plan, answer| {
        fits(plan, answer);
        assert!(answer.collections.reached_objects >= 2 * answer.collections.checked, "{plan}: {answer:?}");
    });
}

/// Objects of random sizes that point to each other at random. Those of the table `roots` are roots, a few hundred.
fn random(scenario: &mut Builder, seed: u64) {
    use rand::{Rng, SeedableRng};
    let mut numbers = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    let mut roots: Vec<(u64, u64)> = Vec::new();
    for round in 0..60_000_u64 {
        let words = if numbers.random_ratio(1, 500) { 8000 } else { numbers.random_range(1..150) };
        let new = (scenario.allocate(8 * words), words);
        // Fewer edges than objects: otherwise everything would stay reachable through some chain.
        for _ in 0..(round % 5).min(2) {
            let Some(&(other, others_words)) = pick(&roots, &mut numbers) else { continue };
            match numbers.random_range(0..4) {
                0 | 1 => scenario.set(new.0, numbers.random_range(0..words), other),
                2 => scenario.set(other, numbers.random_range(0..others_words), new.0),
                _ => scenario.clear(other, numbers.random_range(0..others_words)),
            }
        }
        let at = numbers.random_range(0..300);
        match roots.get_mut(at) {
            Some(root) => {
                let old = std::mem::replace(root, new).0;
                if numbers.random_ratio(1, 3) {
                    scenario.free(old);
                } else if numbers.random_ratio(1, 2) {
                    // The graph and its last touch keep it, and pointers that were loaded from it.
                    scenario.touch(old);
                }
            }
            None => roots.push(new),
        }
        if round % 500 == 0 {
            scenario.roots(&roots.iter().map(|(object, _)| *object).collect::<Vec<_>>());
        }
    }
}

fn pick<'a>(from: &'a [(u64, u64)], numbers: &mut impl rand::Rng) -> Option<&'a (u64, u64)> {
    (!from.is_empty()).then(|| &from[numbers.random_range(0..from.len())])
}

#[test]
fn random_graphs_are_kept_as_the_trace_has_them() {
    for seed in 0..2 {
        under_each_plan(
            24 * MIB,
            |scenario| random(scenario, seed),
            |plan, answer| {
                fits(plan, answer);
                assert!(answer.collections.reached_objects > 300, "{plan}: {answer:?}");
            },
        );
    }
}

#[test]
fn without_a_collector_nothing_is_collected_and_everything_fits() {
    let (_folder, trace) = trace_of(|scenario| lists(scenario, 8, |scenario, _, _| scenario.roots(&[])));
    let program = program_of(&trace);
    prepare(&trace, &program, 1 << 30).unwrap();
    let answer = replay(&program, "nogc", MIB);
    assert!(answer.fits);
    assert_eq!((answer.objects, answer.collections.pauses_ns.len()), (8 * 1024, 0));
}

#[test]
fn copying_collectors_copy_and_the_others_do_not() {
    let make = |scenario: &mut Builder| {
        let mut kept = 0;
        lists(scenario, 48, |scenario, _, last| {
            if kept == 0 {
                kept = last;
            }
            scenario.roots(&[kept]);
        });
        scenario.touch(kept);
    };
    under_each_plan(16 * MIB, make, |plan, answer| match plan {
        "semispace" | "gencopy" | "genimmix" => assert!(answer.copied_bytes > MIB, "{plan}: {answer:?}"),
        "marksweep" | "immix,moving=off" => assert_eq!(answer.copied_bytes, 0, "{plan}"),
        _ => {}
    });
}

#[test]
fn the_smallest_heap_of_a_copying_collector_is_nearly_twice_that_of_one_in_place() {
    let (_folder, trace) = trace_of(|scenario| {
        let mut roots = Vec::new();
        lists(scenario, 10, |scenario, _, last| {
            roots.push(last);
            scenario.roots(&roots);
        });
        lists(scenario, 4, |scenario, _, _| scenario.roots(&roots));
        roots.iter().for_each(|root| scenario.touch(*root));
    });
    let program = program_of(&trace);
    prepare(&trace, &program, 1 << 30).unwrap();
    let fits = |plan: &str, heap_bytes: u64| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_heaptoll-mmtk"));
        command.arg("replay").arg(&program).args([plan, &heap_bytes.to_string(), "1", "unchecked"]);
        let answer = serde_json::from_slice(&command.output().unwrap().stdout).ok();
        // A collector that finds no memory to copy into may end without an answer.
        answer.is_some_and(|answer: Replayed| answer.fits)
    };
    let smallest = |plan: &str| {
        let (mut too_small, mut enough) = (0, 64 * MIB);
        while enough - too_small > MIB / 4 {
            let middle = too_small.midpoint(enough);
            *(if fits(plan, middle) { &mut enough } else { &mut too_small }) = middle;
        }
        enough as f64
    };
    let ratio = smallest("semispace") / smallest("marksweep");
    assert!((1.5..2.2).contains(&ratio), "{ratio}");
}

/// Replays with the caches of a machine, and a collection every so many bytes, under every collector.
fn simulated(every: u64, make: impl FnOnce(&mut Builder), mut see: impl FnMut(&str, &Replayed, &Simulated)) {
    let (_folder, trace) = trace_of(make);
    let program = program_of(&trace);
    let prepared = prepare(&trace, &program, 1 << 30).unwrap();
    let machine = "32K/8,1M/16".parse::<heaptoll_locality::machine::Machine>().unwrap();
    let machine = serde_json::to_string(&machine).unwrap();
    for collector in collector::all() {
        let mut command = Command::new(env!("CARGO_BIN_EXE_heaptoll-mmtk"));
        command.arg("simulate").arg(&program);
        command.args([collector.name(), &(64 * MIB).to_string(), "1", &machine, &every.to_string()]);
        let output = command.output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{}: {error}", collector.name());
        let answer: Replayed = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((answer.accesses, answer.lost_accesses), (prepared.accesses, 0), "{}", collector.name());
        see(collector.name(), &answer, answer.simulated.as_ref().unwrap());
    }
}

/// Twice over 1024 lines of one object: more than the first cache has, less than the second.
#[test]
fn a_program_whose_misses_are_known_has_them_under_every_collector() {
    const LINES: u64 = 1024;
    let make = |scenario: &mut Builder| {
        let object = scenario.allocate(64 * (LINES + 1));
        scenario.request(|scenario| {
            for access in 0..2 * LINES {
                scenario.access(object, 64 * (1 + access % LINES), access % 2 == 1);
            }
        });
    };
    simulated(0, make, |plan, answer, found| {
        assert_eq!(answer.collections.pauses_ns.len(), 0, "{plan}");
        for caches in [&found.touched, &found.emptied] {
            assert_eq!(caches.references.program, 2 * LINES, "{plan}");
            let misses: Vec<u64> = caches.misses.iter().map(|level| level.program).collect();
            assert_eq!(misses, [2 * LINES, LINES], "{plan}");
            // 64 KiB are 17 pages where they do not begin with one; the header's may be one of them.
            assert!((15..=17).contains(&caches.tlb_misses[0].program), "{plan}: {caches:?}");
        }
        let cycles = 2 * LINES + LINES * 200 + LINES * 14;
        let [request] = &found.requests[..] else { panic!("{plan}: {found:?}") };
        assert_eq!((request.accesses, request.cycles), (2 * LINES, [cycles, cycles]), "{plan}");
    });
}

/// Requests load a list after every sixteenth of a mebibyte of garbage; collections come every mebibyte.
#[test]
fn collections_on_request_come_at_the_same_places_of_the_program_and_empty_caches_miss_more() {
    let make = |scenario: &mut Builder| {
        let nodes: Vec<u64> = (0..64).map(|_| scenario.allocate(64)).collect();
        scenario.roots(&nodes);
        for _ in 0..256 {
            (0..16).for_each(|_| {
                let garbage = scenario.allocate(4096);
                scenario.free(garbage);
            });
            scenario.roots(&nodes);
            scenario.request(|scenario| nodes.iter().for_each(|node| scenario.access(*node, 0, false)));
        }
    };
    simulated(MIB, make, |plan, answer, found| {
        let on_request = answer.collections.pauses_ns.len();
        let ours = ["mostlycopying", "counting", "treadmill", "nogc"].contains(&plan);
        assert!(ours || on_request == 15 || on_request == 16, "{plan}: {on_request} collections");
        assert_eq!((found.requests.len(), found.requests[0].accesses), (256, 64), "{plan}");
        let after = found.requests.last().unwrap().after;
        assert!(ours || after as usize == on_request, "{plan}: {after}");
        let [touched, emptied] = [&found.touched, &found.emptied].map(|caches| caches.misses[1].program);
        assert!(touched <= emptied, "{plan}: {touched} {emptied}");
        if !ours {
            let first =
                found.requests.iter().find(|request| request.since == 0 && request.after == 4).unwrap();
            assert!(first.cycles[1] > first.cycles[0] + 32 * 100, "{plan}: {first:?}");
        }
    });
}
