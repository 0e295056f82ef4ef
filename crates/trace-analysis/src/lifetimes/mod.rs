//! How long objects live: survival curves as in Figure 8 of Zorn 1992, and whether generations would pay.
//!
//! An object's age is what the clock advanced between the end of its allocation and its free, so an object that is
//! freed at once has the age 0. A realloc keeps the object; its size is the last. Objects that are never freed count as
//! surviving every age, and are counted separately. Memory: 32 bytes a slot, and histograms that do not grow with the
//! trace.

mod ages;
mod birth;
mod clock;
mod decades;
mod facts;
mod figures;
mod groups;
mod nursery;

use std::collections::HashMap;

use heaptoll_callsites::Sum;
use heaptoll_trace::{Batch, Event, EventKind};

use ages::Ages;
use birth::Birth;
use decades::Decades;
pub use figures::*;
use groups::{Group, Groups};
use nursery::Nursery;

use crate::objects::{MAX_SIZE, Objects};
use crate::share::share;
use crate::stacks::CallSites;
use crate::stat::size_bounds;
use crate::subject::Subject;

/// Bytes kept for each object that is live at the same time as others.
pub const EACH_OBJECT: usize = size_of::<Birth>();
/// The approximate distance of time stamps on batches of events.
const BATCH_STAMPS_NS: u64 = 1_000_000;
/// Nurseries that are simulated, bytes.
const NURSERIES: [u64; 3] = [1 << 20, 4 << 20, 16 << 20];
/// Most groups in the result; further ones are merged.
const GROUPS: usize = 100;
/// Most sites in the list of never-freed objects.
const STILL_LIVE_SITES: usize = 1000;

/// Computes the lifetimes of a trace's objects.
#[derive(Debug, Clone)]
pub struct Lifetimes {
    objects: Objects<Birth>,
    by: By,
    groups: Groups,
    decades: Decades,
    nurseries: [Nursery; NURSERIES.len()],
    events: u64,
    clock: u64,
    time_ns: u64,
    lost: u64,
}

impl Lifetimes {
    /// No events yet.
    pub fn new(by: By) -> Lifetimes {
        Lifetimes {
            objects: Objects::default(),
            by,
            groups: Groups::new(by),
            decades: Decades::default(),
            nurseries: NURSERIES.map(Nursery::new),
            events: 0,
            clock: 0,
            time_ns: 0,
            lost: 0,
        }
    }

    /// States, before any event, for each site the first one that reads alike ([`CallSites::first_alike`]): they share
    /// a group from the beginning, however many there are. Without it they are merged at the end, as far as each was
    /// kept.
    pub fn sites_alike(&mut self, first_alike: Vec<u32>) {
        self.groups.alike(first_alike);
    }

    /// Consumes a batch of a trace. Where events are missing before it, the byte clock advances by what they allocated,
    /// so that older objects have their true age.
    pub fn batch(&mut self, batch: &Batch) {
        if batch.after_gap {
            self.clock = self.clock.max(batch.chunk_clock_bytes);
        }
        self.events(&batch.events);
    }

    /// Consumes the next events.
    pub fn events(&mut self, events: &[Event]) {
        events.iter().for_each(|event| self.event(event));
    }

    /// Consumes the next event.
    #[inline(always)]
    pub fn event(&mut self, event: &Event) {
        self.events += 1;
        self.time_ns = event.time_ns;
        match event.kind {
            EventKind::Malloc | EventKind::Calloc | EventKind::Aligned | EventKind::New => {
                self.allocate(event)
            }
            EventKind::Free | EventKind::Delete | EventKind::ReallocFree | EventKind::Lost => {
                self.free(event)
            }
            EventKind::Realloc => self.resize(event),
            EventKind::Failed | EventKind::Foreign => {}
        }
    }

    #[inline(always)]
    fn allocate(&mut self, event: &Event) {
        let size = event.size.min(MAX_SIZE);
        self.fill(size, size);
        let birth = Birth::new(self.clock, self.time_ns, size, event.site, event.thread);
        if let Some(before) = self.objects.born(event.slot, birth) {
            self.end(&before);
        }
    }

