//! Where cargo unpacked the crates whose C and C++ sources the peers are built from, and which upstream versions those
//! are. Versions are read from the sources; where upstream numbers no releases, the commit or the date is given.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use cargo_metadata::MetadataCommand;
use regex_lite::Regex;

use crate::error::{Error, IoContext};
use crate::peer::Peer;

/// An unpacked source crate.
#[derive(Debug, Clone)]
pub struct Source {
    /// The crate's name.
    pub name: &'static str,
    /// Its version, with build metadata.
    pub version: String,
    /// The folder it is unpacked in.
    pub dir: PathBuf,
}

impl Source {
    /// Where the peer comes from, as text for a table.
    pub fn origin(&self) -> String {
        let version = self.version.split('+').next().unwrap_or(&self.version);
        format!("crate {} {version}", self.name)
    }

    /// What follows `+` in the crate's version, if anything.
    pub fn build_metadata(&self) -> Option<&str> {
        self.version.split_once('+').map(|(_, metadata)| metadata)
    }

    /// A path inside the crate, which must exist.
    pub fn path(&self, inside: &str) -> Result<PathBuf, Error> {
        let path = self.dir.join(inside);
        if path.exists() { Ok(path) } else { Err(layout(&format!("{inside} is missing"), &self.dir)) }
    }

    /// The text of a file inside the crate, which must exist, and its path.
    pub fn read(&self, inside: &str) -> Result<(PathBuf, String), Error> {
        let path = self.path(inside)?;
        let text = std::fs::read_to_string(&path).context("read", &path)?;
        Ok((path, text))
    }

    /// The version of the allocator itself.
    ///
    /// # Errors
    /// [`Error::Layout`] when the crate does not have it where it used to.
    pub fn upstream_version(&self, peer: Peer) -> Result<String, Error> {
        match peer {
            Peer::Mimalloc2 => self.mimalloc("v2"),
            Peer::Mimalloc3 => self.mimalloc("v3"),
            Peer::Jemalloc | Peer::JemallocProf => {
                self.find("jemalloc/ChangeLog", r"(?m)^\* (\d+\.\d+[\w.]*) \(")
            }
            Peer::Rpmalloc => {
                let number = self.find("rpmalloc/CHANGELOG", r"(?m)^(\d+\.\d+\.\d+)\s*$")?;
                Ok(self.build_metadata().map_or(number.clone(), |commit| format!("{number} ({commit})")))
            }
            // The crate is part of snmalloc's repository and shares its numbers; the sources themselves have none.
            Peer::Snmalloc => {
                let number = self.version.split('+').next().unwrap_or(&self.version);
                let commit = self.find(".cargo_vcs_info.json", r#""sha1": *"([0-9a-f]{7})"#);
                Ok(commit.map_or(number.to_string(), |commit| format!("{number} ({commit})")))
            }
            // TCMalloc makes no releases: the crate's change log dates the snapshot.
            Peer::Tcmalloc => {
                let number = regex_lite::escape(&self.version);
                self.find("CHANGELOG.md", &format!(r"(?m)^## \[{number}\].* - (\d{{4}}-\d\d-\d\d)"))
                    .map(|date| format!("snapshot {date}"))
            }
        }
    }

    fn find(&self, inside: &str, pattern: &str) -> Result<String, Error> {
        let (path, text) = self.read(inside)?;
        Regex::new(pattern)
            .ok()
            .and_then(|regex| regex.captures(&text).map(|found| found[1].to_string()))
            .ok_or_else(|| layout(&format!("no version like /{pattern}/"), &path))
    }

    fn mimalloc(&self, major: &str) -> Result<String, Error> {
        let header = format!("c_src/mimalloc/{major}/include/mimalloc.h");
        let digits = self.find(&header, r"(?m)^#define +MI_MALLOC_VERSION +(\d+)")?;
        dotted(&digits)
            .ok_or_else(|| layout(&format!("version number {digits} is unknown"), &self.dir.join(header)))
    }
}

/// mimalloc's number: the major version, then two digits each for minor and patch (three digits in all before 2.2.4).
fn dotted(digits: &str) -> Option<String> {
    let number: u32 = digits.parse().ok()?;
    match digits.len() {
        5 => Some(format!("{}.{}.{}", number / 10_000, number / 100 % 100, number % 100)),
        3 => Some(format!("{}.{}.{}", number / 100, number / 10 % 10, number % 10)),
        _ => None,
    }
}

fn layout(what: &str, path: &Path) -> Error {
    Error::Layout { what: what.to_string(), path: path.to_path_buf() }
}

/// Queries cargo for the source crates; without the network first, then with it. Always by the lock file as it is: a
/// build must not choose other versions than those it was started with.
///
/// # Errors
/// [`Error::Metadata`] with cargo's message, [`Error::NoCrate`] when the manifest no longer names one.
pub fn locate(manifest: &Path) -> Result<HashMap<&'static str, Source>, Error> {
    let query = |options: &[&str]| {
        let mut command = MetadataCommand::new();
        command
            .manifest_path(manifest)
            .other_options(options.iter().map(ToString::to_string).collect::<Vec<_>>());
        command.exec()
    };
    let metadata = query(&["--offline", "--locked"])
        .or_else(|_| query(&["--locked"]))
        .map_err(|e| Error::Metadata { manifest: manifest.to_path_buf(), message: e.to_string() })?;
    let mut sources = HashMap::new();
    for peer in Peer::ALL {
        let name = peer.crate_name();
        let package = metadata
            .packages
            .iter()
            .filter(|package| package.name.as_str() == name)
            .max_by(|a, b| a.version.cmp(&b.version))
            .ok_or(Error::NoCrate(name))?;
        let dir = package.manifest_path.parent().ok_or(Error::NoCrate(name))?;
        let source =
            Source { name, version: package.version.to_string(), dir: dir.as_std_path().to_path_buf() };
        sources.insert(name, source);
    }
    Ok(sources)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fake(name: &'static str, version: &str, files: &[(&str, &str)]) -> (tempfile::TempDir, Source) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let source = Source { name, version: version.to_string(), dir: dir.path().to_path_buf() };
        (dir, source)
    }

