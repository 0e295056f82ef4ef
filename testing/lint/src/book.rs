//! The pages of the book: each is in its summary, and each link in them leads to a file and a heading that exist. So does
//! each path that pages for contributors name.
//! Links with a scheme (`https:`) are left alone: the check needs no network.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::{Error, Finding, source};

/// The book's folder.
const FOLDER: &str = "docs/";
/// The list of its pages, in the form of mdBook.
const SUMMARY: &str = "docs/SUMMARY.md";
const README: &str = "README.md";
/// Pages outside the book that lead into it.
const OUTSIDE: [&str; 2] = [README, "CONTRIBUTING.md"];
/// Where pages for contributors begin.
const FOR_CONTRIBUTORS: [&str; 2] = ["docs/contributing/", "CONTRIBUTING.md"];
/// The pages that `make reference` writes: they are not in the repository, so only the summary links to them.
const GENERATED: [&str; 2] = ["docs/reference/options.md", "docs/reference/json-fields.md"];
/// The most lines of the README: what does not fit is in the book.
const README_LINES: usize = 70;

/// What a page refers to, and what of it can be referred to.
#[derive(Default)]
struct Page {
    /// Of its headings, as GitHub makes them.
    anchors: BTreeSet<String>,
    /// Destinations and their lines.
    links: Vec<(usize, String)>,
    /// Words of code with a slash, and their lines.
    paths: Vec<(usize, String)>,
}

/// Pages by their paths from the root.
type Pages = BTreeMap<String, Page>;

/// Links of the repository at `root` that lead nowhere, pages that are not in the summary, and a README that is too
/// long.
///
/// # Errors
/// A page cannot be read.
pub fn check(root: &Path) -> Result<Vec<Finding>, Error> {
    let mut pages = Pages::new();
    let mut findings = Vec::new();
    for file in source::files(root)? {
        let path = file.to_string_lossy().into_owned();
        let is_page = path.starts_with(FOLDER) && path.ends_with(".md");
        if !is_page && !OUTSIDE.contains(&path.as_str()) {
            continue;
        }
        let full = root.join(&file);
        let text = std::fs::read_to_string(&full).map_err(Error::read(&full))?;
        if path == README && text.lines().count() > README_LINES {
            let text =
                format!("has more than {README_LINES} lines: move what is not needed first into docs/");
            findings.push(Finding { path: path.clone(), line: 0, text });
        }
        pages.insert(path, parsed(&text));
    }
    for (path, page) in &pages {
        let broken = |(line, link): &(usize, String)| {
            let text = fault(root, &pages, path, link)?;
            Some(Finding { path: path.clone(), line: *line, text })
        };
        findings.extend(page.links.iter().filter_map(broken));
        if FOR_CONTRIBUTORS.iter().any(|start| path.starts_with(start)) {
            let gone = page.paths.iter().filter(|(_, named)| is_gone(root, named));
            findings.extend(gone.map(|(line, named)| Finding {
                path: path.clone(),
                line: *line,
                text: format!("names `{named}`, which does not exist"),
            }));
        }
    }
    findings.extend(unlisted(&pages));
    Ok(findings)
}

fn parsed(text: &str) -> Page {
    let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_STRIKETHROUGH;
    let mut page = Page::default();
    let mut heading: Option<String> = None;
    let mut in_block = false;
    for (event, place) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                page.links.push((line_of(text, place.start), dest_url.into_string()));
            }
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                if let Some(title) = heading.take() {
                    let anchor = anchor(&title, &page.anchors);
                    page.anchors.insert(anchor);
                }
            }
            Event::Start(Tag::CodeBlock(_)) => in_block = true,
            Event::End(TagEnd::CodeBlock) => in_block = false,
            Event::Text(ref part) | Event::Code(ref part) => {
                if let Some(title) = &mut heading {
                    title.push_str(part);
                }
                if in_block || matches!(event, Event::Code(_)) {
                    let words =
                        part.split_whitespace().map(|word| word.trim_end_matches([',', ';', ':', ')']));
                    let paths = words.filter(|word| word.contains('/'));
                    page.paths.extend(paths.map(|word| (line_of(text, place.start), word.to_owned())));
                }
            }
            _ => {}
        }
    }
    page
}

/// The line, from 1, of a place in a text.
fn line_of(text: &str, place: usize) -> usize {
    text.get(..place).unwrap_or_default().matches('\n').count() + 1
}

