//! The engine of every experiment that varies one thing along an axis: subjects (managers, collectors), each at several
//! places of the axis, compared within a program and in means over programs. An axis says how a stack names its subject
//! and place, which places are compared with which, and by what figures.

use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::side::{Side, Sides};
use heaptoll_report::document::{Axis as ChartAxis, Chart, Form, Item, Series};
use heaptoll_statistics::{ALPHA, Interval, over_programs, paired};

/// What an experiment varies.
pub trait Axis {
    /// Where a stack stands.
    type Place: Copy + Ord;
    /// Names one comparison of a subject.
    type Key: Copy + PartialEq;
    /// Medians of a stack.
    type Medians: Copy;

    /// A stack's subject and place; `None` for a stack of another experiment.
    fn part(stack: &str) -> Option<(String, Self::Place)>;
    /// Whether a stack at this place makes its subject one of the experiment: false where nothing is varied.
    fn is_varied(place: Self::Place) -> bool;
    /// Whether a stack of another subject takes part in this one's comparisons.
    fn is_shared(_stack: &(String, Self::Place), _subject: &str) -> bool {
        false
    }
    /// All comparisons between these places, which are in order: the key, the place, and the place it is compared with.
    fn comparisons(places: &[Self::Place]) -> Vec<(Self::Key, Self::Place, Self::Place)>;
    /// Log ratios by repetition, a series a metric.
    fn series(of: &Side, over: &Side, repetitions: u32) -> Vec<Vec<Option<f64>>>;
    /// Medians; `None` without a good run.
    fn medians(side: &Side) -> Option<Self::Medians>;
    /// Whether a program is in the means.
    fn counts(_points: &[Point<Self>]) -> bool
    where
        Self: Sized,
    {
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
pub type Ratios<A> = (<A as Axis>::Key, Vec<Option<Interval>>);

/// One program under one subject.
pub struct Swept<A: Axis> {
    /// Program.
    pub program: String,
    /// Subject.
    pub subject: String,
    /// By place.
    pub points: Vec<Point<A>>,
    /// All of one program hold together.
    pub ratios: Vec<Ratios<A>>,
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
    pub ratios: Ratios<A>,
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

/// Computes it from an experiment's rows. Call [`heaptoll_experiment::compare::judge_outputs`] first.
pub fn sweep<A: Axis>(experiment: &Experiment) -> Sweep<A> {
    let mut subjects: Vec<String> = Vec::new();
    for (subject, place) in experiment.stacks.iter().filter_map(|stack| A::part(&stack.name)) {
        if A::is_varied(place) && !subjects.contains(&subject) {
            subjects.push(subject);
        }
    }
    let (repetitions, seed) = (experiment.repetitions(), experiment.settings.seed);
    let mut programs: Vec<Swept<A>> = Vec::new();
    let mut counted: Vec<Compared<A>> = Vec::new();
    for program in &experiment.programs {
        let sides = Sides::of(experiment, &program.name);
        let mut compared: Vec<Compared<A>> = Vec::new();
        let mut points = Vec::new();
        for subject in &subjects {
            let placed = placed::<A>(&sides, subject);
            compared.extend(compare::<A>(subject, &placed, repetitions));
            let point = |(place, side): &(A::Place, &Side)| Point {
                place: *place,
                good: side.timed.len() as u32,
                medians: A::medians(side),
            };
            points.push(placed.iter().map(point).collect::<Vec<Point<A>>>());
        }
        let mut ratios = intervals(&compared, seed).into_iter().zip(&compared).peekable();
        for (subject, points) in subjects.iter().zip(points).filter(|(_, points)| !points.is_empty()) {
            let own = std::iter::from_fn(|| ratios.next_if(|(_, one)| one.subject == *subject));
            let ratios = own.map(|(ratios, _)| ratios).collect();
            let (program, subject, counts) = (program.name.clone(), subject.clone(), A::counts(&points));
            programs.push(Swept { program, subject, points, ratios, counts });
        }
        let counts = |one: &Compared<A>| {
            programs.iter().any(|of| of.program == program.name && of.subject == one.subject && of.counts)
        };
        counted.extend(compared.into_iter().filter(counts));
    }
    let means = means(&counted, &subjects, repetitions, seed);
    Sweep { subjects, programs, means }
}

/// The stacks of a subject by place.
fn placed<'s, 'e, A: Axis>(sides: &'s Sides<'e>, subject: &str) -> Vec<(A::Place, &'s Side<'e>)> {
    let own = |side: &'s Side<'e>| {
        let part = A::part(side.stack)?;
        (part.0 == subject || A::is_shared(&part, subject)).then_some((part.1, side))
    };
    let mut placed: Vec<(A::Place, &Side)> = sides.all.iter().filter_map(own).collect();
    placed.sort_by_key(|(place, _)| *place);
    placed
}

fn compare<A: Axis>(subject: &str, placed: &[(A::Place, &Side)], repetitions: u32) -> Vec<Compared<A>> {
    let places: Vec<A::Place> = placed.iter().map(|(place, _)| *place).collect();
    let side = |place: A::Place| placed.iter().find(|(other, _)| *other == place).map(|(_, side)| *side);
    let one = |(key, of, over): (A::Key, A::Place, A::Place)| {
        let series = A::series(side(of)?, side(over)?, repetitions);
        Some(Compared { subject: subject.into(), key, series })
    };
    A::comparisons(&places).into_iter().filter_map(one).collect()
}

fn intervals<A: Axis>(compared: &[Compared<A>], seed: u64) -> Vec<Ratios<A>> {
    let series: Vec<Vec<Option<f64>>> = compared.iter().flat_map(|one| one.series.clone()).collect();
    let mut found = paired(&series, ALPHA, seed).into_iter();
    compared.iter().map(|one| (one.key, found.by_ref().take(one.series.len()).collect())).collect()
}

fn means<A: Axis>(counted: &[Compared<A>], subjects: &[String], repetitions: u32, seed: u64) -> Vec<Mean<A>> {
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
    let ratios = intervals(&compared, seed);
    let each = compared.into_iter().zip(counts).zip(ratios);
    each.map(|((one, programs), ratios)| Mean { subject: one.subject, programs, ratios }).collect()
}

/// What a chart of ratios over an axis shows.
pub struct Lines<'a> {
    /// Title.
    pub title: String,
    /// Caption.
    pub caption: String,
    /// Titles of the axes.
    pub axes: [String; 2],
    /// The places.
    pub places: Vec<String>,
    /// Index of the one that all others are compared with.
    pub base: usize,
    /// A line each.
    pub names: Vec<&'a str>,
    /// Whether lines have their intervals as bands.
    pub banded: bool,
}

/// The chart; `of` gives the ratio of a line at a place, both by index.
pub fn lines(shown: Lines, of: &dyn Fn(usize, usize) -> Option<Interval>) -> Item {
    let series = shown.names.iter().enumerate().map(|(name, text)| {
        let mut line = Series { name: (*text).into(), ..Series::default() };
        for place in 0..shown.places.len() {
            let (ratio, ends) = match of(name, place) {
                _ if place == shown.base => (1.0, (1.0, 1.0)),
                Some(interval) => (interval.ratio, (interval.low, interval.high)),
                None => continue,
            };
            line.points.push((place as f64, ratio));
            if shown.banded {
                line.band.push(ends);
            }
        }
        line
    });
    let series = series.collect();
    let [x, y] = shown.axes;
    Item::Chart(Chart {
        title: shown.title,
        caption: shown.caption,
        form: Form::Lines,
        x: ChartAxis { title: x, names: shown.places, ..ChartAxis::default() },
        y: ChartAxis { title: y, ..ChartAxis::default() },
        series,
    })
}
