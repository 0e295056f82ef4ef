//! Reading callgrind's profiles: calls, with all that is executed between a call's entry and its return.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::Error;
use crate::tools::run;

/// Calls of one kind, summed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Entries {
    /// How many.
    pub calls: u64,
    /// Instructions executed from entry to return.
    pub instructions: u64,
}

impl Entries {
    /// Instructions per call; 0 without calls.
    pub fn per_call(self) -> f64 {
        if self.calls == 0 { 0.0 } else { self.instructions as f64 / self.calls as f64 }
    }

    fn add(&mut self, call: &Call<'_>) {
        self.calls += call.count;
        self.instructions += call.instructions;
    }
}

/// The calls from one place in a program to one function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call<'a> {
    /// Object of the calling function, as callgrind names it.
    pub from_object: &'a str,
    /// The calling function.
    pub from: &'a str,
    /// Object of the called function.
    pub object: &'a str,
    /// The called function.
    pub function: &'a str,
    /// How often.
    pub count: u64,
    /// Instructions in the called function and all that it called.
    pub instructions: u64,
}

/// Every line of calls in a profile, in its order.
pub fn calls(profile: &str) -> Vec<Call<'_>> {
    // Objects and functions number their names apart.
    let (mut objects, mut functions) = (HashMap::new(), HashMap::new());
    let (mut from_object, mut from) = ("", "");
    let (mut object, mut function) = (None, "");
    let mut count = None;
    let mut found = Vec::new();
    for line in profile.lines() {
        if let Some(count) = count.take() {
            // The line after `calls=` holds a position and the inclusive cost.
            let instructions =
                line.split_whitespace().nth(1).and_then(|cost| cost.parse::<u64>().ok()).unwrap_or(0);
            let object = object.take().unwrap_or(from_object);
            found.push(Call { from_object, from, object, function, count, instructions });
        } else if let Some(name) = line.strip_prefix("ob=") {
            from_object = resolve(name, &mut objects);
        } else if let Some(name) = line.strip_prefix("fn=") {
            from = resolve(name, &mut functions);
        } else if let Some(name) = line.strip_prefix("cob=") {
            object = Some(resolve(name, &mut objects));
        } else if let Some(name) = line.strip_prefix("cfn=") {
            function = resolve(name, &mut functions);
        } else if let Some(rest) = line.strip_prefix("calls=") {
            count = Some(rest.split_whitespace().next().and_then(|count| count.parse().ok()).unwrap_or(0));
        }
    }
    found
}

/// Instructions of each function without those that it called, by object and function as callgrind names them; the
/// numbers that it appends to functions that are entered again below themselves are taken off.
pub fn exclusive(profile: &str) -> BTreeMap<(String, String), u64> {
    let (mut objects, mut functions) = (HashMap::new(), HashMap::new());
    let (mut object, mut function) = ("", "");
    let mut is_inclusive = false;
    let mut found = BTreeMap::new();
    for line in profile.lines() {
        if let Some(name) = line.strip_prefix("ob=") {
            object = resolve(name, &mut objects);
        } else if let Some(name) = line.strip_prefix("cob=") {
            resolve(name, &mut objects);
        } else if let Some(name) = line.strip_prefix("fn=") {
            function = resolve(name, &mut functions);
        } else if let Some(name) = line.strip_prefix("cfn=") {
            resolve(name, &mut functions);
        } else if line.starts_with("calls=") {
            is_inclusive = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            let cost = line.split_whitespace().nth(1).and_then(|cost| cost.parse::<u64>().ok()).unwrap_or(0);
            if !std::mem::take(&mut is_inclusive) {
                *found.entry((object.to_owned(), plain(function).to_owned())).or_default() += cost;
            }
        }
    }
    found
}

/// A name may be `(id) name`, which defines the id, `(id)`, which uses it, or plain.
fn resolve<'a>(text: &'a str, names: &mut HashMap<&'a str, &'a str>) -> &'a str {
    let Some((id, name)) = text.strip_prefix('(').and_then(|rest| rest.split_once(')')) else { return text };
    let name = name.trim();
    if name.is_empty() {
        return names.get(id).copied().unwrap_or("");
    }
    names.insert(id, name);
    name
}

/// A function's name without the number that callgrind appends to one that is entered again below itself.
pub(crate) fn plain(function: &str) -> &str {
    function.split_once('\'').map_or(function, |(plain, _)| plain)
}

/// Sums all calls into `object` from outside of it. The dynamic linker's are left out: they are the object's
/// constructors and destructors.
pub fn entries(profile: &str, object: &str) -> Entries {
    let mut sum = Entries::default();
    for call in calls(profile) {
        if call.object == object && call.from_object != object && !call.from_object.contains("/ld-linux") {
            sum.add(&call);
        }
    }
    sum
}

/// Sums the program's calls of each function of a family in `object`. `names[i]` holds the names that function `i`
/// may appear under.
///
/// A call from the object itself is the program's only when the object is more than an allocator (the C library:
/// `strdup` calls `malloc` there), as `shared` states, and when it does not come from within the family (`realloc`
/// calls `malloc`).
pub fn family(profile: &str, object: &str, names: &[Vec<String>], shared: bool) -> Vec<Entries> {
    let of_family = |function: &str| {
        let function = plain(function);
        names.iter().position(|aliases| aliases.iter().any(|alias| alias == function))
    };
    let mut sums = vec![Entries::default(); names.len()];
    for call in calls(profile) {
        if call.object != object {
            continue;
        }
        let inside = call.from_object == object && (!shared || of_family(call.from).is_some());
        if !inside && let Some(function) = of_family(call.function) {
            sums[function].add(&call);
        }
    }
    sums
}

