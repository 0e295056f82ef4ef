//! A table of ours compared with a table of a paper, in sentences computed from the figures.
//!
//! The figures themselves are of different machines and centuries; what can hold again is their order. So the orders
//! of the managers are compared: by Kendall's tau on each program, pair by pair, and by the lowest and highest manager.

use std::cmp::Ordering;

/// Figures nearer than this to one another, as a share of the smaller, are not distinguished: the paper's are rounded,
/// and ours would be others with another input.
const APART: f64 = 0.02;

/// The order of two figures, with those that are near one another as equal.
fn order(a: f64, b: f64) -> Ordering {
    if (a - b).abs() <= APART * a.min(b) { Ordering::Equal } else { a.total_cmp(&b) }
}

/// One figure, the paper's and ours, of a manager on a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// The program, by our name.
    pub program: String,
    /// The manager, by our name.
    pub manager: String,
    /// The paper's figure.
    pub published: f64,
    /// Ours, in the same unit.
    pub ours: f64,
}

/// The order of managers on one program.
struct OnProgram<'a> {
    name: &'a str,
    pairs: Vec<&'a Pair>,
}

impl OnProgram<'_> {
    /// Kendall's tau-b between the paper's figures and ours; none when either has all the same.
    fn tau(&self) -> Option<f64> {
        let (published, ours): (Vec<f64>, Vec<f64>) =
            self.pairs.iter().map(|pair| (pair.published, pair.ours)).unzip();
        let (tau, _) = kendalls::tau_b_with_comparator(&published, &ours, f64::total_cmp).ok()?;
        tau.is_finite().then_some(tau)
    }

    /// Pairs of managers that the paper distinguishes, by their order here.
    fn pair_orders(&self) -> PairOrders {
        let mut pair_orders = PairOrders::default();
        for (number, a) in self.pairs.iter().enumerate() {
            for b in &self.pairs[number + 1..] {
                let published = order(a.published, b.published);
                if published == Ordering::Equal {
                    continue;
                }
                match order(a.ours, b.ours) {
                    Ordering::Equal => pair_orders.near += 1,
                    ours if ours == published => pair_orders.same += 1,
                    _ => pair_orders.reversed += 1,
                }
            }
        }
        pair_orders
    }

    /// The managers with the extreme figure, as `figure` has it, or one near it.
    fn extreme(&self, end: Ordering, figure: fn(&Pair) -> f64) -> Vec<&str> {
        let beyond = |a: f64, b: f64| a.total_cmp(&b) == end;
        let Some(extreme) =
            self.pairs.iter().map(|pair| figure(pair)).reduce(|a, b| if beyond(a, b) { a } else { b })
        else {
            return vec![];
        };
        self.pairs
            .iter()
            .filter(|pair| order(figure(pair), extreme) == Ordering::Equal)
            .map(|pair| pair.manager.as_str())
            .collect()
    }
}

/// Pairs of managers that the paper distinguishes.
#[derive(Debug, Default)]
struct PairOrders {
    same: usize,
    near: usize,
    reversed: usize,
}

/// The verdict on one kind of figure, in sentences; `what` names it.
pub fn of(what: &str, pairs: &[Pair]) -> Vec<String> {
    let mut programs: Vec<OnProgram<'_>> = Vec::new();
    for pair in pairs {
        match programs.iter_mut().find(|known| known.name == pair.program) {
            Some(known) => known.pairs.push(pair),
            None => programs.push(OnProgram { name: &pair.program, pairs: vec![pair] }),
        }
    }
    programs.retain(|program| program.pairs.len() >= 2);
    if programs.is_empty() {
        return vec![format!(
            "{what}: no verdict; it takes two of the paper's managers measured on one of its programs."
        )];
    }
    let mut sentences = vec![rank(what, &programs)];
    for (end, word) in [(Ordering::Less, "lowest"), (Ordering::Greater, "highest")] {
        sentences.push(extremes(what, word, end, &programs));
    }
    sentences
}

