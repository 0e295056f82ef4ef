//! Sources that are on this machine: where they are, and what they state of themselves.
//!
//! The version of a peer is read from its sources; where its authors number no releases, it is the commit or the date.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex_lite::Regex;

use crate::Refusal;
use crate::recipe::ManagerRecipe;
use crate::table::{Place, Source};

/// The sources of a recipe.
#[derive(Debug)]
pub struct Sources {
    /// The folder that a recipe's paths start from.
    pub tree: PathBuf,
    /// Where they come from, as text for a table.
    pub origin: String,
    /// The version of the allocator itself.
    pub version: String,
    /// The texts of its licences.
    pub licence: String,
    /// The version of the crate, with what follows `+`; empty without one.
    pub crate_version: String,
}

/// A licence below the path of its file.
pub fn labelled(path: &str, text: &str) -> String {
    format!("{path}:\n\n{text}\n")
}

impl Sources {
    /// Those of a peer. `of_crate` gives the version and the folder of a crate.
    ///
    /// # Errors
    /// No such crate, package or file, or a file without what it used to have.
    pub fn installed(
        recipe: &ManagerRecipe,
        of_crate: &dyn Fn(&str) -> Option<(String, PathBuf)>,
    ) -> Result<Sources, Refusal> {
        let table = &recipe.table;
        let (origin, tree, crate_version) = match &table.source {
            Some(Source::Crate(name)) => {
                let no_crate = || Refusal::NoCrate { name: name.clone() };
                let (version, folder) = of_crate(name).ok_or_else(no_crate)?;
                (format!("crate {name} {}", number(&version)), folder, version)
            }
            Some(Source::Package(package)) => {
                if !table.found.iter().all(|place| Path::new(&place.file).exists()) {
                    return Err(Refusal::NoPackage { package: package.clone() });
                }
                let version = debian_version(package);
                let origin = format!("Debian package {package} {version}, under heaptoll's shim");
                (origin, recipe.folder().to_owned(), String::new())
            }
            None => (String::new(), recipe.folder().to_owned(), String::new()),
        };
        let mut sources =
            Sources { tree, origin, version: String::new(), licence: String::new(), crate_version };
        let version = sources.filled(&table.version);
        sources.version = match &table.found {
            Some(place) => version.replace("{found}", &sources.find(place)?[0]),
            None => version,
        };
        sources.licence = sources.licences(recipe)?;
        Ok(sources)
    }

    /// A text of the recipe with the sources' own in it: `{crate}` is the crate's version, `{metadata}` what follows its
    /// `+`, and `{version}` the allocator's own version.
    pub(crate) fn filled(&self, text: &str) -> String {
        let metadata = self.crate_version.split_once('+').map_or("", |(_, metadata)| metadata);
        text.replace("{crate}", number(&self.crate_version))
            .replace("{metadata}", metadata)
            .replace("{version}", &self.version)
    }

    /// All that a place has: one thing or more.
    ///
    /// # Errors
    /// The file is not there, or has nothing of the kind.
    pub(crate) fn find(&self, place: &Place) -> Result<Vec<String>, Refusal> {
        let path = self.tree.join(&place.file);
        let text = fs::read_to_string(&path).map_err(Refusal::system(format!("read {}", path.display())))?;
        let pattern = self.filled(&place.pattern);
        let regex = Regex::new(&pattern).ok();
        let found: Vec<String> = regex
            .iter()
            .flat_map(|regex| regex.captures_iter(&text))
            .map(|groups| {
                groups.iter().skip(1).flatten().map(|group| group.as_str()).collect::<Vec<_>>().join(".")
            })
            .collect();
        if found.is_empty() { Err(Refusal::Layout { what: format!("/{pattern}/"), path }) } else { Ok(found) }
    }

    /// One licence as it is; several, each below its path.
    fn licences(&self, recipe: &ManagerRecipe) -> Result<String, Refusal> {
        let text = |file: &String| {
            let path = Some(self.tree.join(file)).filter(|path| path.is_file());
            let path = path.unwrap_or_else(|| recipe.own_file(file));
            fs::read_to_string(&path)
                .map_err(|_| Refusal::Layout { what: file.clone(), path: self.tree.clone() })
        };
        match &recipe.table.licence_files[..] {
            [only] => text(only),
            several => several.iter().map(|file| Ok(labelled(file, &text(file)?))).collect(),
        }
    }
}

/// A crate's version without what follows `+`.
fn number(version: &str) -> &str {
    version.split('+').next().unwrap_or(version)
}

