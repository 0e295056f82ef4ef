//! The engine of everything that varies one thing along an axis: subjects (managers, collectors), each at several
//! places of the axis, compared within a program and in means over programs. An axis says how a stack names its subject
//! and place, which places are compared with which, and by what figures.

use heaptoll_statistics::{Interval, over_programs};
use heaptoll_units::each_once;

use crate::experiment::Experiment;
use crate::side::{Side, Sides};

/// What an experiment varies.
pub trait Axis: Sized {
    /// Where a stack stands.
    type Place: Copy + Ord;
    /// Names one comparison of a subject.
    type Key: Copy + PartialEq;
    /// Medians of a stack.
    type Medians: Copy;

    /// A stack's subject and place; `None` for a stack of another experiment.
    fn part(&self, stack: &str) -> Option<(String, Self::Place)>;
    /// Whether a stack at this place makes its subject one of the experiment: false where nothing is varied.
    fn is_varied(&self, _place: Self::Place) -> bool {
        true
    }
    /// Whether a stack of another subject takes part in this one's comparisons.
    fn is_shared(&self, _stack: &(String, Self::Place), _subject: &str) -> bool {
        false
    }
    /// All comparisons between these places, which are in order: the key, the place, and the place it is compared with.
    fn comparisons(&self, places: &[Self::Place]) -> Vec<(Self::Key, Self::Place, Self::Place)>;
    /// Log ratios by repetition, a series a metric.
    fn series(&self, of: &Side, over: &Side, repetitions: u32) -> Vec<Vec<Option<f64>>>;
    /// Medians; `None` without a good run.
    fn medians(&self, side: &Side) -> Option<Self::Medians>;
    /// Whether a program is in the means.
    fn counts(&self, _points: &[Point<Self>]) -> bool {
        true
    }
}

/// A stack of one program.
pub struct Point<A: Axis> {
    /// Where it stands.
    pub place: A::Place,
    /// Good runs.
    pub good: u32,
    /// Medians.
    pub medians: Option<A::Medians>,
}

/// One comparison: its key and an interval a metric.
pub type Intervals<A> = (<A as Axis>::Key, Vec<Option<Interval>>);

/// One program under one subject.
pub struct Swept<A: Axis> {
    /// Program.
    pub program: String,
    /// Subject.
    pub subject: String,
    /// By place.
    pub points: Vec<Point<A>>,
    /// All of one program hold together.
    pub ratios: Vec<Intervals<A>>,
    /// Whether it is in the means.
    pub counts: bool,
}

impl<A: Axis> Swept<A> {
    /// The intervals of one comparison, a metric each.
    pub fn of(&self, key: A::Key) -> Option<&[Option<Interval>]> {
        self.ratios.iter().find(|(other, _)| *other == key).map(|(_, ratios)| &ratios[..])
    }
}

/// Geometric means over programs.
pub struct Mean<A: Axis> {
    /// Subject.
    pub subject: String,
    /// Programs in it.
    pub programs: u32,
    /// Over repetitions of these programs. All means hold together.
    pub ratios: Intervals<A>,
}

/// What was found.
pub struct Sweep<A: Axis> {
    /// Subjects in the order requested.
    pub subjects: Vec<String>,
    /// By program, then subject.
    pub programs: Vec<Swept<A>>,
    /// By subject, where at least two programs count.
    pub means: Vec<Mean<A>>,
}

/// A comparison of one subject, with its series.
struct Compared<A: Axis> {
    subject: String,
    key: A::Key,
    series: Vec<Vec<Option<f64>>>,
}

/// One program of a sweep, and what the means over programs take of it.
pub struct OfProgram<A: Axis> {
    swept: Vec<Swept<A>>,
    counted: Vec<Compared<A>>,
}

/// Computes it from an experiment's rows. Call [`crate::compare::judge_outputs`] first.
pub fn sweep<A: Axis>(axis: &A, experiment: &Experiment) -> Sweep<A> {
    let repetitions = experiment.repetitions();
    let names = experiment.programs.iter().map(|program| &program.name);
    let of = |name: &String| OfProgram::of(axis, experiment, &Sides::of(experiment, name), name, repetitions);
    let all = names.map(of).collect();
    Sweep::gather(axis, experiment, all, repetitions)
}

/// The subjects in the order requested.
fn subjects<A: Axis>(axis: &A, experiment: &Experiment) -> Vec<String> {
    let parts = experiment.stacks.iter().filter_map(|stack| axis.part(&stack.name));
    each_once(parts.filter(|(_, place)| axis.is_varied(*place)).map(|(subject, _)| subject))
}

