//! The shared object, made by the C compiler of the system.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::TailorError;

/// Names that are looked for on the `PATH`, in this order, where `$CC` names none.
const COMPILERS: [&str; 3] = ["cc", "gcc", "clang"];
/// How the source is compiled. Lists of threads are reached without a call; no call of malloc is recognised as one,
/// since these are its definitions; the object takes few pages.
pub const FLAGS: [&str; 14] = [
    "-std=gnu11",
    "-O2",
    "-fPIC",
    "-shared",
    "-pthread",
    "-fvisibility=hidden",
    "-ftls-model=initial-exec",
    "-fno-builtin-malloc",
    "-fno-builtin-calloc",
    "-fno-builtin-realloc",
    "-fno-plt",
    "-fno-asynchronous-unwind-tables",
    "-Wl,-O1,-z,now,-z,norelro,-z,noseparate-code",
    "-Wl,--hash-style=gnu,--build-id=none",
];

/// A C compiler: the words of its command before the flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiler {
    words: Vec<OsString>,
}

impl Compiler {
    /// The compiler of this system: what `$CC` holds (`cc`), else the first of cc, gcc and clang on the `PATH` (`path`).
    ///
    /// # Errors
    /// There is none; `$CC` names none.
    pub fn find(cc: Option<OsString>, path: Option<OsString>) -> Result<Compiler, TailorError> {
        let folders: Vec<PathBuf> = path.iter().flat_map(std::env::split_paths).collect();
        let is_there = |name: &str| {
            name.contains('/') && Path::new(name).is_file()
                || folders.iter().any(|folder| folder.join(name).is_file())
        };
        if let Some(cc) = cc.map(|cc| cc.to_string_lossy().into_owned()).filter(|cc| !cc.trim().is_empty()) {
            let words: Vec<OsString> = cc.split_whitespace().map(OsString::from).collect();
            return match cc.split_whitespace().next() {
                Some(first) if is_there(first) => Ok(Compiler { words }),
                _ => Err(TailorError::NoSuchCompiler { cc }),
            };
        }
        let found = COMPILERS.iter().find(|name| is_there(name)).ok_or(TailorError::NoCompiler)?;
        Ok(Compiler { words: vec![OsString::from(found)] })
    }

    /// Its command as text: `gcc`.
    pub fn name(&self) -> String {
        let words: Vec<_> = self.words.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }

    /// Compiles a source to a shared object. The object is written next to its place and takes it whole, so that
    /// processes that have an older one loaded keep it.
    ///
    /// # Errors
    /// The compiler cannot be started or fails; the folder of `object` cannot be written.
    pub fn compile(&self, source: &Path, object: &Path) -> Result<(), TailorError> {
        let at = |error| TailorError::write(object, error);
        let folder =
            object.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = tempfile::Builder::new().prefix(".heaptoll-").tempdir_in(folder).map_err(at)?;
        let made = folder.path().join("object.so");
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]).args(FLAGS).arg("-o").arg(&made).arg(source).stdin(Stdio::null());
        let output =
            command.output().map_err(|source| TailorError::CannotStart { compiler: self.name(), source })?;
        if !output.status.success() {
            return Err(TailorError::CompilerFails {
                compiler: self.name(),
                code: source.to_owned(),
                text: first_lines(&String::from_utf8_lossy(&output.stderr)),
            });
        }
        fs::rename(&made, object).map_err(at)
    }
}

/// The beginning of what a compiler writes, without what would move a terminal's cursor.
fn first_lines(text: &str) -> String {
    let clean = |line: &str| line.replace(|c: char| c.is_control(), " ");
    let lines: Vec<String> = text.lines().filter(|line| !line.trim().is_empty()).take(5).map(clean).collect();
    if lines.is_empty() { "it wrote no reason".to_owned() } else { lines.join("\n") }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A folder with programs of these names.
    fn folder(names: &[&str], script: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for name in names {
            let path = folder.path().join(name);
            fs::write(&path, script).expect("writes");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("may be executed");
        }
        folder
    }

    #[test]
    fn the_named_compiler_comes_before_those_on_the_path() {
        let folder = folder(&["gcc", "clang", "mine"], "");
        let path = || Some(folder.path().as_os_str().to_owned());
        let found =
            |cc: Option<&str>| Compiler::find(cc.map(OsString::from), path()).map(|found| found.name());
        assert_eq!(found(None).expect("gcc"), "gcc");
        assert_eq!(found(Some(" ")).expect("as if not set"), "gcc");
        assert_eq!(found(Some("mine -m64")).expect("mine"), "mine -m64");
        let error = found(Some("other -m64")).expect_err("is not there").to_string();
        assert!(error.contains("`other -m64`") && error.contains("unset CC"), "{error}");
    }

    #[test]
    fn without_a_compiler_the_error_names_one() {
        let empty = tempfile::tempdir().expect("a folder");
        let error = Compiler::find(None, Some(empty.path().into())).expect_err("there is none").to_string();
        assert!(error.contains("no C compiler") && error.contains("--source"), "{error}");
        assert!(Compiler::find(None, None).is_err());
    }

    #[test]
    fn a_compiler_that_fails_leaves_the_older_object_and_no_other_file() {
        let tools = folder(&["cc"], "#!/bin/sh\necho 'bad\u{1b}[2J flag' >&2\nexit 1\n");
        let cc = tools.path().join("cc").into_os_string();
        let compiler = Compiler::find(Some(cc), None).expect("it is there");
        let out = tempfile::tempdir().expect("a folder");
        let object = out.path().join("my.so");
        fs::write(&object, "older").expect("writes");
        let error = compiler.compile(Path::new("my.c"), &object).expect_err("it fails").to_string();
        assert!(error.contains("bad [2J flag") && error.contains("my.c"), "{error}");
        assert_eq!(fs::read_to_string(&object).expect("it is there"), "older");
        assert_eq!(fs::read_dir(out.path()).expect("a folder").count(), 1);
    }
}
