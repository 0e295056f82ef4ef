//! What one sampled allocation stands for.

/// An allocation's share of the estimates, and of their variances.
///
/// With the probability p of being sampled, a figure y of the object counts y / p, and its share of the estimated
/// variance is y² (1 - p) / p². Large objects are always sampled: they count once and add nothing to the variance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weight {
    /// Objects.
    pub objects: f64,
    /// Requested bytes.
    pub bytes: f64,
    /// Variance of the objects.
    pub objects_variance: f64,
    /// Variance of the bytes, bytes².
    pub bytes_variance: f64,
}

impl Weight {
    /// Of an allocation of `bytes`, more than 0, where sample points are `mean` bytes apart on average.
    pub fn of(bytes: u64, mean: u64) -> Weight {
        let size = bytes as f64;
        if mean <= 1 {
            return Weight { objects: 1.0, bytes: size, objects_variance: 0.0, bytes_variance: 0.0 };
        }
        let sampled = -libm::expm1(-size / mean as f64);
        let objects = 1.0 / sampled;
        let objects_variance = (1.0 - sampled) * objects * objects;
        Weight {
            objects,
            bytes: size * objects,
            objects_variance,
            bytes_variance: objects_variance * size * size,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_objects_stand_for_the_mean_and_large_ones_for_themselves() {
        let small = Weight::of(16, 1 << 19);
        assert!((small.objects - 32768.5).abs() < 0.01, "{small:?}");
        assert!((small.bytes / (1 << 19) as f64 - 1.0).abs() < 1e-4);
        let large = Weight::of(1 << 30, 1 << 19);
        assert_eq!((large.objects, large.bytes, large.bytes_variance), (1.0, (1 << 30) as f64, 0.0));
        let exact = Weight::of(24, 1);
        assert_eq!((exact.objects, exact.bytes, exact.bytes_variance), (1.0, 24.0, 0.0));
    }
}