impl<A: Axis> OfProgram<A> {
    /// One program, of whose stacks these are the sides, over so many repetitions.
    pub fn of(
        axis: &A,
        experiment: &Experiment,
        sides: &Sides,
        program: &str,
        repetitions: u32,
    ) -> OfProgram<A> {
        let subjects = subjects(axis, experiment);
        let mut compared: Vec<Compared<A>> = Vec::new();
        let mut points = Vec::new();
        for subject in &subjects {
            let placed = placed(axis, sides, subject);
            compared.extend(compare(axis, subject, &placed, repetitions));
            let point = |(place, side): &(A::Place, &Side)| Point {
                place: *place,
                good: side.timed.len() as u32,
                medians: axis.medians(side),
            };
            points.push(placed.iter().map(point).collect::<Vec<Point<A>>>());
        }
        let mut ratios = intervals(&compared, experiment).into_iter().zip(&compared).peekable();
        let mut swept: Vec<Swept<A>> = Vec::new();
        for (subject, points) in subjects.into_iter().zip(points).filter(|(_, points)| !points.is_empty()) {
            let own = std::iter::from_fn(|| ratios.next_if(|(_, one)| one.subject == subject));
            let ratios = own.map(|(ratios, _)| ratios).collect();
            let counts = axis.counts(&points);
            swept.push(Swept { program: program.to_owned(), subject, points, ratios, counts });
        }
        let counts = |one: &Compared<A>| swept.iter().any(|of| of.subject == one.subject && of.counts);
        let counted = compared.into_iter().filter(counts).collect();
        OfProgram { swept, counted }
    }
}

impl<A: Axis> Sweep<A> {
    /// All programs, whose rows need not be in the experiment any more.
    pub fn gather(axis: &A, experiment: &Experiment, all: Vec<OfProgram<A>>, repetitions: u32) -> Sweep<A> {
        let subjects = subjects(axis, experiment);
        let (mut programs, mut counted) = (Vec::new(), Vec::new());
        for one in all {
            programs.extend(one.swept);
            counted.extend(one.counted);
        }
        let means = means(&counted, &subjects, experiment, repetitions);
        Sweep { subjects, programs, means }
    }
}

/// The stacks of a subject by place.
fn placed<'s, 'e, A: Axis>(axis: &A, sides: &'s Sides<'e>, subject: &str) -> Vec<(A::Place, &'s Side<'e>)> {
    let own = |side: &'s Side<'e>| {
        let part = axis.part(side.stack)?;
        (part.0 == subject || axis.is_shared(&part, subject)).then_some((part.1, side))
    };
    let mut placed: Vec<(A::Place, &Side)> = sides.all.iter().filter_map(own).collect();
    placed.sort_by_key(|(place, _)| *place);
    placed
}

fn compare<A: Axis>(
    axis: &A,
    subject: &str,
    placed: &[(A::Place, &Side)],
    repetitions: u32,
) -> Vec<Compared<A>> {
    let places: Vec<A::Place> = placed.iter().map(|(place, _)| *place).collect();
    let side = |place: A::Place| placed.iter().find(|(other, _)| *other == place).map(|(_, side)| *side);
    let one = |(key, of, over): (A::Key, A::Place, A::Place)| {
        let series = axis.series(side(of)?, side(over)?, repetitions);
        Some(Compared { subject: subject.into(), key, series })
    };
    axis.comparisons(&places).into_iter().filter_map(one).collect()
}

fn intervals<A: Axis>(compared: &[Compared<A>], experiment: &Experiment) -> Vec<Intervals<A>> {
    let series: Vec<Vec<Option<f64>>> = compared.iter().flat_map(|one| one.series.clone()).collect();
    let mut found = experiment.paired(&series).into_iter();
    compared.iter().map(|one| (one.key, found.by_ref().take(one.series.len()).collect())).collect()
}

fn means<A: Axis>(
    counted: &[Compared<A>],
    subjects: &[String],
    experiment: &Experiment,
    repetitions: u32,
) -> Vec<Mean<A>> {
    let mut all: Vec<(Compared<A>, u32)> = Vec::new();
    for one in subjects.iter().flat_map(|name| counted.iter().filter(move |one| one.subject == *name)) {
        let same = |other: &Compared<A>| other.subject == one.subject && other.key == one.key;
        if all.iter().any(|(other, _)| same(other)) {
            continue;
        }
        let programs: Vec<&Compared<A>> = counted.iter().filter(|other| same(other)).collect();
        let mut count = u32::MAX;
        let series = (0..one.series.len()).map(|metric| {
            let of: Vec<Vec<Option<f64>>> = programs.iter().map(|one| one.series[metric].clone()).collect();
            let (programs, mean) = over_programs(&of, repetitions);
            // A figure that no stack reports has no mean, and that is no fault of the programs.
            if programs > 0 {
                count = count.min(programs);
            }
            mean
        });
        let series = series.collect();
        if programs.len() > 1 && count != u32::MAX {
            all.push((Compared { subject: one.subject.clone(), key: one.key, series }, count));
        }
    }
    let (compared, counts): (Vec<Compared<A>>, Vec<u32>) = all.into_iter().unzip();
    let ratios = intervals(&compared, experiment);
    let each = compared.into_iter().zip(counts).zip(ratios);
    each.map(|((one, programs), ratios)| Mean { subject: one.subject, programs, ratios }).collect()
}
