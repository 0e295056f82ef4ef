//! Call sites by rows: those that read alike are one.

use std::cmp::Reverse;

use heaptoll_trace_analysis::stacks::CallSites;

/// What sites hold by the row of each `site`, those with most `bytes` first. `add` joins what reads alike.
pub fn merged<T: Copy>(
    held: &[T],
    call_sites: &mut CallSites,
    site: impl Fn(&T) -> u32,
    add: impl Fn(&mut T, &T),
    bytes: impl Fn(&T) -> u64,
) -> Vec<(usize, T)> {
    let mut by_row: Vec<(usize, T)> = Vec::new();
    for one in held {
        let row = call_sites.row(site(one));
        match by_row.iter_mut().find(|(known, _)| *known == row) {
            Some((_, sum)) => add(sum, one),
            None => by_row.push((row, *one)),
        }
    }
    by_row.sort_by_key(|(_, sum)| Reverse(bytes(sum)));
    by_row
}
