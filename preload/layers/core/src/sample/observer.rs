//! What is reported of sampled objects while the program runs, besides the sums.

/// Receives each sampled allocation and the free of each sampled block, on the program's thread, within its call: it must
/// not allocate, and must preserve `errno`.
pub trait Observer {
    /// A block was allocated that stands for `weighted_bytes`.
    fn allocated(block: usize, bytes: usize, weighted_bytes: u64);
    /// A sampled block is about to be freed, or was resized.
    fn freed(block: usize);
}

/// Reports nothing.
impl Observer for () {
    #[inline(always)]
    fn allocated(_: usize, _: usize, _: u64) {}
    #[inline(always)]
    fn freed(_: usize) {}
}
