//! Unreachability and the program's own free: which comes first, and by how much.

use hdrhistogram::Histogram;

use heaptoll_trace_analysis::graph::objects::Node;

use super::figures::{Count, Distance, EndFigures};
use super::seen::Seen;

/// Distances, bytes allocated.
#[derive(Debug)]
struct Distances {
    /// To two digits, which are always possible.
    all: Option<Histogram<u64>>,
    count: u64,
    sum: u128,
}

impl Default for Distances {
    fn default() -> Distances {
        Distances { all: Histogram::new(2).ok(), count: 0, sum: 0 }
    }
}

impl Distances {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.sum += u128::from(bytes);
        if let Some(all) = &mut self.all {
            // It grows as needed, up to numbers that no program allocates.
            let _ = all.record(bytes);
        }
    }

    fn figures(&self) -> Distance {
        let below = |share| self.all.as_ref().map_or(0, |all| all.value_at_quantile(share));
        match self.count {
            0 => Distance::default(),
            count => Distance {
                mean_bytes: self.sum as f64 / count as f64,
                median_bytes: below(0.5),
                percentile_90_bytes: below(0.9),
            },
        }
    }
}

/// Takes the ends of objects.
#[derive(Debug, Default)]
pub(super) struct Ends {
    freed: Count,
    before: Count,
    before_by: Distances,
    pointed: Count,
    undecided: Count,
    undecided_within: Distances,
    between: Count,
    otherwise: Count,
    never_freed: Count,
    lost: Count,
    /// Objects whose end is not in the trace.
    pub unknown: u64,
}

impl Ends {
    /// The program frees an object; `point_bytes` is the clock of the last root point.
    pub(super) fn freed(&mut self, node: &Node<Seen>, clock_bytes: u64, point_bytes: u64) {
        self.freed.add(node.size);
        if let Some(since) = node.data.unreached_bytes {
            self.before.add(node.size);
            self.before_by.add(clock_bytes.saturating_sub(since));
        } else if node.incoming_of_others() > 0 {
            self.pointed.add(node.size);
        } else if node.data.was_at_point {
            self.undecided.add(node.size);
            self.undecided_within.add(clock_bytes.saturating_sub(point_bytes));
        } else {
            self.between.add(node.size);
        }
    }

    /// `realloc` ends an object, or its end was not seen.
    pub(super) fn otherwise(&mut self, node: &Node<Seen>) {
        self.otherwise.add(node.size);
    }

    /// The program never frees an object.
    pub(super) fn kept(&mut self, node: &Node<Seen>) {
        self.never_freed.add(node.size);
        if node.data.unreached_bytes.is_some() {
            self.lost.add(node.size);
        }
    }

    /// The figures.
    pub(super) fn figures(&self) -> EndFigures {
        EndFigures {
            freed: self.freed,
            before: self.before,
            before_by: self.before_by.figures(),
            pointed: self.pointed,
            undecided: self.undecided,
            undecided_within: self.undecided_within.figures(),
            between: self.between,
            otherwise: self.otherwise,
            never_freed: self.never_freed,
            lost: self.lost,
            unknown: self.unknown,
        }
    }
}

impl Count {
    fn add(&mut self, size: u64) {
        self.objects += 1;
        self.bytes = self.bytes.saturating_add(size);
    }
}
