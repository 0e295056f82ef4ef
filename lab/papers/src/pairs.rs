//! The cells of a quantity, and which are compared with which.

use std::collections::{BTreeMap, BTreeSet};

use super::definition::{Quantity, Side, Step, Study};
use super::effect::Missing;
use super::figures::Figures;
use super::variant::numbered;
use heaptoll_experiment::facts::{ALONE, AT_ONCE};
use heaptoll_facts::Value;

/// A measured value with its program, manager and metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CellRef<'a> {
    /// With its variant.
    pub program: &'a str,
    /// Stack.
    pub manager: &'a str,
    /// Metric.
    pub metric: &'a str,
    /// What was measured.
    pub value: &'a Value,
    /// The same of runs alone, where runs at once with others gave the value.
    pub alone: Option<&'a Value>,
}

/// A cell, or one over another.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Compared<'a> {
    /// Numerator, or the figure itself.
    pub of: CellRef<'a>,
    /// Denominator.
    pub over: Option<CellRef<'a>>,
    /// The program without the variant of a side: what comparisons are of.
    pub program: String,
    /// Place, of metrics that have many.
    pub at: Option<f64>,
    /// `at`, in words.
    pub place: String,
}

impl Compared<'_> {
    /// The denominator's program where it is another program altogether, and no variant of the numerator's.
    fn other(&self) -> Option<&str> {
        let over = self.over.as_ref()?;
        let variant = |text: &str| text.is_empty() || text.starts_with(':');
        let same = over.program.strip_prefix(self.program.as_str()).is_some_and(variant);
        (!same && over.program != self.of.program).then_some(over.program)
    }

    /// Managers (and what else the two sides differ in), without the program: `bw16 over kingsley`.
    pub fn sides(&self) -> String {
        let variant = |place: &CellRef<'_>| {
            let text = place.program.strip_prefix(self.program.as_str()).unwrap_or(place.program);
            text.trim_start_matches(':').to_owned()
        };
        let Some(over) = &self.over else {
            let variant = variant(&self.of);
            return if variant.is_empty() {
                self.of.manager.into()
            } else {
                format!("{variant} under {}", self.of.manager)
            };
        };
        if over.program == self.of.program && over.metric == self.of.metric {
            return format!("{} over {}", self.of.manager, over.manager);
        }
        let name = |place: &CellRef<'_>| {
            let mut parts = Vec::new();
            if over.program != self.of.program {
                let variant = variant(place);
                parts.push(if variant.is_empty() { "plain".into() } else { variant });
            }
            if over.metric != self.of.metric {
                parts.push(place.metric.to_owned());
            }
            if over.manager != self.of.manager {
                parts.push(format!("under {}", place.manager));
            }
            parts.join(" ")
        };
        if let Some(other) = self.other() {
            let under = if over.manager == self.of.manager {
                format!("under {}", over.manager)
            } else {
                format!("{} over {}", self.of.manager, over.manager)
            };
            return format!("over {other}, {under}");
        }
        let same =
            if over.manager == self.of.manager { format!(" under {}", over.manager) } else { String::new() };
        format!("{} over {}{same}", name(&self.of), name(over))
    }

    /// Sides, program and place: `bw16 over kingsley on gawk at 2M`, `ld over cfrac, under bw16`.
    pub fn label(&self) -> String {
        let place = if self.place.is_empty() { String::new() } else { format!(" {}", self.place) };
        match self.other() {
            Some(_) => format!("{} {}{place}", self.of.program, self.sides()),
            None => format!("{} on {}{place}", self.sides(), self.program),
        }
    }
}

/// What a quantity is of.
pub(super) struct Resolved<'a> {
    /// Its step.
    pub step: &'a Step,
    /// The cells.
    pub compared: Vec<Compared<'a>>,
    /// The programs that it requests.
    pub requested: Vec<String>,
}

/// What a quantity requests and no figure provides.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Without {
    /// Programs that have nothing to compare.
    pub programs: Vec<String>,
    /// Managers likewise.
    pub managers: Vec<String>,
    /// Single comparisons between what else is there: `bw16 over kingsley on gawk`.
    pub cells: Vec<String>,
    /// Places that were named.
    pub places: Vec<String>,
}

impl Without {
    /// All of it as text; a few of the single comparisons stand for many.
    pub fn labels(&self) -> Vec<String> {
        const FEW: usize = 4;
        let few = if self.cells.len() > FEW { FEW - 1 } else { self.cells.len() };
        let mut words: Vec<String> = self
            .programs
            .iter()
            .chain(&self.managers)
            .chain(&self.places)
            .chain(&self.cells[..few])
            .cloned()
            .collect();
        if few < self.cells.len() {
            words.push(heaptoll_units::plural(self.cells.len() - few, "more comparison"));
        }
        words
    }
}

type By<'a, T> = BTreeMap<&'a str, T>;
/// By metric, program and manager.
type Cells<'a> = By<'a, By<'a, By<'a, Places<'a>>>>;
/// A cell's values by place.
type Places<'a> = Vec<(Option<f64>, CellRef<'a>)>;

