use std::collections::HashMap;

use proptest::prelude::*;

use heaptoll_reftrace::Owner;

use super::*;
use crate::forest::WAYS;

/// One simple cache or memory: sets of lists in the order of use.
struct Naive {
    sets: Vec<Vec<u64>>,
    ways: usize,
    misses: Split<u64>,
}

impl Naive {
    fn new(sets: u64, ways: usize) -> Naive {
        Naive { sets: vec![Vec::new(); sets as usize], ways, misses: Split::default() }
    }

    fn reference(&mut self, accessor: Accessor, first: u64, end: u64) {
        let mut missed = false;
        for entry in first..=end {
            let count = self.sets.len() as u64;
            let set = &mut self.sets[(entry % count) as usize];
            match set.iter().position(|&other| other == entry) {
                Some(at) => {
                    set.remove(at);
                }
                None => missed = true,
            }
            set.insert(0, entry);
            set.truncate(self.ways);
        }
        *self.misses.get_mut(accessor) += u64::from(missed);
    }
}

/// A part of a stream.
#[derive(Debug, Clone)]
enum Part {
    References(Owner, Vec<Reference>),
    Kernel(u64, u64),
}

fn simulate(settings: &Settings, stream: &[Part]) -> Simulation {
    let mut simulation = Simulation::new(settings).unwrap();
    for part in stream {
        match part {
            Part::References(owner, references) => simulation.references(*owner, references),
            Part::Kernel(address, length) => simulation.kernel(*address, *length),
        }
    }
    simulation
}

/// Misses of the naive cache of lines or pages of this many bytes.
fn naive(settings: &Settings, bytes: u64, sets: u64, ways: usize, stream: &[Part]) -> Split<u64> {
    let mut cache = Naive::new(sets, ways);
    for part in stream {
        match part {
            Part::References(owner, references) => {
                for reference in references {
                    let end = reference.address() + reference.size() - 1;
                    cache.reference(Accessor::from(*owner), reference.address() / bytes, end / bytes);
                }
            }
            Part::Kernel(address, length) => {
                let line = settings.line_bytes;
                for at in address / line..(address + length).div_ceil(line) {
                    cache.reference(Accessor::System, at * line / bytes, at * line / bytes);
                }
            }
        }
    }
    cache.misses
}

fn agrees(settings: &Settings, stream: &[Part]) {
    let simulation = simulate(settings, stream);
    simulation.check().unwrap();
    let profile = simulation.finish();
    assert_eq!(profile.partial, None);
    for (curve, bytes) in [(&profile.lines, profile.line_bytes), (&profile.pages, profile.page_bytes)] {
        let curve = curve.as_ref().unwrap();
        assert_eq!(curve.references, profile.references);
        let ends = [curve.distinct.saturating_sub(1), curve.distinct, curve.distinct + 1];
        for entries in (1..70).chain(ends).filter(|&entries| entries > 0) {
            let misses = curve.misses(entries);
            let wanted = naive(settings, bytes, 1, entries as usize, stream);
            assert_eq!(
                Split::of(|accessor| misses.by.get(accessor).value),
                wanted,
                "{entries} entries of {bytes} bytes"
            );
            assert!(misses.total.is_exact() && misses.total.value == wanted.total());
        }
    }
    let powers = settings.sets.clone().unwrap();
    assert_eq!(profile.associative.len(), powers.clone().count() * WAYS);
    for cache in &profile.associative {
        let wanted = naive(settings, profile.line_bytes, cache.sets, cache.ways as usize, stream);
        assert_eq!(cache.misses, wanted, "{} sets of {} ways", cache.sets, cache.ways);
        assert_eq!(cache.bytes, cache.sets * u64::from(cache.ways) * profile.line_bytes);
    }
    for power in powers {
        assert!(profile.associative(1 << power, 4).is_some());
    }
    let text = serde_json::to_string(&profile).unwrap();
    assert_eq!(serde_json::from_str::<Profile>(&text).unwrap(), profile);
}

fn addresses() -> impl Strategy<Value = u64> {
    prop_oneof![
        (0_u64..1 << 9).prop_map(|at| 0x7fff_ffff_0000 + at),
        (0_u64..1 << 14).prop_map(|at| 0x10_0000 + at),
        (0_u64..1 << 20).prop_map(|at| 0x4000_0000 + at),
    ]
}

