//! The sections of a gate's document that name where the additional instructions and bytes are.

use heaptoll_callsites::{FRAMES, short};
use heaptoll_profiles::Measure;
use heaptoll_report::document::{Columns, Item, Part as Fold, Section, Table};
use heaptoll_units::{and_list, number, percent, plural, whole_bytes};

use super::differences::{Added, Differences, Part, Unmatched};
use super::figures::{MetricFigures, Program};
use super::metric::Metric;
use super::sites::SiteDifferences;
use super::stack_pair::StackPair;

/// Rows of a table of parts that grew.
const GROWN: usize = 10;
/// Rows of the other tables.
const FEW: usize = 5;
/// Functions of a call stack that a row shows at most where fewer are not unique.
const DEEPEST: usize = 12;

/// The part of a metric's growth that a cause of it has at least.
const SUFFICIENT: f64 = 0.5;

/// How amounts are written.
type Text = fn(u64) -> String;

/// What is split: its words and its unit.
#[derive(Clone, Copy)]
struct Subject {
    /// After a figure with its unit: `instructions`, `never freed`.
    amounts: &'static str,
    /// `function`, `call site`.
    part: &'static str,
    text: Text,
    /// `fewer`, or `less` of bytes.
    fewer: &'static str,
    /// What a share is of.
    whole: &'static str,
}

const INSTRUCTIONS: Subject =
    Subject { amounts: "instructions", part: "function", text: number, fewer: "fewer", whole: DIFFERENCE };
const LIBRARY: Subject = Subject {
    amounts: "instructions of the libraries of C and C++",
    part: "caller",
    text: number,
    fewer: "fewer",
    whole: "what they execute more",
};
/// What flame graphs call both.
const BUILDS: [&str; 2] = ["the base", "the new build"];
/// The whole of a share.
const DIFFERENCE: &str = "the difference";
/// The beginnings of the file names of libraries whose instructions are split by their callers: the tracer's.
const LIBRARIES: [&str; 10] = [
    "libc.so",
    "libm.so",
    "libpthread.so",
    "ld-linux",
    "libstdc++.so",
    "libgcc_s.so",
    "libc-2.",
    "libm-2.",
    "libpthread-2.",
    "ld-2.",
];
const LIVE: Subject = of_sites("alive at the heap's largest point", whole_bytes, "less");
const EXIT: Subject = of_sites("never freed", whole_bytes, "less");
const BYTES: Subject = of_sites("requested", whole_bytes, "less");
const CALLS: Subject = of_sites("allocation calls", number, "fewer");

const fn of_sites(amounts: &'static str, text: Text, fewer: &'static str) -> Subject {
    Subject { amounts, part: "call site", text, fewer, whole: DIFFERENCE }
}

/// What is known of where a program's additional amounts are.
#[derive(Debug, Clone, Copy, Default)]
pub struct Causes<'a> {
    /// Instructions by function.
    pub functions: Option<&'a Differences>,
    /// Instructions of the libraries of C and C++ by caller.
    pub library: Option<&'a Differences>,
    /// All functions with both.
    pub function_stacks: Option<&'a StackPair>,
    /// Memory by call site.
    pub sites: Option<&'a SiteDifferences>,
}

impl<'a> From<&'a Program> for Causes<'a> {
    fn from(program: &'a Program) -> Causes<'a> {
        Causes {
            functions: program.functions.as_ref(),
            library: program.library.as_ref(),
            function_stacks: program.function_stacks.as_ref(),
            sites: program.sites.as_ref(),
        }
    }
}

/// The sections for what is known of a program: its functions, its call sites.
pub fn sections(causes: Causes<'_>) -> Vec<Section> {
    let Causes { functions, library, function_stacks, sites } = causes;
    let functions = functions.map(|found| {
        let mut part = INSTRUCTIONS.describe(found);
        let caller = caller(found, library);
        part.text
            .extend(caller.map(|caller| format!("Most additional library instructions are for {caller}.")));
        let library =
            library.filter(|library| library.difference != 0).map(|library| LIBRARY.describe(library));
        part.items.extend(library.map(Item::Part));
        part.items.extend(function_stacks.map(|stacks| function_flame(stacks, BUILDS)));
        Section { title: "Instructions by function".into(), text: part.text, items: part.items }
    });
    let sites = sites.map(|found| {
        let measures =
            [(LIVE, &found.live), (EXIT, &found.exit), (BYTES, &found.bytes), (CALLS, &found.calls)];
        let described = measures.map(|(subject, found)| Item::Part(subject.describe(found)));
        let warnings = (!found.warnings.is_empty()).then(|| Item::Warnings(found.warnings.clone()));
        let what =
            "A call site is the program's own functions from the allocation outward; recursion is folded.";
        Section {
            title: "Memory by call site".into(),
            text: found.unjoined.iter().cloned().chain([what.to_owned()]).collect(),
            items: warnings
                .into_iter()
                .chain(described)
                .chain(found.stacks.as_ref().map(|stacks| site_flame(stacks, BUILDS)))
                .collect(),
        }
    });
    functions.into_iter().chain(sites).collect()
}

