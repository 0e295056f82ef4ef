//! Which nodes measured an experiment, and the ratios of each next to the pooled ones.

use std::collections::{BTreeMap, BTreeSet};

use heaptoll_experiment::comparison::{Metric, NodeRatio, ProgramTable};
use heaptoll_experiment::experiment::Experiment;
use heaptoll_units::first_few;

use crate::document::{Cell, Part, Table};
use crate::format::{self, NONE, TOO_FEW, and_list, plural};

/// With more nodes the table is unfolded on demand; those that disagree are named in any case.
const FEW: usize = 16;
/// As many numbers of missing shards are named.
const NAMED: usize = 10;

/// A row a node and stack: its own ratios, and each over that of the others.
pub(super) fn part(table: &ProgramTable) -> Option<Part> {
    let nodes: BTreeSet<&str> = table.nodes.iter().map(|one| one.node.as_str()).collect();
    if nodes.is_empty() {
        return None;
    }
    let place = |one: &NodeRatio| (one.node.clone(), one.stack.clone(), one.metric);
    let of_place: BTreeMap<(String, String, Metric), &NodeRatio> =
        table.nodes.iter().map(|one| (place(one), one)).collect();
    let mut rows = Vec::new();
    for node in &nodes {
        for stack in table.rows.iter().map(|row| &row.stack) {
            let of = |metric| of_place.get(&((*node).to_owned(), stack.clone(), metric)).copied();
            if let Some(cpu) = of(Metric::Cpu).or(of(Metric::PeakRss)) {
                rows.push((cpu, of(Metric::Cpu), of(Metric::PeakRss)));
            }
        }
    }
    let own = |one: Option<&NodeRatio>| Cell::ratio(one.and_then(|one| one.ratio.as_ref()), TOO_FEW);
    let over = |one: Option<&NodeRatio>| Cell::ratio(one.and_then(|one| one.over_others.as_ref()), NONE);
    let note = "A node's own intervals use Student's t. All are corrected for the comparisons in the table. If a \
                ratio vs other nodes does not contain 1, the node disagrees: do not use the pooled ratio.";
    let table = Table::of(rows)
        .text("node", |(of, ..)| of.node.clone())
        .text("manager", |(of, ..)| of.stack.clone())
        .figure("CPU ratio", |(_, cpu, _)| own(*cpu))
        .figure("vs other nodes", |(_, cpu, _)| over(*cpu))
        .figure("memory ratio", |(.., memory)| own(*memory))
        .optional("vs other nodes", |(.., memory)| over(*memory))
        .note(note);
    Some(Part::new("By node", [table.wide()]).folded(nodes.len() > FEW, ""))
}

/// A sentence on each ratio in which a node disagrees with the others.
pub(super) fn disagreements(table: &ProgramTable, baseline: &str) -> Vec<String> {
    let sentence = |one: &NodeRatio| {
        let over = one.over_others.filter(|over| over.differs)?;
        let ratio = one.ratio?;
        let what = if one.metric == Metric::Cpu { "CPU" } else { "memory" };
        let significant = format::significant;
        Some(format!(
            "{} disagrees: {} takes {} of {baseline}'s {what} there, which is {} ({}–{}) of its ratio on the \
             other nodes. Do not use the pooled ratio",
            one.node,
            one.stack,
            significant(ratio.ratio),
            significant(over.ratio),
            significant(over.low),
            significant(over.high),
        ))
    };
    table.nodes.iter().filter_map(sentence).collect()
}

/// Which nodes measured it.
pub(super) fn measured_by(experiment: &Experiment) -> Option<String> {
    let shards = experiment.settings.shards.len();
    (shards > 0).then(|| {
        let nodes: Vec<String> = experiment.nodes().into_iter().map(str::to_owned).collect();
        let count = plural(nodes.len(), "node");
        let names = if nodes.len() <= FEW { format!(": {}", and_list(&nodes)) } else { String::new() };
        format!("{} of {count} of this class{names}", plural(shards, "shard"))
    })
}

/// Which shards are not there.
pub(super) fn lacking(experiment: &Experiment, missing: &[u32]) -> String {
    let of = experiment.settings.shards.first().map_or(0, |shard| shard.of);
    let numbers = first_few(missing.iter().map(u32::to_string), NAMED);
    format!("incomplete: {} of {} missing: {numbers}", missing.len(), plural(of as usize, "shard"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Item;
    use crate::testing::{Shape, experiment};
    use heaptoll_experiment::shards::Shard;
    use heaptoll_statistics::Interval;

    fn ratio(node: &str, stack: &str, over: f64, differs: bool) -> NodeRatio {
        let interval = |ratio: f64, differs| Interval {
            ratio,
            low: ratio - 0.01,
            high: ratio + 0.01,
            differs,
            pairs: 6,
        };
        NodeRatio {
            node: node.into(),
            stack: stack.into(),
            metric: Metric::Cpu,
            ratio: Some(interval(0.9, true)),
            over_others: Some(interval(over, differs)),
        }
    }

    #[test]
    fn a_node_that_disagrees_is_named_and_each_has_its_row() {
        let (_, mut comparison) = experiment(Shape::Suite);
        let table = &mut comparison.tables[0];
        assert_eq!((part(table), disagreements(table, "glibc")), (None, vec![]));
        let stack = table.rows[0].stack.clone();
        table.nodes = vec![ratio("n1", &stack, 1.0, false), ratio("n2", &stack, 0.89, true)];
        let Some(Part { items, folded: false, .. }) = part(table) else { panic!("no table") };
        assert!(matches!(&items[..], [Item::Table(table)] if table.rows.len() == 2));
        let found = disagreements(table, "glibc");
        assert!(found.len() == 1 && found[0].starts_with("n2 disagrees: "), "{found:?}");
    }

    #[test]
    fn missing_shards_are_named_up_to_a_number() {
        let (mut made, _) = experiment(Shape::Suite);
        assert_eq!(measured_by(&made), None);
        made.settings.shards = vec![Shard { of: 20, node: "n1".into(), ..Shard::default() }];
        assert_eq!(measured_by(&made).as_deref(), Some("1 shard of 1 node of this class: n1"));
        assert_eq!(lacking(&made, &[3, 5]), "incomplete: 2 of 20 shards missing: 3 and 5");
        let many: Vec<u32> = (1..20).collect();
        assert!(lacking(&made, &many).ends_with("10 and 9 more"), "{}", lacking(&made, &many));
    }
}
