//! The tree that is drawn: calls of one function by the same caller are one node, and the nodes with the smallest shares
//! are merged, so that a page has a bounded size however many stacks there are.
//!
//! The share of a node is the largest of its shares over all measures. A caller's is at least that of what it calls, so
//! what is kept is a tree. A merged node has the sums of all that it stands for, to the unit.

use std::collections::HashMap;

use heaptoll_profiles::{Measure, Profile};

use super::functions::{Function, Functions};

/// No node: the parent of the first ones.
pub const NONE: u32 = u32::MAX;

/// A function called from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// The caller's index, which is smaller; [`NONE`] for the first functions.
    pub parent: u32,
    /// An index of [`Tree::functions`].
    pub function: u32,
    /// Calls that it stands for, of merged ones; otherwise 0.
    pub merged: u64,
}

/// What was merged.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LeftOut {
    /// Calls of the whole tree.
    pub all: usize,
    /// Of them, merged ones.
    pub calls: u64,
    /// The largest share of a merged one.
    pub share: f64,
}

/// A tree of calls with values.
#[derive(Debug, Default)]
pub struct Tree {
    /// Those that add up over stacks.
    pub measures: Vec<Measure>,
    /// By number.
    pub functions: Vec<Function>,
    /// Callers first; what a node calls follows it, before its next sibling.
    pub nodes: Vec<Node>,
    /// By node, a value for each measure: its own, without what it calls.
    pub values: Vec<u64>,
    /// What was merged.
    pub left_out: LeftOut,
}

impl Tree {
    /// The tree of a profile, with about so many nodes at most.
    pub fn new(profile: &Profile, most: usize) -> Tree {
        let columns = profile.measures().iter().enumerate().filter(|(_, measure)| measure.adds_up());
        let (columns, measures): (Vec<usize>, Vec<Measure>) =
            columns.map(|(at, measure)| (at, *measure)).unzip();
        let functions = Functions::new(profile.frames());
        let calls = Calls::new(profile, &functions);
        let shares = calls.shares(profile, &columns);
        let cut = Cut::new(&shares, most);
        let places = calls.places(&shares, &cut);
        let mut values = vec![0_u64; places.nodes.len() * columns.len()];
        for (stack, node) in profile.stacks().zip(&calls.of_stacks) {
            let Some(node) = places.of_calls[*node as usize] else { continue };
            let sums = &mut values[node as usize * columns.len()..][..columns.len()];
            for (sum, column) in sums.iter_mut().zip(&columns) {
                *sum = sum.saturating_add(stack.values[*column]);
            }
        }
        let (nodes, values) = in_order(&places.nodes, &values, columns.len());
        let left_out = LeftOut {
            all: shares.iter().filter(|share| **share > 0.0).count(),
            calls: nodes.iter().map(|node| node.merged).sum(),
            share: cut.share,
        };
        Tree { measures, functions: functions.all, nodes, values, left_out }
    }

    /// The values of a node.
    pub fn values(&self, node: usize) -> &[u64] {
        &self.values[node * self.measures.len()..][..self.measures.len()]
    }
}

/// The calls of a profile, by function.
struct Calls {
    /// Parent and function, parents first.
    nodes: Vec<(u32, u32)>,
    /// By stack.
    of_stacks: Vec<u32>,
}

impl Calls {
    fn new(profile: &Profile, functions: &Functions) -> Calls {
        let mut nodes = Vec::new();
        let mut known = HashMap::new();
        let mut node = |parent, function| {
            let next = nodes.len() as u32;
            let number = *known.entry((parent, function)).or_insert(next);
            if number == next {
                nodes.push((parent, function));
            }
            number
        };
        let mut of_calls: Vec<u32> = Vec::with_capacity(profile.calls().len());
        for call in profile.calls() {
            let parent = call.caller.map_or(NONE, |caller| of_calls[caller as usize]);
            of_calls.push(node(parent, functions.of_frames[call.frame as usize]));
        }
        let of_stack = |call: Option<u32>| match call {
            Some(call) => of_calls[call as usize],
            None => node(NONE, Functions::NO_STACK),
        };
        let of_stacks = profile.stacks().map(|stack| stack.call).map(of_stack).collect();
        Calls { nodes, of_stacks }
    }

