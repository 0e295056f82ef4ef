//! Which functions execute the additional instructions: two traced runs, joined function by function.
//!
//! Two builds of one source have different hashes in Rust's symbols, other folders, and other parts and variants that
//! the optimiser makes of a function. So functions are joined by their names as the source has them, within executables
//! and libraries of one file name; an executable that has another name in each build is joined where it is the only one.
//!
//! A change in the program often shows in `memcpy` or in malloc: so what the libraries of C and C++ execute is also split by
//! the function that called them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

use heaptoll_callsites::{function_name, short};
use heaptoll_profiles::{Frame, Measure};
use heaptoll_reftrace_host::FunctionCount;
use heaptoll_report::format::printable;

use super::differences::{Amounts, Differences, Part};
use super::stack_pair::{PairBuilder, StackPair};

/// The name of code that has no symbol.
const NO_SYMBOL: &str = "(no symbol)";
/// The name of code that no file has.
const AT_RUN_TIME: &str = "(made at run time)";

/// A function: the file name of what it is in, and its name.
type Function = (String, String);

/// Instructions by function, of one build.
#[derive(Debug, Default)]
struct Side {
    counts: BTreeMap<Function, u64>,
    /// File names of the executables of its process images.
    executables: BTreeSet<String>,
}

/// Functions, each with the name of its process image: the executable without the folder.
pub type Counts = [(String, FunctionCount)];

/// Which instructions are split by function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// What each function executed itself.
    Itself,
    /// What the libraries of C and C++ executed for it.
    Library,
}

/// The differences between two traced runs. `again` is a second run of the base: what it counts otherwise in a function
/// varies by itself.
pub fn differences(of: Of, base: &Counts, new: &Counts, again: Option<&Counts>) -> Differences {
    let (mut base, new) = (Side::of(base, of), Side::of(new, of));
    base.take_executable_of(&new);
    let varying = again.map(|again| {
        let mut again = Side::of(again, of);
        again.take_executable_of(&new);
        base.varying(&again)
    });
    let mut found = Differences::new(joined(base, new));
    for row in found.grown.iter_mut().chain(&mut found.shrunk) {
        let part = &row.part;
        let name = if part.base_name.is_empty() { &part.name } else { &part.base_name };
        let function = (part.object.clone(), name.clone());
        row.varies = varying.as_ref().and_then(|varying| varying.get(&function)).copied().unwrap_or(0);
    }
    found
}

/// What every function executed itself and what libraries executed for it, by object and function, in both builds.
pub fn stacks(base: &Counts, new: &Counts) -> StackPair {
    let mut pair = PairBuilder::new(vec![Measure::Instructions, Measure::LibraryInstructions]);
    for (column, of) in [Of::Itself, Of::Library].into_iter().enumerate() {
        let (mut base, new) = (Side::of(base, of), Side::of(new, of));
        base.take_executable_of(&new);
        for (part, amounts) in joined(base, new) {
            let object = if part.object.is_empty() { "(code of no file)" } else { &part.object };
            let frame = |function: &str| Frame {
                function: function.to_owned(),
                object: part.object.clone(),
                ..Frame::default()
            };
            let values = |amount: u64| {
                let mut values = [0; 2];
                values[column] = amount;
                values
            };
            let (before, after) = amounts.both();
            pair.add(&[frame(&part.name), frame(object)], &values(before), &values(after));
        }
    }
    pair.finish()
}

fn joined(base: Side, new: Side) -> Vec<(Part, Amounts)> {
    let mut joined = Join { base: base.counts, new: new.counts, parts: Vec::new() };
    joined.same();
    // A function whose parameters changed; one that moved to another library.
    joined.alone(|(object, name)| Some((object.clone(), short(name))));
    joined.alone(|(_, name)| (!is_unnamed(name)).then(|| name.clone()));
    joined.finish()
}

impl Side {
    fn of(functions: &Counts, of: Of) -> Side {
        let mut side = Side::default();
        for (image, function) in functions {
            let object = unversioned(function.object.rsplit('/').next().unwrap_or_default());
            if object == unversioned(image) {
                side.executables.insert(object.to_owned());
            }
            let amount = match of {
                Of::Itself => function.instructions,
                Of::Library => function.for_it,
            };
            if amount == 0 {
                continue;
            }
            let name = match (function.symbol.is_empty(), object.is_empty()) {
                (false, _) => printable(&function_name(&function.symbol)),
                (true, false) => NO_SYMBOL.to_owned(),
                (true, true) => AT_RUN_TIME.to_owned(),
            };
            let count = side.counts.entry((printable(object), name)).or_default();
            *count = count.saturating_add(amount);
        }
        side
    }

    /// Gives the executable that only this build has the name of the one that only the other has.
    fn take_executable_of(&mut self, other: &Side) {
        let only = |one: &Side, other: &Side| {
            let mut alone = one.executables.iter().filter(|name| !other.has(name));
            alone.next().cloned().filter(|_| alone.next().is_none())
        };
        let (Some(own), Some(theirs)) = (only(self, other), only(other, self)) else { return };
        let counts = std::mem::take(&mut self.counts);
        let renamed = counts.into_iter().map(|((object, name), count)| {
            let object = if object == own { theirs.clone() } else { object };
            ((object, name), count)
        });
        self.counts = renamed.collect();
    }

