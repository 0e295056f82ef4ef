//! The analyses against naive models of them: everything computed again from the whole list of events for each figure,
//! in quadratic time and without optimisation.

use heaptoll_trace::{Event, EventKind, Sites};
use heaptoll_trace_analysis::lifetimes::{By, Clock, LifetimeFigures, Lifetimes};
use heaptoll_trace_analysis::stacks::CallSites;
use heaptoll_trace_analysis::stat::{Stat, StatFigures};
use heaptoll_trace_analysis::subject::Subject;
use proptest::prelude::*;

/// What a random program does next; objects are chosen among the live ones.
#[derive(Debug, Clone)]
enum Step {
    Make { kind: EventKind, size: u64 },
    Resize { which: usize, size: u64, moved: bool },
    End { kind: EventKind, which: usize },
    Nothing { kind: EventKind },
}

fn sizes() -> impl Strategy<Value = u64> {
    prop_oneof![6 => 0_u64..64, 3 => 0_u64..3000, 1 => 0_u64..600_000]
}

fn step() -> impl Strategy<Value = Step> {
    let makes =
        prop::sample::select(vec![EventKind::Malloc, EventKind::Calloc, EventKind::Aligned, EventKind::New]);
    let ends = prop::sample::select(vec![EventKind::Free, EventKind::Delete, EventKind::ReallocFree]);
    let nothings = prop::sample::select(vec![EventKind::Failed, EventKind::Foreign]);
    prop_oneof![
        6 => (makes, sizes()).prop_map(|(kind, size)| Step::Make { kind, size }),
        // Newest first: most objects die young.
        5 => (ends, prop_oneof![3 => 0..4_usize, 1 => 0..1000_usize])
            .prop_map(|(kind, which)| Step::End { kind, which }),
        2 => (0..50_usize, sizes(), any::<bool>())
            .prop_map(|(which, size, moved)| Step::Resize { which, size, moved }),
        1 => nothings.prop_map(|kind| Step::Nothing { kind }),
    ]
}

/// A valid trace: slots are reused, the last freed first.
fn trace() -> impl Strategy<Value = Vec<Event>> {
    let steps = (step(), 0_u32..3, 0_u32..5, prop_oneof![4 => Just(0_u64), 1 => 0..20_000_000_u64]);
    prop::collection::vec(steps, 0..250).prop_map(|steps| {
        let (mut live, mut free, mut slots, mut time_ns) = (Vec::<u32>::new(), Vec::new(), 0, 0);
        let mut events = Vec::new();
        for (step, thread, site, passed) in steps {
            time_ns += passed;
            let mut event = Event {
                kind: EventKind::Malloc,
                moved: false,
                align_log2: 0,
                thread,
                slot: 0,
                site,
                size: 0,
                usable: 0,
                time_ns,
                latency_ns: 0,
            };
            let pick = |live: &Vec<u32>, which: usize| live.len().checked_sub(1 + which % live.len().max(1));
            match step {
                Step::Make { kind, size } => {
                    event.slot = free.pop().unwrap_or_else(|| {
                        slots += 1;
                        slots - 1
                    });
                    live.push(event.slot);
                    (event.kind, event.size, event.usable) = (kind, size, (size + 8).next_multiple_of(16));
                }
                Step::Resize { which, size, moved } => {
                    let Some(index) = pick(&live, which) else { continue };
                    (event.kind, event.slot, event.moved) = (EventKind::Realloc, live[index], moved);
                    (event.size, event.usable) = (size, (size + 8).next_multiple_of(16));
                }
                Step::End { kind, which } => {
                    let Some(index) = pick(&live, which) else { continue };
                    (event.kind, event.slot) = (kind, live.remove(index));
                    free.push(event.slot);
                }
                Step::Nothing { kind } => (event.kind, event.size) = (kind, 77),
            }
            events.push(event);
        }
        events
    })
}

/// An object as the model sees it.
#[derive(Debug)]
struct Object {
    allocated: usize,
    /// Index of the event that ended it.
    ended: Option<usize>,
}

fn objects(events: &[Event]) -> Vec<Object> {
    let allocations = (0..events.len()).filter(|&index| events[index].kind.allocates());
    allocations
        .map(|allocated| {
            let same = |event: &Event| event.kind.frees() && event.slot == events[allocated].slot;
            Object { allocated, ended: (allocated + 1..events.len()).find(|&index| same(&events[index])) }
        })
        .collect()
}

