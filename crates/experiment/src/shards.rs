//! Shards: the parts of an experiment that was measured in several places, and which rows are of which.
//!
//! A shard is whole repetitions of all stacks of one program on one node. So both runs of each pair are of one node,
//! and no ratio compares two.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use heaptoll_units::each_once;

use crate::experiment::{Experiment, ProgramInfo};
use crate::observation::{MemoryTrack, Observation, Phase};

pub use crate::experiment::{Part, Shard};

impl Part {
    /// Whether a cell of a program is of this part, where a round has `turns` repetitions and each shard `warmup`
    /// warm-ups.
    pub fn holds(&self, program: &str, phase: Phase, repetition: u32, turns: u32, warmup: u32) -> bool {
        if self.program != program || self.counts {
            return false;
        }
        match phase {
            Phase::Profile | Phase::Warmup => {
                (self.first_warmup..self.first_warmup + warmup).contains(&repetition)
            }
            Phase::Timed | Phase::Alone | Phase::Startup => {
                (self.first..self.first + self.repetitions).contains(&(repetition / turns.max(1)))
            }
            Phase::Traced | Phase::Search => false,
        }
    }
}

/// The shards of an experiment, for many rows.
pub struct ShardIndex<'a> {
    programs: HashMap<&'a str, OfProgram<'a>>,
    warmup: u32,
}

/// The shards of one program by the first number of their warm-ups, and of their repetitions.
#[derive(Default)]
struct OfProgram<'a> {
    by_warmup: BTreeMap<u32, &'a Shard>,
    by_repetition: BTreeMap<u32, &'a Shard>,
    turns: u32,
}

impl<'a> ShardIndex<'a> {
    /// Indexes the shards of an experiment.
    pub fn new(experiment: &'a Experiment) -> ShardIndex<'a> {
        let mut programs: HashMap<&str, OfProgram> = HashMap::new();
        for shard in experiment.settings.shards.iter().filter(|shard| !shard.part.counts) {
            let of_program = programs.entry(&shard.part.program).or_insert_with(|| OfProgram {
                turns: experiment.turns(&shard.part.program),
                ..OfProgram::default()
            });
            of_program.by_warmup.insert(shard.part.first_warmup, shard);
            of_program.by_repetition.insert(shard.part.first, shard);
        }
        ShardIndex { programs, warmup: experiment.settings.warmup }
    }

    /// The shard that a cell is of; `None` where there is none.
    pub fn of_cell(&self, program: &str, phase: Phase, repetition: u32) -> Option<&'a Shard> {
        let found = self.programs.get(program)?;
        let (_, shard) = if phase.is_warm_up() {
            found.by_warmup.range(..=repetition).next_back()?
        } else {
            found.by_repetition.range(..=repetition / found.turns.max(1)).next_back()?
        };
        shard.part.holds(program, phase, repetition, found.turns, self.warmup).then_some(shard)
    }

    /// The shard that a row is of.
    pub fn of_row(&self, row: &Observation) -> Option<&'a Shard> {
        self.of_cell(&row.program, row.phase, row.repetition)
    }

    /// The shard that a watched run was made in: a server's timed runs are watched, of other programs the first warm-up.
    pub fn of_track(&self, track: &MemoryTrack, is_server: bool) -> Option<&'a Shard> {
        let phase = if is_server { Phase::Timed } else { Phase::Profile };
        self.of_cell(&track.program, phase, track.repetition)
    }
}

impl Experiment {
    /// The classes of machines that it was measured on, in the order of the plan; none where it was measured in one
    /// place.
    pub fn classes(&self) -> Vec<&str> {
        each_once(self.settings.shards.iter().map(|shard| shard.part.class.as_str()))
    }

    /// The nodes that measured it, by name; none where it was measured in one place.
    pub fn nodes(&self) -> Vec<&str> {
        let nodes: BTreeSet<&str> = self.settings.shards.iter().map(|shard| shard.node.as_str()).collect();
        nodes.into_iter().collect()
    }

    /// Numbers of the shards of its plan that are not in it.
    pub fn missing_shards(&self) -> Vec<u32> {
        let there: BTreeSet<u32> = self.settings.shards.iter().map(|shard| shard.number).collect();
        let of = self.settings.shards.first().map_or(0, |shard| shard.of);
        (0..of).filter(|number| !there.contains(number)).collect()
    }

    /// The experiment of each class of machines by its name, each from repetition 0: unlike machines are never averaged.
    /// Itself where there are no others.
    pub fn into_classes(mut self) -> Vec<(String, Experiment)> {
        let classes: Vec<String> = self.classes().into_iter().map(str::to_owned).collect();
        let is_shifted = self.settings.shards.iter().any(|shard| shard.part.class_first > 0);
        if classes.len() < 2 && !is_shifted {
            return vec![(classes.into_iter().next().unwrap_or_default(), self)];
        }
        let (rows, tracks) = (std::mem::take(&mut self.observations), std::mem::take(&mut self.tracks));
        let mut parts: HashMap<&str, Experiment> =
            classes.iter().map(|class| (class.as_str(), self.of_class(class))).collect();
        let index = ShardIndex::new(&self);
        for mut row in rows {
            let Some(part) = index.of_row(&row).map(|shard| &shard.part) else { continue };
            if !row.phase.is_warm_up() {
                row.repetition -= part.class_first * self.turns(&row.program);
            }
            if let Some(of_class) = parts.get_mut(part.class.as_str()) {
                of_class.observations.push(row);
            }
        }
        for track in tracks {
            let serves = |program: &ProgramInfo| program.name == track.program && program.serve.is_some();
            let shard = index.of_track(&track, self.programs.iter().any(serves));
            if let Some(of_class) = shard.and_then(|shard| parts.get_mut(shard.part.class.as_str())) {
                of_class.tracks.push(track);
            }
        }
        classes.iter().filter_map(|class| Some((class.clone(), parts.remove(class.as_str())?))).collect()
    }

