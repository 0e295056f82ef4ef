//! When to sample a process: often at first, and less often in long runs, so that the number of samples stays bounded.

/// At most this many samples are kept.
const MOST: usize = 2000;

/// Samples, thinned out when they become too many: then every second one is dropped and the interval doubles.
#[derive(Debug, Clone)]
pub struct Paced<T> {
    kept: Vec<T>,
    interval_ns: u64,
    next_ns: u64,
}

impl<T> Paced<T> {
    /// Begins with one every `interval_ns`, the first at once.
    pub fn new(interval_ns: u64) -> Paced<T> {
        Paced { kept: Vec::new(), interval_ns, next_ns: 0 }
    }

    /// Whether a sample is due.
    pub fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.next_ns
    }

    /// Keeps one that was taken at `now_ns`.
    pub fn keep(&mut self, now_ns: u64, sample: T) {
        if self.kept.len() >= MOST {
            let mut index = 0;
            self.kept.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.interval_ns *= 2;
        }
        self.kept.push(sample);
        // Not from `next_ns` on: a recorder that was late once would sample too often until it had caught up.
        self.next_ns = now_ns + self.interval_ns;
    }

    /// The samples kept, in order.
    pub fn kept(&self) -> &[T] {
        &self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_keeps_few_that_are_spread_over_all_of_it() {
        let mut paced = Paced::new(10);
        for now in 0..1_000_000 {
            if paced.is_due(now) {
                paced.keep(now, now);
            }
        }
        let kept = paced.kept();
        assert!((MOST / 2..=MOST).contains(&kept.len()), "{}", kept.len());
        assert_eq!(kept[0], 0);
        let gaps: Vec<u64> = kept.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let (least, most) = (gaps.iter().min().expect("some"), gaps.iter().max().expect("some"));
        assert!(*most <= 2 * least && *kept.last().expect("some") >= 1_000_000 - most, "{least} to {most}");
    }
}
