//! Requested bytes that are alive, by the point at which objects are freed.
//!
//! They are counted after each allocation, when everything that the layer frees before it is gone; so the figures are
//! those of a run under the layer. `realloc` frees its old object when it has copied it, at every point alike.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::recording::Object;

/// When objects are freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FreePoint {
    /// Before the first allocation after their last use.
    LastUse,
    /// Before the first allocation after the point at which they could not be reached any more.
    Unreachable,
    /// When the program frees them.
    Free,
    /// When so many bytes have been allocated since then.
    Delay(u64),
    /// When the bytes allocated reach the next multiple of this since then.
    Collect(u64),
    /// Not at all.
    Never,
}

/// Requested bytes alive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Live {
    /// The most at once.
    pub peak_bytes: u64,
    /// On average over the bytes allocated.
    pub mean_bytes: u64,
}

impl Live {
    /// Of objects in the order of their allocation, freed at a point.
    pub fn of(objects: &[Object], point: FreePoint) -> Live {
        let clock = Clock::of(objects);
        let count = objects.len();
        let mut dying = vec![0u64; count + 1];
        let (mut alive, mut live, mut area) = (0u64, Live::default(), 0f64);
        for (index, object) in objects.iter().enumerate() {
            let end = clock.end(object, point).min(count);
            dying[end.max(index + 1).min(count)] += object.size;
        }
        for (index, object) in objects.iter().enumerate() {
            alive = alive - dying[index] + object.size;
            live.peak_bytes = live.peak_bytes.max(alive);
            area += alive as f64 * object.size as f64;
        }
        live.mean_bytes = (area / clock.total().max(1) as f64).round() as u64;
        live
    }
}

/// Bytes allocated before each allocation, and after the last.
struct Clock(Vec<u64>);

impl Clock {
    fn of(objects: &[Object]) -> Clock {
        let mut bytes = Vec::with_capacity(objects.len() + 1);
        let mut sum = 0u64;
        bytes.push(0);
        for object in objects {
            sum = sum.saturating_add(object.size);
            bytes.push(sum);
        }
        Clock(bytes)
    }

    fn total(&self) -> u64 {
        self.0.last().copied().unwrap_or(0)
    }

    /// The allocation before which an object is freed; beyond the last for never.
    fn end(&self, object: &Object, point: FreePoint) -> usize {
        let never = self.0.len();
        let freed = |due: &dyn Fn(u64) -> u64| {
            let Some(freed) = object.freed else { return never };
            let due = due(self.0[freed as usize]);
            self.0.partition_point(|bytes| *bytes < due).max(freed as usize)
        };
        match point {
            FreePoint::LastUse => object.last_use as usize,
            FreePoint::Unreachable => object.unreachable.map_or(never, |unreachable| unreachable as usize),
            FreePoint::Free => object.freed.map_or(never, |freed| freed as usize),
            FreePoint::Delay(bytes) => freed(&|now| now.saturating_add(bytes)),
            FreePoint::Collect(bytes) => freed(&|now| (now / bytes.max(1) + 1).saturating_mul(bytes.max(1))),
            FreePoint::Never => never,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 10 bytes used until the second allocation and freed after the third, 20 never freed, 30, 40.
    fn small() -> Vec<Object> {
        let object = |size, last_use, freed| Object {
            size,
            site: 0,
            resized: None,
            last_use,
            freed,
            unreachable: None,
        };
        vec![object(10, 1, Some(3)), object(20, 3, None), object(30, 3, Some(4)), object(40, 4, Some(4))]
    }

    #[test]
    fn what_is_alive_is_counted_after_each_allocation() {
        let peak = |point| Live::of(&small(), point).peak_bytes;
        assert_eq!(peak(FreePoint::LastUse), 50, "20 and 30");
        assert_eq!(peak(FreePoint::Free), 90, "20, 30 and 40");
        assert_eq!(peak(FreePoint::Delay(1)), 100);
        assert_eq!(peak(FreePoint::Never), 100);
        let mean = Live::of(&small(), FreePoint::LastUse).mean_bytes;
        assert_eq!(mean, (10 * 10 + 20 * 20 + 50 * 30 + 40 * 40) / 100);
    }

    #[test]
    fn a_collection_frees_what_the_program_freed_before_it() {
        let object =
            |freed| Object { size: 10, site: 0, resized: None, last_use: 1, freed, unreachable: None };
        let objects = vec![object(Some(1)), object(Some(2)), object(None), object(None), object(None)];
        // At 20 bytes the first two are gone: before the third allocation.
        assert_eq!(Live::of(&objects, FreePoint::Collect(20)).peak_bytes, 30);
        assert_eq!(Live::of(&objects, FreePoint::Collect(40)).peak_bytes, 40);
        assert_eq!(Live::of(&objects, FreePoint::Free).peak_bytes, 30);
    }

    proptest! {
        #[test]
        fn a_later_point_never_keeps_less(
            steps in prop::collection::vec((1u64..100, 1u64..10, 0u64..10, any::<bool>()), 1..100),
            bytes in 1u64..500,
        ) {
            let count = steps.len() as u64;
            let objects: Vec<Object> = steps
                .iter()
                .enumerate()
                .map(|(at, (size, used, more, kept))| {
                    let last_use = (at as u64 + used).min(count);
                    let freed = (!kept).then_some((last_use + more).min(count));
                    Object { size: *size, site: 0, resized: None, last_use, freed, unreachable: None }
                })
                .collect();
            let live = |point| Live::of(&objects, point);
            let order =
                [FreePoint::LastUse, FreePoint::Free, FreePoint::Delay(bytes), FreePoint::Delay(2 * bytes), FreePoint::Never].map(live);
            for (earlier, later) in order.iter().zip(&order[1..]) {
                prop_assert!(earlier.peak_bytes <= later.peak_bytes && earlier.mean_bytes <= later.mean_bytes);
            }
            let collected = live(FreePoint::Collect(bytes));
            prop_assert!(order[1].peak_bytes <= collected.peak_bytes && collected.peak_bytes <= order[4].peak_bytes);
        }
    }
}
