//! `heaptoll-lint [ROOT]`: prints what breaks the repository's own rules; ends with 1 when there is something, 2 when a
//! check could not be made.

use std::path::Path;
use std::process::ExitCode;

use heaptoll_lint::{Error, Finding, book, folders, language, modules, order, sizes};

fn main() -> ExitCode {
    let root = std::env::args_os().nth(1).unwrap_or_else(|| ".".into());
    match findings(Path::new(&root)) {
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

fn findings(root: &Path) -> Result<Vec<Finding>, Error> {
    let mut findings = folders::check(root)?;
    findings.extend(modules::check(root)?);
    findings.extend(order::check(root)?);
    findings.extend(sizes::check(root)?);
    findings.extend(language::check(root)?);
    findings.extend(book::check(root)?);
    Ok(findings)
}
