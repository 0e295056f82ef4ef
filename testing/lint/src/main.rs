//! `heaptoll-lint [ROOT [FOLDER...]]`: prints what breaks the repository's own rules; ends with 1 when there is something,
//! 2 when a check could not be made. What parses the code takes longest, and is checked in these folders alone.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use heaptoll_lint::{Error, Finding, book, code, folders, language, order};

fn main() -> ExitCode {
    let mut paths = std::env::args_os().skip(1).map(PathBuf::from);
    let root = paths.next().unwrap_or_else(|| ".".into());
    match findings(&root, &paths.collect::<Vec<_>>()) {
        Ok(findings) if findings.is_empty() => ExitCode::SUCCESS,
        Ok(findings) => {
            for finding in &findings {
                println!("{finding}");
            }
            println!("{} findings", findings.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("heaptoll-lint: {error}");
            ExitCode::from(2)
        }
    }
}

fn findings(root: &Path, folders: &[PathBuf]) -> Result<Vec<Finding>, Error> {
    let mut findings = folders::check(root)?;
    let code = code::check(root, folders)?;
    findings.extend(code.modules);
    findings.extend(order::check(root)?);
    findings.extend(code.sizes);
    findings.extend(code.sentences);
    findings.extend(language::check(root)?);
    findings.extend(book::check(root)?);
    Ok(findings)
}