/// What both builds execute, by object file and function; `names` are theirs.
pub(crate) fn function_flame(stacks: &StackPair, names: [&str; 2]) -> Item {
    stacks.flame(
        "What changed, function by function",
        "The first row shows the object files. Below each are its functions with what they executed \
         themselves. The second measure is what the libraries of C and C++ executed for a function; the \
         first measure counts this at the libraries' functions.",
        Measure::Instructions,
        names,
    )
}

/// What both builds hold and request, by the call stacks of the program's own functions; `names` are theirs.
pub fn site_flame(stacks: &StackPair, names: [&str; 2]) -> Item {
    stacks.flame(
        "What changed, call stack by call stack",
        "Call stacks have the program's own functions, each once, without lines, which differ between two \
         builds. If two that were joined have different names, the second's is shown.",
        stacks.new.measures().first().copied().unwrap_or(Measure::PeakBytes),
        names,
    )
}

/// The place of a metric's growth, where all additional amounts are large enough to be its cause: half of it at least.
/// Instructions stand for CPU time by their share, live bytes for resident ones.
pub fn cause(causes: &Causes, of: &MetricFigures) -> Option<String> {
    let (base, new) = (of.base?, of.new?);
    let share = |base: f64, new: f64| (new - base) / base;
    let is_enough = match of.metric {
        Metric::Cpu => causes
            .functions
            .is_some_and(|found| share(found.base as f64, found.new as f64) >= SUFFICIENT * share(base, new)),
        Metric::Resident => {
            causes.sites.is_some_and(|sites| sites.live.difference as f64 >= SUFFICIENT * (new - base))
        }
        _ => true,
    };
    is_enough.then(|| place(causes, of.metric)).flatten()
}

/// In a sentence, the function or call site that adds most to a metric, where one adds a tenth of it at least.
pub fn place(causes: &Causes, metric: Metric) -> Option<String> {
    let sites = causes.sites;
    let site = |subject: &Subject, of: fn(&SiteDifferences) -> &Differences| {
        let found = of(sites?);
        leads(found).then(|| subject.first(found)).flatten()
    };
    match metric {
        Metric::Instructions | Metric::Cpu => first_function(causes.functions?, causes.library),
        Metric::Live | Metric::Resident => site(&LIVE, |found| &found.live),
        Metric::Exit => site(&EXIT, |found| &found.exit),
        Metric::Bytes => site(&BYTES, |found| &found.bytes),
        Metric::Allocations => site(&CALLS, |found| &found.calls),
        _ => None,
    }
}

fn first_function(found: &Differences, library: Option<&Differences>) -> Option<String> {
    let first = leads(found).then(|| INSTRUCTIONS.first(found)).flatten()?;
    Some(match caller(found, library) {
        Some(caller) => format!("{first}; most for {caller}"),
        None => first,
    })
}

/// In a sentence, for which function the libraries of C and C++ execute most additional instructions, where a function
/// of theirs is the one that adds most.
fn caller(found: &Differences, library: Option<&Differences>) -> Option<String> {
    let is_library = |added: &Added| LIBRARIES.iter().any(|start| added.part.object.starts_with(start));
    (leads(found) && found.added().first().is_some_and(is_library)).then_some(())?;
    library.filter(|library| leads(library)).and_then(|library| LIBRARY.first(library))
}

impl Subject {
    fn first(&self, found: &Differences) -> Option<String> {
        let added = found.added();
        let first = added.first()?;
        let place =
            if first.part.object.is_empty() { String::new() } else { format!(" of {}", first.part.object) };
        let share = share_of(first.certain, found.difference);
        Some(format!(
            "{}{place}: {}{} more {}{}",
            name(first.part, FRAMES),
            if first.certain < first.more { "at least " } else { "" },
            (self.text)(first.certain),
            self.amounts_of(first.certain),
            share.map(|share| format!(", {share} of {}", self.whole)).unwrap_or_default(),
        ))
    }