    /// By node, the largest of its shares over the measures.
    fn shares(&self, profile: &Profile, columns: &[usize]) -> Vec<f64> {
        let mut shares = vec![0.0_f64; self.nodes.len()];
        let mut sums = Vec::new();
        for &column in columns {
            sums.clear();
            sums.resize(self.nodes.len(), 0_u64);
            let mut total = 0_u64;
            for (stack, node) in profile.stacks().zip(&self.of_stacks) {
                let sum = &mut sums[*node as usize];
                *sum = sum.saturating_add(stack.values[column]);
                total = total.saturating_add(stack.values[column]);
            }
            for at in (0..self.nodes.len()).rev() {
                let parent = self.nodes[at].0;
                if parent != NONE {
                    sums[parent as usize] = sums[parent as usize].saturating_add(sums[at]);
                }
                // A node comes after all that it calls here: its sum is complete.
                shares[at] = shares[at].max(sums[at] as f64 / total.max(1) as f64);
            }
        }
        shares
    }

    /// Where each call is drawn. Calls without a value are nowhere.
    fn places(&self, shares: &[f64], cut: &Cut) -> Places {
        let mut places = Places { nodes: Vec::new(), of_calls: Vec::with_capacity(self.nodes.len()) };
        let mut merged: HashMap<u32, u32> = HashMap::new();
        let mut ties = cut.ties;
        for (&(parent, function), &share) in self.nodes.iter().zip(shares) {
            let parent = if parent == NONE { Some(NONE) } else { places.of_calls[parent as usize] };
            let Some(parent) = parent.filter(|_| share > 0.0) else {
                places.of_calls.push(None);
                continue;
            };
            let inside = places.nodes.get(parent as usize).is_some_and(|node| node.merged > 0);
            let is_tie = share == cut.share && ties > 0;
            let next = places.nodes.len() as u32;
            let place = match inside {
                true => parent,
                false if share > cut.share || is_tie => {
                    ties -= usize::from(is_tie);
                    next
                }
                false => *merged.entry(parent).or_insert(next),
            };
            let is_merged = inside || merged.get(&parent) == Some(&place);
            if place == next {
                let function = if is_merged { Functions::MERGED } else { function };
                places.nodes.push(Node { parent, function, merged: 0 });
            }
            places.nodes[place as usize].merged += u64::from(is_merged);
            places.of_calls.push(Some(place));
        }
        places
    }
}

/// Which nodes are kept: those with a larger share than this, and so many of those with this one, callers first.
struct Cut {
    share: f64,
    ties: usize,
}

impl Cut {
    fn new(shares: &[f64], most: usize) -> Cut {
        let mut some: Vec<f64> = shares.iter().copied().filter(|share| *share > 0.0).collect();
        if some.len() <= most {
            return Cut { share: 0.0, ties: 0 };
        }
        let (above, &mut share, _) = some.select_nth_unstable_by(most, |a, b| b.total_cmp(a));
        Cut { share, ties: above.iter().filter(|above| **above == share).count() }
    }
}

/// Nodes that are drawn, and which of them each call is part of.
struct Places {
    nodes: Vec<Node>,
    of_calls: Vec<Option<u32>>,
}

/// The same nodes, each followed by what it calls.
fn in_order(nodes: &[Node], values: &[u64], each: usize) -> (Vec<Node>, Vec<u64>) {
    let mut first = vec![NONE; nodes.len() + 1];
    let mut next = vec![NONE; nodes.len()];
    let index = |parent: u32| if parent == NONE { nodes.len() } else { parent as usize };
    for (at, node) in nodes.iter().enumerate().rev() {
        next[at] = std::mem::replace(&mut first[index(node.parent)], at as u32);
    }
    let mut ordered = Vec::with_capacity(nodes.len());
    let mut own = Vec::with_capacity(values.len());
    // Where the next node is, and its parent's new index.
    let mut open = vec![(first[nodes.len()], NONE)];
    while let Some((at, parent)) = open.pop() {
        if at == NONE {
            continue;
        }
        open.push((next[at as usize], parent));
        open.push((first[at as usize], ordered.len() as u32));
        ordered.push(Node { parent, ..nodes[at as usize] });
        own.extend_from_slice(&values[at as usize * each..][..each]);
    }
    (ordered, own)
}
