//! The words of identifiers: `testing/lint/language.toml` lists words with another meaning in the field, or none, and the term to
//! use; an allowance names where a word has its technical sense, and why.

use std::collections::HashSet;
use std::path::Path;

use regex::Regex;
use serde::Deserialize;

use crate::source;
use crate::{Error, Finding};

/// Where the rules are, from the repository's root.
pub const RULES: &str = "testing/lint/language.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    /// Paths that are not checked: histories, and files that list these very words.
    skip: Vec<String>,
    term: Vec<Term>,
    allow: Vec<Allowance>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Term {
    /// Whole segments of identifiers.
    segments: Vec<String>,
    /// What to write instead.
    r#use: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Allowance {
    /// A whole identifier, a pattern.
    identifier: String,
    /// Where a path begins; everywhere when missing.
    #[serde(default)]
    path: String,
    /// For readers of the list only.
    reason: String,
}

struct Compiled {
    skip: Vec<String>,
    terms: Vec<Term>,
    allowed: Vec<CompiledAllowance>,
    /// Identifiers that break no rule; each is met many times.
    unbroken: HashSet<String>,
}

struct CompiledAllowance {
    pattern: Regex,
    path: String,
    label: String,
    used: bool,
}

/// What breaks the rules of the language in the repository at `root`, and allowances that nothing needs.
///
/// # Errors
/// The rules or a file cannot be read.
pub fn check(root: &Path) -> Result<Vec<Finding>, Error> {
    let path = root.join(RULES);
    let text = std::fs::read_to_string(&path).map_err(Error::read(&path))?;
    let mut rules = compiled(&text).map_err(|message| Error::rules(&path, message))?;
    let mut findings = Vec::new();
    for file in source::files(root)? {
        let name = file.to_string_lossy().into_owned();
        if rules.skip.iter().any(|skipped| name.starts_with(skipped.as_str())) {
            continue;
        }
        let full = root.join(&file);
        let bytes = std::fs::read(&full).map_err(Error::read(&full))?;
        check_file(&mut rules, &name, &String::from_utf8_lossy(&bytes), &mut findings);
    }
    findings.extend(unused(&rules));
    Ok(findings)
}

fn compiled(text: &str) -> Result<Compiled, String> {
    let file: RuleFile = toml::from_str(text).map_err(|e| e.to_string())?;
    let mut allowed = Vec::new();
    for Allowance { identifier, path, reason } in file.allow {
        if reason.is_empty() {
            return Err(format!("{identifier} is allowed without a reason"));
        }
        let pattern = Regex::new(&format!("^(?:{identifier})$")).map_err(|e| e.to_string())?;
        allowed.push(CompiledAllowance { pattern, path, label: identifier, used: false });
    }
    Ok(Compiled { skip: file.skip, terms: file.term, allowed, unbroken: HashSet::new() })
}

fn check_file(rules: &mut Compiled, path: &str, text: &str, findings: &mut Vec<Finding>) {
    for (line, identifier) in source::identifiers(path, text) {
        if rules.unbroken.contains(identifier) {
            continue;
        }
        let segments = source::segments(identifier);
        let broken = |term: &&Term| term.segments.iter().any(|segment| segments.contains(segment));
        match rules.terms.iter().find(broken) {
            None => {
                rules.unbroken.insert(identifier.to_owned());
            }
            Some(_) if is_allowed(&mut rules.allowed, path, identifier) => {}
            Some(term) => {
                let text = format!("`{identifier}`: write {}", term.r#use);
                findings.push(Finding { path: path.to_string(), line, text });
            }
        }
    }
}

fn is_allowed(allowed: &mut [CompiledAllowance], path: &str, identifier: &str) -> bool {
    let fits = allowed.iter_mut().find(|one| path.starts_with(&one.path) && one.pattern.is_match(identifier));
    fits.map(|one| one.used = true).is_some()
}

fn unused(rules: &Compiled) -> impl Iterator<Item = Finding> {
    rules.allowed.iter().filter(|one| !one.used).map(|one| Finding {
        path: RULES.to_string(),
        line: 0,
        text: format!("nothing needs the allowance of `{}` in `{}`: remove it", one.label, one.path),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"
        skip = ["CHANGELOG.md"]
        [[term]]
        segments = ["told"]
        use = "reported"
        [[allow]]
        identifier = "told_apart"
        path = "a/"
        reason = "distinguished"
    "#;

    fn findings(path: &str, text: &str) -> Vec<String> {
        let mut rules = compiled(LIST).expect("the list compiles");
        let mut findings = Vec::new();
        check_file(&mut rules, path, text, &mut findings);
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_segment_of_an_identifier_is_found_and_part_of_one_is_not_nor_prose() {
        assert_eq!(findings("a/x.rs", "let is_told = foretold;"), ["a/x.rs:1: `is_told`: write reported"]);
        assert!(findings("a/x.rs", "// It is told.\n").is_empty());
    }

    #[test]
    fn an_allowance_covers_what_it_describes_and_no_more() {
        assert!(findings("a/x.rs", "told_apart()").is_empty());
        assert_eq!(findings("b/x.rs", "told_apart()").len(), 1);
    }

    #[test]
    fn an_allowance_that_nothing_needs_is_a_finding() {
        let rules = compiled(LIST).expect("the list compiles");
        assert_eq!(unused(&rules).count(), 1);
    }

    #[test]
    fn a_list_with_a_mistake_is_refused() {
        for (from, to) in [("told_apart", "("), ("reason = \"distinguished\"", ""), ("segments", "prose")] {
            assert!(compiled(&LIST.replace(from, to)).is_err(), "{to}");
        }
    }
}
