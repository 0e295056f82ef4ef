//! The copy of the sources in which faults are seeded. It persists from one run to the next, as does what is built from
//! it: a file is written only where its text differs, so that cargo builds again only what a fault touches.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Error;

/// Where copy and build are, from the repository's root.
const FOLDER: &str = "target/faults";

/// A copy of a repository's sources.
#[derive(Debug)]
pub struct Sources {
    folder: PathBuf,
}

impl Sources {
    /// Makes or renews the copy of the repository at `root`.
    ///
    /// # Errors
    /// git does not list the files, or one of them cannot be copied.
    pub fn copy(root: &Path) -> Result<Sources, Error> {
        let sources = Sources { folder: root.join(FOLDER) };
        let listed = listed(root)?;
        for path in &listed {
            let from = root.join(path);
            // A file that is listed and removed is not committed yet.
            if from.is_file() {
                let bytes = fs::read(&from).map_err(Error::read(&from))?;
                write_changed(&sources.path(path), &bytes)?;
                let to = sources.path(path);
                let mode = fs::metadata(&from).map_err(Error::read(&from))?.permissions();
                fs::set_permissions(&to, mode).map_err(Error::write(&to))?;
            }
        }
        sources.remove_others(&sources.path(Path::new("")), &listed)?;
        Ok(sources)
    }

    /// Where a file of the repository is copied to.
    pub fn path(&self, file: &Path) -> PathBuf {
        self.folder.join("sources").join(file)
    }

    /// Where what is built from the copy goes.
    pub fn target(&self) -> PathBuf {
        self.folder.join("build")
    }

    /// Writes a text to a file of the copy.
    ///
    /// # Errors
    /// The system's.
    pub fn write(&self, file: &Path, text: &str) -> Result<(), Error> {
        write_changed(&self.path(file), text.as_bytes())
    }

    /// Reads a file of the copy.
    ///
    /// # Errors
    /// The system's.
    pub fn read(&self, file: &Path) -> Result<String, Error> {
        let path = self.path(file);
        fs::read_to_string(&path).map_err(Error::read(&path))
    }

    /// Removes files of a folder that the repository no longer has.
    fn remove_others(&self, folder: &Path, listed: &BTreeSet<PathBuf>) -> Result<(), Error> {
        for entry in fs::read_dir(folder).map_err(Error::read(folder))? {
            let path = entry.map_err(Error::read(folder))?.path();
            if path.is_dir() {
                self.remove_others(&path, listed)?;
            } else if !path.strip_prefix(self.path(Path::new(""))).is_ok_and(|file| listed.contains(file)) {
                fs::remove_file(&path).map_err(Error::write(&path))?;
            }
        }
        Ok(())
    }
}

/// The files of the repository: what is committed, and what is new and not ignored.
fn listed(root: &Path) -> Result<BTreeSet<PathBuf>, Error> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|source| Error::Run { program: "git", source })?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Error::Git { root: root.to_path_buf(), message });
    }
    let names = String::from_utf8_lossy(&output.stdout);
    Ok(names.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from).collect())
}

fn write_changed(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    if fs::read(path).is_ok_and(|present| present == bytes) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(Error::write(folder))?;
    }
    fs::write(path, bytes).map_err(Error::write(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(root: &Path, arguments: &[&str]) {
        let status = Command::new("git").args(arguments).current_dir(root).status().expect("git runs");
        assert!(status.success());
    }

    #[test]
    fn a_copy_follows_the_repository_and_leaves_unchanged_files_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        git(root, &["init", "-q"]);
        fs::create_dir(root.join("src")).expect("a folder");
        fs::write(root.join(".gitignore"), "target\n").expect("a file");
        fs::write(root.join("src/a.rs"), "a").expect("a file");
        fs::write(root.join("src/b.rs"), "b").expect("a file");
        let (a, b) = (Path::new("src/a.rs"), Path::new("src/b.rs"));
        let sources = Sources::copy(root).expect("a copy");
        let written = |file| fs::metadata(sources.path(file)).expect("a file").modified().expect("a time");
        let before = written(a);
        sources.write(b, "a defect").expect("a write");
        fs::write(root.join("src/c.rs"), "c").expect("a file");
        fs::remove_file(root.join("src/c.rs")).expect("no file");
        fs::write(sources.path(Path::new("src/d.rs")), "d").expect("a file");
        let again = Sources::copy(root).expect("a copy");
        assert_eq!(again.read(b).expect("the file"), "b", "a defect that was left is gone");
        assert_eq!(written(a), before);
        assert!(!again.path(Path::new("src/d.rs")).exists());
    }
}
