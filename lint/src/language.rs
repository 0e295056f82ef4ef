//! The words of the code and its texts: `lint/language.toml` lists words with another meaning in the field, or none, and
//! the term to use; an allowance names where a word has its plain or technical sense, and why.

use std::collections::HashSet;
use std::path::Path;

use regex::Regex;
use serde::Deserialize;

use crate::source::{self, Part};
use crate::{Error, Finding};

/// Where the rules are, from the repository's root.
pub const RULES: &str = "lint/language.toml";

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
    #[serde(default)]
    segments: Vec<String>,
    /// A pattern of comments, messages and pages; words, whatever their case.
    #[serde(default)]
    prose: Option<String>,
    /// What to write instead.
    r#use: String,
}

/// Exactly one of `identifier` and `prose`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Allowance {
    /// A whole identifier, a pattern.
    #[serde(default)]
    identifier: Option<String>,
    /// A pattern that covers the term where it stands.
    #[serde(default)]
    prose: Option<String>,
    /// Where a path begins; everywhere when missing.
    #[serde(default)]
    path: String,
    /// For readers of the list only.
    reason: String,
}

struct Compiled {
    skip: Vec<String>,
    terms: Vec<CompiledTerm>,
    /// Matches where some term's pattern does: nearly no line has one, and one search is cheaper than one a term.
    any_prose: Regex,
    allowed: Vec<CompiledAllowance>,
    /// Identifiers that break no rule; each is met many times.
    unbroken: HashSet<String>,
}

struct CompiledTerm {
    segments: Vec<String>,
    prose: Option<Regex>,
    instead: String,
}

struct CompiledAllowance {
    identifiers: bool,
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
    let pattern = |text: &str, whole: bool| {
        let text = if whole { format!("^(?:{text})$") } else { format!(r"(?i)\b(?:{text})\b") };
        Regex::new(&text).map_err(|e| e.to_string())
    };
    let prose: Vec<&str> = file.term.iter().filter_map(|term| term.prose.as_deref()).collect();
    let any_prose = pattern(&prose.join("|"), false)?;
    let mut terms = Vec::new();
    for term in file.term {
        let prose = term.prose.map(|prose| pattern(&prose, false)).transpose()?;
        terms.push(CompiledTerm { segments: term.segments, prose, instead: term.r#use });
    }
    let mut allowed = Vec::new();
    for one in file.allow {
        let (identifiers, text) = match (&one.identifier, &one.prose) {
            (Some(text), None) => (true, text),
            (None, Some(text)) => (false, text),
            _ => return Err(format!("an allowance has one of identifier and prose: {}", one.reason)),
        };
        if one.reason.is_empty() {
            return Err(format!("{text} is allowed without a reason"));
        }
        let pattern = pattern(text, identifiers)?;
        allowed.push(CompiledAllowance {
            identifiers,
            pattern,
            path: one.path,
            label: text.clone(),
            used: false,
        });
    }
    Ok(Compiled { skip: file.skip, terms, any_prose, allowed, unbroken: HashSet::new() })
}

fn check_file(rules: &mut Compiled, path: &str, text: &str, findings: &mut Vec<Finding>) {
    for (line, part) in source::parts(path, text) {
        let mut add = |word: &str, instead: &str| {
            let text = format!("`{word}`: write {instead}");
            findings.push(Finding { path: path.to_string(), line, text });
        };
        match part {
            Part::Identifier(identifier) if rules.unbroken.contains(identifier) => {}
            Part::Identifier(identifier) => {
                let segments = source::segments(identifier);
                let broken = |term: &&CompiledTerm| term.segments.iter().any(|s| segments.contains(s));
                match rules.terms.iter().find(broken) {
                    None => {
                        rules.unbroken.insert(identifier.to_owned());
                    }
                    Some(term) => {
                        if !is_allowed(&mut rules.allowed, true, path, |allowed| allowed.is_match(identifier))
                        {
                            add(identifier, &term.instead);
                        }
                    }
                }
            }
            Part::Prose(prose) if !rules.any_prose.is_match(prose) => {}
            Part::Prose(prose) => {
                for term in &rules.terms {
                    for hit in term.prose.iter().flat_map(|pattern| pattern.find_iter(prose)) {
                        let covers = |allowed: &Regex| {
                            allowed.find_iter(prose).any(|a| a.start() <= hit.start() && hit.end() <= a.end())
                        };
                        if !is_allowed(&mut rules.allowed, false, path, covers) {
                            add(hit.as_str(), &term.instead);
                        }
                    }
                }
            }
        }
    }
}

fn is_allowed(
    allowed: &mut [CompiledAllowance],
    identifiers: bool,
    path: &str,
    covers: impl Fn(&Regex) -> bool,
) -> bool {
    let fits = allowed
        .iter_mut()
        .find(|one| one.identifiers == identifiers && path.starts_with(&one.path) && covers(&one.pattern));
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
        prose = "told"
        use = "reported"
        [[term]]
        prose = "the caller's word"
        use = "the precondition"
        [[allow]]
        prose = "told apart"
        reason = "distinguished"
        [[allow]]
        identifier = "told_apart"
        path = "a/"
        reason = "the same"
    "#;

    fn findings(path: &str, text: &str) -> Vec<String> {
        let mut rules = compiled(LIST).expect("the list compiles");
        let mut findings = Vec::new();
        check_file(&mut rules, path, text, &mut findings);
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_segment_of_an_identifier_is_found_and_part_of_one_is_not() {
        assert_eq!(findings("a/x.rs", "let is_told = foretold;"), ["a/x.rs:1: `is_told`: write reported"]);
    }

    #[test]
    fn prose_is_found_in_comments_messages_and_pages() {
        assert_eq!(findings("a/x.rs", "// It is Told.\n"), ["a/x.rs:1: `Told`: write reported"]);
        assert_eq!(findings("a/x.rs", "\"it is told\""), ["a/x.rs:1: `told`: write reported"]);
        assert_eq!(
            findings("x.md", "\nby the caller's word"),
            ["x.md:2: `the caller's word`: write the precondition"]
        );
    }

    #[test]
    fn an_allowance_covers_what_it_describes_and_no_more() {
        assert!(findings("x.md", "they are told apart").is_empty());
        assert_eq!(findings("x.md", "told apart and told").len(), 1);
        assert!(findings("a/x.rs", "told_apart()").is_empty());
        assert_eq!(findings("b/x.rs", "told_apart()").len(), 1);
    }

    #[test]
    fn an_allowance_that_nothing_needs_is_a_finding() {
        let rules = compiled(LIST).expect("the list compiles");
        assert_eq!(unused(&rules).count(), 2);
    }

    #[test]
    fn a_list_with_a_mistake_is_refused() {
        for (from, to) in [
            ("told apart", "("),
            ("reason = \"the same\"", ""),
            ("identifier =", "prose = \"x\"\nidentifier ="),
        ] {
            assert!(compiled(&LIST.replace(from, to)).is_err(), "{to}");
        }
    }
}
