//! Calls of a family of functions from outside of it, in whatever objects the family is.
//!
//! A profile sums calls by caller and callee, not by stack: whether one more call lies within another has to be
//! inferred. A caller that the family itself reaches through calls is taken to be within it (`realloc` of the C library
//! reaches `malloc`). Such a caller may have been called by the program as well; how many calls depend on this is
//! reported.

use std::collections::{HashMap, HashSet};

use crate::profile::{Call, Entries, calls, plain};

/// Of one function of the family.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outermost {
    /// Calls from outside.
    pub entered: Entries,
    /// Calls by functions of no family that the family reaches, left out of `entered`.
    pub doubtful: Entries,
}

/// Sums the outermost calls of each of `count` functions. `member` maps an object's function to one of them.
pub fn outermost(
    profile: &str,
    count: usize,
    member: impl Fn(&str, &str) -> Option<usize>,
) -> Vec<Outermost> {
    let all = calls(profile);
    // A function met again below itself has a number appended.
    let of = |object: &str, function: &str| member(object, plain(function));
    let mut called: HashMap<(&str, &str), Vec<(&str, &str)>> = HashMap::new();
    for call in &all {
        called
            .entry((call.from_object, plain(call.from)))
            .or_default()
            .push((call.object, plain(call.function)));
    }
    let mut within: HashSet<(&str, &str)> = HashSet::new();
    let mut ahead: Vec<(&str, &str)> =
        called.keys().copied().filter(|(object, function)| of(object, function).is_some()).collect();
    while let Some(one) = ahead.pop() {
        if within.insert(one) {
            ahead.extend(called.get(&one).into_iter().flatten().copied());
        }
    }
    let mut sums = vec![Outermost::default(); count];
    let add = |sum: &mut Entries, call: &Call<'_>| {
        sum.calls += call.count;
        sum.instructions += call.instructions;
    };
    for call in &all {
        let Some(function) = of(call.object, call.function) else { continue };
        if of(call.from_object, call.from).is_some() {
            continue;
        }
        let sum = &mut sums[function];
        let inside = within.contains(&(call.from_object, plain(call.from)));
        add(if inside { &mut sum.doubtful } else { &mut sum.entered }, call);
    }
    sums
}

/// Every object that a profile names, once.
pub fn objects(profile: &str) -> Vec<&str> {
    let mut found: Vec<&str> = calls(profile).iter().map(|call| call.object).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// All instructions of a profile.
pub fn total(profile: &str) -> Option<u64> {
    let figure = |line: &str| line.split_whitespace().nth(1)?.parse().ok();
    // A process that forked or replaced its image has several parts, of which the last line has the sum.
    profile.lines().rev().find(|line| line.starts_with("totals:")).and_then(figure)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILE: &str = "events: Ir\nob=(1) /prog\nfn=(1) main\n0 9\ncob=(2) /m.so\ncfn=(2) realloc\ncalls=2 0\n0 900\n\
        cob=(2)\ncfn=(3) malloc\ncalls=4 0\n0 400\nob=(2)\nfn=(2)\n0 10\ncfn=(3)\ncalls=2 0\n0 200\ncfn=(4) grow\n\
        calls=1 0\n0 300\nfn=(4)\n0 10\ncfn=(5) malloc'2\ncalls=1 0\n0 70\nfn=(6) start\n0 3\ncfn=(3)\ncalls=1 0\n0 50\n\
        ob=(3) /libc.so.6\nfn=(7) strdup\n0 2\ncob=(2)\ncfn=(3)\ncalls=5 0\n0 500\ntotals: 1234\n";

    fn member(object: &str, function: &str) -> Option<usize> {
        (object == "/m.so").then(|| ["malloc", "realloc"].iter().position(|name| *name == function))?
    }

    #[test]
    fn only_calls_that_no_other_reaches_are_entries() {
        let sums = outermost(PROFILE, 2, member);
        // `main`, the manager's own `start` and `strdup`; not `realloc`, and `grow` only in doubt.
        assert_eq!(sums[0].entered, Entries { calls: 10, instructions: 950 });
        assert_eq!(sums[0].doubtful, Entries { calls: 1, instructions: 70 });
        assert_eq!(sums[1].entered, Entries { calls: 2, instructions: 900 });
    }

    #[test]
    fn objects_and_the_total_are_read() {
        assert_eq!(objects(PROFILE), ["/m.so"]);
        assert_eq!((total(PROFILE), total("fn=x\n")), (Some(1234), None));
    }
}
