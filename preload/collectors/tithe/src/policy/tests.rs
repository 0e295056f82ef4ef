//! Tests of the policies: properties of single budgets, and simulated programs.

extern crate std;

use proptest::prelude::*;

use super::*;

const MIB: usize = 1 << 20;
/// The headroom of the tests' policies in mode `collect`, whatever the defaults are.
const PERCENT: usize = 60;
const ON_TOP: usize = 2 * MIB;

fn policy(change: impl FnOnce(&mut Settings)) -> Policy {
    let mut settings = Settings {
        mode: Mode::Collect,
        headroom: PERCENT,
        min_headroom: ON_TOP,
        adaptive: false,
        ..Settings::new()
    };
    change(&mut settings);
    let mut policy = Policy::new();
    policy.configure(&settings);
    policy
}

fn hybrid() -> Policy {
    policy(|settings| {
        *settings = Settings { headroom: 100, min_headroom: 16 * MIB, adaptive: false, ..Settings::new() };
    })
}

/// A collection that came when the budget was exhausted, of a program that allocates as fast as it is marked.
fn cycle(policy: &Policy, live: usize) -> Cycle {
    let allocated = policy.budget;
    Cycle {
        live,
        allocated,
        roots: 0,
        mark_ns: live as u64,
        stop_ns: 0,
        mutator_ns: allocated as u64,
        reclaimed: allocated / 2,
        processors: 1,
        mode: Mode::Collect,
    }
}

#[test]
fn a_period_is_the_budget_whatever_rule_and_collection() {
    for every in [1, 1000, 64 << 10, 1 << 40] {
        for rule in [Rule::Proportional, Rule::Fixed, Rule::Zorn1992, Rule::MemBalancer] {
            let mut policy = policy(|settings| {
                *settings = Settings { every: Some(every), rule, max_heap: Some(MIB), ..*settings };
            });
            assert_eq!(policy.first(), every);
            for live in [0, MIB, 1 << 40] {
                assert_eq!(policy.next(&cycle(&policy, live)), every);
            }
            assert_eq!(
                [policy.abandoned(), policy.abandoned(), policy.abandoned()],
                [every, 2 * every, 4 * every]
            );
            assert_eq!(policy.next(&cycle(&policy, 0)), every);
            assert_eq!(policy.abandoned(), every);
        }
    }
}

/// A program that allocates `total` bytes and frees nothing itself. `live` returns how many bytes it can still reach
/// when it has allocated a number of them.
struct Run {
    collections: usize,
    /// Most bytes in blocks, dead ones included.
    peak: usize,
}

fn run(policy: &mut Policy, mode: Mode, total: usize, live: impl Fn(usize) -> usize) -> Run {
    run_at_cost(policy, mode, total, live, |found| found as u64)
}

/// The same where a collection takes so many ns.
fn run_at_cost(
    policy: &mut Policy,
    mode: Mode,
    total: usize,
    live: impl Fn(usize) -> usize,
    cost: impl Fn(usize) -> u64,
) -> Run {
    let mut run = Run { collections: 0, peak: 0 };
    let (mut allocated, mut kept, mut budget) = (0, 0, policy.first());
    while allocated < total {
        let step = budget.min(total - allocated);
        allocated += step;
        run.peak = run.peak.max(kept + step);
        if step < budget {
            break;
        }
        let found = live(allocated).min(kept + step);
        budget = policy.next(&Cycle {
            live: found,
            allocated: step,
            roots: 0,
            mark_ns: cost(found),
            stop_ns: 0,
            mutator_ns: step as u64,
            reclaimed: kept + step - found,
            processors: 1,
            mode,
        });
        kept = found;
        run.collections += 1;
    }
    run
}

#[test]
fn a_steady_heap_stays_within_its_headroom() {
    let outcome = run(&mut policy(|_| ()), Mode::Collect, 1024 * MIB, |allocated| allocated.min(10 * MIB));
    assert!(outcome.peak <= 18 * MIB, "{} bytes", outcome.peak);
    assert!((125..=135).contains(&outcome.collections), "{} collections", outcome.collections);
}

