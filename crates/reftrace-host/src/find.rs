//! The tracer of this installation: built and complete. It contains Valgrind's core, so no other Valgrind is searched for.

use std::path::{Path, PathBuf};

use heaptoll_experiment::places::Places;

use crate::error::TracerError;

/// Our tool with Valgrind's core in it, ready to run.
#[derive(Debug, Clone)]
pub struct Tracer {
    folder: PathBuf,
    tool: PathBuf,
    version: String,
}

/// Valgrind's name of this processor.
const PROCESSOR: Option<&str> = if cfg!(target_arch = "x86_64") {
    Some("amd64")
} else if cfg!(target_arch = "aarch64") {
    Some("arm64")
} else {
    None
};

/// The file in the tracer's folder that starts the tool again.
const LAUNCHER: &str = "launcher";

impl Tracer {
    /// Finds it and checks what can be checked without running a program.
    ///
    /// # Errors
    /// The tracer is not built or incomplete.
    pub fn find(places: &Places) -> Result<Tracer, TracerError> {
        Tracer::find_in(&places.tracer())
    }

    pub(crate) fn find_in(folder: &Path) -> Result<Tracer, TracerError> {
        let processor = PROCESSOR.ok_or(TracerError::Processor(std::env::consts::ARCH))?;
        let tool = folder.join(format!("heaptoll-{processor}-linux"));
        if !tool.is_file() {
            return Err(TracerError::NotBuilt { path: tool });
        }
        let incomplete =
            |path: PathBuf, reason: &str| TracerError::Incomplete { path, reason: reason.into() };
        for needed in [LAUNCHER, "default.supp", &format!("vgpreload_core-{processor}-linux.so")] {
            let path = folder.join(needed);
            if !path.is_file() {
                return Err(incomplete(path, "it is missing"));
            }
        }
        let file = folder.join("VERSION");
        let version = std::fs::read_to_string(&file)
            .map_err(|error| TracerError::Incomplete { path: file.clone(), reason: error.to_string() })?;
        if version.trim().is_empty() {
            return Err(incomplete(file, "it names no version"));
        }
        Ok(Tracer { folder: folder.into(), tool, version: version.trim().into() })
    }

    /// Valgrind's version.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The executable.
    pub fn tool(&self) -> &Path {
        &self.tool
    }

    /// Environment variables that Valgrind's core expects of a launcher: where the tool's files are, and what to execute
    /// where the program executes another.
    pub(crate) fn environment(&self) -> [(String, String); 2] {
        let text = |path: &Path| path.display().to_string();
        let launcher = self.folder.join(LAUNCHER);
        [("VALGRIND_LIB".into(), text(&self.folder)), ("VALGRIND_LAUNCHER".into(), text(&launcher))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needed() -> [String; 5] {
        let processor = PROCESSOR.expect("tests run where the tracer does");
        [
            format!("heaptoll-{processor}-linux"),
            format!("vgpreload_core-{processor}-linux.so"),
            "default.supp".into(),
            "launcher".into(),
            "VERSION".into(),
        ]
    }

    /// A tracer's folder.
    fn installed() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for name in needed() {
            std::fs::write(folder.path().join(name), "3.19.0\n").expect("writes");
        }
        folder
    }

    #[test]
    fn a_complete_one_is_found_without_any_other_valgrind() {
        let folder = installed();
        let found = Tracer::find_in(folder.path()).expect("finds");
        assert_eq!(found.version(), "3.19.0");
        let [(_, files), (_, launcher)] = found.environment();
        assert_eq!(
            (Path::new(&files), Path::new(&launcher)),
            (folder.path(), &*folder.path().join("launcher"))
        );
    }

    #[test]
    fn what_is_missing_is_named_with_its_remedy() {
        for name in needed() {
            let folder = installed();
            std::fs::remove_file(folder.path().join(&name)).expect("removes");
            let text = Tracer::find_in(folder.path()).expect_err("refuses").to_string();
            assert!(text.contains(&name) && text.contains("make build"), "{text}");
        }
        let folder = installed();
        std::fs::write(folder.path().join("VERSION"), "\n").expect("writes");
        let text = Tracer::find_in(folder.path()).expect_err("refuses").to_string();
        assert!(text.contains("VERSION") && text.contains("no version"), "{text}");
    }
}
