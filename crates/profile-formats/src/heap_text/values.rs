//! What such a profile counts of a call stack, and how its first line states that it was sampled.

/// What wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// A call stack's sums are on lines of their own, by thread.
    Jemalloc,
    Gperftools,
    Go,
}

/// The first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub writer: Writer,
    /// Mean distance of samples; none where every allocation was counted.
    pub mean_bytes: Option<u64>,
}

/// Objects and bytes in use, and allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Values {
    live: [u64; 2],
    allocated: [u64; 2],
}

impl Header {
    /// `heap_v2/524288` is jemalloc's; `heap profile: 1: 8 [2: 16] @ heap_v2/524288` and `@ heapprofile` are
    /// gperftools'; `@ heap/1048576` is Go's, which states twice the mean distance.
    pub fn parse(line: &str) -> Option<Header> {
        let sampled =
            |kind: &str| kind.strip_prefix("heap_v2/")?.parse::<u64>().ok().filter(|bytes| *bytes > 0);
        let line = line.trim();
        if let Some(mean_bytes) = sampled(line) {
            return Some(Header { writer: Writer::Jemalloc, mean_bytes: Some(mean_bytes) });
        }
        let (_, kind) = line.strip_prefix("heap profile:")?.split_once('@')?;
        Values::total(line)?;
        let (writer, mean_bytes) = match kind.trim() {
            "heapprofile" => (Writer::Gperftools, None),
            kind => match kind.strip_prefix("heap/") {
                Some(twice) => (Writer::Go, Some(twice.parse::<u64>().ok()? / 2)),
                None => (Writer::Gperftools, Some(sampled(kind)?)),
            },
        };
        Some(Header { writer, mean_bytes })
    }

    /// The mean distance of samples; none where every byte was counted.
    pub fn sampled_bytes(&self) -> Option<u64> {
        self.mean_bytes.filter(|mean_bytes| *mean_bytes > 1)
    }
}

impl Values {
    /// `1: 8 [2: 16]`: objects and bytes in use, then allocated.
    pub fn parse(text: &str) -> Option<Values> {
        let (live, allocated) = text.trim().strip_suffix(']')?.split_once('[')?;
        let pair = |text: &str| {
            let (objects, bytes) = text.split_once(':')?;
            Some([objects.trim().parse().ok()?, bytes.trim().parse().ok()?])
        };
        Some(Values { live: pair(live)?, allocated: pair(allocated)? })
    }

    /// Those of all call stacks, in a first line.
    pub fn total(line: &str) -> Option<Values> {
        Values::parse(line.trim().strip_prefix("heap profile:")?.split_once('@')?.0)
    }

    /// Bytes in use, as they were counted.
    pub fn live_bytes(&self) -> u64 {
        self.live[1]
    }

    /// Whether these, of all call stacks, have what was allocated. A sampled profile of gperftools repeats what is in use
    /// there, unless another tool wrote it: then it differs, and is never less.
    pub fn have_allocated(all: &[&Values], header: &Header) -> bool {
        if header.writer != Writer::Gperftools || header.mean_bytes.is_none() {
            return all.iter().any(|one| one.allocated != [0; 2]);
        }
        let is_less = |one: &&Values| one.allocated[0] < one.live[0] || one.allocated[1] < one.live[1];
        all.iter().any(|one| one.allocated != one.live) && !all.iter().any(is_less)
    }

    /// In the order of their measures: objects and bytes in use, then allocated. Saturates.
    pub fn estimated(&self, header: &Header) -> [u64; 4] {
        let scaled = |[objects, bytes]: [u64; 2]| match header.mean_bytes {
            Some(mean_bytes) if mean_bytes > 1 && objects > 0 && bytes > 0 => {
                let mean_size = bytes as f64 / objects as f64;
                let scale = 1.0 / -(-mean_size / mean_bytes as f64).exp_m1();
                [objects, bytes].map(|value| (value as f64 * scale).round() as u64)
            }
            _ => [objects, bytes],
        };
        let ([live, live_bytes], [all, all_bytes]) = (scaled(self.live), scaled(self.allocated));
        [live, live_bytes, all, all_bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_lines_state_how_it_was_sampled() {
        let jemalloc = Header { writer: Writer::Jemalloc, mean_bytes: Some(524_288) };
        assert_eq!(Header::parse("heap_v2/524288"), Some(jemalloc));
        let gperftools = "heap profile:    166:   174973 [   166:   174973] @ heap_v2/65536";
        assert_eq!(Header::parse(gperftools).and_then(|header| header.mean_bytes), Some(65_536));
        let whole = "heap profile: 1: 8 [ 2: 16] @ heapprofile";
        assert_eq!(Header::parse(whole), Some(Header { writer: Writer::Gperftools, mean_bytes: None }));
        let go = Header { writer: Writer::Go, mean_bytes: Some(524_288) };
        assert_eq!(Header::parse("heap profile: 1: 8 [2: 16] @ heap/1048576"), Some(go));
        for other in [
            "",
            "heap_v2/",
            "heap_v2/0",
            "heap profile: 1: 8 [2: 16] @ growthz",
            "heap profile: @ heapprofile",
        ] {
            assert_eq!(Header::parse(other), None, "{other}");
        }
    }

    #[test]
    fn values_are_scaled_by_the_probability_of_a_sample() {
        let header = Header { writer: Writer::Jemalloc, mean_bytes: Some(1000) };
        let values = Values::parse(" 3: 3000 [0: 0]").unwrap();
        let scale = 1.0 / (1.0 - (-1.0_f64).exp());
        assert_eq!(
            values.estimated(&header)[..2],
            [(3.0 * scale).round() as u64, (3000.0 * scale).round() as u64]
        );
        assert_eq!(values.estimated(&Header { mean_bytes: Some(1), ..header })[..2], [3, 3000]);
        assert_eq!(values.estimated(&Header { mean_bytes: None, ..header }), [3, 3000, 0, 0]);
        assert_eq!(Values::parse("0: 0 [0: 0]").unwrap().estimated(&header), [0; 4]);
        let most = Values::parse("18446744073709551615: 18446744073709551615 [0: 0]").unwrap();
        assert_eq!(most.estimated(&header)[1], u64::MAX);
        assert!(Values::parse("1: 8").is_none() && Values::parse("1: -8 [0: 0]").is_none());
    }
}