/// A step's cells by metric, program and manager.
pub(super) struct Index<'a> {
    cells: Cells<'a>,
    /// In the order of the step, then as they were measured.
    pub programs: Vec<&'a str>,
    /// Likewise.
    pub managers: Vec<&'a str>,
}

impl<'a> Index<'a> {
    pub fn of(step: &Step, figures: &'a Figures) -> Index<'a> {
        let mut cells: Cells<'a> = BTreeMap::new();
        let (mut programs, mut managers) = (Vec::new(), Vec::new());
        let (mut seen_programs, mut seen_managers) = (BTreeSet::new(), BTreeSet::new());
        let of_step = || figures.cells.iter().filter(|cell| cell.step == step.id);
        let alone: BTreeMap<(&str, &str), &Value> = of_step()
            .filter(|cell| cell.metric == ALONE)
            .map(|cell| ((cell.program.as_str(), cell.manager.as_str()), &cell.value))
            .collect();
        for cell in of_step() {
            let (metric, program, manager) =
                (cell.metric.as_str(), cell.program.as_str(), cell.manager.as_str());
            let alone = alone.get(&(program, manager)).copied().filter(|_| metric == AT_ONCE);
            let place = CellRef { program, manager, metric, value: &cell.value, alone };
            let of_metric = cells.entry(metric).or_default().entry(program).or_default();
            of_metric.entry(manager).or_default().push((cell.at, place));
            if seen_programs.insert(program) {
                programs.push(program);
            }
            if seen_managers.insert(manager) {
                managers.push(manager);
            }
        }
        let place = |list: &[String], name: &str| list.iter().position(|of| of == name).unwrap_or(usize::MAX);
        programs.sort_by_key(|name| place(&step.programs, name));
        managers.sort_by_key(|name| place(&step.managers, name));
        Index { cells, programs, managers }
    }

    /// A cell's values, by place.
    pub fn places(&self, metric: &str, program: &str, manager: &str) -> &[(Option<f64>, CellRef<'a>)] {
        let found = self.cells.get(metric).and_then(|of| of.get(program)).and_then(|of| of.get(manager));
        found.map_or(&[], Vec::as_slice)
    }
}

/// Whether two places are one; a metric without places goes with every one.
pub(super) fn same_place(a: Option<f64>, b: Option<f64>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * a.abs().max(b.abs()),
        _ => true,
    }
}

/// The program of a side.
pub(super) fn of_side(base: &str, side: &Side) -> String {
    match (&side.program, &side.variant) {
        (Some(program), Some(variant)) => format!("{program}:{variant}"),
        (Some(program), None) => program.clone(),
        (None, Some(variant)) => format!("{base}:{variant}"),
        (None, None) => base.into(),
    }
}

/// The programs that a quantity is of, without the variants of its sides, out of those `known`.
fn bases(quantity: &Quantity, known: &[&str]) -> Vec<String> {
    if !quantity.programs.is_empty() {
        // `churn` is all of `churn:1`, `churn:2` ...
        let numbered = |base: &str| -> Vec<String> {
            let is = |name: &&&str| numbered(name).is_some_and(|(of, _)| of == base);
            known.iter().filter(is).map(|name| name.to_string()).collect()
        };
        let of = |base: &String| match numbered(base) {
            all if all.is_empty() || known.contains(&base.as_str()) => vec![base.clone()],
            all => all,
        };
        return quantity.programs.iter().flat_map(of).collect();
    }
    let sides = std::iter::once(&quantity.of).chain(&quantity.over);
    let Some(free) = sides.clone().find(|side| side.program.is_none()) else {
        return vec![quantity.of.program.clone().unwrap_or_default()];
    };
    let base = |program: &&str| match &free.variant {
        None => Some(program.to_string()),
        Some(variant) => program.strip_suffix(variant.as_str())?.strip_suffix(':').map(str::to_owned),
    };
    known.iter().filter_map(base).collect()
}

/// The programs of the step that a quantity requests: those that it names, or all that have both sides.
pub(super) fn requested(quantity: &Quantity, step: &Step) -> Vec<String> {
    let known: Vec<&str> = step.programs.iter().map(String::as_str).collect();
    let named = !quantity.programs.is_empty();
    let has = |base: &str, side: &Side| named || known.contains(&of_side(base, side).as_str());
    let mut requested = bases(quantity, &known);
    requested.retain(|base| {
        let over = quantity.over.as_ref();
        let alone =
            |over: &Side| over.program.is_some() && of_side(base, over) == of_side(base, &quantity.of);
        has(base, &quantity.of) && over.is_none_or(|over| has(base, over) && !alone(over))
    });
    requested
}

/// The cells of a quantity.
pub(super) fn resolve<'a>(
    quantity: &Quantity,
    study: &'a Study,
    figures: &'a Figures,
) -> Result<Resolved<'a>, Missing> {
    let Some(step) = study.step(&quantity.step) else {
        return Err(Missing(format!("the study has no step {}", quantity.step)));
    };
    let index = Index::of(step, figures);
    if index.programs.is_empty() {
        return Err(Missing(format!("step {} gave no figures", step.id)));
    }
    let metric = |side: &Side| side.metric.clone().unwrap_or_else(|| quantity.metric.clone());
    let numerators: Vec<String> = match quantity.of.managers.as_slice() {
        [] => index.managers.iter().map(|name| name.to_string()).collect(),
        named => named.to_vec(),
    };
    let mut compared = Vec::new();
    for base in bases(quantity, &index.programs) {
        for manager in &numerators {
            let program = of_side(&base, &quantity.of);
            let numerator = index.places(&metric(&quantity.of), &program, manager);
            let numerator = numerator.iter().copied().filter(|(at, _)| {
                quantity.at.is_empty()
                    || quantity.at.iter().any(|requested| same_place(*at, Some(*requested)))
            });
            for (at, of) in numerator {
                let mut push = |over: Option<CellRef<'a>>, at: Option<f64>| {
                    let place =
                        at.map(|at| step.kind.command().place(&quantity.metric, at)).unwrap_or_default();
                    compared.push(Compared { of, over, program: base.clone(), at, place });
                };
                let Some(over) = &quantity.over else {
                    push(None, at);
                    continue;
                };
                let denominators: &[String] = match over.managers.as_slice() {
                    [] => std::slice::from_ref(manager),
                    named => named,
                };
                for other in denominators {
                    let (metric, program) = (metric(over), of_side(&base, over));
                    for (place, over) in index.places(&metric, &program, other).iter().copied() {
                        let itself = over.program == of.program
                            && over.manager == of.manager
                            && over.metric == of.metric;
                        if !itself && same_place(at, place) {
                            push(Some(over), at.or(place));
                        }
                    }
                }
            }
        }
    }
    if compared.is_empty() {
        let of = match quantity.programs.as_slice() {
            [] => String::new(),
            programs => format!(" of {}", heaptoll_units::and_list(programs)),
        };
        let under = heaptoll_units::and_list(&numerators);
        let metric = metric(&quantity.of);
        return Err(Missing(format!(
            "step {} has no {metric}{of} to compare under {under} in this form",
            step.id
        )));
    }
    Ok(Resolved { step, compared, requested: requested(quantity, step) })
}

