//! Proved bounds of the worst case: heap bytes over live bytes, for M live and blocks of at most n, both in units of
//! the smallest block. `docs/results/adversary.md` names the sources.

/// Robson 1974: no manager that leaves blocks where they are can do better than M (log2(n)/2 + 1) - n + 1, and with
/// sizes that are powers of two some manager does no worse. `n` is a power of two.
pub fn robson(live: u64, largest: u64) -> f64 {
    let (m, n) = (live as f64, largest as f64);
    (m * (n.log2() / 2.0 + 1.0) - n + 1.0) / m
}

/// First fit by address never needs more than M (1 + ceil(log2 n)), after Robson 1977.
pub fn first_fit(_: u64, largest: u64) -> f64 {
    1.0 + (largest as f64).log2().ceil()
}

/// Best fit can be driven to about M (n - 2), after Robson 1977.
pub fn best_fit(_: u64, largest: u64) -> f64 {
    largest as f64 - 2.0
}

/// No manager that grows only when no free block suffices needs more than M n and one block: each of the M live units
/// keeps fewer than n free ones from use.
pub fn any_fit(_: u64, largest: u64) -> f64 {
    largest as f64
}

/// Boehm, "Memory allocation myths and half-truths": powers of two that are never combined need M for each size
/// there is, `M (log2 n + 1)`.
pub fn power_of_two_classes(_: u64, largest: u64) -> f64 {
    (largest as f64).log2() + 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_size_needs_no_more_than_is_live() {
        assert_eq!(robson(1000, 1), 1.0);
        assert_eq!(first_fit(1000, 1), 1.0);
        assert_eq!(power_of_two_classes(1000, 1), 1.0);
    }

    #[test]
    fn robsons_bound_in_units() {
        // 2048 (6/2 + 1) - 64 + 1
        assert_eq!(robson(2048, 64) * 2048.0, 8129.0);
    }

    #[test]
    fn the_general_bound_lies_below_the_others() {
        for power in 2..16 {
            let n = 1 << power;
            let general = robson(1 << 20, n);
            assert!(general < first_fit(1 << 20, n) && first_fit(1 << 20, n) <= any_fit(1 << 20, n));
        }
    }
}
