//! Programs in Java: jars of Maven Central, each by its digest, and a driver of ours that is compiled with them.
//!
//! A recipe is a folder with `jars.toml` and the driver's sources. The class files and the jars appear together in one
//! folder, or not at all.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use heaptoll_peers::RecipeError;
use heaptoll_peers::manifest::digest;
use heaptoll_peers::path::inside;
use heaptoll_peers::process::quietly;
use heaptoll_scratch::Scratch;
use serde::Deserialize;
use thiserror::Error;

use crate::install::put_in_place;
use crate::recipe::read;

/// The recipe's file.
const RECIPE: &str = "jars.toml";
/// The version of Java that class files are for: Debian 12's.
const RELEASE: &str = "17";

/// A recipe that has been read and checked.
#[derive(Debug, Clone)]
pub struct JarRecipe {
    folder: PathBuf,
    table: Table,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// What the user types, and the folder that keeps the program.
    name: String,
    /// The licence of the jars, in a line.
    licence: String,
    jars: Vec<Jar>,
    /// The driver's, in the recipe's folder.
    sources: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Jar {
    url: String,
    sha256: String,
}

/// Why a program in Java is not added.
#[derive(Debug, Error)]
pub enum JarError {
    /// The recipe makes no sense, or a folder cannot be written.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// A jar cannot be had.
    #[error("cannot fetch {url}: {problem}; check the network, or give a folder that has {file} by --from")]
    Fetch {
        /// Where it would come from.
        url: String,
        /// Its name.
        file: String,
        /// The reason.
        problem: String,
    },
    /// A jar is another one.
    #[error("{file} is another file than the recipe's (SHA-256 {found}, not {expected}); nothing was added")]
    Digest {
        /// Its name.
        file: String,
        /// Of what came.
        found: String,
        /// The recipe's.
        expected: String,
    },
    /// The driver does not compile.
    #[error(
        "javac does not compile the driver: {problem}; apt-get install default-jdk-headless brings Java 17 or later"
    )]
    Compiler {
        /// Its first message, or why it did not start.
        problem: String,
    },
}

impl JarRecipe {
    /// Whether a folder holds a recipe of this kind.
    pub fn is_in(folder: &Path) -> bool {
        folder.join(RECIPE).is_file()
    }

    /// Reads a recipe.
    ///
    /// # Errors
    /// [`RecipeError::Recipe`].
    pub fn load(folder: &Path) -> Result<JarRecipe, RecipeError> {
        let file = folder.join(RECIPE);
        let table: Table = read(&file)?;
        let problem = |problem: String| RecipeError::Recipe { file: file.clone(), problem };
        let is_file = |name: &str| {
            inside(name).and(match name.contains('/') {
                true => Err(format!("`{name}` is not a file name")),
                false => Ok(()),
            })
        };
        is_file(&table.name).map_err(problem)?;
        table.sources.iter().try_for_each(|name| is_file(name)).map_err(problem)?;
        for jar in &table.jars {
            is_file(jar.file()).map_err(problem)?;
            let is_digest = jar.sha256.len() == 64 && jar.sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
            if !is_digest || !jar.url.starts_with("https://") {
                return Err(problem(format!("{}: give an https address and a SHA-256", jar.url)));
            }
        }
        if table.jars.is_empty() || table.sources.is_empty() {
            return Err(problem("there is no jar, or no source".into()));
        }
        Ok(JarRecipe { folder: folder.to_owned(), table })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.table.name
    }

    /// The licence of its jars.
    pub fn licence(&self) -> &str {
        &self.table.licence
    }

    /// Fetches the jars (or takes them from the folder `from`), checks them, compiles the driver, and puts all into
    /// `INTO/NAME`: jars by their names, class files in `classes`. What was there before is replaced.
    ///
    /// # Errors
    /// [`JarError`]; nothing is changed then.
    pub fn add(
        &self,
        from: Option<&Path>,
        into: &Path,
        progress: &dyn Fn(&str),
    ) -> Result<PathBuf, JarError> {
        let unwritable = |source| RecipeError::Write { path: into.to_owned(), source };
        fs::create_dir_all(into).map_err(unwritable)?;
        // On the file system of the result, so that a rename completes it.
        let scratch = Scratch::make_in(into).map_err(unwritable)?;
        let made = scratch.path().join("made");
        let classes = made.join("classes");
        fs::create_dir_all(&classes).map_err(unwritable)?;
        for jar in &self.table.jars {
            progress(&format!("fetching {}", jar.file()));
            jar.bring(from, &made)?;
        }
        progress("compiling");
        self.compile(&made, &classes)?;
        let home = into.join(self.name());
        put_in_place(&made, &home, scratch.path()).map_err(unwritable)?;
        Ok(home)
    }

