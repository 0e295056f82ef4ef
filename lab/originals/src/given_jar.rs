//! Suites in Java that a user has as a jar: heaptoll neither fetches nor copies them.
//!
//! A suite may need files next to its jar, so the jar stays where it is. What is kept of it is an argument file for the
//! virtual machine, which names the jar, and its digest, by which another jar at that path is refused. The jar is proved
//! by the list of programs that it prints.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use heaptoll_catalog::FileDigest;
use heaptoll_peers::RecipeError;
use heaptoll_scratch::Scratch;
use serde::Deserialize;
use thiserror::Error;

use crate::install::put_in_place;
use crate::recipe::read;

/// The recipe's file.
const RECIPE: &str = "jar.toml";
/// The argument file, in the folder of the suite.
pub const ARGUMENTS: &str = "jar.args";
/// The digest, as `sha256sum` writes it, in the folder of the suite.
pub const DIGESTS: &str = "jar.sha256";

/// A recipe that has been read and checked.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenJar {
    /// What the user types, and the folder that keeps what is known of the jar.
    name: String,
    /// The licence, in a line.
    licence: String,
    /// Where the jar comes from.
    home: String,
    /// Arguments with which it lists its programs.
    list: Vec<String>,
    /// Programs that must be in that list.
    programs: Vec<String>,
}

/// Why a jar is not taken.
#[derive(Debug, Error)]
pub enum GivenJarError {
    /// The recipe makes no sense, or a folder cannot be written.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// No jar was named.
    #[error("{name} is not fetched; download it from {home} and name the jar: --from PATH.jar")]
    NotGiven {
        /// The suite.
        name: String,
        /// Where it comes from.
        home: String,
    },
    /// The jar cannot be read.
    #[error("cannot read {}: {source}; give the path of a jar", path.display())]
    Read {
        /// The jar.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Its path cannot stand in an argument file.
    #[error("{} has a name that the virtual machine's argument files cannot hold; move it", path.display())]
    Name {
        /// The jar.
        path: PathBuf,
    },
    /// It is not the jar that was required.
    #[error("{} is another file (SHA-256 {found}, not {expected}); {remedy}", path.display())]
    Digest {
        /// The jar.
        path: PathBuf,
        /// Its digest.
        found: String,
        /// The one required.
        expected: String,
        /// What to do.
        remedy: String,
    },
    /// It is no such suite.
    #[error("{} is not {name}: {problem}", path.display())]
    Other {
        /// The jar.
        path: PathBuf,
        /// The suite.
        name: String,
        /// What was found.
        problem: String,
    },
}

impl GivenJar {
    /// Whether a folder holds a recipe of this kind.
    pub fn is_in(folder: &Path) -> bool {
        folder.join(RECIPE).is_file()
    }