#[test]
fn a_growing_heap_is_collected_a_logarithm_of_times() {
    let outcome = run(&mut policy(|_| ()), Mode::Collect, 1024 * MIB, |allocated| allocated / 2);
    assert!((10..=40).contains(&outcome.collections), "{} collections", outcome.collections);
    assert!(outcome.peak <= 512 * MIB * 8 / 5 + ON_TOP, "{} bytes", outcome.peak);
}

#[test]
fn a_leak_in_hybrid_is_bounded_by_the_headroom() {
    // All bytes counted against the budget are leaked.
    let outcome = run(&mut hybrid(), Mode::Hybrid, 4096 * MIB, |allocated| allocated.min(100 * MIB));
    // The first growth is no leak, so the headroom doubles, perhaps twice, and shrinks again.
    assert!(outcome.peak <= (100 + 4 * 116) * MIB, "{} bytes", outcome.peak);
    assert!((30..=50).contains(&outcome.collections), "{} collections", outcome.collections);
}

#[test]
fn hybrid_collects_more_rarely_where_nothing_leaks_and_more_often_when_it_pays() {
    let mut policy = hybrid();
    let none = |policy: &Policy| Cycle { mode: Mode::Hybrid, reclaimed: 0, ..cycle(policy, 100 * MIB) };
    let budgets = [(); 4].map(|()| policy.next(&none(&policy.clone())));
    assert_eq!(budgets, [232 * MIB, 464 * MIB, 464 * MIB, 464 * MIB]);
    let leak = |policy: &Policy| Cycle { reclaimed: policy.budget, ..none(policy) };
    let budgets = [(); 3].map(|()| policy.next(&leak(&policy.clone())));
    assert_eq!(budgets, [232 * MIB, 116 * MIB, 116 * MIB]);
}

#[test]
fn little_is_below_ten_percent_and_much_from_twenty_five() {
    for (share, after) in [(0, 464), (9, 464), (10, 232), (24, 232), (25, 116), (100, 116)] {
        let mut policy = hybrid();
        let found = |policy: &Policy, share: usize| Cycle {
            mode: Mode::Hybrid,
            reclaimed: (policy.budget * share).div_ceil(100),
            ..cycle(policy, 100 * MIB)
        };
        // Doubled once.
        policy.next(&found(&policy.clone(), 0));
        assert_eq!(policy.next(&found(&policy.clone(), share)), after * MIB, "{share} %");
    }
}

#[test]
fn mode_collect_does_not_double_its_headroom() {
    let mut policy = policy(|_| ());
    for _ in 0..5 {
        let nothing = Cycle { reclaimed: 0, ..cycle(&policy, 100 * MIB) };
        assert_eq!(policy.next(&nothing), 60 * MIB + ON_TOP);
    }
}

/// A cycle in which collecting took a given percentage of the program's time.
fn costing(policy: &Policy, percent: u64) -> Cycle {
    Cycle { mutator_ns: 1_000_000, mark_ns: percent * 10_000 + 1, ..cycle(policy, 100 * MIB) }
}

#[test]
fn expensive_collections_are_paid_for_with_memory_up_to_a_bound_and_cheap_ones_give_it_back() {
    let mut policy = policy(|settings| settings.adaptive = true);
    let quarters = |quarters: usize| 100 * MIB * PERCENT * quarters / 400 + ON_TOP;
    for step in 1..20 {
        let budget = policy.next(&costing(&policy.clone(), EXPENSIVE));
        assert_eq!(budget, quarters((4 + step).min(COLLECT_QUARTERS)));
    }
    assert_eq!(
        policy.next(&costing(&policy.clone(), CHEAP)),
        quarters(COLLECT_QUARTERS),
        "neither expensive nor cheap"
    );
    for step in 1..20 {
        let budget = policy.next(&Cycle { mark_ns: 1, ..costing(&policy.clone(), 0) });
        assert_eq!(budget, quarters(COLLECT_QUARTERS.saturating_sub(step).max(4)));
    }
}

