//! The budget of size: how many lines of code product, laboratory and testing may have. The house grew faster than
//! anybody could read it. A part falls freely, and rises only by a line in `testing/lint/sizes.toml` that names the
//! capability for which it rises.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Folders that an error names.
const NAMED: usize = 3;

/// The parts of the repository, and by what they have been allowed to grow.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    part: Vec<Part>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    growth: Vec<Growth>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Part {
    name: String,
    /// Where its files are; of several parts the one with the longest path has a file.
    paths: Vec<String>,
    /// Lines of code, without blank lines, comments and tests.
    lines: usize,
    /// The lines of each folder when `lines` was written.
    #[serde(default)]
    folders: BTreeMap<String, usize>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Growth {
    part: String,
    lines: usize,
    /// What users can do since.
    capability: String,
}

/// Lines of code by folder, a map for each part.
type Counts = Vec<BTreeMap<String, usize>>;

impl Budget {
    /// What is wrong with the list itself.
    pub fn fault(&self) -> Option<String> {
        let named = |part: &str| self.part.iter().any(|one| one.name == part);
        let bad = self.growth.iter().find(|one| one.capability.is_empty() || !named(&one.part))?;
        Some(match named(&bad.part) {
            true => format!("{} grows by {} lines without a capability", bad.part, bad.lines),
            false => format!("`{}` grows, and is no part", bad.part),
        })
    }

    /// A text for each part that has more lines of code in these files than it may.
    pub fn broken_by<'a>(&self, files: impl IntoIterator<Item = (&'a Path, usize)>) -> Vec<String> {
        let counts = self.counts(files);
        self.part.iter().zip(&counts).filter_map(|(part, folders)| self.excess(part, folders)).collect()
    }

    /// The budget that these files need: no part has more lines than before.
    pub fn lowered<'a>(&self, files: impl IntoIterator<Item = (&'a Path, usize)>) -> Budget {
        let mut lowered = self.clone();
        for (part, folders) in lowered.part.iter_mut().zip(self.counts(files)) {
            let spare = self.most(part).saturating_sub(folders.values().sum());
            part.lines = part.lines.saturating_sub(spare);
            part.folders = folders;
        }
        lowered
    }

    fn counts<'a>(&self, files: impl IntoIterator<Item = (&'a Path, usize)>) -> Counts {
        let mut counts = vec![BTreeMap::new(); self.part.len()];
        for (file, lines) in files {
            let longest =
                |part: &Part| part.paths.iter().filter(|path| file.starts_with(path)).map(String::len).max();
            let found =
                self.part.iter().enumerate().filter_map(|(at, part)| Some((longest(part)?, at))).max();
            if let Some(counts) = found.and_then(|(_, at)| counts.get_mut(at)) {
                *counts.entry(folder(file)).or_default() += lines;
            }
        }
        counts
    }

    fn most(&self, part: &Part) -> usize {
        let grown = self.growth.iter().filter(|growth| growth.part == part.name);
        part.lines + grown.map(|growth| growth.lines).sum::<usize>()
    }

    fn excess(&self, part: &Part, folders: &BTreeMap<String, usize>) -> Option<String> {
        let Part { name, .. } = part;
        let (count, most) = (folders.values().sum::<usize>(), self.most(part));
        let over = count.checked_sub(most).filter(|over| *over > 0)?;
        let before = |folder: &str| part.folders.get(folder).copied().unwrap_or(0);
        let grown = folders.iter().map(|(folder, lines)| (lines.saturating_sub(before(folder)), folder));
        let mut grown: Vec<_> = grown.filter(|(lines, _)| *lines > 0).collect();
        grown.sort_by_key(|(lines, _)| std::cmp::Reverse(*lines));
        let grown: Vec<String> =
            grown.iter().take(NAMED).map(|(lines, folder)| format!("{folder} by {lines}")).collect();
        Some(format!(
            "{name} has {count} lines of code, {over} over its {most}. Most grew {}. Make it smaller. For a capability add \
             [[budget.growth]] with part = \"{name}\", lines = {over}, capability = \"what users can do now\"",
            grown.join(", ")
        ))
    }
}

/// The package's folder: what is above `src`, or the file's own folder.
fn folder(file: &Path) -> String {
    let own = file.parent().unwrap_or(Path::new(""));
    let above: std::path::PathBuf = own.iter().take_while(|part| *part != "src").collect();
    above.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"
        [[part]]
        name = "product"
        paths = [""]
        lines = 100
        folders = { "crates/a" = 60, "crates/b" = 40 }
        [[part]]
        name = "testing"
        paths = ["testing", "crates/a/src/testing"]
        lines = 10
        [[growth]]
        part = "product"
        lines = 5
        capability = "run under water"
    "#;

    fn budget(text: &str) -> Budget {
        toml::from_str(text).expect("the budget is valid")
    }

    fn broken(files: &[(&str, usize)]) -> Vec<String> {
        let files = files.iter().map(|(file, lines)| (Path::new(*file), *lines));
        budget(LIST).broken_by(files)
    }

    #[test]
    fn a_part_may_have_its_lines_and_what_it_was_allowed_to_grow_by() {
        assert_eq!(broken(&[("crates/a/src/x.rs", 60), ("crates/b/src/y.rs", 45)]), [""; 0]);
        let found = broken(&[("crates/a/src/x.rs", 62), ("crates/b/src/y.rs", 50), ("c/z.rs", 1)]);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("product has 113 lines of code, 8 over its 105"), "{found:?}");
        assert!(found[0].contains("Most grew crates/b by 10, crates/a by 2, c by 1."), "{found:?}");
        assert!(found[0].contains("part = \"product\", lines = 8"), "{found:?}");
    }

    #[test]
    fn the_longest_path_has_a_file() {
        let found = broken(&[("crates/a/src/testing/x.rs", 6), ("testing/b/src/y.rs", 6)]);
        assert!(found.len() == 1 && found[0].contains("testing has 12 lines of code, 2 over"), "{found:?}");
    }

    #[test]
    fn a_budget_is_lowered_to_what_is_there_and_never_raised() {
        let files = |a, t| [(Path::new("crates/a/src/x.rs"), a), (Path::new("testing/b/y.rs"), t)];
        let lowered = budget(LIST).lowered(files(90, 20));
        assert_eq!(lowered.part.iter().map(|part| part.lines).collect::<Vec<_>>(), [85, 10]);
        assert_eq!(lowered.part[0].folders, BTreeMap::from([("crates/a".to_owned(), 90)]));
        assert_eq!(lowered.broken_by(files(90, 10)), [""; 0]);
        assert_eq!(lowered.broken_by(files(91, 10)).len(), 1);
    }

    #[test]
    fn growth_without_a_capability_or_of_no_part_is_refused() {
        assert_eq!(budget(LIST).fault(), None);
        assert!(
            budget(&LIST.replace("run under water", "")).fault().is_some_and(|text| text.contains("without"))
        );
        let other = LIST.replace("part = \"product\"", "part = \"other\"");
        assert!(budget(&other).fault().is_some_and(|text| text.contains("`other`")));
    }
}
