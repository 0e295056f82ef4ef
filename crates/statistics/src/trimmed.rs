//! The trimmed mean of log ratios and Yuen's standard error of it.

/// Smallest standard deviation of a log ratio that is accepted: counts in pages and clocks in µs repeat exactly, and a
/// t of infinity is no use.
pub const FLOOR: f64 = 1e-7;

/// Most values left out at either end, as a share.
const TRIMMED: f64 = 0.2;

/// How many of `n` values are left out at either end. A flip that turns no more values than these leaves the statistic
/// of a clear difference as large as it is unflipped; such flips must stay a small part of all, or nothing could be
/// claimed: with ten pairs one is cut, with six to eight none.
pub fn cut(n: usize) -> usize {
    let mut ways = 1.0;
    let mut turned = 1.0;
    let mut cut = 0;
    while cut < (TRIMMED * n as f64) as usize {
        ways *= (n - cut) as f64 / (cut + 1) as f64;
        turned += ways;
        if 2.0 * turned / 2f64.powi(n as i32) > SPENT {
            break;
        }
        cut += 1;
    }
    cut
}

/// Share of flips that trimming may spend, of the 5 % in all.
const SPENT: f64 = 0.025;

/// The trimmed mean and its standard error (Yuen 1974). Sorts `values`.
pub fn trimmed(values: &mut [f64], cut: usize) -> (f64, f64) {
    values.sort_unstable_by(f64::total_cmp);
    trimmed_of_sorted(values, cut)
}

/// The same of values in ascending order.
pub fn trimmed_of_sorted(values: &[f64], cut: usize) -> (f64, f64) {
    let n = values.len();
    let kept = &values[cut..n - cut];
    let mean = kept.iter().sum::<f64>() / kept.len() as f64;
    // Winsorised: what is cut off counts as the nearest value that is kept.
    let ends = cut as f64;
    let (first, last) = (kept[0], kept[kept.len() - 1]);
    let centre = (kept.iter().sum::<f64>() + ends * (first + last)) / n as f64;
    let squares = kept.iter().map(|value| (value - centre).powi(2)).sum::<f64>()
        + ends * ((first - centre).powi(2) + (last - centre).powi(2));
    (mean, error(squares, n as f64, ends))
}

/// The standard error of the mean of `n` values of which `ends` were cut off at either end, from the winsorised squares
/// about their centre.
fn error(squares: f64, n: f64, ends: f64) -> f64 {
    let deviation = (squares / (n - 1.0)).sqrt().max(FLOOR);
    deviation / (((n - 2.0 * ends) / n) * n.sqrt())
}

/// |t| from the sum of the kept values and the winsorised squares.
pub fn statistic(sum: f64, squares: f64, n: f64, ends: f64) -> f64 {
    (sum / (n - 2.0 * ends)).abs() / error(squares, n, ends)
}