fn references() -> impl Strategy<Value = Vec<Reference>> {
    let one = (
        addresses(),
        prop_oneof![Just(1_u64), Just(4), Just(8), Just(16), Just(32), 1_u64..600],
        any::<bool>(),
    );
    prop::collection::vec(one.prop_map(|(address, size, store)| Reference::new(address, size, store)), 0..200)
}

fn sweeps() -> impl Strategy<Value = Vec<Reference>> {
    (addresses(), 1_u64..200, prop_oneof![Just(8_u64), Just(64), Just(72), Just(4096)], 1_u64..4).prop_map(
        |(from, count, stride, times)| {
            let once = (0..count).map(move |at| Reference::new(from + at * stride, 8, false));
            (0..times).flat_map(|_| once.clone()).collect()
        },
    )
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let owner = prop_oneof![Just(Owner::Program), Just(Owner::Allocator), Just(Owner::Collector)];
    let direct = (owner, prop_oneof![3 => references(), 1 => sweeps()])
        .prop_map(|(owner, references)| Part::References(owner, references));
    let kernel = (addresses(), 1_u64..5000).prop_map(|(address, length)| Part::Kernel(address, length));
    prop::collection::vec(prop_oneof![8 => direct, 1 => kernel], 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_size_and_shape_misses_as_a_naive_cache(
        stream in parts(),
        line in 3_u32..9,
        page in 0_u32..7,
        lowest in 0_u32..5,
        levels in 0_u32..5,
    ) {
        let settings = Settings {
            line_bytes: 1 << line,
            page_bytes: 1 << (line + page),
            sets: Some(lowest..=lowest + levels),
            ..Settings::default()
        };
        agrees(&settings, &stream);
    }
}

#[test]
fn streams_longer_than_a_batch_miss_as_in_a_naive_cache() {
    let mut state = 7_u64;
    let references: Vec<Reference> = (0..40_000_u64)
        .map(|step| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let address = if step % 3 == 0 { (state >> 40) & 0xffff } else { step * 8 % 20_000 };
            Reference::new(0x1000 + address, 8, step % 2 == 0)
        })
        .collect();
    let settings = Settings { sets: Some(5..=7), ..Settings::default() };
    agrees(&settings, &[Part::References(Owner::Program, references)]);
}

/// 12000 references of GNU sort with four lines of input, as Valgrind recorded them.
#[test]
fn a_real_stream_misses_as_in_naive_caches() {
    let words = include_bytes!("real.words");
    let references: Vec<Reference> =
        words.chunks_exact(8).map(|word| Reference(u64::from_le_bytes(word.try_into().unwrap()))).collect();
    assert!(references.len() > 10_000);
    let settings = Settings { sets: Some(4..=8), ..Settings::default() };
    let (half, rest) = references.split_at(references.len() / 2);
    agrees(
        &settings,
        &[
            Part::References(Owner::Program, half.to_vec()),
            Part::Kernel(0x001f_feff_f000, 4096),
            Part::References(Owner::Allocator, rest.to_vec()),
        ],
    );
}

#[test]
fn a_sweep_over_direct_mapped_sets_is_known() {
    // Twice through 128 lines: each of 64 sets has two lines, so one way never hits and two always do in the second
    // round.
    let sweep: Vec<Reference> =
        (0..256_u64).map(|at| Reference::new(0x10_0000 + at % 128 * 64, 8, false)).collect();
    let settings = Settings { sets: Some(5..=7), ..Settings::default() };
    let mut simulation = Simulation::new(&settings).unwrap();
    simulation.references(Owner::Collector, &sweep);
    let profile = simulation.finish();
    let misses = |sets, ways| profile.associative(sets, ways).unwrap().misses.collector;
    assert_eq!((misses(32, 1), misses(32, 3), misses(32, 4)), (256, 256, 128));
    assert_eq!((misses(64, 1), misses(64, 2), misses(128, 1)), (256, 128, 128));
}

#[test]
fn a_reference_over_two_lines_misses_once_when_any_is_missing() {
    let mut simulation = Simulation::new(&Settings::default()).unwrap();
    let both = Reference::new(0x1_003c, 8, false);
    let second = Reference::new(0x1_0040, 8, false);
    simulation.references(Owner::Program, &[both, second, both]);
    let profile = simulation.finish();
    let lines = profile.lines.unwrap();
    assert_eq!((profile.references.program, profile.straddling.program, lines.distinct), (3, 2, 2));
    // With one line the second of `both` evicts the first, so it misses again; with two it does not.
    assert_eq!((lines.misses(1).total.value, lines.misses(2).total.value), (2, 1));
}

