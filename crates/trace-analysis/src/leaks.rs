//! What a program never frees, and what of it is a leak: lost (by the kinds of memcheck), reachable and not touched any
//! more, or growing over the whole run. By call site.
//!
//! A trace with pointers has all three. A plain trace has what was never freed and what grows.

mod figures;
mod found;
mod growing;
mod growth;
mod plain;
mod row;
mod series;
mod sites;

use std::collections::HashMap;

use heaptoll_callsites::Sum;
use heaptoll_trace::graph::{AllocationKind, Event, FreeCause};

pub use figures::{
    Filled, FreedLast, Growing, GrownMost, KeptSite, Kinds, LeakFigures, SiteLeaks, Suppressed,
};
pub use found::Found;
pub use growth::{Rise, SHORTEST_NS, Slope};
pub use plain::{EACH_OBJECT, NeverFreedOf};
pub use sites::{By, LEAVE_NONE_OUT};

use crate::graph::lost::{Kind, Lost};
use found::{SiteSums, add_freed_after_exit};
use series::LiveSeries;

/// Of an object that is reachable, the last touch lies so far back: this part of the run.
const IDLE: u64 = 2;

/// Takes the events of a trace with pointers.
#[derive(Debug, Default)]
pub struct GraphLeaks {
    lost: Lost,
    series: LiveSeries,
    /// Site and size of live objects.
    live: HashMap<u64, (u32, u64)>,
    allocated: Sum,
    /// Size of the newest object.
    newest: u64,
    clock_bytes: u64,
    /// By call stack.
    freed_after_exit: HashMap<u32, Sum>,
}

impl GraphLeaks {
    /// Takes the events of a batch, which happened at this time, 0 where the trace has none; before it, events may be
    /// missing.
    pub fn events(&mut self, events: &[Event], time_ns: u64, after_gap: bool) {
        self.lost.events(events, after_gap);
        for event in events {
            match *event {
                Event::Allocate { object, size, site, kind, .. } => {
                    self.allocated.add(size);
                    self.newest = size;
                    self.clock_bytes = self.clock_bytes.saturating_add(size);
                    self.live.insert(object, (site, size));
                    let one = Sum { objects: 1, bytes: size };
                    match kind {
                        // The object that it replaces ends next.
                        AllocationKind::Resized => self.series.replaces(site, one, self.clock_bytes, time_ns),
                        _ => self.series.add(site, one, self.clock_bytes, time_ns),
                    }
                }
                Event::Free { object, cause, .. } => {
                    if let Some((site, size)) = self.live.remove(&object) {
                        if cause == FreeCause::Resized {
                            // The newest object is the same one, as in other traces: what it grew by was allocated.
                            let again = Sum { objects: 1, bytes: size.min(self.newest) };
                            self.allocated = self.allocated.minus(again);
                        }
                        self.series.remove(site, Sum { objects: 1, bytes: size }, self.clock_bytes, time_ns);
                    }
                }
                Event::RootsBegin { clock_bytes } => {
                    self.clock_bytes = self.clock_bytes.max(clock_bytes);
                }
                _ => {}
            }
        }
    }

    /// Takes the events of a batch after `exit` had begun: of what was live then, only what is freed.
    pub fn events_after_exit(&mut self, events: &[Event]) {
        for event in events {
            match *event {
                Event::Free { object, last_touch, .. } => {
                    let Some((site, size)) = self.live.remove(&object) else { continue };
                    self.freed_after_exit.entry(site).or_default().add(size);
                    self.lost.take(&Event::Kept { object, last_touch });
                }
                Event::Kept { .. } => self.lost.take(event),
                _ => {}
            }
        }
    }

    /// What was found, when all events were taken: `exit` began at `time_ns`.
    pub fn finish(mut self, time_ns: u64) -> Found {
        self.series.end(time_ns);
        let clock_bytes = self.clock_bytes;
        let (judged_at_bytes, goes_on) = (self.lost.judged_at_bytes(), self.lost.goes_on());
        let mut sums: HashMap<u32, SiteSums> = HashMap::new();
        for object in self.lost.finish() {
            let of = &mut sums.entry(object.site).or_default();
            match object.kind {
                Kind::Definite => of.kinds.definite.add(object.size),
                Kind::Indirect { .. } => of.kinds.indirect.add(object.size),
                Kind::Possible => of.kinds.possible.add(object.size),
                Kind::Unjudged => of.kinds.unjudged.add(object.size),
                Kind::Reachable => {
                    of.kinds.reachable.add(object.size);
                    let idle = object.idle_bytes.filter(|idle| *idle > clock_bytes / IDLE);
                    if let Some(idle) = idle {
                        of.kinds.idle.add(object.size);
                        of.idle_area += u128::from(object.size) * u128::from(idle);
                        if object.is_untouched {
                            of.kinds.untouched.add(object.size);
                        }
                    }
                }
            }
            if let Kind::Indirect { leader_site } = object.kind {
                sums.entry(leader_site).or_default().led.add(object.size);
            }
        }
        add_freed_after_exit(&self.freed_after_exit, &mut sums);
        Found {
            sums,
            series: self.series,
            allocated: self.allocated,
            clock_bytes,
            judged_at_bytes,
            goes_on,
            misfits: 0,
        }
    }
}

#[cfg(test)]
mod tests;