/// Whether a word is a path from a folder of the repository that leads nowhere. A part in capitals stands for names, and
/// what is built is no part of the repository.
fn is_gone(root: &Path, word: &str) -> bool {
    let stem = |part: &Path| part.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let is_name = |part: &&Path| stem(part).chars().any(char::is_lowercase);
    let path: std::path::PathBuf = Path::new(word).iter().map(Path::new).take_while(is_name).collect();
    let first = path.iter().next().filter(|first| *first != "target");
    first.is_some_and(|first| root.join(first).is_dir()) && !root.join(path).exists()
}

/// The anchor that GitHub gives a heading: letters, digits, `_` and `-` in lower case, `-` for a space, and a number
/// for a title that the page has already.
fn anchor(title: &str, taken: &BTreeSet<String>) -> String {
    let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    let plain = kept.collect::<String>().to_lowercase().replace(' ', "-");
    let mut anchor = plain.clone();
    let mut number = 0;
    while taken.contains(&anchor) {
        number += 1;
        anchor = format!("{plain}-{number}");
    }
    anchor
}

/// What is wrong with a link of the page `from`, if anything.
fn fault(root: &Path, pages: &Pages, from: &str, link: &str) -> Option<String> {
    if has_scheme(link) {
        return None;
    }
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
    let Some(target) = resolved(from, path) else {
        return Some(format!("`{link}` leads out of the repository"));
    };
    let is_generated = GENERATED.contains(&target.as_str());
    if from == SUMMARY && is_generated {
        return None;
    }
    if !root.join(&target).exists() || is_generated {
        return Some(format!("`{link}` leads to no file: {target} does not exist"));
    }
    let anchor = anchor?;
    let has_anchor = pages.get(&target).is_some_and(|page| page.anchors.contains(anchor));
    (!has_anchor).then(|| format!("`{link}`: {target} has no heading with the anchor #{anchor}"))
}

fn has_scheme(link: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    link.split_once(':').is_some_and(|(scheme, _)| !scheme.is_empty() && scheme.chars().all(is_part))
}

