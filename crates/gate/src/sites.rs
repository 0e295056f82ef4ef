//! Which call sites request the additional bytes, and which hold them: two recordings with call stacks, joined site by
//! site.
//!
//! A site is the functions of the program's own code from the allocation outward, without lines and folders. Sites that
//! are not the same as a whole are joined by their innermost functions, without the arguments of templates, where only one
//! of each build has these; what is still left is of one build only.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use heaptoll_callsites::{Paths, object_name};
use heaptoll_profiles::{Frame, Measure};
use heaptoll_report::format::{plural, printable};
use heaptoll_units::{and_list, whole_bytes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::differences::{Amounts, Differences, Part};
use super::estimates::{Estimated, Figure as Estimate, Reach};
pub use super::site_sums::Lack;
use super::site_sums::{self, SiteSums, Sums};
use super::stack_pair::{PairBuilder, StackPair};
use heaptoll_command::failure::Failure;

/// At most this many innermost functions join sites that are not the same as a whole.
const INNERMOST: usize = 32;
/// Functions that the name of a site shows at least.
const SHOWN: usize = 3;
/// Functions that it shows at most, where fewer are also those of another site.
const DEEPEST: usize = 12;
/// Sites of one build above which they are merged by their innermost functions: functions that call each other in any
/// order, as those of a parser or an interpreter, make a site of each order, and what one of them adds is split over all.
const MANY: usize = 1000;
/// This many sites a function are not many: a large program that calls its functions in one order has about one.
const EACH_FUNCTION: usize = 2;

/// The name of a stack without functions.
const NOT_RECORDED: &str = "(call stack not recorded)";

/// What the call sites of two recordings differ by.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SiteDifferences {
    /// Bytes that calls requested; of a resize the whole new size, at the site of the resize.
    pub bytes: Differences,
    /// Calls of allocations and of resizes.
    pub calls: Differences,
    /// Bytes alive when the program had most bytes alive.
    pub live: Differences,
    /// Bytes never freed.
    pub exit: Differences,
    /// Different call stacks of the base, before those of the same functions were merged.
    pub base_stacks: u64,
    /// Those of the new build.
    pub new_stacks: u64,
    /// The call stacks of all sites, with the values of both; for the page.
    #[serde(skip)]
    pub stacks: Option<StackPair>,
    /// How many call sites cannot be joined, since their code has no symbols and lies at other addresses, and what they
    /// have; none where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unjoined: Option<String>,
    /// What makes the sums incomplete.
    pub warnings: Vec<String>,
    /// Whether something of a recording is damaged or missing.
    #[serde(skip)]
    pub are_damaged: bool,
    /// Figures that are not compared, since a side is another tool's profile and has them not; they are 0 above.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_compared: Vec<Lack>,
}

/// The differences between two recordings with call stacks. Each is the traces of its process images, whose sums are
/// added up.
///
/// # Errors
/// One is no trace, has no call stacks, cannot be read, or needs more memory.
pub fn differences(base: &[PathBuf], new: &[PathBuf]) -> Result<SiteDifferences, Failure> {
    differences_until((base, u64::MAX), (new, u64::MAX))
}

/// The differences between two recordings, each as if it had ended at a time: ns from the beginning of each trace.
///
/// # Errors
/// See [`differences`].
pub fn differences_until(
    base: (&[PathBuf], u64),
    new: (&[PathBuf], u64),
) -> Result<SiteDifferences, Failure> {
    let mut paths = Paths::of_one_build(one_build(base.0, new.0)?);
    let mut side = |(traces, until_ns): (&[PathBuf], u64)| {
        let mut sums = SiteSums::default();
        traces.iter().try_for_each(|trace| sums.add(trace, until_ns, &mut paths))?;
        paths.next_build();
        Ok::<_, Failure>(sums)
    };
    let (base, new) = (side(base)?, side(new)?);
    let mut warnings = base.warnings;
    warnings.extend(new.warnings);
    let depth = depth(&[&base.rows, &new.rows]);
    warnings.extend(depth.map(|depth| {
        let most = many(&base.rows).max(many(&new.rows));
        format!(
            "more than {most} call sites in a build: those with the same {depth} innermost functions are \
             merged"
        )
    }));
    let not_compared: Vec<Lack> = base.lacks.union(&new.lacks).copied().collect();
    // A flame graph adds sites up by itself, from the outermost function.
    let names = paths.names();
    let (whole, _) = join(base.rows.clone(), new.rows.clone(), &paths);
    let stacks = stacks(&whole, &paths, &names, &not_compared);
    let innermost = |rows| merged(rows, depth.unwrap_or(usize::MAX));
    let (joined, unjoined) = join(innermost(base.rows), innermost(new.rows), &paths);
    let shown = shown(&joined);
    let means = [base.mean_bytes, new.mean_bytes];
    let of = |lack, figure: Estimate| match not_compared.contains(&lack) {
        true => Differences::default(),
        false => split(&joined, &shown, &names, figure, means),
    };
    let counted = |value: fn(&Sums) -> u64, variance: fn(&Sums) -> f64| Estimate {
        value,
        variance,
        counts_objects: false,
    };
    Ok(SiteDifferences {
        bytes: of(Lack::Bytes, counted(|sums| sums.bytes, |sums| sums.variance.bytes)),
        calls: of(
            Lack::Calls,
            Estimate { counts_objects: true, ..counted(|sums| sums.calls, |sums| sums.variance.calls) },
        ),
        // No profile has them.
        live: of(Lack::Live, counted(|sums| sums.live, |_| 0.0)),
        exit: of(Lack::Exit, counted(|sums| sums.exit, |sums| sums.variance.exit)),
        base_stacks: base.stacks,
        new_stacks: new.stacks,
        stacks: (not_compared.len() < 4).then_some(stacks),
        unjoined: unjoined.in_words(&not_compared),
        warnings,
        are_damaged: base.are_damaged || new.are_damaged,
        not_compared,
    })
}

