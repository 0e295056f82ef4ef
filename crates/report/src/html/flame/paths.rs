//! The stacks with the largest values as a table: for readers without scripts, for paper, and to copy from.

use heaptoll_units::{number, part, plural};

use super::functions::Functions;
use super::tree::{NONE, Tree};
use crate::document::Table;

/// Rows.
const ROWS: usize = 20;
/// The first heading.
const STACK: &str = "call stack, innermost function first";
/// Functions of a stack that are shown.
const FRAMES: usize = 8;

/// The largest stacks by the measure at this index.
pub fn table(tree: &Tree, column: usize) -> Table {
    let Some(measure) = tree.measures.get(column) else { return Table::default() };
    let own = |node: &usize| tree.value(*node, column, 0);
    let total = (0..tree.nodes.len()).fold(0_u64, |sum, node| sum.saturating_add(own(&node)));
    let mut nodes: Vec<usize> = (0..tree.nodes.len()).filter(|node| own(node) > 0).collect();
    let stacks = nodes.len();
    nodes.sort_by_key(|node| std::cmp::Reverse(own(node)));
    nodes.truncate(ROWS);
    let (listed, stacks, title) = (nodes.len(), plural(stacks, "call stack"), measure.title());
    Table::of(nodes)
        .caption(format!("the {listed} largest of {stacks}, by {title}"))
        .text(STACK, |node| path(tree, *node))
        .figure(title, |node| number(own(node)))
        .figure("of all", |node| part(own(node), total))
        .note(format!("Together: {}.", number(total)))
        .table()
}

/// The stacks that changed most by the measure at this index. `sides`: names of the base and of the tree's own.
pub fn changes(tree: &Tree, column: usize, sides: &[String; 2]) -> Table {
    let Some(measure) = tree.measures.get(column) else { return Table::default() };
    let both = |node: usize| [tree.value(node, column, 1), tree.value(node, column, 0)];
    let by = |node: &usize| {
        let [base, own] = both(*node);
        own.abs_diff(base)
    };
    let mut nodes: Vec<usize> = (0..tree.nodes.len()).filter(|node| by(node) > 0).collect();
    let stacks = nodes.len();
    nodes.sort_by_key(|node| std::cmp::Reverse(by(node)));
    nodes.truncate(ROWS);
    let cells = |[base, own]: [u64; 2]| {
        let sign = match own.cmp(&base) {
            std::cmp::Ordering::Greater => "+",
            std::cmp::Ordering::Less => "\u{2212}",
            std::cmp::Ordering::Equal => "",
        };
        [number(base), number(own), format!("{sign}{}", number(own.abs_diff(base)))]
    };
    let total = (0..tree.nodes.len()).fold([0_u64; 2], |sum, node| {
        let [base, own] = both(node);
        [sum[0].saturating_add(base), sum[1].saturating_add(own)]
    });
    let [base, own, difference] = cells(total);
    let (listed, stacks, title) = (nodes.len(), plural(stacks, "call stack"), measure.title());
    Table::of(nodes)
        .caption(format!("the {listed} that changed most of {stacks} that changed, by {title}"))
        .text(STACK, |node| path(tree, *node))
        .figure(&sides[0], |node| cells(both(*node))[0].clone())
        .figure(&sides[1], |node| cells(both(*node))[1].clone())
        .figure("difference", |node| cells(both(*node))[2].clone())
        .note(format!("All together: {base}, then {own}: {difference}."))
        .table()
}

/// `f < g < main`, abridged in the middle.
fn path(tree: &Tree, node: usize) -> String {
    let parent = |node: &usize| Some(tree.nodes[*node].parent).filter(|parent| *parent != NONE);
    let path: Vec<usize> =
        std::iter::successors(Some(node), |node| parent(node).map(|at| at as usize)).collect();
    let name = |node: &usize| match tree.nodes[*node] {
        node if node.function == Functions::MERGED => format!("({} smaller calls)", number(node.merged)),
        node => tree.functions[node.function as usize].name.clone(),
    };
    let names: Vec<String> = match path.len() {
        0..=FRAMES => path.iter().map(name).collect(),
        all => {
            let left_out = format!("… {} more …", number((all - FRAMES) as u64));
            let (first, last) = (&path[..FRAMES - 1], &path[all - 1..]);
            first.iter().map(name).chain([left_out]).chain(last.iter().map(name)).collect()
        }
    };
    names.join(" < ")
}
