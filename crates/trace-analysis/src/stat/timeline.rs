//! Live bytes over the whole run, in as many points as a chart shows, without knowing beforehand how long it is.
//!
//! Events are taken in intervals of equal number; an interval keeps its point of most live bytes. When there are too
//! many intervals, neighbours are merged and intervals become twice as long.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most points kept.
const POINTS: usize = 1024;

/// Live bytes and objects at one event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Byte clock: bytes allocated so far.
    pub clock_bytes: u64,
    /// ns from the beginning.
    pub time_ns: u64,
    /// Requested bytes of live objects.
    pub live_bytes: u64,
    /// Live objects.
    pub live_objects: u64,
}

/// The run so far.
#[derive(Debug, Clone)]
pub struct Timeline {
    points: Vec<Point>,
    /// Events of an interval.
    interval: u64,
    /// Events left of the current one.
    left: u64,
    /// The highest point of the current interval.
    highest: Point,
}

impl Default for Timeline {
    fn default() -> Timeline {
        Timeline { points: Vec::with_capacity(POINTS), interval: 16, left: 16, highest: Point::default() }
    }
}

impl Timeline {
    /// Events that still belong to the current interval; at least 1.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Most live bytes in this interval so far: only what is above it needs [`Timeline::rise`].
    #[inline(always)]
    pub fn highest_bytes(&self) -> u64 {
        self.highest.live_bytes
    }

    /// There are more live bytes than before in this interval.
    #[inline(always)]
    pub fn rise(&mut self, point: Point) {
        self.highest = point;
    }

    /// `events` events of this interval have passed, at most as many as are left; `now` is the state after them.
    pub fn pass(&mut self, events: u64, now: Point) {
        self.left -= events;
        if self.left > 0 {
            return;
        }
        self.points.push(self.highest);
        if self.points.len() == POINTS {
            self.points = self.points.chunks(2).map(higher).collect();
            self.points.reserve(POINTS - self.points.len());
            self.interval *= 2;
        }
        self.left = self.interval;
        self.highest = now;
    }

    /// All points, first the empty heap, last `end`.
    pub fn finish(mut self, end: Point) -> Vec<Point> {
        if self.left < self.interval {
            self.points.push(self.highest);
        }
        self.points.insert(0, Point::default());
        self.points.push(end);
        self.points.dedup();
        self.points
    }
}

fn higher(points: &[Point]) -> Point {
    points.iter().copied().max_by_key(|point| point.live_bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_point_is_kept_however_long_the_run() {
        let mut timeline = Timeline::default();
        let mut now = Point::default();
        for event in 0..1_000_000_u64 {
            let live_bytes = if event == 654_321 { 9_999 } else { event % 100 };
            now = Point { clock_bytes: event, time_ns: event * 10, live_bytes, live_objects: 1 };
            if live_bytes > timeline.highest_bytes() {
                timeline.rise(now);
            }
            timeline.pass(1, now);
        }
        let points = timeline.finish(now);
        assert!((POINTS / 2..=POINTS + 2).contains(&points.len()), "{}", points.len());
        assert!(points.is_sorted_by_key(|point| point.clock_bytes));
        let top = points.iter().max_by_key(|point| point.live_bytes).expect("points");
        assert_eq!((top.live_bytes, top.clock_bytes), (9_999, 654_321));
        assert_eq!((points[0], points[points.len() - 1]), (Point::default(), now));
    }
}