/// A figure: how its lack is named, the measure it is in a profile, and its value.
type Figure = (Lack, Measure, fn(&Sums) -> u64);

/// The whole stacks of the program's own functions. Sites that were joined have the functions of the new build.
fn stacks(sites: &[Site], paths: &Paths, names: &[String], not_compared: &[Lack]) -> StackPair {
    let figures: [Figure; 4] = [
        (Lack::Live, Measure::PeakBytes, |sums| sums.live),
        (Lack::Exit, Measure::EndBytes, |sums| sums.exit),
        (Lack::Bytes, Measure::RequestedBytes, |sums| sums.bytes),
        (Lack::Calls, Measure::Calls, |sums| sums.calls),
    ];
    let compared: Vec<_> = figures.into_iter().filter(|(lack, ..)| !not_compared.contains(lack)).collect();
    let values = |sums: &Sums| compared.iter().map(|(.., of)| of(sums)).collect::<Vec<u64>>();
    let (none, mut pair) =
        (Sums::default(), PairBuilder::new(compared.iter().map(|(_, measure, _)| *measure).collect()));
    for site in sites {
        let (base, new) = match site {
            Site::Same(_, base, new) | Site::Alike(_, _, _, base, new) => (base, new),
            Site::Base(_, base) => (base, &none),
            Site::New(_, new) => (&none, new),
        };
        let frame = |&number: &u32| Frame {
            function: names[number as usize].clone(),
            file: paths.file(number).to_owned(),
            ..Frame::default()
        };
        let mut stack: Vec<Frame> = site.path().iter().map(frame).collect();
        if stack.is_empty() {
            stack.push(Frame { function: NOT_RECORDED.into(), ..Frame::default() });
        }
        pair.add(&stack, &values(base), &values(new));
    }
    pair.finish()
}

/// File names of executables and libraries that are the same build in both recordings, by the addresses of their code
/// without symbols: of two builds these differ. A library that one recording
/// alone has needs not be joined; an executable may have another name.
fn one_build(base: &[PathBuf], new: &[PathBuf]) -> Result<Vec<String>, Failure> {
    let addresses = |traces: &[PathBuf]| {
        let mut all: HashMap<String, HashSet<u64>> = HashMap::new();
        for trace in traces {
            site_sums::frames(trace, &mut |frame| {
                let addresses = all.entry(object_name(frame.object).to_owned()).or_default();
                addresses.extend(frame.function.is_empty().then_some(frame.offset));
            })?;
        }
        Ok::<_, Failure>(all)
    };
    let (base, new) = (addresses(base)?, addresses(new)?);
    let is_same = |file: &&String| {
        let (Some(base), Some(new)) = (base.get(*file), new.get(*file)) else {
            return file.contains(".so");
        };
        let common = base.intersection(new).count();
        (base.is_empty() && new.is_empty()) || (common > 0 && common * 10 >= base.len().min(new.len()) * 9)
    };
    Ok(base.keys().chain(new.keys()).filter(is_same).cloned().collect())
}

/// Functions by number, from the allocation outward.
type Path = Box<[u32]>;

/// How many sites of a build are too many to be distinguished by all their functions.
fn many(rows: &HashMap<Path, Sums>) -> usize {
    let functions = rows.keys().flat_map(|path| path.iter()).collect::<HashSet<_>>().len();
    MANY.max(EACH_FUNCTION * functions)
}

