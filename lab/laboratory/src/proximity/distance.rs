//! Requests against the collections around them.

/// From when to when, ns on one clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Its beginning.
    pub start_ns: u64,
    /// Its end.
    pub end_ns: u64,
}

/// A request as it was marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marked {
    /// Its time.
    pub span: Span,
    /// Processor time of its thread, ns, where it was recorded.
    pub cpu_ns: Option<u64>,
}

#[cfg(test)]
impl From<Span> for Marked {
    fn from(span: Span) -> Marked {
        Marked { span, cpu_ns: None }
    }
}

/// A request and where it lies between two collections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// From the end of the last collection before it to its start, ns.
    pub distance_ns: u64,
    /// How long it took, less the collections in it, ns.
    pub time_ns: u64,
    /// Processor time of its thread, ns, where it was recorded.
    pub cpu_ns: Option<u64>,
    /// From its start to the start of the next collection, ns; `None` after the last one.
    pub gap_ns: Option<u64>,
    /// The run it is from.
    pub run: u32,
    /// The collection that it comes after, counted within the run.
    pub cycle: u32,
}

/// The requests of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Distances {
    /// Those that no collection interrupted.
    pub whole: Vec<Sample>,
    /// Those that one did.
    pub interrupted: Vec<Sample>,
    /// Those that began before the first collection had ended: there is nothing to be distant from.
    pub before_first: u64,
    /// Those that began while a collection was under way: in a thread that it had not stopped yet, or in a client. They
    /// are interrupted as well, but have no distance.
    pub within: u64,
}

/// Collections in order; those of several processes that overlap are one.
fn apart(collections: &[Span]) -> Vec<Span> {
    let mut sorted = collections.to_vec();
    sorted.sort_by_key(|collection| (collection.start_ns, collection.end_ns));
    let mut apart: Vec<Span> = Vec::with_capacity(sorted.len());
    for one in sorted {
        match apart.last_mut() {
            Some(last) if one.start_ns < last.end_ns => last.end_ns = last.end_ns.max(one.end_ns),
            _ => apart.push(one),
        }
    }
    apart
}

/// Relates requests to collections. Both may overlap: requests of several threads, collections of several processes.
pub fn distances(requests: &[Marked], collections: &[Span], run: u32) -> Distances {
    let collections = apart(collections);
    let mut found = Distances::default();
    for Marked { span: request, cpu_ns } in requests {
        // Of those that began by then, the last.
        let begun = collections.partition_point(|collection| collection.start_ns <= request.start_ns);
        let Some(last) = begun.checked_sub(1).map(|at| collections[at]) else {
            found.before_first += 1;
            continue;
        };
        let Some(distance_ns) = request.start_ns.checked_sub(last.end_ns) else {
            found.within += 1;
            continue;
        };
        let next = collections.get(begun);
        let sample = Sample {
            distance_ns,
            time_ns: request
                .end_ns
                .saturating_sub(request.start_ns)
                .saturating_sub(paused(request, &collections[begun..])),
            cpu_ns: *cpu_ns,
            gap_ns: next.map(|next| next.start_ns - request.start_ns),
            run,
            cycle: u32::try_from(begun).unwrap_or(u32::MAX),
        };
        match next.is_some_and(|next| next.start_ns < request.end_ns) {
            true => found.interrupted.push(sample),
            false => found.whole.push(sample),
        }
    }
    found
}

/// How much of a request later collections took, ns.
fn paused(request: &Span, later: &[Span]) -> u64 {
    let within = later.iter().take_while(|collection| collection.start_ns < request.end_ns);
    within.map(|collection| collection.end_ns.min(request.end_ns) - collection.start_ns).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn span(start_ns: u64, end_ns: u64) -> Span {
        Span { start_ns, end_ns }
    }

    #[test]
    fn a_request_is_as_far_as_the_end_of_the_last_collection() {
        let collections = [span(100, 110), span(200, 230)];
        let requests =
            [span(5, 8), span(110, 120), span(150, 205), span(199, 200), span(240, 300), span(210, 240)]
                .map(Marked::from);
        let found = distances(&requests, &collections, 3);
        let whole: Vec<(u64, u64, Option<u64>)> =
            found.whole.iter().map(|sample| (sample.distance_ns, sample.time_ns, sample.gap_ns)).collect();
        assert_eq!(whole, [(0, 10, Some(90)), (89, 1, Some(1)), (10, 60, None)]);
        assert_eq!((found.interrupted.len(), found.before_first, found.within), (1, 1, 1));
        let interrupted = found.interrupted[0];
        assert_eq!((interrupted.distance_ns, interrupted.time_ns, found.whole[0].run), (40, 50, 3));
    }

    /// Two processes of a server collect at once: the distance is to the end of the one that ends last.
    #[test]
    fn collections_that_overlap_are_one() {
        let collections = [span(100, 200), span(110, 120), span(300, 310), span(305, 330)];
        let found = distances(
            &[span(150, 160), span(210, 220), span(320, 325), span(340, 341)].map(Marked::from),
            &collections,
            0,
        );
        let whole: Vec<(u64, Option<u64>)> =
            found.whole.iter().map(|sample| (sample.distance_ns, sample.gap_ns)).collect();
        assert_eq!((whole, found.within), (vec![(10, Some(90)), (10, None)], 2));
        // The pauses in a request count once.
        let interrupted =
            distances(&[span(10, 90), span(210, 400)].map(Marked::from), &collections, 0).interrupted;
        assert_eq!(interrupted.iter().map(|sample| sample.time_ns).collect::<Vec<_>>(), [160]);
    }

    proptest! {
        /// Every request is in one place, and a whole one lies between its two collections.
        #[test]
        fn every_request_is_accounted_for(
            lengths in prop::collection::vec((1u64..50, 1u64..200), 0..20),
            requests in prop::collection::vec((0u64..5000, 0u64..100), 0..200),
        ) {
            let mut at = 0;
            let collections: Vec<Span> = lengths.iter().map(|(pause, gap)| {
                at += gap;
                let one = span(at, at + pause);
                at += pause;
                one
            }).collect();
            let requests: Vec<Marked> =
                requests.iter().map(|(start, length)| span(*start, start + length).into()).collect();
            let found = distances(&requests, &collections, 0);
            let all = found.whole.len() as u64 + found.interrupted.len() as u64 + found.before_first + found.within;
            prop_assert_eq!(all, requests.len() as u64);
            for sample in &found.whole {
                prop_assert!(sample.gap_ns.is_none_or(|gap| gap >= sample.time_ns));
            }
            for sample in &found.interrupted {
                prop_assert!(sample.gap_ns.is_some_and(|gap| gap <= sample.time_ns));
            }
        }
    }
}
