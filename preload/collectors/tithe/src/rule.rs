//! How the budget of a collection is computed: the rules of [`crate::policy`] that a user chooses from.

/// How the budget is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// A percentage of what the collection had to scan, but some bytes at least.
    Proportional,
    /// The space left below a fixed size.
    Fixed,
    /// The heap grows by half when a collection reclaims less than a quarter of it (Zorn 1992, §2.2).
    Zorn1992,
    /// The square root of what is live, weighted by the rate of allocation and the speed of collection (Kirisame,
    /// Shenoy and Panchekha, *Optimal heap limits for reducing browser memory use*, OOPSLA 2022).
    MemBalancer,
}
