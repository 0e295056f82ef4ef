//! The tree that is drawn: calls of one function by the same caller are one node, and the nodes with the smallest shares
//! are merged, so that a page has a bounded size however many stacks there are.
//!
//! The share of a node is the largest of its shares over all measures. A caller's is at least that of what it calls, so
//! what is kept is a tree. A merged node has the sums of all that it stands for, to the unit.
//!
//! A tree of two profiles has the nodes of both, and two values for each measure; its shares are the larger of both.

use std::collections::HashMap;

use heaptoll_profiles::{Measure, Profile};

use super::functions::{Function, Functions};
use super::lines::Lines;
use crate::document::Flame;

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
    /// Values of a node for each measure: 1, or 2 of a comparison: the flame's own and the base's.
    pub sides: usize,
    /// By node, its values for each measure: its own, without what it calls.
    pub values: Vec<u64>,
    /// The source lines of nodes.
    pub lines: Lines,
    /// What was merged.
    pub left_out: LeftOut,
}

impl Tree {
    /// The tree of a flame graph, with about `most` nodes.
    pub fn new(flame: &Flame, most: usize) -> Tree {
        let columns = flame.profile.measures().iter().enumerate().filter(|(_, measure)| measure.adds_up());
        let (columns, measures): (Vec<usize>, Vec<Measure>) =
            columns.map(|(at, measure)| (at, *measure)).unzip();
        let profiles: Vec<&Profile> =
            std::iter::once(&flame.profile).chain(flame.base.iter().map(|base| &base.profile)).collect();
        let mut functions = Functions::new();
        let mut calls = Calls::default();
        let sides: Vec<Side> =
            profiles.iter().map(|profile| calls.add(profile, &mut functions, &columns)).collect();
        let shares = calls.shares(&sides, columns.len());
        let cut = Cut::new(&shares, most);
        let places = calls.places(&shares, &cut);
        let each = columns.len() * sides.len();
        let mut values = vec![0_u64; places.nodes.len() * each];
        for (at, side) in sides.iter().enumerate() {
            for (own, node) in side.values.chunks(columns.len().max(1)).zip(&side.of_stacks) {
                let Some(node) = places.of_calls[*node as usize] else { continue };
                let sums = values[node as usize * each..][..each].iter_mut().skip(at).step_by(sides.len());
                sums.zip(own).for_each(|(sum, value)| *sum = sum.saturating_add(*value));
            }
        }
        let left_out = LeftOut {
            all: shares.iter().filter(|share| **share > 0.0).count(),
            calls: places.nodes.iter().map(|node| node.merged).sum(),
            share: cut.share,
        };
        let (nodes, order) = in_order(&places.nodes);
        let values = order.iter().flat_map(|&at| &values[at as usize * each..][..each]).copied().collect();
        let lines = calls.lines(&places, &order, &functions.all);
        Tree { measures, functions: functions.all, nodes, sides: sides.len(), values, lines, left_out }
    }

    /// A value of a node: the flame's own, or the base's on side 1.
    pub fn value(&self, node: usize, measure: usize, side: usize) -> u64 {
        self.values[(node * self.measures.len() + measure) * self.sides + side]
    }
}

/// The calls of all profiles, by function.
#[derive(Default)]
struct Calls {
    /// Parent and function, parents first.
    nodes: Vec<(u32, u32)>,
    known: HashMap<(u32, u32), u32>,
    /// Nodes and positions in their source files.
    positions: Vec<Position>,
}

/// A call's position in the source.
struct Position {
    node: u32,
    line: u32,
    /// Whether it lies in the file of the function.
    is_own: bool,
}

/// The stacks of a profile.
struct Side {
    /// By stack, its node.
    of_stacks: Vec<u32>,
    /// By stack, a value for each measure that adds up.
    values: Vec<u64>,
}