    #[inline(always)]
    fn free(&mut self, event: &Event) {
        let Some(birth) = self.objects.ended(event.slot) else { return };
        self.lost += u64::from(event.kind == EventKind::Lost);
        self.end(&birth);
    }

    #[inline]
    fn resize(&mut self, event: &Event) {
        let size = event.size.min(MAX_SIZE);
        let Some(birth) = self.objects.resized(event.slot) else { return };
        let growth = size.saturating_sub(birth.size());
        birth.resize(size);
        self.fill(growth, size);
    }

    /// The byte clock and the nurseries advance by `growth` bytes for an object of `size`.
    #[inline(always)]
    fn fill(&mut self, growth: u64, size: u64) {
        for nursery in &mut self.nurseries {
            nursery.allocate(growth, size, self.clock);
        }
        self.clock = self.clock.saturating_add(growth);
    }

    #[inline(always)]
    fn end(&mut self, birth: &Birth) {
        let size = birth.size();
        let age_ns = self.time_ns.saturating_sub(birth.time_ns);
        let group = self.groups.of(birth);
        group.bytes.add(self.clock - birth.clock, size);
        group.time.add(age_ns, size);
        self.decades.add(age_ns, size);
        for nursery in &mut self.nurseries {
            nursery.free(birth.clock, size);
        }
    }

    /// Time of the last event, ns from the beginning.
    pub fn time_ns(&self) -> u64 {
        self.time_ns
    }

    /// The result. `call_sites`: none when the trace has none.
    pub fn figures(mut self, subject: Subject, mut call_sites: Option<&mut CallSites>) -> LifetimeFigures {
        let mut left: HashMap<u32, Sum> = HashMap::new();
        for (_, birth) in self.objects.live() {
            let size = birth.size();
            self.groups.of(birth).still_live.add(size);
            self.nurseries.iter_mut().for_each(|nursery| nursery.keep(birth.clock, size));
            if call_sites.is_some() {
                left.entry(birth.site).or_default().add(size);
            }
        }
        if self.by == By::Site
            && let Some(call_sites) = call_sites.as_deref_mut()
        {
            self.groups.merge_alike(|site| call_sites.row(site));
        }
        let (groups, rest) = self.groups.finish(GROUPS);
        let mut all = Group::default();
        groups.iter().chain(rest.as_ref().map(|(group, _)| group)).for_each(|group| all.merge(group));
        let mut survival = survivals(&all);
        for younger in survival.iter_mut().filter(|s| s.clock == Clock::Time).flat_map(|s| &mut s.younger) {
            if let Some(ended) = self.decades.younger_than(younger.age) {
                younger.objects = share(ended.objects, all.all().objects);
                younger.bytes = share(ended.bytes, all.all().bytes);
            }
        }
        let still_live_by_site = call_sites.as_deref_mut().map(|call_sites| still_live(left, call_sites));
        let groups = groups.iter().map(|group| match (self.by, call_sites.as_deref_mut()) {
            (By::Site, Some(call_sites)) => of_site(group, call_sites),
            (By::Site, None) => group_figures(group, format!("site {}", group.key), Some(group.key.into())),
            (By::Thread, _) => group_figures(group, format!("thread {}", group.key), Some(group.key.into())),
            (By::Size, _) => {
                let largest = size_bounds(group.key as usize).1;
                group_figures(group, size_name(group.key), Some(largest))
            }
        });
        LifetimeFigures {
            groups: groups.collect(),
            time_resolution_ns: if subject.event_time { 1 } else { BATCH_STAMPS_NS },
            subject,
            events: self.events,
            all: all.all(),
            still_live: all.still_live,
            lost: self.lost,
            clock_bytes: self.clock,
            survival,
            by: self.by,
            other_groups_count: rest.as_ref().map_or(0, |(_, count)| *count),
            other_groups: rest.map(|(group, _)| group_figures(&group, "all others".into(), None)),
            still_live_by_site: still_live_by_site.unwrap_or_default(),
            nurseries: self.nurseries.iter().map(Nursery::figures).collect(),
            misfits: self.objects.misfits(),
        }
    }
}