#[test]
fn memory_that_is_over_ends_the_simulation_and_keeps_what_was_found() {
    let settings = Settings { memory_limit: 4 << 20, ..Settings::default() };
    let mut simulation = Simulation::new(&settings).unwrap();
    let pages: Vec<Reference> = (0..100_000_u64).map(|at| Reference::new(at * 4096 + 64, 8, true)).collect();
    simulation.references(Owner::Program, &pages);
    simulation.kernel(1 << 40, 1 << 30);
    simulation.references(Owner::Allocator, &pages);
    simulation.check().unwrap();
    let profile = simulation.finish();
    let Some(Partial::Memory { limit, unsimulated }) = profile.partial else { panic!("not partial") };
    let lines = profile.lines.unwrap();
    assert_eq!(limit, 4 << 20);
    assert!(profile.memory_bytes < 32 << 20, "{}", profile.memory_bytes);
    assert_eq!(profile.references.total(), 200_000 + (1 << 24));
    assert_eq!(lines.references.total() + unsimulated, profile.references.total());
    assert!(lines.references.program > 10_000 && unsimulated > 100_000);
}

#[test]
fn a_system_call_over_all_memory_ends_by_the_limit() {
    let settings = Settings { memory_limit: 8 << 20, ..Settings::default() };
    let mut simulation = Simulation::new(&settings).unwrap();
    simulation.kernel(u64::MAX - 100, 1 << 56);
    simulation.kernel(0, (1 << 56) - 1);
    let profile = simulation.finish();
    assert!(matches!(profile.partial, Some(Partial::Memory { unsimulated, .. }) if unsimulated > 1 << 49));
}

#[test]
fn memory_is_for_what_is_touched_and_not_for_how_often() {
    let sweep: Vec<Reference> =
        (0..1 << 16).map(|at: u64| Reference::new((1 << 30) + at * 64, 8, false)).collect();
    let mut simulation = Simulation::new(&Settings::default()).unwrap();
    simulation.references(Owner::Program, &sweep);
    simulation.references(Owner::Program, &sweep);
    let once = simulation.bytes();
    for _ in 0..10 {
        simulation.references(Owner::Program, &sweep);
    }
    assert_eq!(simulation.bytes(), once);
    let empty = Simulation::new(&Settings::default()).unwrap().bytes();
    let a_line = (once - empty) as f64 / sweep.len() as f64;
    assert!(a_line < 24.0, "{a_line} bytes a line");
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let good = Settings::default();
    for line_bytes in [0, 4, 63, 8192] {
        assert!(matches!(
            Simulation::new(&Settings { line_bytes, ..good.clone() }),
            Err(BadSettings::Line(_))
        ));
    }
    for page_bytes in [0, 32, 5000, 1 << 31] {
        assert!(matches!(
            Simulation::new(&Settings { page_bytes, ..good.clone() }),
            Err(BadSettings::Page(_))
        ));
    }
    #[expect(clippy::reversed_empty_ranges)]
    for sets in [9..=8, 5..=21] {
        assert!(matches!(
            Simulation::new(&Settings { sets: Some(sets), ..good.clone() }),
            Err(BadSettings::Sets(_))
        ));
    }
    for (shift, exact_lines) in [(0, 1024), (17, 1024), (4, 15)] {
        let sampling = Some(Sampling { shift, exact_lines, seed: 0 });
        let error = Simulation::new(&Settings { sampling, ..good.clone() }).err();
        assert!(error.is_some_and(|error| error.to_string().contains("at least 16")));
    }
}

/// The lines and pages found do not depend on how the stream is cut.
#[test]
fn cutting_a_stream_changes_nothing() {
    let stream: Vec<Reference> =
        (0..5000_u64).map(|at| Reference::new(0x1000 + at * at % 70_000, 1 + at % 16, at % 3 == 0)).collect();
    let whole = simulate(&Settings::default(), &[Part::References(Owner::Program, stream.clone())]);
    let cut: Vec<Part> =
        stream.chunks(13).map(|part| Part::References(Owner::Program, part.to_vec())).collect();
    let mut found: HashMap<bool, Profile> = HashMap::new();
    found.insert(false, whole.finish());
    found.insert(true, simulate(&Settings::default(), &cut).finish());
    assert_eq!(found[&false], found[&true]);
}
