//! The price of conservatism against a model of it: each root point is computed again from the whole list of events, one
//! set of objects for each way by which they are found.

use std::collections::{BTreeMap, BTreeSet};

use heaptoll_trace::graph::{AllocationKind, LastTouch, RootKind};
use proptest::prelude::*;

use super::tests::going_on;
use super::*;

/// What a random program does next; objects are chosen among the live ones.
#[derive(Debug, Clone)]
enum Step {
    Allocate { size: u64 },
    End { which: usize, resized: bool },
    Hold { from: usize, offset: u64, to: Option<(usize, u64)> },
    Touch { which: usize },
    Roots { roots: Vec<(usize, RootKind, u64)>, whole: bool },
}

fn step() -> impl Strategy<Value = Step> {
    let kind =
        prop::sample::select(vec![RootKind::Register, RootKind::Stack, RootKind::Static, RootKind::Mapping]);
    let middle = || prop_oneof![3 => Just(0_u64), 1 => Just(4_u64)];
    let target = prop::option::weighted(0.8, (0..40_usize, middle()));
    let roots = prop::collection::vec((0..40_usize, kind, middle()), 0..4);
    prop_oneof![
        5 => (8_u64..100).prop_map(|size| Step::Allocate { size }),
        2 => (0..40_usize, any::<bool>()).prop_map(|(which, resized)| Step::End { which, resized }),
        6 => (0..40_usize, 0_u64..3, target).prop_map(|(from, word, to)| Step::Hold { from, offset: 8 * word, to }),
        2 => (0..40_usize).prop_map(|which| Step::Touch { which }),
        3 => (roots, prop::bool::weighted(0.9)).prop_map(|(roots, whole)| Step::Roots { roots, whole }),
    ]
}

/// Makes the events of a program as a recorder does.
#[derive(Default)]
struct Program {
    events: Vec<Event>,
    live: Vec<u64>,
    touched: BTreeMap<u64, LastTouch>,
    since_point: BTreeSet<u64>,
    objects: u64,
    clock_bytes: u64,
}

impl Program {
    fn pick(&self, which: usize) -> Option<u64> {
        self.live.get(which % self.live.len().max(1)).copied()
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Allocate { size } => {
                let object = self.objects;
                let (site, thread, align_log2) = (0, 0, 0);
                let kind = AllocationKind::Plain;
                self.events.push(Event::Allocate { object, size, site, thread, kind, align_log2 });
                self.live.push(object);
                self.objects += 1;
                self.clock_bytes += size;
            }
            Step::End { which, resized } => {
                let Some(object) = self.pick(which) else { return };
                self.live.retain(|live| *live != object);
                let cause = if resized { FreeCause::Resized } else { FreeCause::Free };
                let last_touch = self.touched.get(&object).copied();
                self.events.push(Event::Free { object, thread: 0, cause, last_touch });
            }
            Step::Hold { from, offset, to } => {
                let Some(from) = self.pick(from) else { return };
                self.events.push(match to.and_then(|(to, to_offset)| Some((self.pick(to)?, to_offset))) {
                    Some((to, to_offset)) => Event::Edge { from, offset, to, to_offset },
                    None => Event::Clear { from, offset },
                });
            }
            Step::Touch { which } => {
                let Some(object) = self.pick(which) else { return };
                if self.since_point.insert(object) {
                    self.events.push(Event::Touch { object });
                }
                let event = self.events.len() as u64;
                self.touched.insert(object, LastTouch { event, clock_bytes: self.clock_bytes });
            }
            Step::Roots { roots, whole } => self.roots(&roots, whole),
        }
    }

    fn roots(&mut self, roots: &[(usize, RootKind, u64)], whole: bool) {
        self.since_point.clear();
        self.events.push(Event::RootsBegin { clock_bytes: self.clock_bytes });
        let mut seen = BTreeSet::new();
        for &(which, kind, offset) in roots {
            if let Some(object) = self.pick(which).filter(|object| seen.insert((*object, kind))) {
                self.events.push(Event::Root { object, kind, offset });
            }
        }
        self.events.push(Event::RootsEnd { whole });
    }
}

