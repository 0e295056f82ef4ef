//! Call stacks as heaptrack keeps them, a tree of calls whose callers come first, and the numbers that those get which an
//! object was allocated from.

use crate::heaptrack::budget::{Budget, Exceeded};

/// Frames that are kept of a stack. heaptrack records 64.
const DEPTH_MAX: usize = 256;
/// Stacks that are numbered: as many as a recording of heaptoll's own may have. All further ones are "not recorded".
const SITES_MAX: usize = (1 << 24) - 1;

/// A call: what is called, and the call that led there.
#[derive(Debug, Clone, Copy)]
struct Node {
    /// An address of code, or the number of one.
    code: u64,
    /// The number of the caller's node; 0 for a thread's first function.
    caller: u32,
    /// The number of the call stack that ends here; 0 while none is needed.
    site: u32,
}

/// All calls, numbered from 1 in the order of the file.
#[derive(Debug, Default)]
pub struct Stacks {
    nodes: Vec<Node>,
    sites: usize,
}

/// The call stack of an object.
#[derive(Debug, PartialEq, Eq)]
pub enum Site {
    /// It has a number; 0 is "not recorded".
    Known(u32),
    /// It has got this number just now.
    New(u32),
}

impl Stacks {
    /// Another call; none where its caller is not known yet.
    pub fn push(&mut self, code: u64, caller: u32, budget: &mut Budget) -> Option<Result<(), Exceeded>> {
        if caller as usize > self.nodes.len() || self.nodes.len() >= u32::MAX as usize {
            return None;
        }
        Some(budget.grow(&mut self.nodes, 1).map(|()| self.nodes.push(Node { code, caller, site: 0 })))
    }

    /// The call stack that ends at a node; none where there is no such node.
    pub fn site(&mut self, node: u32) -> Option<Site> {
        let Some(index) = (node as usize).checked_sub(1) else { return Some(Site::Known(0)) };
        let node = self.nodes.get_mut(index)?;
        if node.site > 0 || self.sites >= SITES_MAX {
            return Some(Site::Known(node.site));
        }
        self.sites += 1;
        node.site = self.sites as u32;
        Some(Site::New(node.site))
    }

    /// What a call stack consists of, innermost first, and whether that is all of it.
    pub fn codes(&self, node: u32) -> (Vec<u64>, bool) {
        let node_of = |number: u32| self.nodes.get((number as usize).checked_sub(1)?);
        let mut path = std::iter::successors(node_of(node), |node| node_of(node.caller));
        let codes = path.by_ref().take(DEPTH_MAX).map(|node| node.code).collect();
        (codes, path.next().is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_come_first_and_a_stack_has_one_number() {
        let mut budget = Budget::new(1 << 20);
        let mut stacks = Stacks::default();
        let mut push = |code, caller| stacks.push(code, caller, &mut budget);
        assert_eq!(push(0x10, 1), None, "there is no call yet");
        for (code, caller) in [(0x10, 0), (0x20, 1), (0x30, 2), (0x40, 1)] {
            assert_eq!(push(code, caller), Some(Ok(())));
        }
        assert_eq!(stacks.site(3), Some(Site::New(1)));
        assert_eq!(stacks.site(4), Some(Site::New(2)));
        assert_eq!((stacks.site(3), stacks.site(0)), (Some(Site::Known(1)), Some(Site::Known(0))));
        assert_eq!(stacks.site(5), None);
        assert_eq!(stacks.codes(3), (vec![0x30, 0x20, 0x10], true));
        assert_eq!(stacks.codes(0), (vec![], true));
    }

    #[test]
    fn a_stack_without_end_is_cut_and_takes_no_more_than_is_allowed() {
        let mut budget = Budget::new(64 << 10);
        let mut stacks = Stacks::default();
        let full = (0..).find(|&caller| stacks.push(1, caller, &mut budget) == Some(Err(Exceeded)));
        let most = (64 << 10) / size_of::<Node>() as u32;
        assert_eq!(full, Some(most));
        let (codes, whole) = stacks.codes(most);
        assert_eq!((codes.len(), whole), (DEPTH_MAX, false));
    }
}