impl Calls {
    fn add(&mut self, profile: &Profile, functions: &mut Functions, columns: &[usize]) -> Side {
        let of_frames = functions.of(profile.frames());
        let mut of_calls: Vec<u32> = Vec::with_capacity(profile.calls().len());
        for call in profile.calls() {
            let parent = call.caller.map_or(NONE, |caller| of_calls[caller as usize]);
            let (frame, function) = (&profile.frames()[call.frame as usize], of_frames[call.frame as usize]);
            let node = self.node(parent, function);
            of_calls.push(node);
            if frame.line > 0 {
                let is_own = frame.file == functions.all[function as usize].file;
                self.positions.push(Position { node, line: frame.line, is_own });
            }
        }
        let of_stack = |stack: heaptoll_profiles::Stack| match stack.call {
            Some(call) => of_calls[call as usize],
            None => self.node(NONE, Functions::NO_STACK),
        };
        let of_stacks = profile.stacks().map(of_stack).collect();
        let values = profile
            .stacks()
            .flat_map(|stack| columns.iter().map(move |&column| stack.values[column]))
            .collect();
        Side { of_stacks, values }
    }

    fn node(&mut self, parent: u32, function: u32) -> u32 {
        let next = self.nodes.len() as u32;
        let number = *self.known.entry((parent, function)).or_insert(next);
        if number == next {
            self.nodes.push((parent, function));
        }
        number
    }

    /// By node, the largest of its shares over the measures and sides.
    fn shares(&self, sides: &[Side], columns: usize) -> Vec<f64> {
        let mut shares = vec![0.0_f64; self.nodes.len()];
        let mut sums = Vec::new();
        for (side, column) in sides.iter().flat_map(|side| (0..columns).map(move |column| (side, column))) {
            sums.clear();
            sums.resize(self.nodes.len(), 0_u64);
            let mut total = 0_u64;
            for (own, node) in side.values.chunks(columns).zip(&side.of_stacks) {
                let sum = &mut sums[*node as usize];
                *sum = sum.saturating_add(own[column]);
                total = total.saturating_add(own[column]);
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

    /// The lines of the nodes that are drawn, in their new order.
    fn lines(self, places: &Places, order: &[u32], functions: &[Function]) -> Lines {
        let mut new = vec![NONE; order.len()];
        order.iter().enumerate().for_each(|(at, &old)| new[old as usize] = at as u32);
        let found = self.positions.into_iter().filter_map(|position| {
            let place = places.of_calls[position.node as usize].filter(|_| position.is_own)?;
            let is_merged = places.nodes[place as usize].function == Functions::MERGED;
            let function = &functions[places.nodes[place as usize].function as usize];
            (!is_merged && !function.file.is_empty()).then(|| (new[place as usize], position.line))
        });
        Lines::new(found.collect(), order.len())
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

/// Which nodes are kept: those with a larger share than this, and a number of those with this one, callers first.
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

/// The same nodes, each followed by what it calls; and by new index the old one.
fn in_order(nodes: &[Node]) -> (Vec<Node>, Vec<u32>) {
    let mut first = vec![NONE; nodes.len() + 1];
    let mut next = vec![NONE; nodes.len()];
    let index = |parent: u32| if parent == NONE { nodes.len() } else { parent as usize };
    for (at, node) in nodes.iter().enumerate().rev() {
        next[at] = std::mem::replace(&mut first[index(node.parent)], at as u32);
    }
    let mut ordered = Vec::with_capacity(nodes.len());
    let mut order = Vec::with_capacity(nodes.len());
    // Where the next node is, and its parent's new index.
    let mut open = vec![(first[nodes.len()], NONE)];
    while let Some((at, parent)) = open.pop() {
        if at == NONE {
            continue;
        }
        open.push((next[at as usize], parent));
        open.push((first[at as usize], ordered.len() as u32));
        ordered.push(Node { parent, ..nodes[at as usize] });
        order.push(at);
    }
    (ordered, order)
}