    fn describe(&self, found: &Differences) -> Fold {
        let mut text = vec![self.total(found)];
        match self.first(found) {
            Some(first) if leads(found) => text.push(format!("The largest part is added by {first}.")),
            _ if is_of_one_build(found) => text.push(format!(
                "Most are in {}s that only the new build has; they may have had another name in the base \
                 (see below).",
                self.part
            )),
            _ => {}
        }
        let items = [self.grown(found), self.shrunk(found), self.unmatched(found)];
        let mut title = self.amounts.to_owned();
        title[..1].make_ascii_uppercase();
        Fold { title, text, items: items.into_iter().flatten().collect(), ..Fold::default() }
    }

    /// `allocation calls`; of one, `allocation call`.
    fn amounts_of(&self, amount: u64) -> &'static str {
        match amount {
            1 => self.amounts.strip_suffix('s').unwrap_or(self.amounts),
            _ => self.amounts,
        }
    }

    fn total(&self, found: &Differences) -> String {
        let amounts = self.amounts_of(found.base);
        let (base, new) = ((self.text)(found.base), (self.text)(found.new));
        match found.difference {
            0 if found.grown.is_empty() && found.only_new.parts == 0 => {
                format!("{base} {amounts} in both builds, the same in every {}.", self.part)
            }
            0 => format!("{base} {amounts} in both builds, but not in the same {}s.", self.part),
            by => {
                let more = if by > 0 { "more" } else { self.fewer };
                format!(
                    "{} {more} {}: {base} in the base, {new} in the new build.",
                    (self.text)(by.unsigned_abs()),
                    self.amounts_of(by.unsigned_abs())
                )
            }
        }
    }

    /// Parts by what they add for certain.
    fn grown(&self, found: &Differences) -> Option<Item> {
        let added = found.added();
        let shown = &added[..added.len().min(GROWN)];
        let table = self
            .table(shown, |added| added.part)
            .figure("base", |(added, _)| added.base.map(self.text))
            .figure("new", |(added, _)| (self.text)(added.new))
            .figure("more", |(added, _)| (self.text)(added.more))
            .figure("of the difference", |(added, _)| share_of(added.more, found.difference))
            .notes(self.varying(shown))
            .notes(self.rest(found, added.len().saturating_sub(GROWN)));
        table.if_any().map(Item::Table)
    }

    /// Which parts differ between two runs of the base, too.
    fn varying(&self, shown: &[Added]) -> Option<String> {
        let varying = shown.iter().filter(|added| added.base.is_some() && added.certain < added.more);
        let varying: Vec<String> = varying
            .map(|added| {
                format!("{} by {}", name(added.part, FRAMES), (self.text)(added.more - added.certain))
            })
            .collect();
        (!varying.is_empty()).then(|| format!("Two runs of the base also differ: {}.", and_list(&varying)))
    }

    /// What the table does not list.
    fn rest(&self, found: &Differences, more: usize) -> Vec<String> {
        let mut notes = Vec::new();
        if more > 0 {
            notes.push(format!("{} more that grow are in the JSON.", plural(more, self.part)));
        }
        let shrunk: i64 = found.shrunk.iter().map(|row| row.difference).sum();
        if shrunk != 0 {
            let text = self.signed(shrunk);
            notes.push(format!(
                "{}s that shrank are in the page: {text} together, so shares here can exceed 100 %.",
                self.part
            ));
        }
        if found.rest.parts > 0 {
            notes.push(format!(
                "The remaining {}: {} together.",
                plural(usize::try_from(found.rest.parts).unwrap_or(usize::MAX), self.part),
                self.signed(found.rest.difference)
            ));
        }
        notes
    }

    fn shrunk(&self, found: &Differences) -> Option<Item> {
        let shown = &found.shrunk[..found.shrunk.len().min(FEW)];
        let table = self
            .table(shown, |row| &row.part)
            .figure("base", |(row, _)| (self.text)(row.base))
            .figure("new", |(row, _)| (self.text)(row.new))
            .figure(self.fewer, |(row, _)| (self.text)(row.difference.unsigned_abs()));
        self.folded(format!("{}s that shrank", self.part), Vec::new(), table.if_any().into_iter())
    }

    /// Parts of one build only.
    fn unmatched(&self, found: &Differences) -> Option<Item> {
        let (base, new) = (&found.only_base, &found.only_new);
        if base.parts + new.parts == 0 {
            return None;
        }
        let count = |unmatched: &Unmatched| {
            let parts = plural(usize::try_from(unmatched.parts).unwrap_or(usize::MAX), self.part);
            format!("{parts} with {} {}", (self.text)(unmatched.amount), self.amounts_of(unmatched.amount))
        };
        let text = format!(
            "Only in the base: {}. Only in the new build: {}. These were removed or added, renamed, or inlined in one of \
             the two.",
            count(base),
            count(new)
        );
        let one = |caption: &str, unmatched: &Unmatched| {
            let shown = &unmatched.largest[..unmatched.largest.len().min(FEW)];
            let table = self.table(shown, |single| &single.part).caption(caption);
            table.figure(self.amounts, |(single, _)| (self.text)(single.amount)).if_any()
        };
        let tables = [one("only in the base", base), one("only in the new build", new)];
        let title = format!("{}s of one build only", self.part);
        let part = self.folded(title, vec![text], tables.into_iter().flatten());
        match part {
            Some(Item::Part(part)) if is_of_one_build(found) => {
                Some(Item::Part(Fold { folded: false, ..part }))
            }
            part => part,
        }
    }

    fn folded(&self, title: String, text: Vec<String>, tables: impl Iterator<Item = Table>) -> Option<Item> {
        let items: Vec<Item> = tables.map(Item::Table).collect();
        let mut title = title;
        title[..1].make_ascii_uppercase();
        (!items.is_empty() || !text.is_empty()).then(|| {
            Item::Part(Fold { title, text, items, folded: true, option: "--html".into(), ..Fold::default() })
        })
    }

    /// A table of what has parts, with their names.
    fn table<'a, R>(&self, all: &'a [R], part: impl Fn(&R) -> &Part) -> Columns<(&'a R, String)> {
        let has_objects = self.part == INSTRUCTIONS.part || self.part == LIBRARY.part;
        let names = names(all.iter().map(&part));
        Table::of(all.iter().zip(names))
            .sites(self.part, |(_, name)| name.clone())
            .when(has_objects, |table| table.text("in", |(of, _)| part(of).object.clone()))
    }

    fn signed(&self, amount: i64) -> String {
        let sign = if amount < 0 { "-" } else { "+" };
        if amount == 0 {
            "no difference".into()
        } else {
            format!("{sign}{}", (self.text)(amount.unsigned_abs()))
        }
    }
}