/// Size of an object just after event `at`.
fn size_at(events: &[Event], object: &Object, at: usize) -> u64 {
    let end = object.ended.unwrap_or(usize::MAX).min(at + 1).min(events.len());
    let slot = events[object.allocated].slot;
    let sized =
        |event: &&Event| event.slot == slot && (event.kind == EventKind::Realloc || event.kind.allocates());
    events[object.allocated..end].iter().rfind(sized).map_or(0, |event| event.size)
}

/// Whether it is alive just after event `at`.
fn is_live(object: &Object, at: usize) -> bool {
    object.allocated <= at && object.ended.is_none_or(|ended| ended > at)
}

/// Bytes by which event `index` moves the byte clock.
fn bytes_of(events: &[Event], objects: &[Object], index: usize) -> u64 {
    let event = &events[index];
    if event.kind.allocates() {
        return event.size;
    }
    if event.kind != EventKind::Realloc {
        return 0;
    }
    let of_it = |object: &&Object| events[object.allocated].slot == event.slot && is_live(object, index);
    let object = objects.iter().find(of_it).expect("an object that is resized");
    event.size.saturating_sub(size_at(events, object, index - 1))
}

fn last_size(events: &[Event], object: &Object) -> u64 {
    size_at(events, object, events.len())
}

fn stat(events: &[Event]) -> StatFigures {
    let mut stat = Stat::new(false, true);
    // In pieces of odd lengths, as batches are.
    events.chunks(7).for_each(|piece| stat.events(piece));
    stat.figures(Subject::default(), &[], &mut CallSites::new(&Sites::default(), 3))
}

fn lifetimes(events: &[Event], by: By) -> LifetimeFigures {
    let mut lifetimes = Lifetimes::new(by);
    lifetimes.events(events);
    lifetimes.figures(Subject::default(), Some(&mut CallSites::new(&Sites::default(), 3)))
}