    /// Reads a recipe.
    ///
    /// # Errors
    /// [`RecipeError::Recipe`].
    pub fn load(folder: &Path) -> Result<GivenJar, RecipeError> {
        let file = folder.join(RECIPE);
        let recipe: GivenJar = read(&file)?;
        let problem = |problem: String| RecipeError::Recipe { file: file.clone(), problem };
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if recipe.name.is_empty() || !recipe.name.chars().all(plain) {
            return Err(problem(format!("`{}` is not the name of a folder", recipe.name)));
        }
        if recipe.programs.is_empty() {
            return Err(problem("it names no program that the jar must have".into()));
        }
        Ok(recipe)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The licence of the jar.
    pub fn licence(&self) -> &str {
        &self.licence
    }

    /// Records the jar `from` in `INTO/NAME`; `java` starts the virtual machine that lists its programs. The jar must
    /// have the digest `expected` (hexadecimal, where one is given), and the one that was recorded before, if any.
    /// Returns the folder and the digest.
    ///
    /// # Errors
    /// [`GivenJarError`]; nothing is changed then.
    pub fn add(
        &self,
        from: Option<&Path>,
        expected: Option<&str>,
        into: &Path,
        java: &Path,
    ) -> Result<(PathBuf, String), GivenJarError> {
        let not_given = || GivenJarError::NotGiven { name: self.name.clone(), home: self.home.clone() };
        let jar = from.ok_or_else(not_given)?;
        let unreadable = |source| GivenJarError::Read { path: jar.to_owned(), source };
        let jar = &jar.canonicalize().map_err(unreadable)?;
        let found = FileDigest::read(jar).map_err(unreadable)?.sha256;
        self.compare(jar, &found, expected, into)?;
        let name = jar.to_str().filter(|name| !name.contains(['\n', '\r']));
        let name = name.ok_or_else(|| GivenJarError::Name { path: jar.clone() })?;
        let unwritable = |source| RecipeError::Write { path: into.to_owned(), source };
        fs::create_dir_all(into).map_err(unwritable)?;
        // On the file system of the result, so that a rename completes it.
        let scratch = Scratch::make_in(into).map_err(unwritable)?;
        let made = scratch.path().join("made");
        fs::create_dir(&made).map_err(unwritable)?;
        let quoted = name.replace('\\', "\\\\").replace('"', "\\\"");
        write(&made.join(ARGUMENTS), &format!("-jar\n\"{quoted}\"\n")).map_err(unwritable)?;
        write(&made.join(DIGESTS), &format!("{found}  {name}\n")).map_err(unwritable)?;
        self.prove(jar, java, &made)?;
        let home = into.join(&self.name);
        put_in_place(&made, &home, scratch.path()).map_err(unwritable)?;
        Ok((home, found))
    }

    /// Compares a jar's digest with the required one, and with the recorded one.
    fn compare(
        &self,
        jar: &Path,
        found: &str,
        expected: Option<&str>,
        into: &Path,
    ) -> Result<(), GivenJarError> {
        let other = |expected: &str, remedy: String| {
            let (path, found, expected) = (jar.to_owned(), found.to_owned(), expected.to_owned());
            Err(GivenJarError::Digest { path, found, expected, remedy })
        };
        if let Some(expected) = expected.filter(|expected| !expected.eq_ignore_ascii_case(found)) {
            return other(expected, "download it again, or correct --sha256".into());
        }
        let home = into.join(&self.name);
        let recorded = fs::read_to_string(home.join(DIGESTS)).unwrap_or_default();
        match recorded.split_whitespace().next() {
            Some(recorded) if recorded != found => {
                other(recorded, format!("remove {} to measure this one from now on", home.display()))
            }
            _ => Ok(()),
        }
    }

    /// Has the jar list its programs, in the folder `made`.
    fn prove(&self, jar: &Path, java: &Path, made: &Path) -> Result<(), GivenJarError> {
        let other =
            |problem: String| GivenJarError::Other { path: jar.to_owned(), name: self.name.clone(), problem };
        let mut command = Command::new(java);
        command.arg(format!("@{}", made.join(ARGUMENTS).display())).args(&self.list);
        let output = command.stdin(Stdio::null()).current_dir(made).output().map_err(|error| {
            other(format!("{} did not start ({error}); apt-get install default-jdk-headless", java.display()))
        })?;
        let printed = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .join("\n");
        let words: Vec<&str> = printed.split_whitespace().collect();
        if let Some(missing) = self.programs.iter().find(|program| !words.contains(&program.as_str())) {
            let last = printed.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("nothing");
            return Err(other(format!(
                "with {} it lists no {missing}, but ends with: {last}",
                self.list.join(" ")
            )));
        }
        Ok(())
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    File::create_new(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const TEXT: &str = "name = \"suite\"\nlicence = \"L\"\nhome = \"https://x/\"\nlist = [\"-l\"]\n\
        programs = [\"one\", \"two\"]\n";

    /// A folder with a recipe, a jar, and a stand-in for `java` that prints `listed`.
    fn fixture(listed: &str) -> (tempfile::TempDir, GivenJar) {
        let here = tempfile::tempdir().expect("a folder");
        let at = |name: &str| here.path().join(name);
        fs::write(at(RECIPE), TEXT).expect("written");
        fs::write(at("a \"b\".jar"), "a jar").expect("written");
        fs::write(at("java"), format!("#!/bin/sh\necho {listed}\n")).expect("written");
        fs::set_permissions(at("java"), fs::Permissions::from_mode(0o755)).expect("made executable");
        let recipe = GivenJar::load(here.path()).expect("a recipe");
        (here, recipe)
    }

    fn add(
        here: &Path,
        recipe: &GivenJar,
        expected: Option<&str>,
    ) -> Result<(PathBuf, String), GivenJarError> {
        recipe.add(Some(&here.join("a \"b\".jar")), expected, &here.join("into"), &here.join("java"))
    }

    #[test]
    fn a_jar_is_recorded_by_path_and_digest_and_another_one_is_refused() {
        let (here, recipe) = fixture("zero one two");
        let (folder, found) = add(here.path(), &recipe, None).expect("taken");
        let recorded = fs::read_to_string(folder.join(DIGESTS)).expect("recorded");
        assert!(recorded.starts_with(&format!("{found}  /")) && recorded.ends_with("a \"b\".jar\n"));
        let arguments = fs::read_to_string(folder.join(ARGUMENTS)).expect("written");
        assert!(arguments.ends_with("a \\\"b\\\".jar\"\n"), "{arguments}");
        add(here.path(), &recipe, Some(&found.to_uppercase())).expect("the same again");
        fs::write(here.path().join("a \"b\".jar"), "another jar").expect("written");
        let error = add(here.path(), &recipe, None).expect_err("another digest").to_string();
        assert!(error.contains(&found) && error.contains("remove"), "{error}");
        assert_eq!(fs::read_to_string(folder.join(DIGESTS)).expect("still there"), recorded);
        let error = add(here.path(), &recipe, Some(&found)).expect_err("another digest").to_string();
        assert!(error.contains("--sha256"), "{error}");
    }

    #[test]
    fn what_is_no_such_suite_leaves_nothing() {
        let (here, recipe) = fixture("one only");
        let error = add(here.path(), &recipe, None).expect_err("two is missing").to_string();
        assert!(error.contains("lists no two"), "{error}");
        assert_eq!(fs::read_dir(here.path().join("into")).map(Iterator::count).ok(), Some(0));
        let nothing = recipe.add(None, None, here.path(), Path::new("java")).expect_err("no jar");
        assert!(nothing.to_string().contains("--from PATH.jar"), "{nothing}");
        let missing = recipe.add(Some(Path::new("/nowhere/x.jar")), None, here.path(), Path::new("java"));
        assert!(matches!(missing, Err(GivenJarError::Read { .. })));
        let recipe = TEXT.replace("suite", "../suite");
        fs::write(here.path().join(RECIPE), recipe).expect("written");
        assert!(GivenJar::load(here.path()).is_err());
    }

    #[test]
    fn the_recipes_of_this_repository_are_read() {
        for name in ["dacapo", "renaissance"] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs/originals").join(name);
            assert_eq!(GivenJar::load(&folder).expect(name).name(), name);
        }
    }
}