/// The version of a package, or nothing where there is no dpkg.
fn debian_version(package: &str) -> String {
    let output = Command::new("dpkg-query").args(["-W", "-f", "${Version}", package]).output();
    let version = output.ok().filter(|output| output.status.success());
    version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The recipe that heaptoll brings.
    fn recipe(name: &str) -> ManagerRecipe {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../managers");
        let mut recipes = ManagerRecipe::peers(&folder).expect("the recipes").into_iter();
        recipes.find(|recipe| recipe.name() == name).expect("there")
    }

    /// What a recipe makes of a crate that has only these files.
    fn of_crate(name: &str, version: &str, files: &[(&str, &str)]) -> Result<Sources, Refusal> {
        let folder = tempfile::tempdir().expect("made");
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        }
        let place = (version.to_owned(), folder.path().to_owned());
        Sources::installed(&recipe(name), &|_| Some(place.clone()))
    }

    #[test]
    fn versions_come_from_the_sources() {
        let header = "// x\n#define MI_MALLOC_VERSION 21002  // major\n";
        let files =
            [("c_src/mimalloc/v2/include/mimalloc.h", header), ("c_src/mimalloc/v2/LICENSE", "Terms")];
        let mimalloc = of_crate("mimalloc2", "0.1.49", &files).expect("whole");
        assert_eq!((&*mimalloc.version, &*mimalloc.origin), ("2.10.2", "crate libmimalloc-sys 0.1.49"));
        assert_eq!(mimalloc.licence, "Terms");

        let files = [("rpmalloc/CHANGELOG", "1.4.3\n\nFixed 1.2.3\n"), ("rpmalloc/LICENSE", "")];
        let rpmalloc = of_crate("rpmalloc", "0.2.3+abc", &files).expect("whole");
        assert_eq!((&*rpmalloc.version, &*rpmalloc.origin), ("1.4.3 (abc)", "crate rpmalloc-sys 0.2.3"));

        let vcs = r#"{"git": {"sha1": "f126f1c94d624976"}}"#;
        let snmalloc = of_crate("snmalloc", "0.7.6", &[(".cargo_vcs_info.json", vcs)]).expect("whole");
        assert_eq!(snmalloc.version, "0.7.6 (f126f1c)");
        assert!(
            snmalloc.licence.contains("Microsoft"),
            "the crate has no licence: ours is the authors' file"
        );
    }

    #[test]
    fn several_licences_are_labelled_and_a_missing_one_is_an_error() {
        let log = "## [0.1.14](https://x/y) - 2025-06-16\n## [0.1.13](https://x/y) - 2024-01-01\n";
        let files = [
            ("CHANGELOG.md", log),
            ("c_src/tcmalloc/LICENSE", "Terms"),
            ("c_src/abseil-cpp/LICENSE", "More terms"),
        ];
        let tcmalloc = of_crate("tcmalloc", "0.1.14", &files).expect("whole");
        assert_eq!(tcmalloc.version, "snapshot 2025-06-16");
        assert_eq!(
            tcmalloc.licence,
            "c_src/tcmalloc/LICENSE:\n\nTerms\nc_src/abseil-cpp/LICENSE:\n\nMore terms\n"
        );
        let missing = of_crate("tcmalloc", "0.1.14", &files[..2]).expect_err("refused").to_string();
        assert!(missing.contains("c_src/abseil-cpp/LICENSE"), "{missing}");
    }

    #[test]
    fn a_changed_layout_is_reported_with_the_file() {
        let files = [("jemalloc/ChangeLog", "nothing here")];
        let message = of_crate("jemalloc", "0.7.1", &files).expect_err("refused").to_string();
        assert!(message.contains("ChangeLog") && message.contains("layout has changed"), "{message}");
    }

    #[test]
    fn the_bridge_for_rust_stays_out_of_tcmalloc() {
        let folder = tempfile::tempdir().expect("made");
        let script = r#"["c_src/abseil-cpp/absl/base/a.cc", "c_src/tcmalloc/tcmalloc/arena.cc",
            "c_src/tcmalloc/tcmalloc/internal/percpu_rseq_asm.S", "c_src/malloc_bridge.cc", "c_src/abseil-cpp"]"#;
        fs::write(folder.path().join("build.rs"), script).expect("written");
        let empty = String::new;
        let tree = folder.path().to_owned();
        let sources =
            Sources { tree, origin: empty(), version: empty(), licence: empty(), crate_version: empty() };
        let places = &recipe("tcmalloc").table.listed;
        let files: Vec<String> =
            places.iter().flat_map(|place| sources.find(place).expect("there")).collect();
        assert_eq!(
            files,
            [
                "c_src/tcmalloc/tcmalloc/arena.cc",
                "c_src/tcmalloc/tcmalloc/internal/percpu_rseq_asm.S",
                "c_src/abseil-cpp/absl/base/a.cc"
            ]
        );
    }
}