/// The head of a command line that runs what follows under callgrind. `out` is the profile's path; `%p` in it becomes
/// the number of the process.
pub fn valgrind(out: &Path) -> Vec<String> {
    let out = format!("--callgrind-out-file={}", out.display());
    // C++ names are compared in the linker's mangled form.
    ["valgrind", "--quiet", "--tool=callgrind", "--demangle=no", &out].map(str::to_owned).into()
}

/// The environment for a count: without it the first call of each function is counted with the linker's work of
/// binding it.
pub const BOUND_AT_START: (&str, &str) = ("LD_BIND_NOW", "1");

/// Runs a command with `object` preloaded under callgrind and sums the calls into it.
///
/// # Errors
/// [`Error::NoTool`] without valgrind, [`Error::Step`] when the command fails, [`Error::File`] on an unreadable profile.
pub fn count(command: &[String], object: &Path, dir: &Path) -> Result<Entries, Error> {
    let profile = dir.join("callgrind.out");
    let head = valgrind(&profile);
    let mut valgrind = Command::new(&head[0]);
    valgrind
        .args(&head[1..])
        .args(command)
        .env("LD_PRELOAD", object)
        .env(BOUND_AT_START.0, BOUND_AT_START.1)
        .stdout(Stdio::null());
    run(&mut valgrind, "counting instructions", "valgrind")?;
    let text =
        std::fs::read_to_string(&profile).map_err(|source| Error::File { path: profile.clone(), source })?;
    Ok(entries(&text, &object.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILE: &str = "events: Ir\nob=(1) /lib64/ld-linux-x86-64.so.2\nfn=(1) _dl_init\n0 5\ncob=(2) /m.so\n\
        cfn=(2) init\ncalls=1 0\n0 9999\n\nob=(3) /prog\nfn=(3) main\n0 100\ncob=(2)\ncfn=(4) malloc\ncalls=10 0\n\
        0 500\ncob=(4) /libc.so.6\ncfn=(5) memset\ncalls=7 0\n0 70\ncfn=(6) helper\ncalls=2 0\n0 1000\nob=(2)\n\
        fn=(4)\n0 400\ncfn=(7) slow\ncalls=3 0\n0 100\n\nob=(4)\nfn=(8) strdup\ncob=(2)\ncfn=(4)\ncalls=5 0\n+3 200\n";

    fn names(functions: &[&str]) -> Vec<Vec<String>> {
        functions.iter().map(|name| vec![(*name).to_owned()]).collect()
    }

    #[test]
    fn a_functions_own_cost_leaves_out_what_it_called() {
        let profile = "ob=(1) /bin/a\nfn=(1) main\n3 10\ncfn=(2) work\ncalls=2 7\n+1 500\n* 5\n\n\
            fn=(2)\n7 400\n\nob=(2) /lib/c.so\nfn=(3) work'2\n9 100\n";
        let found = exclusive(profile);
        let of = |object: &str, name: &str| found.get(&(object.to_owned(), name.to_owned())).copied();
        assert_eq!((of("/bin/a", "main"), of("/bin/a", "work")), (Some(15), Some(400)));
        assert_eq!(of("/lib/c.so", "work"), Some(100));
    }

    #[test]
    fn only_calls_from_outside_count_and_with_all_they_cost() {
        assert_eq!(entries(PROFILE, "/m.so"), Entries { calls: 15, instructions: 700 });
        assert_eq!(entries(PROFILE, "/m.so").per_call(), 700.0 / 15.0);
        assert_eq!(entries(PROFILE, "/other.so").per_call(), 0.0);
    }

    #[test]
    fn names_of_objects_and_functions_are_numbered_apart() {
        let found = calls(PROFILE);
        let malloc = found.iter().find(|call| call.function == "malloc").expect("a call of malloc");
        assert_eq!((malloc.from_object, malloc.from, malloc.object), ("/prog", "main", "/m.so"));
        // Without a `cob=` of its own the callee is in the caller's object.
        let slow = found.iter().find(|call| call.function == "slow").expect("a call of slow");
        assert_eq!((slow.object, slow.count, slow.instructions), ("/m.so", 3, 100));
    }

    #[test]
    fn functions_of_a_family_are_distinguished() {
        let sums = family(PROFILE, "/m.so", &names(&["malloc", "free"]), false);
        assert_eq!(sums, [Entries { calls: 15, instructions: 700 }, Entries::default()]);
    }

    /// In the C library `strdup` is a caller like any other, and `realloc` of nothing is not one more `malloc`.
    #[test]
    fn calls_within_the_family_are_not_the_programs() {
        let profile = "ob=(1) /libc.so.6\nfn=(1) strdup\n0 1\ncfn=(2) malloc\ncalls=4 0\n0 80\nfn=(3) realloc\n\
            cfn=(2)\ncalls=9 0\n0 180\nfn=(4) realloc'2\ncfn=(2)\ncalls=9 0\n0 180\nob=(2) /prog\nfn=(5) main\n\
            cob=(1)\ncfn=(3)\ncalls=1 0\n0 200\ncob=(1)\ncfn=(6) malloc'2\ncalls=1 0\n0 20\n";
        let family_names = names(&["malloc", "realloc"]);
        let (malloc, realloc) =
            (Entries { calls: 5, instructions: 100 }, Entries { calls: 1, instructions: 200 });
        assert_eq!(family(profile, "/libc.so.6", &family_names, true), [malloc, realloc]);
        let only_from_outside = Entries { calls: 1, instructions: 20 };
        assert_eq!(family(profile, "/libc.so.6", &family_names, false), [only_from_outside, realloc]);
    }
}
