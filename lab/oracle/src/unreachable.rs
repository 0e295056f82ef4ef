//! When objects can be reached no more, from the root points of the recorded run: a collector's point of reclamation,
//! which does not depend on when the program frees them.

use heaptoll_callsites::Sum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::live::{FreePoint, Live};
use crate::recording::{Object, Recording};

/// What the root points of a run show. Points are numbers of allocations made before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RootPoints {
    /// When each was recorded, in order.
    pub at: Vec<u64>,
    /// By object: the first root point at which nothing led to it and the program does not touch it later.
    pub unreachable: Vec<Option<u64>>,
    /// Objects that nothing led to at a root point, and that the program touched later.
    pub hidden: Sum,
}

/// Points of unreachability compared with the program's own frees. Root points are some allocations apart, and each object that
/// the program frees is in one of `before_free`, `at_free`, `after_free` and `not_known`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unreachable {
    /// Root points.
    pub root_points: u64,
    /// Objects that could be reached by a hidden pointer only: at a root point nothing led to them, and the program
    /// touched them later. They are kept until then.
    pub hidden: Sum,
    /// Freed by the program when they could not be reached any more at a root point before.
    pub before_free: Sum,
    /// Unreachable at the first root point after the program's free.
    pub at_free: Sum,
    /// Still reachable at the first root point after the program's free.
    pub after_free: Sum,
    /// Freed after the last root point, and reachable until then.
    pub not_known: Sum,
    /// Never freed by the program, and unreachable at a root point.
    pub lost: Sum,
    /// Never freed by the program, and reachable to the end.
    pub kept: Sum,
    /// Requested bytes alive if objects are freed when they cannot be reached any more.
    pub live: Live,
}

impl Recording {
    /// Sets the points of unreachability of all objects: never before the last use.
    pub fn set_unreachable(&mut self, points: &RootPoints) -> Unreachable {
        let mut found = Unreachable {
            root_points: points.at.len() as u64,
            hidden: points.hidden,
            ..Unreachable::default()
        };
        let end = self.objects.len() as u64;
        for (object, unreachable) in self.objects.iter_mut().zip(&points.unreachable) {
            let unreachable = unreachable.map(|point| point.max(object.last_use));
            found.class(object, unreachable, &points.at).add(object.size);
            // After the last allocation the layer frees nothing.
            object.unreachable = unreachable.filter(|point| *point < end);
        }
        found.live = Live::of(&self.objects, FreePoint::Unreachable);
        found
    }
}

impl Unreachable {
    /// Where an object is counted; `root_points` are in order.
    fn class(&mut self, object: &Object, unreachable: Option<u64>, root_points: &[u64]) -> &mut Sum {
        let Some(freed) = object.freed else {
            return if unreachable.is_some() { &mut self.lost } else { &mut self.kept };
        };
        let first = root_points.get(root_points.partition_point(|point| *point < freed));
        match (unreachable, first) {
            (Some(point), _) if point < freed => &mut self.before_free,
            (Some(point), Some(first)) if point <= *first => &mut self.at_free,
            (None, None) => &mut self.not_known,
            _ => &mut self.after_free,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn object(size: u64, last_use: u64, freed: Option<u64>) -> Object {
        Object { size, site: 0, resized: None, last_use, freed, unreachable: None }
    }

    #[test]
    fn each_object_is_counted_by_its_point_and_its_free() {
        let objects = vec![
            object(1, 1, Some(4)),
            object(2, 2, Some(4)),
            object(4, 3, Some(4)),
            object(8, 4, Some(4)),
            object(16, 5, None),
            object(32, 6, None),
            object(64, 7, Some(7)),
            object(128, 8, Some(8)),
        ];
        let mut recording = Recording { objects, sites: vec![] };
        let unreachable = vec![Some(2), Some(5), Some(7), None, Some(7), None, Some(7), None];
        let hidden = Sum { objects: 1, bytes: 4 };
        let found = recording.set_unreachable(&RootPoints { at: vec![2, 5, 7], unreachable, hidden });
        let bytes = [
            found.before_free,
            found.at_free,
            found.after_free,
            found.not_known,
            found.lost,
            found.kept,
            found.hidden,
        ]
        .map(|amount| amount.bytes);
        assert_eq!(bytes, [1, 2 + 64, 4 + 8, 128, 16, 32, 4]);
        assert_eq!((found.root_points, found.after_free.objects), (3, 2));
        let points: Vec<Option<u64>> = recording.objects.iter().map(|object| object.unreachable).collect();
        assert_eq!(points, [Some(2), Some(5), Some(7), None, Some(7), None, Some(7), None]);
    }

    #[test]
    fn an_object_is_kept_to_its_last_use_whatever_the_graph_shows() {
        let mut recording = Recording { objects: vec![object(1, 3, None); 5], sites: vec![] };
        let unreachable = vec![Some(1), Some(3), Some(4), Some(5), None];
        recording.set_unreachable(&RootPoints { unreachable, ..RootPoints::default() });
        let points: Vec<Option<u64>> = recording.objects.iter().map(|object| object.unreachable).collect();
        assert_eq!(points, [Some(3), Some(3), Some(4), None, None]);
    }

    proptest! {
        #[test]
        fn unreachability_never_keeps_less_than_the_last_use_and_never_more_than_all(
            steps in prop::collection::vec((1u64..100, 1u64..10, prop::option::of(0u64..100)), 1..100),
        ) {
            let count = steps.len() as u64;
            let used = |(at, step): (usize, &(u64, u64, _))| object(step.0, (at as u64 + step.1).min(count), None);
            let objects: Vec<Object> = steps.iter().enumerate().map(used).collect();
            let mut recording = Recording { objects, sites: vec![] };
            let unreachable = steps.iter().map(|step| step.2).collect();
            let found = recording.set_unreachable(&RootPoints { unreachable, ..RootPoints::default() });
            let live = |point| Live::of(&recording.objects, point);
            let (last_use, never) = (live(FreePoint::LastUse), live(FreePoint::Never));
            prop_assert!(last_use.peak_bytes <= found.live.peak_bytes && found.live.peak_bytes <= never.peak_bytes);
            prop_assert!(last_use.mean_bytes <= found.live.mean_bytes && found.live.mean_bytes <= never.mean_bytes);
        }
    }
}
