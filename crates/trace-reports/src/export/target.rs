//! The file that an export goes to: its name, and whether it may be written.

use std::path::{Path, PathBuf};

use heaptoll_command::failure::Failure;
use heaptoll_command::writable;

/// The file that was requested; without one, that of the trace's name in the current folder. `file_name` makes it of the
/// trace's name without its extension.
///
/// # Errors
/// It is the trace itself; a trace from standard input has no name.
pub fn path(
    trace: &Path,
    requested: Option<&Path>,
    file_name: impl Fn(&str) -> String,
) -> Result<PathBuf, Failure> {
    let path = match requested {
        Some(path) => path.to_path_buf(),
        None => default_path(trace, file_name)?,
    };
    let same = std::fs::canonicalize(&path)
        .and_then(|path| Ok(path == std::fs::canonicalize(trace)?))
        .unwrap_or(false);
    if same {
        return Err(Failure::Usage(format!("{} is the trace itself: name another file", path.display())));
    }
    Ok(path)
}

/// Refuses a file that exists, unless `force`, and one that cannot be written.
///
/// # Errors
/// One of the two.
pub fn check(path: &Path, force: bool) -> Result<(), Failure> {
    // Devices and pipes are there to be written to.
    if !force && path.is_file() {
        return Err(Failure::Usage(format!(
            "{} exists: name another file with -o, or pass --force to replace it",
            path.display()
        )));
    }
    writable::check(path).map_err(|why| Failure::Usage(format!("cannot write {}: {why}", path.display())))
}

fn default_path(trace: &Path, file_name: impl Fn(&str) -> String) -> Result<PathBuf, Failure> {
    let name = trace.file_name().filter(|_| trace != Path::new("-"));
    let name = name.ok_or_else(|| {
        Failure::Usage("a trace from standard input has no name: name the file to write with -o".to_owned())
    })?;
    let name = name.to_string_lossy();
    Ok(PathBuf::from(file_name(name.strip_suffix(".heaptoll").unwrap_or(&name))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_trace() {
        let name = |trace: &str| path(Path::new(trace), None, |name| format!("{name}.parquet")).ok();
        assert_eq!(name("/data/gawk.heaptoll"), Some("gawk.parquet".into()));
        assert_eq!(name("gawk.heaptoll.children/1234.2.heaptoll"), Some("1234.2.parquet".into()));
        assert_eq!(name("trace"), Some("trace.parquet".into()));
        assert_eq!(name("-"), None);
    }
}