/// A legal trace; at its end some objects are without a [`Event::Kept`], as in one that was cut off.
fn trace() -> impl Strategy<Value = Vec<Event>> {
    (prop::collection::vec(step(), 0..120), 0_usize..3).prop_map(|(steps, unknown)| {
        let mut program = Program::default();
        steps.into_iter().for_each(|step| program.step(step));
        for &object in program.live.iter().skip(unknown) {
            let last_touch = program.touched.get(&object).copied();
            program.events.push(Event::Kept { object, last_touch });
        }
        program.events
    })
}

type Edges = BTreeMap<(u64, u64), (u64, u64)>;
type Set = BTreeSet<u64>;

/// The heap before an event.
#[derive(Default)]
struct Heap {
    sizes: BTreeMap<u64, u64>,
    edges: Edges,
}

impl Heap {
    fn before(events: &[Event], at: usize) -> Heap {
        let mut heap = Heap::default();
        for event in &events[..at] {
            match *event {
                Event::Allocate { object, size, .. } => {
                    heap.sizes.insert(object, size);
                }
                Event::Free { object, .. } | Event::Kept { object, .. } => {
                    heap.sizes.remove(&object);
                    heap.edges.retain(|from, to| from.0 != object && to.0 != object);
                }
                Event::Edge { from, offset, to, to_offset } => {
                    heap.edges.insert((from, offset), (to, to_offset));
                }
                Event::Clear { from, offset } => {
                    heap.edges.remove(&(from, offset));
                }
                _ => {}
            }
        }
        heap
    }

    fn closure(&self, roots: impl Iterator<Item = u64>, interior: bool) -> Set {
        let mut found: Set = roots.collect();
        loop {
            let more: Vec<u64> = self
                .edges
                .iter()
                .filter(|(from, to)| found.contains(&from.0) && (interior || to.1 == 0))
                .map(|(_, to)| to.0)
                .filter(|to| !found.contains(to))
                .collect();
            if more.is_empty() {
                return found;
            }
            found.extend(more);
        }
    }

    fn bytes<'a>(&self, set: impl IntoIterator<Item = &'a u64>) -> u64 {
        set.into_iter().map(|object| self.sizes[object]).sum()
    }
}

/// What a point has; sets of objects.
struct Point {
    clock_bytes: u64,
    heap: Heap,
    used: Set,
    required: Set,
    reachable: Set,
    /// By cause: kept, and of that reached again.
    causes: Vec<(Set, Set)>,
    /// By rule: unused, used.
    interior: Vec<(Set, Set)>,
}

/// The end of an object, if it is in the trace: the clock of its free, and its last touch.
fn end(events: &[Event], wanted: u64) -> Option<(Option<u64>, u64)> {
    let mut clock = 0;
    for event in events {
        match *event {
            Event::Allocate { size, .. } => clock += size,
            Event::Free { object, last_touch, .. } if object == wanted => {
                return Some((Some(clock), last_touch.map_or(0, |touch| touch.event)));
            }
            Event::Kept { object, last_touch } if object == wanted => {
                return Some((None, last_touch.map_or(0, |touch| touch.event)));
            }
            _ => {}
        }
    }
    None
}

fn is_used(events: &[Event], object: u64, at: usize) -> bool {
    end(events, object).is_none_or(|(_, touch)| touch > at as u64)
}

/// Where a root point begins, and its roots: object, kind, offset.
type RootPoint = (usize, Vec<(u64, RootKind, u64)>);

/// The whole root points: where each begins, with its roots.
fn points(events: &[Event]) -> Vec<RootPoint> {
    let (mut all, mut begin, mut roots) = (Vec::new(), 0, Vec::new());
    for (at, event) in events.iter().enumerate() {
        match *event {
            Event::RootsBegin { .. } => (begin, roots) = (at, Vec::new()),
            Event::Root { object, kind, offset } => roots.push((object, kind, offset)),
            Event::RootsEnd { whole: true } => all.push((begin, std::mem::take(&mut roots))),
            _ => {}
        }
    }
    all
}

fn reached_at(events: &[Event], at: usize, roots: &[(u64, RootKind, u64)]) -> Set {
    Heap::before(events, at).closure(roots.iter().map(|root| root.0), true)
}