/// The most innermost functions that leave the sites of each build not too [`many`]; `None` where they are as they are.
fn depth(builds: &[&HashMap<Path, Sums>]) -> Option<usize> {
    let limits: Vec<usize> = builds.iter().map(|rows| many(rows)).collect();
    let is_few = |depth: usize| {
        let distinct = |rows: &HashMap<Path, Sums>| {
            rows.keys().map(|path| &path[..path.len().min(depth)]).collect::<HashSet<_>>().len()
        };
        builds.iter().zip(&limits).all(|(rows, limit)| distinct(rows) <= *limit)
    };
    (!is_few(usize::MAX)).then(|| (2..=INNERMOST).rev().find(|depth| is_few(*depth)).unwrap_or(1))
}

/// The sites with the same innermost functions as one.
fn merged(rows: HashMap<Path, Sums>, depth: usize) -> HashMap<Path, Sums> {
    let mut all: HashMap<Path, Sums> = HashMap::with_capacity(rows.len().min(MANY));
    for (path, sums) in rows {
        all.entry(path[..path.len().min(depth)].into()).or_default().add(sums);
    }
    all
}

/// A site of one build or of both.
#[derive(Debug, PartialEq)]
enum Site {
    /// The same in both.
    Same(Path, Sums, Sums),
    /// The same in this number of innermost functions: of the base, of the new build.
    Alike(usize, Path, Path, Sums, Sums),
    Base(Path, Sums),
    New(Path, Sums),
}

impl Site {
    /// Its functions in the new build; in the base where only that has it.
    fn path(&self) -> &Path {
        match self {
            Site::Same(path, ..) | Site::Alike(_, _, path, ..) | Site::Base(path, _) | Site::New(path, _) => {
                path
            }
        }
    }
}

/// Joins the sites of two builds. Returns also what is left of those with code without symbols, which may be any.
fn join(base: HashMap<Path, Sums>, mut new: HashMap<Path, Sums>, paths: &Paths) -> (Vec<Site>, Unjoined) {
    let mut sites = Vec::new();
    let mut left = HashMap::new();
    for (path, before) in base {
        match new.remove(&path) {
            Some(after) => sites.push(Site::Same(path, before, after)),
            None => {
                left.insert(path, before);
            }
        }
    }
    let longest = |sites: &HashMap<Path, Sums>| sites.keys().map(|path| path.len()).max().unwrap_or(0);
    let deepest = longest(&left).min(longest(&new)).min(INNERMOST);
    let templates = |sites: &HashMap<Path, Sums>| -> Templates {
        sites.keys().map(|path| (path.clone(), paths.templates(path))).collect()
    };
    let (of_base, of_new) = (templates(&left), templates(&new));
    for length in (1..=deepest).rev() {
        for (before, after) in alone((&left, &of_base), (&new, &of_new), length) {
            // One function without a symbol may be any other.
            if paths.of_this_build(&before) < length
                && let (Some(base), Some(new)) = (left.remove(&before), new.remove(&after))
            {
                sites.push(Site::Alike(length, before, after, base, new));
            }
        }
    }
    let mut unjoined = Unjoined::default();
    let mut of_any = |(side, sites): (usize, HashMap<Path, Sums>)| {
        let mut all: HashMap<Path, Sums> = HashMap::new();
        for (path, sums) in sites {
            // Each once, as in all paths.
            let mut seen = HashSet::new();
            let any_build: Path =
                paths.any_build(&path).into_iter().filter(|&one| seen.insert(one)).collect();
            if any_build != path {
                unjoined.add(side, sums);
            }
            let is_unknown = paths.of_this_build(&path) == path.len();
            all.entry(if is_unknown { path } else { any_build }).or_default().add(sums);
        }
        all
    };
    let (left, mut new) = (of_any((0, left)), of_any((1, new)));
    for (path, before) in left {
        sites.push(match new.remove(&path) {
            Some(after) => Site::Same(path, before, after),
            None => Site::Base(path, before),
        });
    }
    sites.extend(new.into_iter().map(|(path, sums)| Site::New(path, sums)));
    (sites, unjoined)
}

/// Sites of each build that cannot be told apart from others, or found in the other build.
#[derive(Debug, Default)]
struct Unjoined {
    sites: [usize; 2],
    sums: [Sums; 2],
}

impl Unjoined {
    fn add(&mut self, side: usize, sums: Sums) {
        self.sites[side] += 1;
        self.sums[side].add(sums);
    }

