//! Survival by age: `heaptoll trace lifetimes` of one recording.

use heaptoll_facts::{Comparative, Facts, Metric, Place};

use super::figures::{Clock, LifetimeFigures};

/// Exact facts of one program under one manager. At the ages of the command's tables shares are counted; between them
/// the curve's are.
impl Comparative for LifetimeFigures {
    const METRICS: &'static [Metric] = &[
        Metric::count("surviving", "share of objects, at bytes of age").at(Place::Bytes),
        Metric::count("surviving_bytes", "share of bytes, at bytes of age").at(Place::Bytes),
        Metric::count(
            "surviving_instructions",
            "share of objects, at 10^4 to 10^8 instructions, estimated from an `instructions` step",
        )
        .at(Place::Instructions),
        Metric::count("objects", "all"),
        Metric::count("bytes", "all"),
        Metric::count("never_freed", "share of objects"),
        Metric::count("never_freed_bytes", "share of bytes"),
    ];

    fn facts(&self) -> Facts {
        let mut facts = Facts::default();
        let program = self.subject.command.first().unwrap_or(&self.subject.exe);
        let mut writer = facts.of(program, &self.subject.manager);
        let (all, live) = (self.all, self.still_live);
        writer.exact("objects", None, all.objects as f64);
        writer.exact("bytes", None, all.bytes as f64);
        // Of no objects there is no share.
        writer.exact("never_freed", None, live.objects as f64 / all.objects as f64);
        writer.exact("never_freed_bytes", None, live.bytes as f64 / all.bytes as f64);
        for survival in self.survival.iter().filter(|survival| survival.clock == Clock::Bytes) {
            let exact = |age: u64| survival.younger.iter().any(|point| point.age == age);
            let younger = survival.younger.iter();
            let mut points: Vec<(u64, f64, f64)> =
                younger.map(|point| (point.age, 1.0 - point.objects, 1.0 - point.bytes)).collect();
            let curve = survival.curve.iter().filter(|point| !exact(point.age));
            points.extend(curve.map(|point| (point.age, point.objects, point.bytes)));
            points.sort_by_key(|point| point.0);
            for (age, objects, bytes) in points {
                writer.exact("surviving", Some(age as f64), objects);
                writer.exact("surviving_bytes", Some(age as f64), bytes);
            }
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_facts::testing::{assert_exact, measured};
    use heaptoll_facts::{Fact, Value};

    use super::*;

    /// A tiny cfrac, shortened: lists that are not read are empty.
    fn lifetimes() -> (LifetimeFigures, Vec<Fact>) {
        let text = include_str!("../../testdata/lifetimes.json");
        let found: LifetimeFigures = serde_json::from_str(text).expect("the command's JSON");
        let facts = measured(&found);
        (found, facts)
    }

    #[test]
    fn shares_survive_what_is_not_younger() {
        let (found, facts) = lifetimes();
        let younger = found.survival[0].younger[1].objects;
        assert_exact(&facts, "glibc", "surviving", Some(10_240.0), 1.0 - younger);
        assert_exact(&facts, "glibc", "surviving", Some(1.0), 0.9438991361475846);
        assert_exact(&facts, "glibc", "objects", None, 333_043.0);
        assert_exact(&facts, "glibc", "never_freed", None, 1.0 / 333_043.0);
    }

    #[test]
    fn fewer_survive_a_longer_age_and_each_age_is_there_once() {
        let (_, facts) = lifetimes();
        let mut last = (0.0, 1.0);
        for fact in facts.iter().filter(|fact| fact.metric == "surviving") {
            let (Some(at), Value::Exact(share)) = (fact.at, &fact.value) else { panic!("{fact:?}") };
            // The curve between the counted ages is within a bin of its histogram.
            assert!(at > last.0 && *share <= last.1 + 1e-3, "{at}: {share} after {last:?}");
            last = (at, *share);
        }
        assert!(last.0 > 0.0);
    }
}
