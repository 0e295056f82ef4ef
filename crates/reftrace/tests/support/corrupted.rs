//! Words that no tracer writes, for tests of each `Sink`: a process may write anything into its ring.

use heaptoll_reftrace::{Decoder, Sink};

/// Decodes streams of words that are mostly events with arguments of all sizes, each into its own sink; `finish`
/// requests from a sink what a command requests at the end.
pub fn streams_are_survived<S: Sink>(
    streams: u64,
    mut begin: impl FnMut() -> S,
    finish: impl Fn(S, &Decoder),
) {
    for seed in 0..streams {
        let (mut sink, mut decoder, mut random) = (begin(), Decoder::new(), Random(seed));
        // Damage ends a block: the blocks after it are decoded here, which is more than commands do.
        for _ in 0..60 {
            let words: Vec<u64> = (0..40).flat_map(|_| random.event()).collect();
            let _ = decoder.decode(&words, &mut sink);
        }
        finish(sink, &decoder);
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // Splitmix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let once = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let twice = (once ^ (once >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        twice ^ (twice >> 31)
    }

    /// Few values often, so that addresses recur; sizes of all magnitudes; the ends of the ranges.
    fn value(&mut self) -> u64 {
        match self.next() % 8 {
            0 => 0,
            1 => self.next() % 64,
            2..=4 => 0x5000 + self.next() % 32 * 16,
            5 => u64::MAX - self.next() % 3,
            6 => (1 << 47) - 1 - self.next() % 3,
            _ => {
                let shift = self.next() % 64;
                self.next() >> shift
            }
        }
    }

    fn event(&mut self) -> Vec<u64> {
        let kind = self.next() % 28;
        // Few of the kernel's accesses are long, since a sink walks each line of them.
        let is_access = (11..13).contains(&kind) && !self.next().is_multiple_of(64);
        let payload = if is_access { self.next() % 4096 } else { self.value() & ((1 << 56) - 1) };
        let payload = if kind == 24 { payload % 4 } else { payload };
        // Few routines, threads and events, each often.
        let payload = if matches!(kind, 1..=7 | 19 | 20) && !self.next().is_multiple_of(8) {
            payload % 14
        } else {
            payload
        };
        let mut words = vec![1 << 63 | kind << 56 | payload];
        words.extend((0..self.next() % 7).map(|_| self.value() & !(1 << 63)));
        words
    }
}