/// Whether the object lived unreached at one of these earlier points, was not touched since, and never was when it was
/// unreached.
fn was_unreached(events: &[Event], earlier: &[RootPoint], at: usize, object: u64) -> bool {
    let touches: Vec<usize> = (0..at).filter(|&at| events[at] == Event::Touch { object }).collect();
    let mut unreached = false;
    for (index, (point, roots)) in earlier.iter().enumerate() {
        if !Heap::before(events, *point).sizes.contains_key(&object) {
            continue;
        }
        unreached |= !reached_at(events, *point, roots).contains(&object);
        let until = earlier.get(index + 1).map_or(at, |next| next.0);
        if unreached && touches.iter().any(|touch| (*point..until).contains(touch)) {
            return false;
        }
    }
    unreached
}

fn model(events: &[Event]) -> Vec<Point> {
    let points = points(events);
    let of = |(index, (at, roots)): (usize, &RootPoint)| {
        let heap = Heap::before(events, *at);
        let Event::RootsBegin { clock_bytes } = events[*at] else { panic!("a point begins") };
        let used: Set = heap.sizes.keys().copied().filter(|object| is_used(events, *object, *at)).collect();
        let required = heap.closure(used.iter().copied(), true);
        let by_kind = |wanted: RootKind| {
            heap.closure(roots.iter().filter(|root| root.1 == wanted).map(|root| root.0), true)
        };
        let (register, stack) = (by_kind(RootKind::Register), by_kind(RootKind::Stack));
        let (statics, mapping) = (by_kind(RootKind::Static), by_kind(RootKind::Mapping));
        let reachable = reached_at(events, *at, roots);
        let mut causes = vec![(Set::new(), Set::new()); Cause::ALL.len()];
        for object in reachable.difference(&used) {
            let found = [&register, &stack, &statics, &mapping].map(|set| set.contains(object));
            let cause = match found {
                _ if required.contains(object) => Cause::UsedObjects,
                [true, false, false, false] => Cause::Registers,
                [false, true, false, false] => Cause::Stacks,
                [true, true, false, false] => Cause::RegistersAndStacks,
                [false, false, true, false] => Cause::StaticData,
                [false, false, false, true] => Cause::Mappings,
                _ => Cause::Several,
            };
            let at_cause = Cause::ALL.iter().position(|one| *one == cause).expect("a cause");
            causes[at_cause].0.insert(*object);
            if was_unreached(events, &points[..index], *at, *object) {
                causes[at_cause].1.insert(*object);
            }
        }
        let is_stack = |kind| matches!(kind, RootKind::Register | RootKind::Stack);
        let interior = [true, false].map(|on_stacks| {
            let honoured = roots.iter().filter(|root| root.2 == 0 || (on_stacks && is_stack(root.1)));
            let found = heap.closure(honoured.map(|root| root.0), false);
            let freed: Set = reachable.difference(&found).copied().collect();
            (freed.difference(&used).copied().collect(), freed.intersection(&used).copied().collect())
        });
        let interior = interior.into();
        Point { clock_bytes, heap, used, required, reachable, causes, interior }
    };
    points.iter().enumerate().map(of).collect()
}

fn analysed(events: &[Event]) -> ConservatismFigures {
    let events = &going_on(events);
    let mut lives = Lives::default();
    lives.events(events).expect("memory");
    let mut pass = Conservatism::new(&lives);
    let mut taken = 0;
    for batch in events.chunks(7) {
        taken += batch.len() as u64;
        pass.events(batch, taken, false);
    }
    pass.figures()
}

