//! The source lines of calls: calls of one function from several lines of its caller are one node of the tree, which has
//! the lines of all.

/// Lines of a node that are kept.
const KEPT: usize = 6;

/// Lines by node.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// By node: where its lines begin in `kept`, and how many it has in all.
    nodes: Vec<(u32, u32)>,
    kept: Vec<u32>,
}

impl Lines {
    /// Lines of these nodes from pairs of node and line in any order; a pair may be there several times. Pairs of other
    /// nodes are left out.
    pub fn new(mut pairs: Vec<(u32, u32)>, nodes: usize) -> Lines {
        pairs.sort_unstable();
        pairs.dedup();
        let mut lines = Lines { nodes: Vec::with_capacity(nodes), kept: Vec::new() };
        let mut rest = pairs.as_slice();
        for node in 0..nodes as u32 {
            let (own, others) = rest.split_at(rest.partition_point(|(of, _)| *of <= node));
            rest = others;
            lines.nodes.push((lines.kept.len() as u32, own.len() as u32));
            lines.kept.extend(own.iter().take(KEPT).map(|(_, line)| *line));
        }
        lines
    }

    /// How many lines a node has.
    pub fn count(&self, node: usize) -> u32 {
        self.nodes.get(node).map_or(0, |(_, count)| *count)
    }

    /// Its first lines, rising.
    pub fn of(&self, node: usize) -> &[u32] {
        let (start, count) = self.nodes.get(node).copied().unwrap_or_default();
        &self.kept[start as usize..][..KEPT.min(count as usize)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_has_each_of_its_lines_once_and_keeps_the_first() {
        let many = (1..=9).map(|line| (2, 10 * line));
        let lines = Lines::new([(0, 7), (0, 3), (0, 7)].into_iter().chain(many).collect(), 4);
        assert_eq!((lines.count(0), lines.of(0)), (2, &[3, 7][..]));
        assert_eq!((lines.count(1), lines.of(1)), (0, &[][..]));
        assert_eq!((lines.count(2), lines.of(2)), (9, &[10, 20, 30, 40, 50, 60][..]));
        assert_eq!((lines.count(3), lines.of(9)), (0, &[][..]));
    }
}