    #[test]
    fn mimalloc_numbers_of_both_lengths_are_read() {
        assert_eq!(dotted("30302").as_deref(), Some("3.3.2"));
        assert_eq!(dotted("21012").as_deref(), Some("2.10.12"));
        assert_eq!(dotted("209").as_deref(), Some("2.0.9"));
        assert_eq!(dotted("7"), None);
    }

    #[test]
    fn versions_come_from_the_sources() {
        let header = "// x\n#define MI_MALLOC_VERSION 20302  // major\n";
        let (_a, mimalloc) =
            fake("libmimalloc-sys", "0.1.49", &[("c_src/mimalloc/v2/include/mimalloc.h", header)]);
        assert_eq!(mimalloc.upstream_version(Peer::Mimalloc2).unwrap(), "2.3.2");
        assert_eq!(mimalloc.origin(), "crate libmimalloc-sys 0.1.49");

        let (_b, rpmalloc) =
            fake("rpmalloc-sys", "0.2.3+abc", &[("rpmalloc/CHANGELOG", "1.4.3\n\nFixed 1.2.3\n")]);
        assert_eq!(rpmalloc.upstream_version(Peer::Rpmalloc).unwrap(), "1.4.3 (abc)");
        assert_eq!(rpmalloc.origin(), "crate rpmalloc-sys 0.2.3");

        let log = "## [0.1.14](https://x/y) - 2025-06-16\n## [0.1.13](https://x/y) - 2024-01-01\n";
        let (_c, tcmalloc) = fake("libtcmalloc-sys", "0.1.14", &[("CHANGELOG.md", log)]);
        assert_eq!(tcmalloc.upstream_version(Peer::Tcmalloc).unwrap(), "snapshot 2025-06-16");

        let vcs = r#"{"git": {"sha1": "f126f1c94d624976"}}"#;
        let (_d, snmalloc) = fake("snmalloc-sys", "0.7.6", &[(".cargo_vcs_info.json", vcs)]);
        assert_eq!(snmalloc.upstream_version(Peer::Snmalloc).unwrap(), "0.7.6 (f126f1c)");
    }

    #[test]
    fn a_changed_layout_is_reported_with_the_file() {
        let (_dir, source) = fake("tikv-jemalloc-sys", "0.7.1", &[("jemalloc/ChangeLog", "nothing here")]);
        let message = source.upstream_version(Peer::Jemalloc).unwrap_err().to_string();
        assert!(message.contains("ChangeLog"), "{message}");
        assert!(source.path("configure").is_err());
    }
}