#[test]
fn where_threads_wait_for_a_processor_to_stop_the_budget_grows_further() {
    let mut policy = policy(|settings| settings.adaptive = true);
    let waiting = |policy: &Policy| {
        let cycle = costing(policy, 10 * EXPENSIVE);
        Cycle { stop_ns: cycle.mark_ns * 9 / 10, ..cycle }
    };
    let budgets = [(); 40].map(|()| policy.next(&waiting(&policy.clone())));
    assert!(budgets.is_sorted() && budgets[39] > 5 * budgets[0], "{budgets:?}");
    assert_eq!(budgets[39], budgets[38], "there is a bound");
    let mut back = 0;
    while policy.next(&costing(&policy.clone(), 10 * EXPENSIVE))
        > 100 * MIB * PERCENT * COLLECT_QUARTERS / 400 + ON_TOP
    {
        back += 1;
        assert!(back < 40, "it comes back when threads stop at once");
    }
}

#[test]
fn in_mode_guard_the_budget_grows_only_where_threads_wait_to_stop() {
    let mut policy = policy(|settings| settings.adaptive = true);
    let guarded = |policy: &Policy| Cycle { mode: Mode::Guard, ..costing(policy, 10 * EXPENSIVE) };
    let first = policy.next(&guarded(&policy.clone()));
    let next = [(); 10].map(|()| policy.next(&guarded(&policy.clone())));
    assert_eq!(next, [first; 10], "collections that cost much come as often");
    let waiting = |policy: &Policy| {
        let cycle = guarded(policy);
        Cycle { stop_ns: cycle.mark_ns * 9 / 10, ..cycle }
    };
    let grown = [(); 10].map(|()| policy.next(&waiting(&policy.clone())));
    assert!(grown[9] > 2 * first, "{grown:?}");
}

#[test]
fn the_budget_of_a_small_heap_follows_the_cost_of_a_collection_up_to_a_bound() {
    let policy = || Policy {
        budget: LEAST,
        ..policy(|settings| (settings.min_headroom, settings.cost_headroom) = (LEAST, MIB))
    };
    // 60 us are 6 % of a millisecond, in which the program allocates so much.
    let empty = |allocated| Cycle {
        allocated,
        reclaimed: allocated,
        mark_ns: 60_000,
        mutator_ns: 1_000_000,
        ..cycle(&policy(), 0)
    };
    for (allocated, budget) in [(1000, LEAST), (300_000, 300_000), (MIB, MIB), (2 * MIB, MIB)] {
        assert_eq!(policy().next(&empty(allocated)), budget);
    }
    let mut policy = policy();
    policy.next(&empty(300_000));
    let expensive = Cycle { mark_ns: 600_000, ..empty(300_000) };
    assert_eq!(policy.next(&expensive), 300_000, "what is read is no fixed cost");
    let large = Cycle { live: 100 * MIB, ..expensive };
    assert_eq!(policy.next(&large), 60 * MIB + LEAST, "the share suffices");
    let live = Cycle { live: 100 * MIB, ..empty(200 * MIB) };
    assert_eq!(policy.next(&live), 61 * MIB, "the bound is on top of the share");
    for (processors, budget) in [(2, 62 * MIB), (8, 68 * MIB), (64, 68 * MIB)] {
        let with_threads = Cycle { processors, ..live };
        assert_eq!(policy.next(&with_threads), budget, "the bound is for each processor, up to eight");
    }
}

#[test]
fn a_heap_that_grows_is_collected_at_the_same_sizes_whatever_its_first_collections_cost() {
    let run = |live: fn(usize) -> usize, cost: fn(usize) -> u64| {
        let mut policy = policy(|settings| (settings.min_headroom, settings.cost_headroom) = (LEAST, MIB));
        let Run { collections, peak } = run_at_cost(&mut policy, Mode::Collect, 64 * MIB, live, cost);
        (collections, peak)
    };
    let some = |found: usize| found as u64 / 10;
    let grows = |allocated: usize| allocated / 2;
    assert_eq!(run(grows, |_| 0), run(grows, some));
    let steady = |allocated: usize| allocated.min(MIB / 4);
    assert!(run(steady, some).0 < run(steady, |_| 0).0 * 2 / 3);
}