    /// A sentence, where there are any.
    fn in_words(&self, not_compared: &[Lack]) -> Option<String> {
        let (of, what): (fn(&Sums) -> u64, _) = match not_compared.contains(&Lack::Bytes) {
            false => (|sums| sums.bytes, "allocated"),
            true => (|sums| sums.exit, "live at the end"),
        };
        let sides = ["first", "second"].into_iter().zip(self.sites).zip(&self.sums);
        let sides = sides.filter(|((_, sites), _)| *sites > 0).map(|((side, sites), sums)| {
            format!("{} ({} {what}) of the {side}", plural(sites, "call site"), whole_bytes(of(sums)))
        });
        let sides: Vec<String> = sides.collect();
        (!sides.is_empty()).then(|| {
            format!(
                "Not joined: {}. Their code has no symbols and lies at other addresses (another build, or made at \
                 run time). Keep the symbols of both builds.",
                and_list(&sides)
            )
        })
    }
}

/// Sites without the arguments of templates.
type Templates = HashMap<Path, Path>;

/// The pairs of sites whose first functions no other site of their build has.
fn alone(
    base: (&HashMap<Path, Sums>, &Templates),
    new: (&HashMap<Path, Sums>, &Templates),
    length: usize,
) -> Vec<(Path, Path)> {
    let before = single(base, length);
    let after = single(new, length);
    let pairs = before.into_iter().filter_map(|(first, before)| {
        let after = after.get(first).copied().flatten()?;
        Some((before?.clone(), after.clone()))
    });
    pairs.collect()
}

/// By their first functions: the site that alone has them.
fn single<'a>(
    (sites, templates): (&'a HashMap<Path, Sums>, &'a Templates),
    length: usize,
) -> HashMap<&'a [u32], Option<&'a Path>> {
    let mut by_first: HashMap<&[u32], Option<&Path>> = HashMap::new();
    for path in sites.keys() {
        if let Some(first) = templates.get(path).and_then(|template| template.get(..length)) {
            by_first.entry(first).and_modify(|only| *only = None).or_insert(Some(path));
        }
    }
    by_first
}

/// By site, how many innermost functions no other site has, [`SHOWN`] at least.
fn shown(sites: &[Site]) -> HashMap<&Path, usize> {
    let mut all: Vec<&Path> = sites.iter().map(Site::path).collect();
    all.sort_unstable();
    let alike = |a: &Path, b: &Path| a.iter().zip(b.iter()).take_while(|(a, b)| a == b).count();
    let mut shown = HashMap::with_capacity(all.len());
    let mut before = 0;
    for (at, path) in all.iter().enumerate() {
        let after = all.get(at + 1).map_or(0, |next| alike(path, next));
        shown.insert(*path, (before.max(after) + 1).clamp(SHOWN, DEEPEST));
        before = after;
    }
    shown
}

/// The differences by one figure. Sites without any of it are left out.
fn split(
    sites: &[Site],
    shown: &HashMap<&Path, usize>,
    names: &[String],
    figure: Estimate,
    means: [Option<u64>; 2],
) -> Differences {
    let (none, value) = (Sums::default(), figure.value);
    let is_sampled = means.iter().any(Option::is_some);
    // Three figures of each call site, and of all together.
    let reach = Reach::of(3 * (sites.len() + 1));
    let interval = |base: &Sums, new: &Sums| {
        let sides = (figure.of(base, new, means[0], reach), figure.of(new, base, means[1], reach));
        is_sampled.then(|| Estimated::difference(sides.0, sides.1))
    };
    let mut totals = [none, none];
    let parts = sites.iter().filter_map(|site| {
        let (amounts, base, new) = match site {
            Site::Same(_, base, new) | Site::Alike(_, _, _, base, new) => {
                (Amounts::Both(value(base), value(new)), base, new)
            }
            Site::Base(_, base) => (Amounts::Base(value(base)), base, &none),
            Site::New(_, new) => (Amounts::New(value(new)), &none, new),
        };
        totals[0].add(*base);
        totals[1].add(*new);
        let is_none = matches!(amounts, Amounts::Both(0, 0) | Amounts::Base(0) | Amounts::New(0));
        let depth = shown.get(site.path()).copied().unwrap_or(SHOWN);
        let mut part = (!is_none).then(|| named(site.path(), depth, names))?;
        if let Site::Alike(length, before, ..) = site {
            part.base_name = named(before, depth, names).name;
            part.joined_by = Some(*length as u32);
        }
        Some((part, amounts, interval(base, new)))
    });
    let found = Differences::estimated(parts);
    Differences { interval: interval(&totals[0], &totals[1]), ..found }
}

fn named(path: &Path, shown: usize, names: &[String]) -> Part {
    let stack: Vec<String> = path.iter().map(|&number| printable(&names[number as usize])).collect();
    let name = match stack.is_empty() {
        true => NOT_RECORDED.to_owned(),
        false => stack[..stack.len().min(shown)].join(" < "),
    };
    Part { name, shown, stack, ..Part::default() }
}

#[cfg(test)]
#[path = "sites_tests.rs"]
mod tests;