fn rank(what: &str, programs: &[OnProgram<'_>]) -> String {
    let taus: Vec<(&str, f64)> =
        programs.iter().filter_map(|program| Some((program.name, program.tau()?))).collect();
    let pair_orders =
        programs.iter().map(OnProgram::pair_orders).fold(PairOrders::default(), |sum, one| PairOrders {
            same: sum.same + one.same,
            near: sum.near + one.near,
            reversed: sum.reversed + one.reversed,
        });
    let list: Vec<String> = taus.iter().map(|(name, tau)| format!("{name} {tau:.2}")).collect();
    let mean = taus.iter().map(|(_, tau)| tau).sum::<f64>() / taus.len().max(1) as f64;
    let word = match mean {
        mean if mean > 0.8 => "The managers stand in the paper's order",
        mean if mean > 0.4 => "The managers stand mostly in the paper's order",
        mean if mean > 0.1 => "The managers' order leans toward the paper's, no more",
        mean if mean > -0.1 => "The managers' order has nothing to do with the paper's",
        mean if mean > -0.8 => "The managers' order leans against the paper's",
        _ => "The managers' order is the reverse of the paper's",
    };
    if taus.is_empty() {
        return format!("{what}: the figures distinguish no two managers.");
    }
    format!(
        "{what}: {}. Kendall's tau-b is {mean:.2} on average ({}). Of {} pairs of managers that the paper has more \
         than {:.0} % apart, {} stand the same way here, {} are nearer than that, and {} stand the other way.",
        lower_first(word),
        list.join(", "),
        pair_orders.same + pair_orders.near + pair_orders.reversed,
        APART * 100.0,
        pair_orders.same,
        pair_orders.near,
        pair_orders.reversed
    )
}

fn extremes(what: &str, word: &str, end: Ordering, programs: &[OnProgram<'_>]) -> String {
    let tally = |figure: fn(&Pair) -> f64| {
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for program in programs {
            for name in program.extreme(end, figure) {
                match counts.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, count)) => *count += 1,
                    None => counts.push((name, 1)),
                }
            }
        }
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        counts.iter().map(|(name, count)| format!("{name} on {count}")).collect::<Vec<_>>().join(", ")
    };
    let same = programs
        .iter()
        .filter(|program| {
            let ours = program.extreme(end, |pair| pair.ours);
            program.extreme(end, |pair| pair.published).iter().any(|name| ours.contains(name))
        })
        .count();
    let all = programs.len();
    let holds = match same {
        same if same == all => "holds on every program",
        0 => "does not hold on any program",
        _ => "holds in part",
    };
    format!(
        "{what}, {word}: the paper has {}; here {}. That {holds} ({same} of {all}).",
        tally(|pair| pair.published),
        tally(|pair| pair.ours),
    )
}

fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(program: &str, figures: &[(&str, f64, f64)]) -> Vec<Pair> {
        figures
            .iter()
            .map(|(manager, published, ours)| Pair {
                program: program.into(),
                manager: (*manager).into(),
                published: *published,
                ours: *ours,
            })
            .collect()
    }

    #[test]
    fn the_same_order_is_recognised_whatever_the_scale() {
        let same = pairs("p", &[("a", 10.0, 300.0), ("b", 20.0, 301.0), ("c", 80.0, 5000.0)]);
        let sentences = of("malloc", &same);
        assert!(sentences[0].contains("in the paper's order. Kendall's tau-b is 1.00"), "{sentences:?}");
        assert!(sentences[0].contains("Of 3 pairs"), "{sentences:?}");
        assert!(
            sentences[0].contains("2 stand the same way here, 1 are nearer than that, and 0 stand"),
            "{sentences:?}"
        );
        assert!(
            sentences[1].contains("the paper has a on 1; here a on 1, b on 1. That holds on every program"),
            "{sentences:?}"
        );
        assert!(sentences[2].contains("c on 1; here c on 1"), "{sentences:?}");
    }

    #[test]
    fn the_reverse_order_is_recognised() {
        let sentences = of("free", &pairs("p", &[("a", 1.0, 9.0), ("b", 2.0, 8.0), ("c", 3.0, 7.0)]));
        assert!(
            sentences[0].contains("the reverse of the paper's. Kendall's tau-b is -1.00"),
            "{sentences:?}"
        );
        assert!(
            sentences[0].contains("0 stand the same way here, 0 are nearer than that, and 3 stand"),
            "{sentences:?}"
        );
        assert!(sentences[1].contains("does not hold on any program (0 of 1)"), "{sentences:?}");
    }

    #[test]
    fn programs_are_judged_apart_and_together() {
        let mut both = pairs("p", &[("a", 1.0, 1.0), ("b", 2.0, 2.0)]);
        both.extend(pairs("q", &[("a", 1.0, 2.0), ("b", 2.0, 1.0)]));
        // A program with one manager shows nothing about order.
        both.extend(pairs("r", &[("a", 1.0, 2.0)]));
        let sentences = of("malloc", &both);
        assert!(sentences[0].contains("0.00 on average (p 1.00, q -1.00)"), "{sentences:?}");
        assert!(
            sentences[0].contains("has nothing to do") && sentences[0].contains("Of 2 pairs"),
            "{sentences:?}"
        );
        assert!(sentences[1].contains("holds in part (1 of 2)"), "{sentences:?}");
    }

    #[test]
    fn a_tie_of_the_paper_is_held_by_either() {
        let sentences = of("x", &pairs("p", &[("a", 1.0, 5.0), ("b", 1.0, 2.0), ("c", 3.0, 7.0)]));
        assert!(
            sentences[0].contains("Of 2 pairs") && sentences[0].contains("apart, 2 stand the same way"),
            "{sentences:?}"
        );
        assert!(
            sentences[1].contains("a on 1, b on 1; here b on 1. That holds on every program"),
            "{sentences:?}"
        );
    }

    #[test]
    fn too_little_gives_no_verdict() {
        assert!(of("x", &pairs("p", &[("a", 1.0, 5.0)]))[0].contains("no verdict"));
        assert!(of("x", &[])[0].contains("no verdict"));
        let flat = of("x", &pairs("p", &[("a", 1.0, 5.0), ("b", 1.0, 6.0)]));
        assert!(flat[0].contains("distinguish no two managers"), "{flat:?}");
    }
}