    /// By how much each function differs in another run of the same build, where it does.
    fn varying(&self, again: &Side) -> BTreeMap<Function, u64> {
        let of = |side: &Side, function: &Function| side.counts.get(function).copied().unwrap_or(0);
        let all = self.counts.keys().chain(again.counts.keys());
        let differ = all.map(|function| (function.clone(), of(self, function).abs_diff(of(again, function))));
        differ.filter(|(_, by)| *by > 0).collect()
    }

    fn has(&self, object: &str) -> bool {
        self.counts.keys().any(|(known, _)| known == object)
    }
}

/// The file name of a library without its version: `libfoo.so.1.2` is `libfoo.so`.
fn unversioned(file: &str) -> &str {
    file.find(".so.").map_or(file, |at| &file[..at + 3])
}

fn is_unnamed(name: &str) -> bool {
    name == NO_SYMBOL || name == AT_RUN_TIME
}

/// Functions of both builds that are not joined yet, and those that are.
struct Join {
    base: BTreeMap<Function, u64>,
    new: BTreeMap<Function, u64>,
    parts: Vec<(Part, Amounts)>,
}

impl Join {
    /// Joins functions of the same name in the same file.
    fn same(&mut self) {
        let base = std::mem::take(&mut self.base);
        for (function, amount) in base {
            match self.new.remove(&function) {
                Some(new) => self.parts.push((part(function, None), Amounts::Both(amount, new))),
                None => {
                    self.base.insert(function, amount);
                }
            }
        }
    }

    /// Joins functions that share a key with one function of the other build alone.
    fn alone<K: Eq + Hash>(&mut self, key: impl Fn(&Function) -> Option<K>) {
        let keyed = |functions: &BTreeMap<Function, u64>| {
            let mut by_key: HashMap<K, Option<Function>> = HashMap::new();
            for function in functions.keys() {
                let Some(key) = key(function) else { continue };
                by_key.entry(key).and_modify(|only| *only = None).or_insert_with(|| Some(function.clone()));
            }
            by_key
        };
        let mut new_by_key = keyed(&self.new);
        for (key, base) in keyed(&self.base) {
            let (Some(base), Some(new)) = (base, new_by_key.remove(&key).flatten()) else { continue };
            let (Some(before), Some(after)) = (self.base.remove(&base), self.new.remove(&new)) else {
                continue;
            };
            self.parts.push((part(new, Some(base)), Amounts::Both(before, after)));
        }
    }

    fn finish(self) -> Vec<(Part, Amounts)> {
        let base =
            self.base.into_iter().map(|(function, count)| (part(function, None), Amounts::Base(count)));
        let new = self.new.into_iter().map(|(function, count)| (part(function, None), Amounts::New(count)));
        self.parts.into_iter().chain(base).chain(new).collect()
    }
}

