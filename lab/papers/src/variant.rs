//! Variants of programs: what a name is without one, and those that are numbers, and so places of a figure.

/// The program of an entry, without its variant.
pub(super) fn base(program: &str) -> &str {
    program.split_once(':').map_or(program, |(base, _)| base)
}

/// A program's name and the place in its variant: `churn:4`, `crossover:64K`.
pub(super) fn numbered(program: &str) -> Option<(&str, f64)> {
    let (base, variant) = program.rsplit_once(':')?;
    let number = variant.parse::<f64>().ok();
    Some((base, number.or_else(|| heaptoll_units::size(variant).map(|bytes| bytes as f64))?))
}