#[test]
fn the_first_collection_comes_where_the_cost_of_one_would_demand_it_at_most() {
    let first = |change: fn(&mut Settings)| {
        let settings = &mut Settings { min_headroom: LEAST, cost_headroom: MIB, ..Settings::new() };
        change(settings);
        let mut policy = Policy::new();
        policy.configure(settings);
        policy.first()
    };
    assert_eq!(first(|_| ()), LEAST + MIB);
    assert_eq!(first(|settings| settings.cost_headroom = usize::MAX), MOST);
    assert_eq!(
        first(|settings| settings.cost_headroom = 0),
        LEAST,
        "a headroom that is set is used as it is"
    );
    assert_eq!(first(|settings| settings.max_heap = Some(MIB)), MIB);
    assert_eq!(first(|settings| settings.rule = Rule::MemBalancer), LEAST);
}

#[test]
fn the_noise_of_a_small_heap_is_no_growth() {
    let mut policy = policy(|settings| (settings.min_headroom, settings.cost_headroom) = (LEAST, MIB));
    // 60 us are 6 % of the time in which the program allocates 1 MiB.
    let mut next = |live| {
        let cycle =
            Cycle { live, allocated: MIB, mark_ns: 60_000, mutator_ns: 1_000_000, ..cycle(&policy, 0) };
        policy.next(&cycle)
    };
    for live in [10_000, 30_000, 10_000, 100_000, 230_000, 40_000, 170_000] {
        assert_eq!(next(live), MIB, "{live} live");
    }
    let share = |live: usize| live * PERCENT / 100;
    assert_eq!(next(302_000), share(302_000) + LEAST, "an eighth of what was allocated");
    assert_eq!(next(302_000), MIB);
    assert_eq!(next(4 * MIB), share(4 * MIB) + LEAST);
    assert_eq!(next(4 * MIB + MIB / 2), share(4 * MIB + MIB / 2) + LEAST, "the share suffices");
}

/// As with TITHE_RECLAIM, where most collections reclaim nothing.
#[test]
fn a_heap_of_which_nothing_is_reclaimed_does_not_grow_by_what_is_dead() {
    let mut policy = policy(|settings| (settings.min_headroom, settings.cost_headroom) = (LEAST, MIB));
    for _ in 0..5 {
        let cycle = Cycle {
            reclaimed: 0,
            allocated: MIB,
            mark_ns: 60_000,
            mutator_ns: 1_000_000,
            ..cycle(&policy, 1000)
        };
        assert_eq!(policy.next(&cycle), MIB);
    }
}

#[test]
fn a_headroom_set_by_the_user_is_used_as_it_is() {
    let mut policies = [policy(|_| ()), hybrid()];
    for policy in &mut policies {
        let mode = if policy.headroom == 100 { Mode::Hybrid } else { Mode::Collect };
        let first = policy.next(&Cycle { mode, ..costing(&policy.clone(), 10 * EXPENSIVE) });
        assert_eq!(policy.next(&Cycle { mode, ..costing(&policy.clone(), 10 * EXPENSIVE) }), first);
    }
}

#[test]
fn a_requested_collection_does_not_adjust_the_budget() {
    let mut hybrid = hybrid();
    let mut zorn = policy(|settings| settings.rule = Rule::Zorn1992);
    for _ in 0..10 {
        let called = Cycle { allocated: 0, reclaimed: 0, mode: Mode::Hybrid, ..cycle(&hybrid, 100 * MIB) };
        assert_eq!(hybrid.next(&called), 116 * MIB);
        let called = Cycle { allocated: 0, reclaimed: 0, ..cycle(&zorn, 0) };
        assert_eq!(zorn.next(&called), ZORN_START);
    }
}

#[test]
fn roots_count_as_what_has_to_be_read() {
    let mut policy = policy(|_| ());
    let big_statics = Cycle { roots: 90 * MIB, ..cycle(&policy, 10 * MIB) };
    assert_eq!(policy.next(&big_statics), 60 * MIB + ON_TOP);
}

#[test]
fn a_fixed_heap_is_filled_and_not_exceeded() {
    let mut policy = policy(|settings| (settings.rule, settings.max_heap) = (Rule::Fixed, Some(64 * MIB)));
    let outcome = run(&mut policy, Mode::Collect, 1024 * MIB, |allocated| allocated.min(40 * MIB));
    assert_eq!(outcome.peak, 64 * MIB);
    assert!((39..=42).contains(&outcome.collections), "{} collections", outcome.collections);
    assert!(policy.warning().is_none());
}