/// The path from the root of what a page names by a relative path; the page itself for an empty one. `None` for an
/// absolute one and what lies above the root.
fn resolved(from: &str, path: &str) -> Option<String> {
    if path.is_empty() {
        return Some(from.to_owned());
    }
    if path.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// Pages of the book that its summary lacks, or has twice.
fn unlisted(pages: &Pages) -> Vec<Finding> {
    let Some(summary) = pages.get(SUMMARY) else {
        let text = "does not exist: it lists the pages of the book".to_owned();
        return vec![Finding { path: SUMMARY.to_owned(), line: 0, text }];
    };
    let mut findings = Vec::new();
    let mut listed = BTreeSet::new();
    for (line, link) in &summary.links {
        let is_new = resolved(SUMMARY, link).is_none_or(|page| listed.insert(page));
        if !is_new {
            let text = format!("`{link}` is listed already");
            findings.push(Finding { path: SUMMARY.to_owned(), line: *line, text });
        }
    }
    let of_book = pages.keys().filter(|path| path.starts_with(FOLDER) && *path != SUMMARY);
    findings.extend(of_book.filter(|path| !listed.contains(*path)).map(|path| Finding {
        path: path.clone(),
        line: 0,
        text: format!("is not in {SUMMARY}: add it where readers find it"),
    }));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the check finds in a tree of these files, of which the README and the summary are complete by themselves.
    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a folder");
        let complete = [
            ("README.md", "[the book](docs/SUMMARY.md) and [its page](docs/questions/one.md#the-answer)"),
            (SUMMARY, "# Guide\n- [One](questions/one.md)\n"),
            ("docs/questions/one.md", "# One\n\n## The answer\n[up](../../README.md)\n"),
        ];
        for (path, text) in complete.iter().chain(files) {
            let full = folder.path().join(path);
            std::fs::create_dir_all(full.parent().expect("a parent")).expect("makes");
            std::fs::write(full, text).expect("writes");
        }
        check(folder.path()).expect("the check is made").iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_complete_book_has_no_findings() {
        assert_eq!(findings(&[]), [""; 0]);
    }

    #[test]
    fn a_page_outside_the_summary_is_found() {
        let expected = ["docs/questions/two.md: is not in docs/SUMMARY.md: add it where readers find it"];
        assert_eq!(findings(&[("docs/questions/two.md", "# Two")]), expected);
    }

    #[test]
    fn a_page_that_only_the_summary_has_is_found() {
        let summary = "- [One](questions/one.md)\n- [Two](questions/two.md)\n";
        let expected =
            ["docs/SUMMARY.md:2: `questions/two.md` leads to no file: docs/questions/two.md does not exist"];
        assert_eq!(findings(&[(SUMMARY, summary)]), expected);
    }

    #[test]
    fn a_page_that_make_reference_writes_is_for_the_summary_alone() {
        let summary = "- [One](questions/one.md)\n- [Options](reference/options.md)\n";
        assert_eq!(findings(&[(SUMMARY, summary)]), [""; 0]);
        let page = "## The answer\n[options](../reference/options.md)\n";
        let expected = [
            "docs/questions/one.md:2: `../reference/options.md` leads to no file: docs/reference/options.md does not exist",
        ];
        assert_eq!(findings(&[("docs/questions/one.md", page)]), expected);
    }

    #[test]
    fn a_page_that_the_summary_has_twice_is_found() {
        let summary = "- [One](questions/one.md)\n- [Again](questions/one.md)\n";
        assert_eq!(
            findings(&[(SUMMARY, summary)]),
            ["docs/SUMMARY.md:2: `questions/one.md` is listed already"]
        );
    }

    #[test]
    fn a_path_that_a_page_for_contributors_names_exists() {
        let page = "Write `docs/questions/one.md`, `docs/questions/NAME.md`, `docs/new/x.md` or `other/x`.\n\n\
                    ```\ndocs/SUMMARY.md, docs/gone/\n```\n";
        let summary = "- [One](questions/one.md)\n- [Places](contributing/places.md)\n";
        let expected = [
            "docs/contributing/places.md:1: names `docs/new/x.md`, which does not exist",
            "docs/contributing/places.md:4: names `docs/gone/`, which does not exist",
        ];
        assert_eq!(findings(&[(SUMMARY, summary), ("docs/contributing/places.md", page)]), expected);
    }

    #[test]
    fn a_book_without_a_summary_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let found = check(folder.path()).expect("the check is made");
        assert_eq!(found[0].to_string(), "docs/SUMMARY.md: does not exist: it lists the pages of the book");
    }

    #[test]
    fn links_to_missing_files_and_headings_are_found_with_their_lines() {
        let page = "# One\n\n## The answer\n\n| a |\n|---|\n| [x](gone.md) |\n\n\
                    ![picture](../shot.png)\n[here](#nowhere) and [there](../../README.md#top)\n";
        let expected = [
            "docs/questions/one.md:7: `gone.md` leads to no file: docs/questions/gone.md does not exist",
            "docs/questions/one.md:9: `../shot.png` leads to no file: docs/shot.png does not exist",
            "docs/questions/one.md:10: `#nowhere`: docs/questions/one.md has no heading with the anchor #nowhere",
            "docs/questions/one.md:10: `../../README.md#top`: README.md has no heading with the anchor #top",
        ];
        assert_eq!(findings(&[("docs/questions/one.md", page)]), expected);
    }

    #[test]
    fn links_that_leave_the_repository_are_found() {
        let page = "## The answer\n[a](../../../x.md)\n[b](/etc/passwd)\n";
        let expected = [
            "docs/questions/one.md:2: `../../../x.md` leads out of the repository",
            "docs/questions/one.md:3: `/etc/passwd` leads out of the repository",
        ];
        assert_eq!(findings(&[("docs/questions/one.md", page)]), expected);
    }

    #[test]
    fn links_of_the_network_and_in_code_are_left_alone() {
        let page = "## The answer\n[a](https://example.org/x#y), <mailto:a@example.org>\n\n\
                    ```\n[b](gone.md)\n```\n`[c](gone.md)`\n";
        assert_eq!(findings(&[("docs/questions/one.md", page)]), [""; 0]);
    }

    #[test]
    fn anchors_are_those_of_github() {
        let text = "# What malloc costs: `heaptoll exact instructions`\n## Its _own_ cost, per-call\n## JSON (`a-b/1`)\n\
                    ## Twice\n## Twice\n";
        let anchors: Vec<String> = parsed(text).anchors.into_iter().collect();
        assert_eq!(
            anchors,
            [
                "its-own-cost-per-call",
                "json-a-b1",
                "twice",
                "twice-1",
                "what-malloc-costs-heaptoll-exact-instructions"
            ]
        );
    }

    #[test]
    fn a_readme_that_is_too_long_is_found() {
        let readme = "[the book](docs/SUMMARY.md)\n".repeat(README_LINES + 1);
        let expected =
            ["README.md: has more than 70 lines: move what is not needed first into docs/".to_owned()];
        assert_eq!(findings(&[("README.md", &readme)]), expected);
    }
}