/// Whether the part that adds most adds enough to be named: the total grows, a tenth of it by this part.
fn leads(found: &Differences) -> bool {
    let first = found.added().first().map_or(0, |added| added.certain);
    u64::try_from(found.difference).is_ok_and(|grown| grown > 0 && first >= grown / 10)
}

/// Whether parts of one build only hide what grew: no other leads, and they add half of the growth at least.
fn is_of_one_build(found: &Differences) -> bool {
    let by = found.only_new.amount.saturating_sub(found.only_base.amount);
    u64::try_from(found.difference).is_ok_and(|grown| grown > 0 && by >= grown / 2) && !leads(found)
}

/// A part of a positive difference.
fn share_of(part: u64, difference: i64) -> Option<String> {
    (difference > 0).then(|| percent(part as f64 / difference as f64))
}

/// The names of a table's rows: functions by short names where these are unique, call stacks by as many functions as
/// make them so.
fn names<'a>(parts: impl Iterator<Item = &'a Part>) -> Vec<String> {
    let parts: Vec<&Part> = parts.collect();
    let named = |part: &&Part| {
        let is_alike =
            |other: &&&Part, depth| other.object == part.object && name(other, depth) == name(part, depth);
        let is_unique = |depth: &usize| parts.iter().filter(|other| is_alike(other, *depth)).count() == 1;
        let shown = name(part, (FRAMES..DEEPEST).find(is_unique).unwrap_or(DEEPEST));
        match part.base_name.as_str() {
            "" => shown,
            base => format!("{shown} (in the base {base})"),
        }
    };
    parts.iter().map(named).collect()
}

/// A name of a part, the longer the deeper.
fn name(part: &Part, depth: usize) -> String {
    match part.stack.is_empty() {
        true if depth < DEEPEST => short(&part.name),
        true => part.name.clone(),
        false => part.stack[..part.stack.len().min(depth.max(part.shown))].join(" < "),
    }
}

#[cfg(test)]
#[path = "diagnosis_tests.rs"]
mod tests;