#[test]
fn a_fixed_heap_that_is_too_small_grows_and_warns_once() {
    let mut policy = policy(|settings| (settings.rule, settings.max_heap) = (Rule::Fixed, Some(64 * MIB)));
    let outcome = run(&mut policy, Mode::Collect, 256 * MIB, |allocated| allocated.min(80 * MIB));
    assert!(outcome.peak <= 80 * MIB + 64 * MIB / 20, "{} bytes", outcome.peak);
    assert!(outcome.collections <= 70, "{} collections", outcome.collections);
    let line = policy.warning().expect("a complaint");
    let line = std::str::from_utf8(line.as_bytes()).expect("text");
    assert!(line.starts_with("heaptoll: tithe: ") && line.contains(" bytes are live, "), "{line}");
    assert!(line.contains("TITHE_MAX_HEAP allows 67108864: "), "{line}");
    policy.next(&cycle(&policy.clone(), 80 * MIB));
    assert!(policy.warning().is_none());
}

#[test]
fn a_fixed_heap_grows_when_less_than_a_twentieth_is_left() {
    for (left, budget) in [(21, 21), (20, 20), (19, 20), (1, 20), (0, 20)] {
        let mut policy =
            policy(|settings| (settings.rule, settings.max_heap) = (Rule::Fixed, Some(400 * MIB)));
        assert_eq!(policy.next(&cycle(&policy.clone(), (400 - left) * MIB)), budget * MIB, "{left} MiB left");
        assert_eq!(policy.warning().is_some(), left < 20, "{left} MiB left");
    }
}

#[test]
fn a_maximum_holds_for_every_rule() {
    for rule in [Rule::Proportional, Rule::Zorn1992, Rule::MemBalancer] {
        let outcome = |max_heap| {
            let mut policy = policy(|settings| (settings.rule, settings.max_heap) = (rule, max_heap));
            run(&mut policy, Mode::Collect, 1024 * MIB, |allocated| allocated.min(40 * MIB))
        };
        assert!(outcome(Some(44 * MIB)).peak <= 44 * MIB, "{rule:?}");
        assert!(outcome(None).peak > 44 * MIB, "{rule:?}");
    }
}

#[test]
fn zorns_heap_grows_by_halves_until_a_quarter_is_reclaimed() {
    let mut policy = policy(|settings| settings.rule = Rule::Zorn1992);
    assert_eq!(policy.first(), 256 << 10);
    let live = 10 * MIB;
    let outcome = run(&mut policy, Mode::Collect, 1024 * MIB, |allocated| allocated.min(live));
    // The first heap of the series 256 KiB * 1.5^n, of which live blocks leave a quarter: n = 10.
    let mut size = 256 << 10;
    while (size - live.min(size)) < size / 4 {
        size += size / 2;
    }
    assert_eq!(outcome.peak, size);
    assert!(outcome.peak < 2 * live, "{} bytes", outcome.peak);
    assert_eq!(policy.size, size);
}

#[test]
fn zorns_heap_grows_when_little_is_reclaimed_even_if_little_is_live() {
    for (reclaimed, size) in [(ZORN_START / 4, ZORN_START), (ZORN_START / 4 - 1, ZORN_START / 2 * 3)] {
        let mut policy = policy(|settings| settings.rule = Rule::Zorn1992);
        assert_eq!(policy.next(&Cycle { reclaimed, ..cycle(&policy.clone(), 0) }), size);
    }
}

#[test]
fn zorns_heap_takes_a_large_block_at_once() {
    let mut policy = policy(|settings| settings.rule = Rule::Zorn1992);
    let large = cycle(&policy, 500 * MIB);
    let budget = policy.next(&large);
    assert!((500 * MIB / 3..=500 * MIB).contains(&budget), "{budget} bytes");
}

#[test]
fn membalancer_follows_the_square_root() {
    let budget = |live: usize, rate: u64, speed: u64| {
        let mut policy = policy(|settings| settings.rule = Rule::MemBalancer);
        let cycle = Cycle {
            allocated: 1 << 30,
            mutator_ns: (1 << 30) / rate,
            mark_ns: live as u64 / speed,
            ..cycle(&policy, live)
        };
        policy.next(&cycle)
    };
    let near = |one: usize, other: usize| assert!(one.abs_diff(other) <= other / 1000, "{one} {other}");
    // As proportional where the two meet.
    near(budget(BALANCE_AT, 1, 1), BALANCE_AT * PERCENT / 100);
    // Four times the heap, twice the headroom; so for the rate; the inverse for the speed.
    near(budget(4 * BALANCE_AT, 1, 1), 2 * budget(BALANCE_AT, 1, 1));
    near(budget(BALANCE_AT, 4, 1), 2 * budget(BALANCE_AT, 1, 1));
    near(budget(4 * BALANCE_AT, 1, 4), budget(BALANCE_AT, 1, 1));
}