fn survivals(group: &Group) -> Vec<Survival> {
    let clocks: [(Clock, &Ages); 2] = [(Clock::Bytes, &group.bytes), (Clock::Time, &group.time)];
    clocks.map(|(clock, ages)| Survival::new(clock, ages, group.all())).into()
}

fn group_figures(group: &Group, name: String, key: Option<u64>) -> GroupFigures {
    GroupFigures {
        name,
        key,
        stacks: None,
        stack: Vec::new(),
        all: group.all(),
        still_live: group.still_live,
        survival: survivals(group),
    }
}

fn of_site(group: &Group, call_sites: &mut CallSites) -> GroupFigures {
    let row = call_sites.row(group.key);
    GroupFigures {
        stacks: Some(group.alike),
        stack: call_sites.whole(group.key),
        ..group_figures(group, call_sites.name(row), Some(group.key.into()))
    }
}

fn size_name(class: u32) -> String {
    let (from, up_to) = size_bounds(class as usize);
    if from == up_to { format!("{from} B") } else { format!("{from} to {up_to} B") }
}

fn still_live(left: HashMap<u32, Sum>, call_sites: &mut CallSites) -> Vec<StillLive> {
    let order = |site: u32, held: Sum| (std::cmp::Reverse(held.bytes), std::cmp::Reverse(held.objects), site);
    let mut sites: Vec<(u32, Sum)> = left.into_iter().collect();
    sites.sort_by_key(|&(site, held)| order(site, held));
    let mut index_by_row: HashMap<usize, usize> = HashMap::new();
    let mut rows: Vec<(u32, u64, Sum)> = Vec::new();
    for (site, held) in sites {
        let next = rows.len();
        match rows.get_mut(*index_by_row.entry(call_sites.row(site)).or_insert(next)) {
            Some((_, stacks, sum)) => (*stacks, *sum) = (*stacks + 1, sum.plus(held)),
            None => rows.push((site, 1, held)),
        }
    }
    rows.sort_by_key(|&(site, _, held)| order(site, held));
    rows.truncate(STILL_LIVE_SITES);
    rows.into_iter()
        .map(|(site, stacks, held)| {
            let row = call_sites.row(site);
            StillLive { site, name: call_sites.name(row), stacks, stack: call_sites.whole(site), held }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::tests::event;

    fn lifetimes(by: By, events: &[Event]) -> LifetimeFigures {
        let mut lifetimes = Lifetimes::new(by);
        lifetimes.events(events);
        lifetimes.figures(Subject::default(), Some(&mut CallSites::new(&Default::default(), 3)))
    }

    fn at(time_ns: u64, event: Event) -> Event {
        Event { time_ns, ..event }
    }

    #[test]
    fn ages_run_from_the_end_of_the_allocation_to_the_free() {
        let figures = lifetimes(
            By::Size,
            &[
                at(0, event(EventKind::Malloc, 0, 100)),
                at(0, event(EventKind::Malloc, 1, 2000)),
                at(999_999, event(EventKind::Free, 1, 0)),   // age 0
                at(1_000_000, event(EventKind::Free, 0, 0)), // age 2000 bytes, 1 ms
                at(1_000_000, event(EventKind::Calloc, 0, 50)),
                at(1_000_000, event(EventKind::Realloc, 0, 2000)), // grows by 1950: its own age
                at(1_000_000, event(EventKind::Malloc, 1, 10)),
                at(9_000_000, event(EventKind::Free, 0, 0)), // age 1960 bytes, 8 ms, 2000 bytes
            ],
        );
        assert_eq!(figures.all, Sum { objects: 4, bytes: 4110 });
        assert_eq!(figures.still_live, Sum { objects: 1, bytes: 10 });
        assert_eq!(figures.clock_bytes, 100 + 2000 + 2000 + 10);
        let [bytes, time] = &figures.survival[..] else { panic!("two clocks") };
        let kib = bytes.younger_than(1024).expect("a threshold");
        assert_eq!((kib.objects, kib.bytes), (0.25, 2000.0 / 4110.0));
        assert_eq!(bytes.younger_than(10240).map(|y| y.objects), Some(0.75));
        assert_eq!(time.younger_than(1_000_000).map(|y| y.objects), Some(0.25));
        assert_eq!(time.younger_than(10_000_000).map(|y| y.objects), Some(0.75));
        assert!(bytes.median_age.is_some_and(|age| (1920..2048).contains(&age)), "{:?}", bytes.median_age);
        assert_eq!(bytes.age_90, None, "a quarter lives to the end");
        assert_eq!(bytes.curve.last().map(|point| point.objects), Some(0.25));
        assert_eq!(bytes.curve[0], CurvePoint { age: 1, objects: 0.75, bytes: 1.0 - 2000.0 / 4110.0 });
        let names: Vec<_> =
            figures.groups.iter().map(|group| (group.name.as_str(), group.all.objects)).collect();
        assert_eq!(names, [("9 to 16 B", 1), ("65 to 128 B", 1), ("1025 to 2048 B", 2)]);
    }

    #[test]
    fn what_was_never_freed_is_listed_by_site() {
        let site = |site, event: Event| Event { site, ..event };
        let figures = lifetimes(
            By::Site,
            &[
                site(1, event(EventKind::Malloc, 0, 10)),
                site(2, event(EventKind::Malloc, 1, 30)),
                site(1, event(EventKind::New, 2, 15)),
                site(3, event(EventKind::New, 3, 99)),
                site(9, event(EventKind::Lost, 3, 0)),
                event(EventKind::Failed, 0, 5),
                event(EventKind::Foreign, 0, 0),
                event(EventKind::Free, 77, 0),
            ],
        );
        let left: Vec<_> =
            figures.still_live_by_site.iter().map(|s| (&*s.name, s.held.objects, s.held.bytes)).collect();
        assert_eq!(left, [("unknown site 2", 1, 30), ("unknown site 1", 2, 25)]);
        assert_eq!((figures.lost, figures.misfits, figures.all.objects), (1, 1, 4));
        assert_eq!(
            figures.groups.iter().map(|group| group.key).collect::<Vec<_>>(),
            [Some(3), Some(2), Some(1)]
        );
    }

    #[test]
    fn a_program_that_never_frees_survives_every_nursery() {
        let events: Vec<Event> = (0..200).map(|slot| event(EventKind::Malloc, slot, 1 << 16)).collect();
        let figures = lifetimes(By::Thread, &events);
        assert_eq!(figures.nurseries[0].collections, 12, "12.5 MiB");
        assert_eq!(figures.nurseries[0].survival_bytes, Some(1.0));
        assert_eq!(figures.nurseries[2].survival_bytes, None);
        assert_eq!(figures.survival[0].younger.iter().map(|younger| younger.objects).sum::<f64>(), 0.0);
        assert!(figures.survival[0].curve.is_empty());
    }

    #[test]
    fn ages_advance_over_a_gap() {
        let mut lifetimes = Lifetimes::new(By::Size);
        let batch = |events: &[Event], after_gap, chunk_clock_bytes| Batch {
            events: events.to_vec(),
            after_gap,
            chunk_clock_bytes,
            ..Batch::default()
        };
        lifetimes.batch(&batch(&[event(EventKind::Malloc, 0, 10)], false, 0));
        lifetimes.batch(&batch(&[event(EventKind::Free, 0, 0)], true, 1 << 20));
        let figures = lifetimes.figures(Subject::default(), None);
        assert_eq!(figures.survival[0].younger_than(100 << 10).map(|younger| younger.objects), Some(0.0));
        assert_eq!(figures.clock_bytes, 1 << 20);
    }

    #[test]
    fn without_objects_there_are_no_figures() {
        let figures = lifetimes(By::Size, &[]);
        assert_eq!((figures.all, figures.groups.len()), (Sum::default(), 0));
        assert_eq!(figures.survival[0].median_age, None);
    }
}