/// What is requested and not in `found`, the comparisons that have a value.
pub(super) fn without(
    quantity: &Quantity,
    step: &Step,
    requested: &[String],
    found: &[&Compared<'_>],
) -> Without {
    let none = |is: &dyn Fn(&Compared<'_>) -> bool| !found.iter().any(|one| is(one));
    let programs: Vec<String> =
        requested.iter().filter(|name| none(&|one| one.program == **name)).cloned().collect();
    let denominators = quantity.over.as_ref().map_or(&[][..], |over| over.managers.as_slice());
    // Where none is named it is every one of the step; what others are compared with needs no comparison of its own.
    let numerators: Vec<&String> = match quantity.of.managers.as_slice() {
        [] => step.managers.iter().filter(|name| !denominators.contains(name)).collect(),
        named => named.iter().collect(),
    };
    let mut managers: Vec<String> =
        numerators.into_iter().filter(|name| none(&|one| one.of.manager == **name)).cloned().collect();
    // One that is a numerator as well is not missing for having no denominator of its own.
    let either = |one: &Compared<'_>, name: &str| {
        one.of.manager == name || one.over.is_some_and(|over| over.manager == name)
    };
    for name in denominators {
        if none(&|one| either(one, name)) && !managers.contains(name) {
            managers.push(name.clone());
        }
    }
    let places = quantity
        .at
        .iter()
        .filter(|requested| none(&|one| same_place(one.at, Some(**requested))))
        .map(|requested| step.kind.command().place(&quantity.metric, *requested))
        .collect();
    // Each program that is there is expected under each pair of managers that is there (at each place that is named).
    let key = |one: &Compared<'_>| {
        let place = if quantity.at.is_empty() { String::new() } else { one.place.clone() };
        (one.of.manager.to_owned(), one.over.map(|over| over.manager.to_owned()), place)
    };
    let mut keys = Vec::new();
    let mut have = BTreeSet::new();
    for one in found {
        let key = key(one);
        have.insert((one.program.as_str(), key.clone()));
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let mut cells = Vec::new();
    for program in requested.iter().filter(|name| !programs.contains(name)) {
        for key in keys.iter().filter(|key| !have.contains(&(program.as_str(), (*key).clone()))) {
            let (of, over, place) = key;
            let sides = match over {
                Some(over) if over != of => format!("{of} over {over} on {program}"),
                _ => format!("{program} under {of}"),
            };
            cells.push(if place.is_empty() { sides } else { format!("{sides} {place}") });
        }
    }
    Without { programs, managers, cells, places }
}
