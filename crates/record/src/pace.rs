//! When to look at a process: often at first, and so seldom in long runs that what was seen stays few.

/// At most this many of one kind are kept.
const MOST: usize = 2000;

/// What was seen, thinned out as it becomes too much: then every second one goes and the pace halves.
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

    /// Whether it is time for one.
    pub fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.next_ns
    }

    /// Keeps one, seen at `now_ns`.
    pub fn keep(&mut self, now_ns: u64, seen: T) {
        if self.kept.len() >= MOST {
            let mut index = 0;
            self.kept.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.interval_ns *= 2;
        }
        self.kept.push(seen);
        // Not from `next_ns` on: a recorder that was late once would hurry after it.
        self.next_ns = now_ns + self.interval_ns;
    }

    /// What is kept, in order.
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
