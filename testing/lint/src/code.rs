//! The checks of Rust's syntax trees, in one pass: parsing takes longer than they do.

use std::path::{Path, PathBuf};

use crate::{Error, Finding, modules, sentences, sizes, source};

/// What breaks the rules of each check.
#[derive(Debug)]
pub struct Findings {
    pub modules: Vec<Finding>,
    pub sizes: Vec<Finding>,
    pub sentences: Vec<Finding>,
}

/// Checks the code in these folders of the repository at `root`, all when there are none. Files of tests are left out.
///
/// # Errors
/// The rules of a check or a file cannot be read, or a file cannot be parsed.
pub fn check(root: &Path, folders: &[PathBuf]) -> Result<Findings, Error> {
    let mut files = source::files(root)?;
    files.retain(|file| {
        let is_code = file.extension().is_some_and(|ending| ending == "rs");
        is_code && source::is_within(file, folders) && !file.iter().any(|part| part == "tests")
    });
    let mut crates = modules::crates(&files);
    let (mut sizes, mut sentences) = (Vec::new(), Vec::new());
    for file in files {
        let (text, syntax) = source::parsed(root, &file)?;
        crates.add(&file, &syntax);
        sentences.extend(sentences::check(&file, &text, &syntax));
        sizes.push((sizes::measure(&file, &text, &syntax), file));
    }
    Ok(Findings { modules: crates.findings(root)?, sizes: sizes::check(root, folders, &sizes)?, sentences })
}
