//! Instructions an allocator spends per call, counted by callgrind: all calls that enter the allocator's object from
//! outside it, with everything they execute. Exact where times are noisy; says nothing about caches and stalls.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::{Error, IoContext};
use crate::tools::run;

/// What entered an object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Entries {
    /// Calls from other objects.
    pub calls: u64,
    /// Instructions executed from entry to return.
    pub instructions: u64,
}

impl Entries {
    /// Instructions per call; 0 without calls.
    pub fn per_call(self) -> f64 {
        if self.calls == 0 { 0.0 } else { self.instructions as f64 / self.calls as f64 }
    }
}

/// Runs a command with `object` preloaded under callgrind.
///
/// # Errors
/// [`Error::NoTool`] without valgrind, [`Error::Step`] when the command fails, [`Error::File`] on an unreadable profile.
pub fn count(command: &[String], object: &Path, dir: &Path) -> Result<Entries, Error> {
    let profile = dir.join("callgrind.out");
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args(["--quiet", "--tool=callgrind"])
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .args(command)
        .env("LD_PRELOAD", object)
        // Otherwise the first call of each function is counted with the linker's work of binding it.
        .env("LD_BIND_NOW", "1")
        .stdout(Stdio::null());
    run(&mut valgrind, "counting instructions", "valgrind")?;
    let text = std::fs::read_to_string(&profile).context("read", &profile)?;
    Ok(entries(&text, &object.to_string_lossy()))
}

/// Sums the calls into `object` over a profile. The dynamic linker's calls are left out: they are the object's
/// constructors and destructors.
fn entries(profile: &str, object: &str) -> Entries {
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut sum = Entries::default();
    let (mut caller, mut callee) = ("", None);
    let mut calls = None;
    for line in profile.lines() {
        if let Some(count) = calls.take() {
            // The line after `calls=` holds a position and the inclusive cost.
            let cost = line.split_whitespace().nth(1).and_then(|cost| cost.parse::<u64>().ok()).unwrap_or(0);
            let into = callee.take().unwrap_or(caller);
            if into == object && caller != object && !caller.contains("/ld-linux") {
                sum.calls += count;
                sum.instructions += cost;
            }
        } else if let Some(name) = line.strip_prefix("ob=") {
            caller = resolve(name, &mut names);
        } else if let Some(name) = line.strip_prefix("cob=") {
            callee = Some(resolve(name, &mut names));
        } else if let Some(rest) = line.strip_prefix("calls=") {
            calls = Some(rest.split_whitespace().next().and_then(|count| count.parse().ok()).unwrap_or(0));
        }
    }
    sum
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_calls_from_outside_count_and_with_all_they_cost() {
        let profile = "events: Ir\nob=(1) /lib64/ld-linux-x86-64.so.2\nfn=(1) _dl_init\n0 5\ncob=(2) /m.so\ncfn=(2) init\n\
            calls=1 0\n0 9999\n\nob=(3) /prog\nfn=(3) main\n0 100\ncob=(2)\ncfn=(4) malloc\ncalls=10 0\n0 500\n\
            cob=(4) /libc.so.6\ncfn=(5) memset\ncalls=7 0\n0 70\ncfn=(6) helper\ncalls=2 0\n0 1000\n\
            ob=(2)\nfn=(4)\n0 400\ncfn=(7) slow\ncalls=3 0\n0 100\n\nob=(4)\nfn=(8) strdup\ncob=(2)\ncfn=(4)\ncalls=5 0\n+3 200\n";
        assert_eq!(entries(profile, "/m.so"), Entries { calls: 15, instructions: 700 });
        assert_eq!(entries(profile, "/m.so").per_call(), 700.0 / 15.0);
        assert_eq!(entries(profile, "/other.so").per_call(), 0.0);
    }
}