    fn compile(&self, made: &Path, classes: &Path) -> Result<(), JarError> {
        let jars: Vec<String> =
            self.table.jars.iter().map(|jar| made.join(jar.file()).display().to_string()).collect();
        let mut javac = Command::new("javac");
        javac.args(["-nowarn", "--release", RELEASE, "-cp"]).arg(jars.join(":")).arg("-d").arg(classes);
        javac.args(self.table.sources.iter().map(|source| self.folder.join(source)));
        quietly(&mut javac).map_err(|problem| JarError::Compiler { problem })
    }
}

impl Jar {
    /// The name of its file.
    fn file(&self) -> &str {
        self.url.rsplit('/').next().unwrap_or(&self.url)
    }

    /// Brings it into a folder and checks its digest.
    fn bring(&self, from: Option<&Path>, into: &Path) -> Result<(), JarError> {
        let file = into.join(self.file());
        let no_file =
            |problem: String| JarError::Fetch { url: self.url.clone(), file: self.file().into(), problem };
        match from {
            Some(folder) => drop(
                fs::copy(folder.join(self.file()), &file)
                    .map_err(|error| no_file(format!("{}: {error}", folder.display())))?,
            ),
            None => {
                let mut curl = Command::new("curl");
                curl.args([
                    "--fail",
                    "--silent",
                    "--show-error",
                    "--location",
                    "--proto",
                    "=https",
                    "--output",
                ]);
                quietly(curl.arg(&file).arg(&self.url)).map_err(no_file)?;
            }
        }
        let bytes = fs::read(&file).map_err(|error| no_file(error.to_string()))?;
        let found = digest(&bytes);
        if found.eq_ignore_ascii_case(&self.sha256) {
            return Ok(());
        }
        Err(JarError::Digest { file: self.file().into(), found, expected: self.sha256.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(text: &str) -> Result<JarRecipe, RecipeError> {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join(RECIPE), text).expect("written");
        JarRecipe::load(folder.path())
    }

    fn text(url: &str, digest: &str, source: &str) -> String {
        format!(
            "name = \"x\"\nlicence = \"L\"\nsources = [\"{source}\"]\n[[jars]]\nurl = \"{url}\"\nsha256 = \"{digest}\"\n"
        )
    }

    #[test]
    fn a_recipe_that_leads_elsewhere_is_refused() {
        let digest = "0".repeat(64);
        assert!(recipe(&text("https://x/a.jar", &digest, "A.java")).is_ok());
        for (url, digest, source) in [
            ("http://x/a.jar", digest.as_str(), "A.java"),
            ("https://x/..", &digest, "A.java"),
            ("https://x/a.jar", "12", "A.java"),
            ("https://x/a.jar", &digest, "../A.java"),
            ("https://x/a.jar", &digest, "b/A.java"),
        ] {
            assert!(
                matches!(recipe(&text(url, digest, source)), Err(RecipeError::Recipe { .. })),
                "{url} {source}"
            );
        }
        assert!(recipe("name = 1").is_err());
    }

    #[test]
    fn a_jar_with_another_digest_adds_nothing() {
        let here = tempfile::tempdir().expect("a folder");
        fs::write(here.path().join("a.jar"), "not that jar").expect("written");
        let into = tempfile::tempdir().expect("a folder");
        let found = recipe(&text("https://x/a.jar", &"0".repeat(64), "A.java")).expect("a recipe");
        let error = found.add(Some(here.path()), into.path(), &|_| ()).expect_err("another digest");
        assert!(error.to_string().contains("a.jar is another file"), "{error}");
        let missing = found.add(Some(into.path()), into.path(), &|_| ()).expect_err("no jar");
        assert!(missing.to_string().contains("by --from"), "{missing}");
        assert_eq!(fs::read_dir(into.path()).map(Iterator::count).ok(), Some(0), "no rest is left");
    }

    #[test]
    fn the_recipes_of_this_repository_are_read() {
        for name in ["lucene", "h2"] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs/originals").join(name);
            let recipe = JarRecipe::load(&folder).expect(name);
            assert_eq!(recipe.name(), name);
            assert!(recipe.table.sources.iter().all(|source| folder.join(source).is_file()));
        }
    }
}