#[test]
fn membalancer_forgets_old_rates() {
    let mut policy = policy(|settings| (settings.rule, settings.min_headroom) = (Rule::MemBalancer, LEAST));
    let quick = Cycle { allocated: 16 * MIB, mutator_ns: 16 << 20, ..cycle(&policy, 64 * MIB) };
    let slow = Cycle { mutator_ns: 16 << 30, ..quick };
    let high = policy.next(&quick);
    let mut budget = policy.next(&slow);
    // Half of the first, all of the second, in bytes and in time.
    let rate = (8 + 16) as f64 / (8.0 + 16.0 * 1024.0);
    let expected = high as f64 * rate.sqrt();
    assert!((budget as f64 / expected - 1.0).abs() < 0.01, "{budget} {expected}");
    for _ in 0..20 {
        let lower = policy.next(&slow);
        assert!(lower <= budget);
        budget = lower;
    }
    assert!(budget.abs_diff(high / 32) <= high / 320, "{budget} {high}");
}

#[test]
fn every_setting_bites() {
    let first = |change: fn(&mut Settings)| {
        let mut policy = policy(change);
        let first = policy.first();
        (first, policy.next(&cycle(&policy.clone(), 100 * MIB)))
    };
    assert_eq!(first(|_| ()), (2 * MIB, 62 * MIB));
    assert_eq!(first(|settings| settings.headroom = 30), (2 * MIB, 32 * MIB));
    assert_eq!(first(|settings| settings.min_headroom = 80 * MIB), (80 * MIB, 140 * MIB));
    assert_eq!(first(|settings| settings.max_heap = Some(120 * MIB)), (2 * MIB, 20 * MIB));
    assert_eq!(first(|settings| settings.max_heap = Some(MIB)), (MIB, LEAST));
    assert_eq!(first(|settings| settings.mode = Mode::Explicit), (usize::MAX, usize::MAX));
    let fixed = first(|settings| (settings.rule, settings.max_heap) = (Rule::Fixed, Some(150 * MIB)));
    assert_eq!(fixed, (150 * MIB, 50 * MIB));
}

#[test]
fn the_same_headroom_gives_the_number_of_collections_it_implies() {
    let collections = |headroom| {
        let mut policy = policy(|settings| (settings.headroom, settings.min_headroom) = (headroom, LEAST));
        run(&mut policy, Mode::Collect, 4096 * MIB, |allocated| allocated.min(20 * MIB)).collections
    };
    let (narrow, wide) = (collections(50), collections(200));
    assert!((narrow as f64 / wide as f64 - 4.0).abs() < 0.2, "{narrow} {wide}");
}

#[test]
fn abandoned_collections_come_ever_more_rarely() {
    let mut policy = policy(|_| ());
    policy.next(&cycle(&policy.clone(), 10 * MIB));
    assert_eq!([(); 3].map(|()| policy.abandoned()), [8 * MIB, 16 * MIB, 32 * MIB]);
    for _ in 0..200 {
        assert!((8 * MIB..=MOST).contains(&policy.abandoned()));
    }
    assert_eq!(policy.next(&cycle(&policy.clone(), 10 * MIB)), 8 * MIB);
    assert_eq!(policy.abandoned(), 8 * MIB);
}

#[test]
fn a_large_budget_doubled_often_does_not_overflow() {
    let mut policy = policy(|settings| settings.min_headroom = MOST);
    policy.next(&cycle(&policy.clone(), MIB));
    for _ in 0..100 {
        assert_eq!(policy.abandoned(), MOST);
    }
}

/// Sizes of every magnitude, the ends included.
fn any_size() -> impl Strategy<Value = usize> {
    prop_oneof![
        (0..64u32, any::<usize>()).prop_map(|(shift, size)| size >> shift),
        Just(0),
        Just(usize::MAX),
        Just(MOST),
    ]
}