    /// What describes the experiment of one class; no rows.
    fn of_class(&self, class: &str) -> Experiment {
        let of_class = self.settings.shards.iter().filter(|shard| shard.part.class == class);
        let mut shards: Vec<Shard> = of_class.cloned().collect();
        for shard in &mut shards {
            shard.part.first -= shard.part.class_first;
            shard.part.class_first = 0;
        }
        let mut described = self.clone();
        if let Some(shard) = shards.first() {
            described.machine = shard.machine.clone();
            described.own_cost = shard.own_cost;
        }
        let ends = shards.iter().map(|shard| shard.part.first + shard.part.repetitions);
        described.settings.repetitions = ends.max().unwrap_or(0);
        described.settings.shards = shards;
        described
    }
}

/// The first digits of a plan's identity.
pub fn short(identity: &str) -> &str {
    identity.get(..12).unwrap_or(identity)
}

/// The name of a class of machines, `amd-epyc-7b13` for `AMD EPYC 7B13`: letters, digits and single dashes, which file
/// names may have.
pub fn named_for(cpu: &str) -> String {
    let words = cpu.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let name = words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-");
    if name.is_empty() { "unknown".into() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{experiment, row};

    /// Shards of so many repetitions each, on these nodes of these classes in turn.
    fn sharded(lengths: &[u32], places: &[(&str, &str)]) -> Experiment {
        let mut made = experiment(&["glibc", "other"]);
        made.settings.warmup = 1;
        let (mut first, of) = (0, lengths.len() as u32);
        for (number, (repetitions, (class, node))) in lengths.iter().zip(places.iter().cycle()).enumerate() {
            let number = number as u32;
            let part = Part {
                program: "prog".into(),
                class: (*class).into(),
                first,
                repetitions: *repetitions,
                class_first: 0,
                first_warmup: number,
                counts: false,
            };
            first += repetitions;
            let node = (*node).into();
            made.settings.shards.push(Shard { number, of, part, node, ..Shard::default() });
        }
        made
    }

    #[test]
    fn each_row_is_of_the_shard_that_has_its_repetition() {
        let made = sharded(&[3, 2], &[("a", "n1"), ("a", "n2")]);
        let index = ShardIndex::new(&made);
        let node = |phase, repetition| index.of_cell("prog", phase, repetition).map(|shard| &*shard.node);
        for phase in [Phase::Timed, Phase::Alone, Phase::Startup] {
            assert_eq!((node(phase, 2), node(phase, 3), node(phase, 5)), (Some("n1"), Some("n2"), None));
        }
        assert_eq!((node(Phase::Profile, 0), node(Phase::Warmup, 1)), (Some("n1"), Some("n2")));
        assert_eq!((node(Phase::Warmup, 2), node(Phase::Traced, 0)), (None, None));
        assert_eq!(index.of_cell("another", Phase::Timed, 0), None);
    }

    #[test]
    fn classes_are_taken_apart_and_begin_with_repetition_0() {
        let mut made = sharded(&[2, 2], &[("a", "n1"), ("b", "n2")]);
        made.settings.shards[1].part.class_first = 2;
        made.settings.shards[1].machine.cpu = "another".into();
        made.observations = (0..4).map(|number| row("glibc", number, 1.0, 1)).collect();
        made.observations.push(Observation { phase: Phase::Warmup, ..row("glibc", 1, 1.0, 1) });
        let classes = made.into_classes();
        assert_eq!(classes.iter().map(|(class, _)| class.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        for (_, of_class) in &classes {
            let timed = of_class.observations.iter().filter(|row| row.phase == Phase::Timed);
            assert_eq!(timed.map(|row| row.repetition).collect::<Vec<_>>(), [0, 1]);
            assert_eq!((of_class.settings.repetitions, of_class.settings.shards.len()), (2, 1));
        }
        assert_eq!((classes[0].1.observations.len(), classes[1].1.observations.len()), (2, 3));
        assert_eq!(classes[1].1.machine.cpu, "another");
    }

    #[test]
    fn one_class_stays_as_it_is() {
        let made = sharded(&[2, 2], &[("a", "n1"), ("a", "n2")]);
        assert_eq!(made.clone().into_classes(), [("a".to_owned(), made)]);
        let unsharded = experiment(&["glibc"]);
        assert_eq!(unsharded.clone().into_classes(), [(String::new(), unsharded)]);
    }

    #[test]
    fn missing_shards_are_known_by_number() {
        let mut made = sharded(&[1, 1, 1], &[("a", "n1")]);
        made.settings.shards.remove(1);
        assert_eq!((made.missing_shards(), made.nodes()), (vec![1], vec!["n1"]));
    }

    #[test]
    fn names_of_classes_are_file_names() {
        assert_eq!(named_for("Intel(R) Xeon(R) CPU @ 2.20GHz"), "intel-r-xeon-r-cpu-2-20ghz");
        assert_eq!(named_for("  "), "unknown");
    }
}
