//! The tracer on this machine: built, complete, and of the same version as the Valgrind that is installed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use heaptoll_experiment::places::Places;

use crate::error::TracerError;

/// Our tool with Valgrind's core in it, ready to run.
#[derive(Debug, Clone)]
pub struct Tracer {
    folder: PathBuf,
    tool: PathBuf,
    launcher: PathBuf,
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

impl Tracer {
    /// Finds it and checks what can be checked without running a program.
    ///
    /// # Errors
    /// Valgrind is missing or another one than the tracer was built with; the tracer is not built or incomplete.
    pub fn find(places: &Places) -> Result<Tracer, TracerError> {
        Tracer::find_in(&places.tracer(), std::env::var_os("PATH").as_deref())
    }

    pub(crate) fn find_in(folder: &Path, search: Option<&std::ffi::OsStr>) -> Result<Tracer, TracerError> {
        let processor = PROCESSOR.ok_or(TracerError::Processor(std::env::consts::ARCH))?;
        let in_path = |name: &str| {
            let folders = search.map(std::env::split_paths).into_iter().flatten();
            folders.map(|folder| folder.join(name)).find(|path| path.is_file())
        };
        let valgrind = in_path("valgrind").ok_or(TracerError::ValgrindMissing)?;
        let tool = folder.join(format!("heaptoll-{processor}-linux"));
        if !tool.is_file() {
            return Err(TracerError::NotBuilt { path: tool });
        }
        let incomplete =
            |path: PathBuf, reason: &str| TracerError::Incomplete { path, reason: reason.into() };
        for needed in ["default.supp".to_string(), format!("vgpreload_core-{processor}-linux.so")] {
            let path = folder.join(needed);
            // Links into Valgrind's own folder: `is_file` follows them.
            if !path.is_file() {
                return Err(incomplete(path, "it is missing, or its target is"));
            }
        }
        let file = folder.join("VERSION");
        let built = std::fs::read_to_string(&file)
            .map_err(|error| TracerError::Incomplete { path: file.clone(), reason: error.to_string() })?;
        let built = plain(&built);
        if built.is_empty() {
            return Err(incomplete(file, "it names no version"));
        }
        let found = version_of(&valgrind)?;
        if found != built {
            return Err(TracerError::OtherVersion { built, found });
        }
        // Debian's `valgrind` is a script that runs the actual launcher.
        let launcher = in_path("valgrind.bin").unwrap_or(valgrind);
        Ok(Tracer { folder: folder.into(), tool, launcher, version: built })
    }

    /// Valgrind's version.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The executable.
    pub(crate) fn tool(&self) -> &Path {
        &self.tool
    }

    /// Environment variables without which it does not run outside Valgrind's launcher.
    pub(crate) fn environment(&self) -> [(String, String); 2] {
        let text = |path: &Path| path.display().to_string();
        [("VALGRIND_LIB".into(), text(&self.folder)), ("VALGRIND_LAUNCHER".into(), text(&self.launcher))]
    }
}

/// `3.19.0` for `valgrind-3.19.0` and for itself.
fn plain(version: &str) -> String {
    let version = version.trim();
    version.strip_prefix("valgrind-").unwrap_or(version).to_string()
}

fn version_of(valgrind: &Path) -> Result<String, TracerError> {
    let broken = |reason: String| TracerError::ValgrindBroken { path: valgrind.into(), reason };
    let output = Command::new(valgrind)
        .arg("--version")
        .stdin(Stdio::null())
        .env_remove("LD_PRELOAD")
        .env_remove("VALGRIND_OPTS")
        .output()
        .map_err(|error| broken(error.to_string()))?;
    let message = String::from_utf8_lossy(&output.stdout).into_owned();
    match plain(&message) {
        version if output.status.success() && version.starts_with(|c: char| c.is_ascii_digit()) => {
            Ok(version)
        }
        _ => Err(broken(format!("{}, `{}`", output.status, message.trim()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &Path, text: &str) {
        heaptoll_scratch::write_executable(path, text).expect("writes");
    }

    /// A tracer's folder and a PATH with a Valgrind that runs `script`.
    fn installed(built: &str, script: &str) -> (tempfile::TempDir, PathBuf, PathBuf) {
        let root = tempfile::tempdir().expect("a folder");
        let (tracer, bin) = (root.path().join("tracer"), root.path().join("bin"));
        for folder in [&tracer, &bin] {
            std::fs::create_dir(folder).expect("makes");
        }
        let processor = PROCESSOR.expect("tests run where the tracer does");
        for name in [
            format!("heaptoll-{processor}-linux"),
            "default.supp".into(),
            format!("vgpreload_core-{processor}-linux.so"),
        ] {
            file(&tracer.join(name), "");
        }
        file(&tracer.join("VERSION"), built);
        file(&bin.join("valgrind"), &format!("#!/bin/sh\n{script}\n"));
        (root, tracer, bin)
    }

    fn find(folder: &Path, bin: &Path) -> Result<Tracer, TracerError> {
        Tracer::find_in(folder, Some(bin.as_os_str()))
    }

    #[test]
    fn what_fits_is_found() {
        let (_root, tracer, bin) = installed("3.19.0\n", "echo valgrind-3.19.0");
        let found = find(&tracer, &bin).expect("finds");
        assert_eq!(found.version(), "3.19.0");
        assert_eq!(found.environment()[1].1, bin.join("valgrind").display().to_string());
        file(&bin.join("valgrind.bin"), "");
        let found = find(&tracer, &bin).expect("finds");
        assert_eq!(found.environment()[1].1, bin.join("valgrind.bin").display().to_string());
    }

    #[test]
    fn what_does_not_fit_is_named_with_its_remedy() {
        let (root, tracer, bin) = installed("3.19.0", "echo valgrind-3.20.0");
        let message = |result: Result<Tracer, TracerError>| result.expect_err("refuses").to_string();
        let text = message(find(&tracer, &bin));
        assert!(text.contains("3.19.0") && text.contains("3.20.0") && text.contains("make build"), "{text}");

        let text = message(find(&tracer, root.path()));
        assert!(text.contains("package `valgrind`"), "{text}");

        file(&bin.join("valgrind"), "#!/bin/sh\nexit 3\n");
        let text = message(find(&tracer, &bin));
        assert!(text.contains("exit status: 3") && text.contains("reinstall"), "{text}");

        std::fs::remove_file(tracer.join("VERSION")).expect("removes");
        let text = message(find(&tracer, &bin));
        assert!(text.contains("VERSION") && text.contains("make build"), "{text}");

        std::fs::remove_file(tracer.join("default.supp")).expect("removes");
        std::os::unix::fs::symlink("/nowhere/default.supp", tracer.join("default.supp")).expect("links");
        let text = message(find(&tracer, &bin));
        assert!(text.contains("default.supp") && text.contains("target"), "{text}");

        let text = message(find(&root.path().join("other"), &bin));
        assert!(text.contains("not built") && text.contains("make build"), "{text}");
    }
}