fn part((object, name): Function, base: Option<Function>) -> Part {
    let base_name = base.map(|(_, base)| base).filter(|base| *base != name).unwrap_or_default();
    Part { name, object, base_name, ..Part::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(image: &str, functions: &[(&str, &str, u64)]) -> Vec<(String, FunctionCount)> {
        let one = |&(object, symbol, instructions): &(&str, &str, u64)| {
            let (object, symbol) = (object.to_owned(), symbol.to_owned());
            (image.to_owned(), FunctionCount { object, symbol, instructions, for_it: instructions / 2 })
        };
        functions.iter().map(one).collect()
    }

    fn grown(found: &Differences) -> Vec<(&str, i64)> {
        found.grown.iter().map(|row| (row.part.name.as_str(), row.difference)).collect()
    }

    #[test]
    fn a_routine_with_one_percent_more_instructions_comes_first() {
        let run = |hot| {
            counts(
                "prog",
                &[
                    ("/b/prog", "main", 1_000_000),
                    ("/b/prog", "parse", hot),
                    ("/lib/libc.so.6", "malloc", 3_000_000),
                ],
            )
        };
        let found = differences(Of::Itself, &run(10_000_000), &run(10_100_000), None);
        assert_eq!((grown(&found), found.difference), (vec![("parse", 100_000)], 100_000));
        assert_eq!(found.grown[0].share, Some(1.0));
        assert_eq!((found.grown[0].part.object.as_str(), found.rest.parts), ("prog", 2));
    }

    #[test]
    fn the_librarys_instructions_are_split_by_its_caller() {
        let run = |copies| counts("prog", &[("/b/prog", "parse", copies), ("/b/prog", "main", 100)]);
        let found = differences(Of::Library, &run(1000), &run(3000), None);
        assert_eq!((grown(&found), found.difference), (vec![("parse", 1000)], 1000));
        assert_eq!((found.base, found.new), (550, 1550));
    }

    #[test]
    fn two_rebuilds_in_other_folders_join_whole() {
        let base = counts(
            "old",
            &[
                ("/home/a/base/old", "_ZN4tree6insert17h0123456789abcdefE", 700),
                ("/home/a/base/old", "_RNvCs1234_4tree4find", 30),
                ("/home/a/base/old", "main", 9),
                ("/home/a/base/libx.so.1.0", "x", 5),
            ],
        );
        let new = counts(
            "new",
            &[
                ("/tmp/other/new", "_ZN4tree6insert17hfedcba9876543210E", 700),
                ("/tmp/other/new", "_RNvCsABCD_4tree4find", 30),
                ("/tmp/other/new", "main", 9),
                ("/tmp/libx.so.1.1", "x", 5),
            ],
        );
        let found = differences(Of::Itself, &base, &new, None);
        assert_eq!((found.difference, found.only_base.parts, found.only_new.parts), (0, 0, 0));
        assert!(found.grown.is_empty() && found.shrunk.is_empty());
        assert_eq!(found.rest.parts, 4);
    }

    #[test]
    fn parts_and_variants_belong_to_their_function() {
        let base = counts("p", &[("/p", "scan.constprop.0", 100), ("/p", "scan.cold", 3)]);
        let new =
            counts("p", &[("/p", "scan", 90), ("/p", "scan.part.0", 30), ("/p", "scan.isra.0.cold", 3)]);
        let found = differences(Of::Itself, &base, &new, None);
        assert_eq!((grown(&found), found.only_base.parts), (vec![("scan", 20)], 0));
    }

    #[test]
    fn what_one_build_inlines_is_unmatched_with_its_instructions() {
        let base = counts("p", &[("/p", "main", 100), ("/p", "helper", 40), ("", "", 7), ("/p", "", 2)]);
        let new = counts("p", &[("/p", "main", 145), ("", "", 7), ("/q", "", 2)]);
        let found = differences(Of::Itself, &base, &new, None);
        assert_eq!(grown(&found), [("main", 45)]);
        assert_eq!((found.only_base.parts, found.only_base.amount), (2, 42));
        assert_eq!(found.only_base.largest[0].part.name, "helper");
        assert_eq!((found.only_new.amount, found.only_new.largest[0].part.name.as_str()), (2, NO_SYMBOL));
        assert_eq!((found.difference, found.sum()), (5, 5));
    }

    #[test]
    fn a_function_with_other_parameters_or_in_another_library_is_the_same() {
        let base = counts("p", &[("/p", "_Z3addi", 10), ("/liba.so", "walk", 5), ("/p", "_Z1oi", 1)]);
        let new = counts(
            "p",
            &[("/p", "_Z3addl", 12), ("/libb.so", "walk", 9), ("/p", "_Z1of", 1), ("/p", "_Z1oc", 1)],
        );
        let found = differences(Of::Itself, &base, &new, None);
        assert_eq!(grown(&found), [("walk", 4), ("add(long)", 2)]);
        assert_eq!(found.grown[1].part.base_name, "add(int)");
        assert_eq!((found.only_base.parts, found.only_new.parts), (1, 2), "two could be `o`");
    }

    #[test]
    fn several_images_of_a_program_are_summed_up() {
        let mut base = counts("sh", &[("/bin/sh", "main", 5)]);
        base.extend(counts("old", &[("/b/old", "work", 10)]));
        base.extend(counts("old", &[("/b/old", "work", 10)]));
        let mut new = counts("sh", &[("/bin/sh", "main", 5)]);
        new.extend(counts("new", &[("/n/new", "work", 21)]));
        let found = differences(Of::Itself, &base, &new, None);
        assert_eq!((grown(&found), found.only_new.parts, found.rest.parts), (vec![("work", 1)], 0, 1));
    }

    #[test]
    fn what_differs_between_two_runs_of_the_base_is_not_what_the_change_adds() {
        let run = |name: &str, hash, parse| {
            let object = format!("/b/{name}");
            counts(name, &[(&object, "hash", hash), (&object, "parse", parse)])
        };
        let found = differences(
            Of::Itself,
            &run("old", 1000, 500),
            &run("new", 1900, 600),
            Some(&run("old", 150, 500)),
        );
        let added: Vec<(&str, u64)> =
            found.added().iter().map(|added| (added.part.name.as_str(), added.certain)).collect();
        assert_eq!(added, [("parse", 100), ("hash", 50)]);
        assert_eq!((grown(&found), found.grown[0].varies), (vec![("hash", 900), ("parse", 100)], 850));
    }

    #[test]
    fn the_order_of_the_input_does_not_matter() {
        let mut base = counts("p", &[("/p", "_Z1fi", 1), ("/p", "_Z1gi", 1), ("/q", "h", 4), ("/p", "x", 4)]);
        let mut new = counts("p", &[("/p", "_Z1fl", 5), ("/p", "_Z1gl", 5), ("/r", "h", 8), ("/p", "y", 4)]);
        let found = differences(Of::Itself, &base, &new, None);
        base.reverse();
        new.reverse();
        assert_eq!(differences(Of::Itself, &base, &new, None), found);
        assert_eq!(grown(&found), [("f(long)", 4), ("g(long)", 4), ("h", 4)]);
    }
}