fn check(events: &[Event]) {
    let (found, points) = (analysed(events), model(events));
    assert_eq!(found.points.len(), points.len());
    let mut before = 0;
    let (mut weight, mut live_space) = (0, 0);
    let mut space = vec![(0_u64, 0_u64, 0_u64, 0_u64); Cause::ALL.len()];
    for (shown, point) in found.points.iter().zip(&points) {
        let heap = &point.heap;
        let expected = [
            heap.bytes(heap.sizes.keys()),
            heap.bytes(&point.used),
            heap.bytes(&point.required),
            heap.bytes(&point.reachable),
        ];
        let shown_all = [shown.live_bytes, shown.used_bytes, shown.required_bytes, shown.reachable_bytes];
        assert_eq!(shown_all, expected);
        let again: u64 = point.causes.iter().map(|cause| heap.bytes(&cause.1)).sum();
        let others: u64 = point.causes[1..].iter().map(|cause| heap.bytes(&cause.0)).sum();
        assert_eq!(shown.at_least_bytes, again);
        assert_eq!(shown.at_most_bytes, others + heap.bytes(&point.causes[0].1));
        let now = point.clock_bytes - before;
        before = point.clock_bytes;
        weight += now;
        live_space += now * expected[0];
        for (space, cause) in space.iter_mut().zip(&point.causes) {
            let freed = |object: &&u64| end(events, **object).is_some_and(|end| end.0.is_some());
            let until = |object: &u64| {
                let free = end(events, *object).and_then(|end| end.0).unwrap_or(point.clock_bytes);
                heap.sizes[object] * (free - point.clock_bytes)
            };
            space.0 += now * heap.bytes(&cause.0);
            space.1 += now * heap.bytes(&cause.1);
            space.2 += now * heap.bytes(cause.0.iter().filter(freed));
            space.3 += now * cause.0.iter().map(until).sum::<u64>();
        }
    }
    let ratio = |of: u64, by: u64| if by == 0 { 0.0 } else { of as f64 / by as f64 };
    for (at, (cause, space)) in found.causes.iter().zip(&space).enumerate() {
        assert_eq!(cause.cause, Cause::ALL[at]);
        assert_eq!(
            (cause.kept.mean_bytes, cause.kept.of_live),
            (ratio(space.0, weight), ratio(space.0, live_space))
        );
        assert_eq!(cause.again.mean_bytes, ratio(space.1, weight));
        assert_eq!(cause.until_free.mean_bytes, (space.2 > 0).then(|| ratio(space.3, space.2)));
        assert_eq!(cause.until_free.never_freed, ratio(space.0 - space.2, space.0));
        let peak = points.iter().map(|point| point.heap.bytes(&point.causes[at].0)).max().unwrap_or(0);
        assert_eq!(cause.kept.peak_bytes, peak);
    }
    for (at, rule) in found.interior.iter().enumerate() {
        let most = |set: fn(&(Set, Set)) -> &Set| {
            points.iter().map(|point| point.heap.bytes(set(&point.interior[at]))).max().unwrap_or(0)
        };
        assert_eq!(
            (rule.unused.peak_bytes, rule.used.peak_bytes),
            (most(|sets| &sets.0), most(|sets| &sets.1))
        );
    }
    ends(events, &found);
}

/// Which objects were unreachable before their free.
fn ends(events: &[Event], found: &ConservatismFigures) {
    let points = points(events);
    let (mut before, mut pointed, mut undecided, mut between, mut lost) = (0, 0, 0, 0, 0);
    for (at, event) in events.iter().enumerate() {
        let (object, is_freed) = match *event {
            Event::Free { object, cause: FreeCause::Free, .. } => (object, true),
            Event::Kept { object, .. } => (object, false),
            _ => continue,
        };
        let heap = Heap::before(events, at);
        let last = points
            .iter()
            .rfind(|point| point.0 < at && Heap::before(events, point.0).sizes.contains_key(&object));
        let touched_since = |point: usize| events[point..at].contains(&Event::Touch { object });
        let unreached = last.is_some_and(|(point, roots)| {
            !reached_at(events, *point, roots).contains(&object) && !touched_since(*point)
        });
        let is_pointed = heap.edges.iter().any(|(from, to)| to.0 == object && from.0 != object);
        match (is_freed, unreached) {
            (false, true) => lost += 1,
            (false, false) => {}
            (true, true) => before += 1,
            (true, false) if is_pointed => pointed += 1,
            (true, false) if last.is_some() => undecided += 1,
            (true, false) => between += 1,
        }
    }
    let ends = &found.ends;
    let shown =
        [ends.before, ends.pointed, ends.undecided, ends.between, ends.lost].map(|count| count.objects);
    assert_eq!(shown, [before, pointed, undecided, between, lost]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]
    #[test]
    fn the_figures_are_those_of_the_model(events in trace()) {
        check(&events);
    }
}