/// Events that no program can have caused.
fn nonsense() -> impl Strategy<Value = Vec<Event>> {
    let number = || prop_oneof![0_u64..5, Just(u64::MAX), Just(1 << 47), any::<u64>()];
    let kind = prop::sample::select(vec![
        EventKind::Malloc,
        EventKind::Aligned,
        EventKind::New,
        EventKind::Realloc,
        EventKind::Free,
        EventKind::ReallocFree,
        EventKind::Failed,
        EventKind::Foreign,
        EventKind::Lost,
    ]);
    let numbers = prop_oneof![0_u32..5, Just(u32::MAX)];
    let event = (kind, 0_u32..6, numbers.clone(), numbers, number(), number(), number());
    let event = event.prop_map(|(kind, slot, thread, site, size, usable, time_ns)| Event {
        kind,
        moved: size % 2 == 0,
        align_log2: 255,
        thread,
        slot,
        site,
        size,
        usable,
        time_ns,
        latency_ns: thread,
    });
    prop::collection::vec(event, 0..300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn nonsense_is_summed_up_without_a_panic_and_in_bounded_memory(events in nonsense()) {
        // Repeated until sums of the largest sizes would overflow.
        let mut stat = Stat::new(true, true);
        (0..3).for_each(|_| stat.events(&events));
        let figures = stat.figures(Subject::default(), &[], &mut CallSites::new(&Sites::default(), 3));
        prop_assert_eq!(figures.events, 3 * events.len() as u64);
        prop_assert!(figures.at_exit.objects <= 6);
        for by in [By::Size, By::Site, By::Thread] {
            let mut lifetimes = Lifetimes::new(by);
            (0..3).for_each(|_| lifetimes.events(&events));
            let figures = lifetimes.figures(Subject::default(), Some(&mut CallSites::new(&Sites::default(), 3)));
            prop_assert!(figures.all.objects <= 3 * events.len() as u64);
            for younger in figures.survival.iter().flat_map(|survival| &survival.younger) {
                prop_assert!((0.0..=1.0).contains(&younger.objects) && (0.0..=1.0).contains(&younger.bytes));
            }
        }
    }
}

#[test]
fn sums_that_run_over_stay_at_the_largest_number() {
    let huge = |kind, size| Event {
        kind,
        moved: false,
        align_log2: 0,
        thread: 0,
        slot: 0,
        site: 0,
        size,
        usable: size,
        time_ns: 0,
        latency_ns: 0,
    };
    let events = [huge(EventKind::Malloc, u64::MAX), huge(EventKind::Free, 0)];
    let (mut stat, mut lifetimes) = (Stat::new(false, true), Lifetimes::new(By::Site));
    for _ in 0..70_000 {
        stat.events(&events);
        lifetimes.events(&events);
    }
    lifetimes.event(&huge(EventKind::Malloc, 8));
    assert_eq!(
        stat.figures(Subject::default(), &[], &mut CallSites::new(&Sites::default(), 3)).bytes,
        u64::MAX
    );
    assert_eq!(lifetimes.figures(Subject::default(), None).clock_bytes, u64::MAX);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn live_bytes_and_their_maximum(events in trace()) {
        let objects = objects(&events);
        let figures = stat(&events);
        let live_at = |at: usize| {
            let live = objects.iter().filter(|object| is_live(object, at));
            live.fold((0, 0), |(n, bytes), object| (n + 1, bytes + size_at(&events, object, at)))
        };
        let live_counts: Vec<(u64, u64)> = (0..events.len()).map(live_at).collect();
        let most = live_counts.iter().map(|counts| counts.1).max().unwrap_or(0);
        prop_assert_eq!(figures.peak.live_bytes, most);
        prop_assert_eq!(figures.max_live_objects, live_counts.iter().map(|counts| counts.0).max().unwrap_or(0));
        let last = live_counts.last().copied().unwrap_or_default();
        prop_assert_eq!((figures.at_exit.objects, figures.at_exit.bytes), last);
        let clock: u64 = (0..events.len()).map(|index| bytes_of(&events, &objects, index)).sum();
        prop_assert_eq!(figures.bytes, clock);
        prop_assert_eq!(figures.timeline.iter().map(|point| point.live_bytes).max(), Some(most));
        prop_assert_eq!(figures.misfits, 0);

        let first = live_counts.iter().position(|counts| counts.1 == most && most > 0);
        prop_assert_eq!(figures.peak.event, first.map_or(0, |index| index as u64 + 1));
        for site in &figures.sites {
            let of_site = |object: &&Object| events[object.allocated].site == site.site;
            let held = |at: usize| {
                let live = objects.iter().filter(of_site).filter(|object| is_live(object, at));
                live.fold((0, 0), |(n, bytes), object| (n + 1, bytes + size_at(&events, object, at)))
            };
            prop_assert_eq!(site.objects, objects.iter().filter(of_site).count() as u64);
            let at_peak = first.map_or((0, 0), held);
            prop_assert_eq!((site.at_peak.objects, site.at_peak.bytes), at_peak);
            prop_assert_eq!((site.at_exit.objects, site.at_exit.bytes), held(events.len() - 1));
        }
        prop_assert_eq!(figures.sites.iter().map(|site| site.bytes).sum::<u64>(), clock);
    }

    #[test]
    fn temporary_objects_and_threads(events in trace()) {
        let objects = objects(&events);
        let figures = stat(&events);
        let (mut next, mut soon, mut others) = ([0; 3], 0, 0);
        for object in &objects {
            let Some(ended) = object.ended else { continue };
            let allocating_thread = events[object.allocated].thread;
            let between = &events[object.allocated + 1..ended];
            let made = between.iter().filter(|event| event.kind.allocates() && event.thread == allocating_thread).count();
            for (count, before) in next.iter_mut().zip([1, 10, 100]) {
                *count += u64::from(made < before);
            }
            let bytes: u64 = (object.allocated + 1..ended).map(|index| bytes_of(&events, &objects, index)).sum();
            soon += u64::from(bytes < 4096);
            others += u64::from(events[ended].thread != allocating_thread);
        }
        let temporary = figures.temporary;
        prop_assert_eq!([temporary.before_next_1, temporary.before_next_10, temporary.before_next_100], next);
        prop_assert_eq!(temporary.within_4_kib, soon);
        prop_assert_eq!(figures.cross_thread_frees, others);
        for thread in &figures.threads {
            let of_thread = |kinds: fn(EventKind) -> bool| {
                events.iter().filter(|event| event.thread == thread.thread && kinds(event.kind)).count() as u64
            };
            prop_assert_eq!(thread.objects, of_thread(EventKind::allocates));
            prop_assert_eq!(thread.frees, of_thread(EventKind::frees));
            prop_assert_eq!(thread.resizes, of_thread(|kind| kind == EventKind::Realloc));
        }
        let resized = objects.iter().filter(|object| {
            let until = object.ended.unwrap_or(events.len());
            let slot = events[object.allocated].slot;
            events[object.allocated..until].iter().any(|event| event.kind == EventKind::Realloc && event.slot == slot)
        });
        prop_assert_eq!(figures.reallocs.resized_objects, resized.count() as u64);
    }

    #[test]
    fn survival(events in trace()) {
        let objects = objects(&events);
        // Age in bytes and ns, last size, size class, site and thread.
        let age = |object: &Object| {
            let ended = object.ended?;
            let bytes: u64 = (object.allocated + 1..ended).map(|index| bytes_of(&events, &objects, index)).sum();
            Some((bytes, events[ended].time_ns - events[object.allocated].time_ns))
        };
        let ages: Vec<Option<(u64, u64)>> = objects.iter().map(age).collect();
        let figures = lifetimes(&events, By::Size);
        prop_assert_eq!(figures.all.objects, objects.len() as u64);
        let whole: u64 = objects.iter().map(|object| last_size(&events, object)).sum();
        prop_assert_eq!(figures.all.bytes, whole);
        prop_assert_eq!(figures.still_live.objects, ages.iter().filter(|age| age.is_none()).count() as u64);
        for survival in &figures.survival {
            let clock = |age: &Option<(u64, u64)>| match survival.clock {
                Clock::Bytes => age.map_or(u64::MAX, |age| age.0),
                _ => age.map_or(u64::MAX, |age| age.1),
            };
            for younger in &survival.younger {
                let ended = objects.iter().zip(&ages).filter(|(_, age)| clock(age) < younger.age);
                let (count, bytes) = ended.fold((0_u64, 0_u64), |(count, bytes), (object, _)| {
                    (count + 1, bytes + last_size(&events, object))
                });
                let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
                prop_assert!((younger.objects - share(count, objects.len() as u64)).abs() < 1e-9);
                prop_assert!((younger.bytes - share(bytes, whole)).abs() < 1e-9);
            }
            for point in &survival.curve {
                let reach = ages.iter().filter(|age| clock(age) >= point.age).count();
                prop_assert!((point.objects - reach as f64 / objects.len() as f64).abs() < 1e-9);
            }
            // The median is within a bin of a true one.
            let mut sorted: Vec<u64> = ages.iter().map(clock).collect();
            sorted.sort_unstable();
            if let Some(median) = survival.median_age {
                let true_median = sorted[(sorted.len() - 1) / 2];
                prop_assert!(median.abs_diff(true_median) <= true_median / 16, "{} {}", median, true_median);
            } else {
                prop_assert!(sorted.is_empty() || sorted[(sorted.len() - 1) / 2] == u64::MAX);
            }
        }
        for by in [By::Size, By::Site, By::Thread] {
            let figures = lifetimes(&events, by);
            prop_assert_eq!(figures.groups.iter().map(|group| group.all.objects).sum::<u64>(), objects.len() as u64);
            for group in &figures.groups {
                let belongs = |object: &&Object| {
                    let key = match by {
                        By::Size => match last_size(&events, object) { 0 => 0, size => size.next_power_of_two() },
                        By::Site => u64::from(events[object.allocated].site),
                        By::Thread => u64::from(events[object.allocated].thread),
                    };
                    group.key == Some(key)
                };
                let count = objects.iter().filter(belongs).count() as u64;
                prop_assert_eq!(group.all.objects, count, "{:?} {}", by, &group.name);
                let left = objects.iter().filter(belongs).filter(|object| object.ended.is_none()).count() as u64;
                prop_assert_eq!(group.still_live.objects, left);
            }
        }
    }

    #[test]
    fn nurseries(events in trace()) {
        let objects = objects(&events);
        for nursery in &lifetimes(&events, By::Size).nurseries {
            let left = nursery.nursery_bytes;
            // Objects in the nursery are collected by examining all of them when it is full.
            let (mut filled, mut collections) = (0, 0);
            let (mut young, mut promoted) = (Vec::<usize>::new(), Vec::<usize>::new());
            for (index, event) in events.iter().enumerate() {
                let growth = bytes_of(&events, &objects, index);
                if event.size <= left && (event.kind.allocates() || event.kind == EventKind::Realloc) {
                    filled += growth;
                    if filled > left {
                        (filled, collections) = (growth, collections + 1);
                        let alive = |&&object: &&usize| index > 0 && is_live(&objects[object], index - 1);
                        promoted.extend(young.iter().filter(alive));
                        young.clear();
                    }
                }
                if let Some(object) = objects.iter().position(|object| object.allocated == index) {
                    young.push(object);
                }
            }
            let fits = |&&object: &&usize| last_size(&events, &objects[object]) <= left;
            let bytes = |of: &[usize]| -> u64 { of.iter().map(|&object| last_size(&events, &objects[object])).sum() };
            let survived: Vec<usize> = promoted.iter().filter(fits).copied().collect();
            prop_assert_eq!(nursery.collections, collections);
            prop_assert_eq!((nursery.survived.objects, nursery.survived.bytes), (survived.len() as u64, bytes(&survived)));
            prop_assert_eq!(nursery.undecided.objects, young.iter().filter(fits).count() as u64);
            let fitting = (0..objects.len()).filter(|object| fits(&object)).count() as u64;
            prop_assert_eq!(nursery.survived.objects + nursery.died.objects + nursery.undecided.objects, fitting);
        }
    }
}
