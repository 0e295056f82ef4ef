//! How many collections a collector made: a program in which it hardly collected shows nothing of what collecting costs.

use heaptoll_experiment::manager::ignores_frees;
use heaptoll_units::plural;

use super::definition::{Claim, Step, StepKind, Study};
use super::figures::{Cell, Figures};
use super::pairs::{CellRef, Compared};
use heaptoll_experiment::facts::{COLLECTIONS, HEAP_CPU_RATIO};
use heaptoll_facts::Value;

/// The fewest collections in a run that count, of a claim on what a collector costs.
const FEWEST: f64 = 10.0;
/// Likewise where the number of collections is what is varied or claimed.
const FEWEST_VARIED: f64 = 3.0;

/// Metrics that no number of collections makes void: of a heap as small as it may be, and of the program without its
/// collector.
const EXEMPT: [&str; 2] = [HEAP_CPU_RATIO, "program_instructions"];

/// The fewest collections of a collector in a run, in a numerator and in a denominator.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Fewest {
    of: f64,
    over: f64,
}

impl Fewest {
    /// Those that a claim needs. Where it varies their number the base may have none.
    pub fn of(claim: &Claim) -> Fewest {
        match claim.varies_collections {
            true => Fewest { of: FEWEST_VARIED, over: 0.0 },
            false => Fewest { of: FEWEST, over: FEWEST },
        }
    }
}

/// Whether a stack ignores frees, and reclaims by collections.
fn is_collector(stack: &str) -> bool {
    ignores_frees(stack) || stack.starts_with("jvm-")
}

/// Whether the collectors of a step collect when they decide to: other commands set when.
fn decides_itself(kind: StepKind) -> bool {
    matches!(kind, StepKind::Run | StepKind::Instructions | StepKind::Locality | StepKind::Ledger)
}

/// Comparisons, sorted.
pub(super) struct Sorted<'a> {
    /// With as many collections as are needed, or no collector.
    pub collected: Vec<Compared<'a>>,
    /// With fewer, or with a number that nobody counted.
    pub hardly: Vec<Compared<'a>>,
    /// Those, in words: `bw16 on cfrac (0 collections)`.
    pub words: Vec<String>,
}

/// The counts of collections in a study's figures.
pub(super) struct Collections<'a> {
    study: &'a Study,
    step: &'a Step,
    counts: Vec<&'a Cell>,
}

impl<'a> Collections<'a> {
    pub fn of(study: &'a Study, step: &'a Step, figures: &'a Figures) -> Collections<'a> {
        let counts = figures.cells.iter().filter(|cell| cell.metric == COLLECTIONS).collect();
        Collections { study, step, counts }
    }

    /// Sorts comparisons by whether a collector in them made fewer collections in a run.
    pub fn sort<'c>(&self, compared: Vec<Compared<'c>>, fewest: Fewest) -> Sorted<'c> {
        let mut sorted = Sorted { collected: Vec::new(), hardly: Vec::new(), words: Vec::new() };
        for one in compared {
            let over = one.over.as_ref().and_then(|over| self.too_few(over, fewest.over));
            match self.too_few(&one.of, fewest.of).or(over) {
                None => sorted.collected.push(one),
                Some(words) => {
                    sorted.hardly.push(one);
                    if !sorted.words.contains(&words) {
                        sorted.words.push(words);
                    }
                }
            }
        }
        sorted
    }

    fn too_few(&self, place: &CellRef<'_>, fewest: f64) -> Option<String> {
        let exempt = !decides_itself(self.step.kind) || EXEMPT.contains(&place.metric);
        if fewest == 0.0 || exempt || !is_collector(place.manager) {
            return None;
        }
        let collections = match self.made(place) {
            Some(made) if made >= fewest => return None,
            Some(made) => plural(made as usize, "collection"),
            None => "nobody counted its collections".into(),
        };
        Some(format!("{} on {} ({collections})", place.manager, place.program))
    }

    /// The fewest that were made in a run of the step, or where it does not count them, of another with the same inputs.
    fn made(&self, place: &CellRef<'_>) -> Option<f64> {
        let program = self.step.run_as(place.program);
        let of = |step: &Step| {
            let is = |cell: &&&Cell| {
                cell.step == step.id && cell.manager == place.manager && step.run_as(&cell.program) == program
            };
            self.counts.iter().filter(is).filter_map(|cell| least(&cell.value)).reduce(f64::min)
        };
        let others = self.study.steps.iter().filter(|other| other.size == self.step.size);
        of(self.step).or_else(|| others.filter_map(of).reduce(f64::min))
    }
}

