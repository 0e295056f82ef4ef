//! The ratios of each node next to those of all: where a node disagrees, an average over nodes hides it.
//!
//! Intervals of nodes are Student's, with Bonferroni's correction over the table. They are no part of the tables' exact
//! test: repetitions of one node are few, and a node's share in the pooled ratio is known to be one of several.

use std::collections::BTreeMap;

use heaptoll_statistics::Interval;
use heaptoll_statistics::student::{self, Summary};

use crate::comparison::{Metric, NodeRatio};
use crate::experiment::Experiment;
use crate::observation::Phase;
use crate::shards::ShardIndex;
use crate::side::Sides;

/// What is compared by node.
const METRICS: [Metric; 2] = [Metric::Cpu, Metric::PeakRss];

/// The log ratios of one stack on one node, and on the others.
struct OfNode<'a> {
    node: &'a str,
    stack: &'a str,
    metric: Metric,
    here: Summary,
    elsewhere: Summary,
}

/// The ratios of a program's stacks by node; none where one node measured it.
pub fn node_ratios(
    experiment: &Experiment,
    program: &str,
    sides: &Sides,
    repetitions: u32,
) -> Vec<NodeRatio> {
    let Some(base) = sides.find(&experiment.baseline) else { return vec![] };
    let nodes = nodes_of(experiment, program, repetitions);
    let mut found: Vec<OfNode> = Vec::new();
    for side in sides.all.iter().filter(|side| side.stack != base.stack) {
        for metric in METRICS {
            let ratios = side.log_ratios(base, metric, repetitions);
            let mut by_node: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
            let known = nodes.iter().zip(&ratios).filter_map(|(node, ratio)| Some(((*node)?, (*ratio)?)));
            known.for_each(|(node, ratio)| by_node.entry(node).or_default().push(ratio));
            if by_node.len() < 2 {
                continue;
            }
            let here: Vec<Summary> = by_node.values().map(|values| Summary::of(values)).collect();
            let summaries = here.iter().zip(elsewhere(&here));
            found.extend(by_node.keys().zip(summaries).map(|(node, (here, elsewhere))| OfNode {
                node,
                stack: side.stack,
                metric,
                here: *here,
                elsewhere,
            }));
        }
    }
    let family = found.len();
    found.sort_by(|one, other| one.node.cmp(other.node));
    found.iter().map(|of_node| of_node.judged(family)).collect()
}

/// The node of each repetition of a program; of each round, where its stacks take turns.
fn nodes_of<'a>(experiment: &'a Experiment, program: &str, repetitions: u32) -> Vec<Option<&'a str>> {
    let (index, turns) = (ShardIndex::new(experiment), experiment.turns(program));
    let node = |round| index.of_cell(program, Phase::Timed, round * turns).map(|shard| shard.node.as_str());
    (0..repetitions).map(node).collect()
}

/// For each summary that of all others: of the ones before it and the ones after it, so that ten thousand nodes take ten
/// thousand steps and not their square.
fn elsewhere(here: &[Summary]) -> Vec<Summary> {
    let mut after = vec![Summary::default(); here.len() + 1];
    for (at, one) in here.iter().enumerate().rev() {
        after[at] = one.merged(after[at + 1]);
    }
    let mut before = Summary::default();
    let others = here.iter().zip(&after[1..]).map(|(one, after)| {
        let others = before.merged(*after);
        before = before.merged(*one);
        others
    });
    others.collect()
}

impl OfNode<'_> {
    fn judged(&self, family: usize) -> NodeRatio {
        let pairs = self.here.count as u32;
        let ratio = self.here.mean(family).map(|found| interval(found, pairs));
        let over = student::difference(self.elsewhere, self.here, family);
        NodeRatio {
            node: self.node.into(),
            stack: self.stack.into(),
            metric: self.metric,
            ratio,
            over_others: over.map(|found| interval(found, pairs)),
        }
    }
}

/// A mean of logarithms and its reach as a ratio.
fn interval((mean, half): (f64, f64), pairs: u32) -> Interval {
    Interval {
        ratio: mean.exp(),
        low: (mean - half).exp(),
        high: (mean + half).exp(),
        differs: mean.abs() > half,
        pairs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::compare;
    use crate::shards::{Part, Shard};
    use crate::testing::{experiment, row};

    /// Six repetitions on each of three nodes; under `other` a run takes `ratios[node]` of the baseline's CPU time.
    fn measured(ratios: [f64; 3]) -> Vec<NodeRatio> {
        let mut made = experiment(&["glibc", "other"]);
        for (number, ratio) in (0u32..).zip(ratios) {
            let part = Part { program: "prog".into(), first: 6 * number, repetitions: 6, ..Part::default() };
            let node = format!("n{number}");
            made.settings.shards.push(Shard { number, of: 3, part, node, ..Shard::default() });
            for repetition in 6 * number..6 * number + 6 {
                let noise = [1.0, 1.004, 0.997, 1.002, 0.999, 1.001][repetition as usize % 6];
                made.observations.push(row("glibc", repetition, 1.0, 1000));
                made.observations.push(row("other", repetition, ratio * noise, 1000));
            }
        }
        compare(&made).tables.remove(0).nodes
    }

    fn disagreeing(found: &[NodeRatio]) -> Vec<&str> {
        let differs = |one: &&NodeRatio| one.over_others.is_some_and(|ratio| ratio.differs);
        found.iter().filter(differs).map(|one| one.node.as_str()).collect()
    }

    #[test]
    fn nodes_that_agree_are_shown_and_none_differs() {
        let found = measured([0.9, 0.9, 0.9]);
        assert_eq!(found.len(), 6, "three nodes, CPU and memory: {found:?}");
        assert!(disagreeing(&found).is_empty(), "{found:?}");
        let ratio = found[0].ratio.expect("six pairs");
        assert!((ratio.ratio - 0.9).abs() < 0.005 && ratio.differs && ratio.pairs == 6, "{ratio:?}");
    }

    #[test]
    fn a_node_that_disagrees_is_found() {
        let found = measured([0.9, 0.9, 0.8]);
        assert!(disagreeing(&found).contains(&"n2"), "{found:?}");
        let cpu =
            found.iter().find(|one| one.node == "n2" && one.metric == Metric::Cpu).expect("it is there");
        assert!((cpu.over_others.expect("enough").ratio - 8.0 / 9.0).abs() < 0.005, "{cpu:?}");
    }

    #[test]
    fn the_others_of_each_are_all_but_itself() {
        let values = [vec![1.0, 2.0], vec![5.0], vec![], vec![-3.0, 8.0, 0.5]];
        let here: Vec<Summary> = values.iter().map(|values| Summary::of(values)).collect();
        for (at, found) in elsewhere(&here).into_iter().enumerate() {
            let others = values.iter().enumerate().filter(|(other, _)| *other != at);
            let expected = Summary::of(&others.flat_map(|(_, values)| values.clone()).collect::<Vec<f64>>());
            let (mean, half) = found.mean(1).expect("more than one");
            let (expected_mean, expected_half) = expected.mean(1).expect("more than one");
            assert!((mean - expected_mean).abs() < 1e-9 && (half - expected_half).abs() < 1e-9, "{at}");
        }
    }

    #[test]
    fn one_place_has_no_nodes() {
        let mut made = experiment(&["glibc", "other"]);
        made.observations = vec![row("glibc", 0, 1.0, 1), row("other", 0, 1.0, 1)];
        assert!(compare(&made).tables[0].nodes.is_empty());
    }
}
