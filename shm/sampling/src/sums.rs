//! An estimate in shared memory, to which any thread adds without a lock.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::estimate::Estimate;
use crate::weight::Weight;

/// Sums of samples. All zero: none yet.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Sums {
    samples: AtomicU64,
    /// Bits of floating-point numbers.
    objects: AtomicU64,
    bytes: AtomicU64,
    objects_variance: AtomicU64,
    bytes_variance: AtomicU64,
}

const _: () = assert!(size_of::<Sums>() == Sums::BYTES);

fn add(sum: &AtomicU64, value: f64) {
    let mut old = sum.load(Ordering::Relaxed);
    loop {
        let new = (f64::from_bits(old) + value).to_bits();
        match sum.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => old = now,
        }
    }
}

impl Sums {
    /// Bytes of it in a file.
    pub const BYTES: usize = 40;

    /// Adds a sample.
    pub fn add(&self, weight: &Weight) {
        add(&self.objects, weight.objects);
        add(&self.bytes, weight.bytes);
        add(&self.objects_variance, weight.objects_variance);
        add(&self.bytes_variance, weight.bytes_variance);
        self.samples.fetch_add(1, Ordering::Relaxed);
    }

    /// The sums as they are in a file. What no layer writes becomes 0.
    pub fn read(bytes: &[u8; Sums::BYTES]) -> Estimate {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at * 8..at * 8 + 8]);
            u64::from_le_bytes(word)
        };
        let number = |at| Some(f64::from_bits(word(at))).filter(|sum| sum.is_finite() && *sum > 0.0);
        Estimate {
            samples: word(0),
            objects: number(1).unwrap_or(0.0),
            bytes: number(2).unwrap_or(0.0),
            objects_variance: number(3).unwrap_or(0.0),
            bytes_variance: number(4).unwrap_or(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(sums: &Sums) -> [u8; Sums::BYTES] {
        let words = [&sums.samples, &sums.objects, &sums.bytes, &sums.objects_variance, &sums.bytes_variance];
        let mut bytes = [0; Sums::BYTES];
        for (at, word) in words.into_iter().enumerate() {
            bytes[at * 8..at * 8 + 8].copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
        bytes
    }

    #[test]
    fn threads_lose_no_sample() {
        let sums = Sums::default();
        let weight = Weight::of(100, 1);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|_| sums.add(&weight)));
            }
        });
        let read = Sums::read(&bytes(&sums));
        assert_eq!((read.samples, read.objects, read.bytes), (40_000, 40_000.0, 4_000_000.0));
    }

    #[test]
    fn words_that_no_layer_writes_are_nothing() {
        let mut bytes = [0xff; Sums::BYTES];
        assert_eq!(Sums::read(&bytes).bytes, 0.0);
        bytes[16..24].copy_from_slice(&(-5.0_f64).to_bits().to_le_bytes());
        assert_eq!(Sums::read(&bytes).bytes, 0.0);
    }
}
