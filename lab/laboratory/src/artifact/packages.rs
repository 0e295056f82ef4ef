//! Debian packages: which of them a file is of, in which version they are installed, and whether a mirror has that
//! version. `dpkg-query` and `apt-cache` are run; where they are missing, nothing is known.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An installed package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Package {
    /// Its name, without an architecture.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its architecture.
    pub architecture: String,
}

/// What this machine's package lists have of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OnMirror {
    /// The version.
    Has,
    /// Other versions only, which are named; none of them where the package is gone.
    Lost(Vec<String>),
    /// There are no lists here, or no apt.
    Unknown,
}

/// Standard output of a command in plain English; what it could not do is missing from it. `None` where there is no such
/// command.
fn output_of(program: &str, words: &[String]) -> Option<String> {
    let mut command = Command::new(program);
    let output = command.args(words).env("LC_ALL", "C").stdin(Stdio::null()).stderr(Stdio::null()).output();
    output.ok().map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The packages of files, by path, for those that are of one.
pub fn owners<'a>(paths: impl IntoIterator<Item = &'a str>) -> BTreeMap<String, String> {
    let mut spelled: BTreeMap<String, &str> = BTreeMap::new();
    for path in paths {
        for spelling in spellings(path) {
            spelled.entry(spelling).or_insert(path);
        }
    }
    let words: Vec<String> = ["-S".to_owned()].into_iter().chain(spelled.keys().cloned()).collect();
    let found = if spelled.is_empty() { None } else { output_of("dpkg-query", &words) };
    owners_in(&found.unwrap_or_default(), &spelled)
}

/// Under which names dpkg may know a file: `/lib` and `/usr/lib` are one folder, and dpkg has the name that the package
/// was built with. What dpkg would take for a pattern is left out.
fn spellings(path: &str) -> Vec<String> {
    let real = std::fs::canonicalize(path).map_or(path.to_owned(), |real| real.display().to_string());
    let mut found = vec![path.to_owned(), real];
    for index in 0..2 {
        let other = match found[index].strip_prefix("/usr") {
            Some(short) => short.to_owned(),
            None => format!("/usr{}", found[index]),
        };
        found.push(other);
    }
    found.retain(|path| !path.contains(['*', '?', '[', ']', '\\']) && Path::new(path).is_absolute());
    found
}

/// Reads `libc6:amd64, other: /lib/x`.
fn owners_in(text: &str, spelled: &BTreeMap<String, &str>) -> BTreeMap<String, String> {
    let owner = |line: &str| {
        let (packages, path) = line.split_once(": ")?;
        let first = packages.split(", ").next()?;
        let name = first.split(':').next()?.to_owned();
        (!name.starts_with("diversion by ")).then_some(((*spelled.get(path)?).to_owned(), name))
    };
    text.lines().filter_map(owner).collect()
}

/// The installed versions of packages; of several architectures the first.
pub fn installed<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<Package> {
    let names: BTreeSet<&str> = names.into_iter().collect();
    if names.is_empty() {
        return vec![];
    }
    let format = "${Package}\t${Architecture}\t${Version}\t${db:Status-Status}\n";
    let words = ["-W", "-f", format].into_iter().chain(names).map(str::to_owned).collect::<Vec<_>>();
    let mut found: Vec<Package> = installed_in(&output_of("dpkg-query", &words).unwrap_or_default());
    found.sort();
    found.dedup_by(|later, first| later.name == first.name);
    found
}

fn installed_in(text: &str) -> Vec<Package> {
    let package = |line: &str| match line.split('\t').collect::<Vec<_>>()[..] {
        [name, architecture, version, "installed"] => {
            Some(Package { name: name.into(), version: version.into(), architecture: architecture.into() })
        }
        _ => None,
    };
    text.lines().filter_map(package).collect()
}

/// What the package lists of this machine have of each package.
pub fn on_mirror(packages: &[Package]) -> Vec<OnMirror> {
    let names = packages.iter().map(|package| package.name.clone());
    let words: Vec<String> = ["madison".to_owned()].into_iter().chain(names).collect();
    let found = if packages.is_empty() { None } else { output_of("apt-cache", &words) };
    on_mirror_in(&found.unwrap_or_default(), packages)
}

/// Reads `libc6 | 2.36-9 | http://deb.debian.org/debian bookworm/main amd64 Packages`. Without any line there are no lists:
/// packages of a system do not all vanish.
fn on_mirror_in(text: &str, packages: &[Package]) -> Vec<OnMirror> {
    let mut versions: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split('|').map(str::trim).collect();
        if let [name, version, place] = words[..]
            && place.ends_with("Packages")
        {
            let known = versions.entry(name).or_default();
            if !known.iter().any(|other| other == version) {
                known.push(version.to_owned());
            }
        }
    }
    let state = |package: &Package| match versions.get(package.name.as_str()) {
        _ if versions.is_empty() => OnMirror::Unknown,
        Some(known) if known.contains(&package.version) => OnMirror::Has,
        known => OnMirror::Lost(known.cloned().unwrap_or_default()),
    };
    packages.iter().map(state).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str) -> Package {
        Package { name: name.into(), version: version.into(), architecture: "amd64".into() }
    }

    #[test]
    fn a_file_is_of_its_package_under_each_of_its_names() {
        let found = spellings("/usr/lib/none/libx.so");
        assert!(found.contains(&"/lib/none/libx.so".to_owned()), "{found:?}");
        assert!(spellings("/a/b*").is_empty() && spellings("word").iter().all(|path| path.starts_with('/')));
        let spelled = [("/lib/x.so".to_owned(), "/usr/lib/x.so"), ("/bin/y".to_owned(), "/bin/y")].into();
        let text = "libx1:amd64, libx1:i386: /lib/x.so\ndiversion by dash from: /bin/y\ny-utils: /bin/y\n";
        let owners = owners_in(text, &spelled);
        assert_eq!(owners.get("/usr/lib/x.so").map(String::as_str), Some("libx1"));
        assert_eq!(owners.get("/bin/y").map(String::as_str), Some("y-utils"));
    }

    #[test]
    fn only_installed_packages_are_read() {
        let text = "libx1\tamd64\t1.2-3\tinstalled\ngone\tamd64\t1\tconfig-files\nhalf\n";
        assert_eq!(installed_in(text), [package("libx1", "1.2-3")]);
    }

    #[test]
    fn a_version_that_a_mirror_no_longer_has_is_lost() {
        let text = "     a | 1.0-1 | http://mirror/debian bookworm/main amd64 Packages\n     \
                    a | 1.0-1 | http://mirror/debian bookworm/main Sources\n     \
                    b | 2.0-2 | http://mirror/debian bookworm/main amd64 Packages\n";
        let packages = [package("a", "1.0-1"), package("b", "2.0-1"), package("c", "3")];
        let expected = [OnMirror::Has, OnMirror::Lost(vec!["2.0-2".into()]), OnMirror::Lost(vec![])];
        assert_eq!(on_mirror_in(text, &packages), expected);
        assert_eq!(on_mirror_in("", &packages[..1]), [OnMirror::Unknown]);
    }
}
