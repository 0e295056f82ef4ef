//! A recording until it is checked: next to its place, under a name that no stack looks for.

use std::path::{Path, PathBuf};

/// What the name ends with.
const ENDING: &str = ".unchecked";

/// A recording that is removed unless it was given its name.
pub struct Unchecked(PathBuf);

impl Unchecked {
    /// The recording that is to take this place. Removes those which processes that are gone have left there.
    pub fn next_to(place: &Path) -> Unchecked {
        let start = start(place);
        for path in left(place, &start) {
            let _ = std::fs::remove_file(path);
        }
        Unchecked(place.with_file_name(format!("{start}{}{ENDING}", std::process::id())))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Unchecked {
    fn drop(&mut self) {
        // It is not there any more where it was given its name.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The name before the number of the process.
fn start(place: &Path) -> String {
    format!(".{}.", place.file_name().unwrap_or_default().to_string_lossy())
}

/// The recordings of processes that are gone.
fn left(place: &Path, start: &str) -> Vec<PathBuf> {
    let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_left = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        let process =
            name.and_then(|name| name.strip_prefix(start)?.strip_suffix(ENDING)?.parse::<u32>().ok());
        process.is_some_and(is_gone)
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(is_left).collect()
}

/// Whether there is no process of this number. Without /proc that is unknown.
fn is_gone(process: u32) -> bool {
    Path::new("/proc/self").exists() && !Path::new("/proc").join(process.to_string()).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_run_has_left_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        // No process has such a number (kernel.pid_max is at most 2^22).
        let left = at(".a.oracle.4194999.unchecked");
        let own = at(&format!(".a.oracle.{}.unchecked", std::process::id()));
        let others = [own, at(".b.oracle.4194999.unchecked"), at(".a.oracle.x.unchecked"), at("a.oracle")];
        for path in others.iter().chain([&left]) {
            std::fs::write(path, "x").expect("writes");
        }
        let unchecked = Unchecked::next_to(&at("a.oracle"));
        assert!(!left.exists());
        assert!(others.iter().all(|path| path.exists()));
        assert_eq!(unchecked.path(), others[0]);
    }
}