/// The least of a value's samples.
fn least(value: &Value) -> Option<f64> {
    match value {
        Value::Samples(samples) => samples.iter().flatten().copied().reduce(f64::min),
        Value::Exact(value) | Value::Single(value) => Some(*value),
        Value::Estimate { .. } | Value::AtLeast(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use heaptoll_command::labelled::{self, Labelled};

    use super::super::bundled::all;
    use super::super::definition::Quantity;
    use super::super::effect::Effect;
    use super::super::figures::Absent;
    use super::super::results::Results;
    use super::super::stored;
    use super::super::testing::{cells, samples};
    use super::super::verdict::{Answer, judge};
    use super::*;

    /// A claim on `bw16` over a base on cfrac and gawk, timed in step `t` and counted in `c`; `more` is of the claim.
    fn study(more: &str, base: &str, step: &str, rule: &str, programs: &str) -> Study {
        let metric = if step == "t" { "cpu_s" } else { "per_malloc" };
        let steps =
            "programs = [\"cfrac\", \"gawk\"]\nmanagers = [\"bw16\", \"bw26\", \"treadmill\", \"glibc\"]";
        let text = format!(
            "name = \"made\"\ntitle = \"t\"\nsource = \"s\"\nabout = []\n[[step]]\nid = \"t\"\nkind = \"run\"\n{steps}\n\
             [[step]]\nid = \"c\"\nkind = \"instructions\"\n{steps}\n[[claim]]\nid = \"it\"\nplace = \"p\"\nwords = \"w\"\n\
             {more}\n[[claim.test]]\nwords = \"q\"\nrule = \"{rule}\"\nabove = 1.1\nquantity = {{ step = \"{step}\", metric = \
             \"{metric}\", {programs}of = {{ managers = [\"bw16\"] }}, over = {{ managers = [\"{base}\"] }} }}",
        );
        Study::parse(&text, "made.toml").expect("a study")
    }

    /// It costs less on cfrac, where it made so many collections, and more on gawk.
    fn figures(of_cfrac: f64, base: &str) -> Figures {
        let mut figures = Figures::default();
        for (program, ratio) in [("cfrac", 0.9), ("gawk", 1.5)] {
            let timed =
                [(program, "bw16", None, samples(ratio, 10, 1)), (program, base, None, samples(1.0, 10, 2))];
            figures.cells.extend(cells("t", "cpu_s", &timed).cells);
            let counted =
                [(program, "bw16", None, Value::Exact(ratio)), (program, base, None, Value::Exact(1.0))];
            figures.cells.extend(cells("c", "per_malloc", &counted).cells);
        }
        let made =
            |program, count: f64| (program, "bw16", None, Value::Samples(vec![Some(99.0), Some(count)]));
        let of_base = |program, count| (program, "bw26", None, Value::Exact(count));
        let of_runs =
            [made("cfrac", of_cfrac), made("gawk", 10.0), of_base("cfrac", 0.0), of_base("gawk", 20.0)];
        figures.cells.extend(cells("t", COLLECTIONS, &of_runs).cells);
        figures
    }

    fn verdict(more: &str, of_cfrac: f64, base: &str, step: &str) -> (Answer, String) {
        let study = study(more, base, step, "all", "");
        let verdict = judge(&study, &study.claims[0], &figures(of_cfrac, base), &Absent::default());
        (verdict.answer, verdict.reason)
    }

    /// Six tests passed by programs in which nobody had counted.
    #[test]
    fn a_collector_whose_collections_were_not_counted_is_not_compared() {
        let (answer, reason) = verdict("", 10.0, "treadmill", "t");
        assert_eq!(answer, Answer::NotMeasured, "{reason}");
        assert!(reason.contains("treadmill on cfrac (nobody counted its collections)"), "{reason}");
    }

    /// Seven claims on what a collector costs were judged on a program in which it made no collection.
    #[test]
    fn a_collector_that_hardly_collected_is_not_compared_there() {
        let (answer, reason) = verdict("", 9.0, "glibc", "t");
        assert_eq!(answer, Answer::Holds, "{reason}");
        assert!(reason.contains("left out for too few collections: bw16 on cfrac (9"), "{reason}");
        assert_eq!(verdict("", 10.0, "glibc", "t").0, Answer::Fails, "ten are enough");
        assert_eq!(
            verdict("", 99.0, "bw26", "t").0,
            Answer::Holds,
            "a base that hardly collected is none either"
        );
        assert_eq!(
            verdict("", 9.0, "glibc", "c").0,
            Answer::Holds,
            "runs of another step with the same inputs show it"
        );
    }

    /// The run that is published, of all its parts.
    fn published() -> Results {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/published");
        let files =
            std::fs::read_dir(&folder).expect("the folder").map(|entry| entry.expect("a file").path());
        let texts =
            files.map(|file| (file.display().to_string(), stored::text(&file).expect("a whole file")));
        // The folder has experiments, too.
        let of_studies = texts.filter(|(_, text)| labelled::schema(text).as_deref() == Some(Results::SCHEMA));
        let mut parts: Vec<(String, Results)> =
            of_studies.map(|(file, text)| (file, labelled::read(&text).expect("stored results"))).collect();
        let first = parts.remove(0).1;
        Results::joined(first, parts).expect("parts of one run").judged_again(&all().expect("studies"))
    }

    /// Comparisons of claims on what a collector costs, which let it decide when it collects, and those that name a
    /// collector.
    fn compared(results: &Results) -> (usize, Vec<String>) {
        let (mut judged, mut of_collectors) = (0, Vec::new());
        for paper in &results.papers {
            let claims = paper.study.claims.iter().zip(&paper.verdicts);
            for (claim, verdict) in claims.filter(|(claim, _)| !claim.varies_collections) {
                for (test, tested) in claim.tests.iter().zip(&verdict.tests) {
                    let Quantity { step, metric, .. } = &test.quantity;
                    let decides = paper.study.step(step).is_some_and(|step| decides_itself(step.kind));
                    if !decides || EXEMPT.contains(&metric.as_str()) {
                        continue;
                    }
                    judged += tested.effects.len();
                    let of_one = |effect: &&Effect| effect.words.split([' ', ',']).any(is_collector);
                    let words = tested.effects.iter().filter(of_one).map(|effect| &effect.words);
                    of_collectors.extend(words.map(|words| format!("{}: {words}", claim.id)));
                }
            }
        }
        (judged, of_collectors)
    }

    /// Published figures, as they are and had each collector collected nine times in each run.
    #[test]
    fn no_collector_that_hardly_collected_enters_a_verdict_on_its_cost() {
        let mut run = published();
        let (_, before) = compared(&run);
        assert!(before.len() > 50, "{before:?}");
        for cell in run.figures.cells.iter_mut().filter(|cell| cell.metric == COLLECTIONS) {
            cell.fact.value = Value::Exact(9.0);
        }
        let (judged, after) = compared(&run.judged_again(&all().expect("studies")));
        assert!(after.is_empty() && judged > 100, "{judged}, {after:?}");
    }

    /// A claim on cfrac and gawk held by gawk alone.
    #[test]
    fn a_program_that_a_claim_names_leaves_it_open_where_its_collector_hardly_collected() {
        let named = |rule: &str| {
            let study = study("", "glibc", "t", rule, "programs = [\"cfrac\", \"gawk\"], ");
            judge(&study, &study.claims[0], &figures(9.0, "glibc"), &Absent::default())
        };
        for rule in ["all", "mean"] {
            assert_eq!(named(rule).answer, Answer::Undecided, "{rule}: {}", named(rule).reason);
        }
    }

    /// What the program itself executes is no cost of a collector.
    #[test]
    fn the_instructions_of_the_program_count_whatever_was_collected() {
        let counted = |metric: &str| {
            let place =
                CellRef { program: "cfrac", manager: "bw16", metric, value: &Value::Exact(1.0), alone: None };
            let (study, figures) = (study("", "glibc", "c", "all", ""), figures(0.0, "glibc"));
            let found = Collections::of(&study, &study.steps[1], &figures).too_few(&place, FEWEST);
            found.is_none()
        };
        assert!(counted("program_instructions") && !counted("instructions"));
    }

    #[test]
    fn where_the_number_of_collections_is_varied_three_are_enough_and_the_base_may_have_none() {
        let varied = "varies_collections = true";
        assert_eq!(verdict(varied, 2.0, "bw26", "t").0, Answer::Holds);
        assert_eq!(verdict(varied, 3.0, "bw26", "t").0, Answer::Fails, "cfrac counts");
    }

    #[test]
    fn collectors_are_known_by_the_facts_of_their_stack() {
        for stack in ["bw16", "tithe-collect,every=2M", "sweep,every=64K/mimalloc3", "jvm-serial,heap=64M"] {
            assert!(is_collector(stack), "{stack}");
        }
        for stack in ["glibc", "tithe", "bdw", "mmtk:immix", "a"] {
            assert!(!is_collector(stack), "{stack}");
        }
    }
}
