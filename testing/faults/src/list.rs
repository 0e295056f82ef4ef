//! The list of faults, `testing/faults/faults.toml`, and what can be found wrong with it without building anything.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::Error;

/// Where the list is, from the repository's root.
pub const LIST: &str = "testing/faults/faults.toml";

/// The list as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    fault: Vec<Fault>,
}

/// A cargo workspace of the repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Workspace {
    Root,
    Preload,
    Moving,
}

impl Workspace {
    /// Its manifest, from the repository's root.
    pub const fn manifest(self) -> &'static str {
        match self {
            Workspace::Root => "Cargo.toml",
            Workspace::Preload => "preload/Cargo.toml",
            Workspace::Moving => "moving/Cargo.toml",
        }
    }

    /// Its name in the list and in paths.
    pub const fn name(self) -> &'static str {
        match self {
            Workspace::Root => "root",
            Workspace::Preload => "preload",
            Workspace::Moving => "moving",
        }
    }
}

/// A defect, and the assertion that finds it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// What is wrong, in words.
    pub name: String,
    /// The file with the defect, from the repository's root.
    pub file: PathBuf,
    /// The text that the defect replaces; it occurs once in the file.
    pub find: String,
    pub replace: String,
    /// The message of the assertion.
    pub assertion: String,
    pub package: String,
    pub workspace: Workspace,
    /// The test that runs into the defect, a filter of the test harness.
    pub test: String,
    /// The file of integration tests that has it, without `.rs`; the library's unit tests when missing.
    pub binary: Option<String>,
    /// Features of the package that the test needs.
    #[serde(default)]
    pub features: Vec<String>,
}

impl Fault {
    /// The file's text with the defect.
    ///
    /// # Errors
    /// How often the text to replace occurs, when that is not once.
    pub fn apply(&self, text: &str) -> Result<String, usize> {
        match text.matches(&self.find).count() {
            1 => Ok(text.replacen(&self.find, &self.replace, 1)),
            count => Err(count),
        }
    }
}

/// Reads the list of the repository at `root`, ordered such that neighbours are built alike.
///
/// # Errors
/// The list cannot be read or is not valid.
pub fn read(root: &Path) -> Result<Vec<Fault>, Error> {
    let path = root.join(LIST);
    let text = std::fs::read_to_string(&path).map_err(Error::read(&path))?;
    let list: List =
        toml::from_str(&text).map_err(|error| Error::List { path, message: error.to_string() })?;
    let mut faults = list.fault;
    faults.sort_by(|one, other| {
        let key = |fault: &Fault| (fault.workspace, fault.package.clone(), fault.binary.clone());
        key(one).cmp(&key(other))
    });
    Ok(faults)
}

/// What is wrong with the list: defects that do not fit the sources any more, in lines for people.
///
/// # Errors
/// A source file cannot be read.
pub fn findings(root: &Path, faults: &[Fault]) -> Result<Vec<String>, Error> {
    let mut findings = Vec::new();
    let mut names = BTreeSet::new();
    for fault in faults {
        if !names.insert(&fault.name) {
            findings.push(format!("{}: another fault has this name", fault.name));
        }
        let path = root.join(&fault.file);
        let text = std::fs::read_to_string(&path).map_err(Error::read(&path))?;
        match fault.apply(&text) {
            Err(count) => findings.push(format!(
                "{}: the text to replace occurs {count} times in {}, not once",
                fault.name,
                fault.file.display()
            )),
            Ok(changed) if changed == text => {
                findings.push(format!("{}: it changes nothing", fault.name));
            }
            Ok(_) => {}
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(find: &str, replace: &str) -> Fault {
        Fault {
            name: "a count is not lowered".into(),
            file: "code.rs".into(),
            find: find.into(),
            replace: replace.into(),
            assertion: "the count is right".into(),
            package: "heaptoll-x".into(),
            workspace: Workspace::Preload,
            test: "counts".into(),
            binary: None,
            features: Vec::new(),
        }
    }

    #[test]
    fn a_defect_replaces_a_text_that_occurs_once() {
        let text = "a -= 1;\nb -= 1;\n";
        assert_eq!(fault("a -= 1;\n", "").apply(text), Ok("b -= 1;\n".into()));
        assert_eq!(fault(" -= 1;", " -= 2;").apply(text), Err(2));
        assert_eq!(fault("c -= 1;", "").apply(text), Err(0));
    }

    #[test]
    fn what_does_not_fit_the_sources_is_a_finding() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("code.rs"), "a -= 1; b += 1; b += 1;").expect("a file");
        let faults = [fault("a -= 1;", ""), fault("b += 1;", ""), fault("a", "a")];
        let findings = findings(folder.path(), &faults).expect("the file is read");
        let ends = [
            "another fault has this name",
            "occurs 2 times in code.rs, not once",
            "another fault has this name",
            "it changes nothing",
        ];
        assert_eq!(findings.len(), ends.len(), "{findings:?}");
        for (finding, end) in findings.iter().zip(ends) {
            assert!(finding.ends_with(end), "{finding}");
        }
    }
}