fn any_cycle() -> impl Strategy<Value = Cycle> {
    let mode = prop_oneof![Just(Mode::Hybrid), Just(Mode::Collect)];
    (any_size(), any_size(), any_size(), any_size(), any_size(), any_size(), mode).prop_map(
        |(live, allocated, roots, mark, mutator, reclaimed, mode)| Cycle {
            live,
            allocated,
            roots,
            mark_ns: mark as u64,
            stop_ns: mark as u64 / 3,
            mutator_ns: mutator as u64,
            reclaimed,
            processors: 1 + mutator % 64,
            mode,
        },
    )
}

fn any_settings() -> impl Strategy<Value = Settings> {
    let rule = prop_oneof![
        Just(Rule::Proportional),
        Just(Rule::Fixed),
        Just(Rule::Zorn1992),
        Just(Rule::MemBalancer)
    ];
    let mode = prop_oneof![Just(Mode::Hybrid), Just(Mode::Collect)];
    (rule, mode, 1..=10_000usize, any_size(), any_size(), proptest::option::of(any_size())).prop_map(
        |(rule, mode, headroom, min_headroom, cost_headroom, max_heap)| Settings {
            rule,
            mode,
            headroom,
            min_headroom,
            cost_headroom,
            max_heap,
            ..Settings::new()
        },
    )
}

proptest! {
    #[test]
    fn budgets_are_within_bounds_whatever_was_found(
        settings in any_settings(),
        cycles in proptest::collection::vec((any_cycle(), any::<bool>()), 1..40),
    ) {
        let mut policy = Policy::new();
        policy.configure(&settings);
        prop_assert!((LEAST..=MOST).contains(&policy.first()));
        for (cycle, finished) in cycles {
            let budget = if finished { policy.next(&cycle) } else { policy.abandoned() };
            prop_assert!((LEAST..=MOST).contains(&budget), "{} bytes", budget);
        }
    }

    /// Where the cost of a collection demands nothing: a heap that grows gets none of that.
    #[test]
    fn more_live_bytes_never_mean_a_smaller_headroom(
        settings in any_settings(),
        before in proptest::collection::vec(any_cycle(), 0..5),
        found in any_cycle(),
        more in any_size(),
    ) {
        let mut less = Policy::new();
        less.configure(&Settings { max_heap: None, cost_headroom: 0, rule: Rule::Proportional, ..settings });
        for cycle in before {
            less.next(&cycle);
        }
        let mut greater = less.clone();
        let larger = Cycle { live: found.live.saturating_add(more), ..found };
        prop_assert!(less.next(&found) <= greater.next(&larger));
    }

    #[test]
    fn membalancer_grows_with_live_bytes_at_the_same_speed(live in 1..1usize << 40, more in 1..1usize << 40) {
        let budget = |live: usize| {
            let mut policy = policy(|settings| settings.rule = Rule::MemBalancer);
            policy.next(&Cycle { allocated: MIB, mutator_ns: 1 << 20, ..cycle(&policy.clone(), live) })
        };
        prop_assert!(budget(live) <= budget(live + more));
    }

    #[test]
    fn a_fixed_heap_leaves_less_the_more_is_live(most in 256usize << 10..1 << 40, one in any_size(), other in any_size()) {
        let budget = |live: usize| {
            let mut policy = policy(|settings| (settings.rule, settings.max_heap) = (Rule::Fixed, Some(most)));
            policy.next(&Cycle { live, ..cycle(&policy.clone(), 0) })
        };
        let (less, more) = (one.min(other), one.max(other));
        prop_assert!(budget(less) >= budget(more));
        if less <= most / 20 * 19 {
            prop_assert!(less + budget(less) <= most.max(less + LEAST));
        }
    }

    #[test]
    fn zorns_heap_never_shrinks(cycles in proptest::collection::vec(any_cycle(), 1..40)) {
        let mut policy = policy(|settings| settings.rule = Rule::Zorn1992);
        for cycle in cycles {
            let before = policy.size;
            policy.next(&cycle);
            prop_assert!(before <= policy.size && policy.size <= MOST);
        }
    }
}
