//! Debian's packages of allocators, which stand in for those that are not built here.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::definition::{Manager, ManagerSource, glibc};

struct DebianObject {
    name: &'static str,
    file: &'static str,
    package: &'static str,
    about: &'static str,
    stands_for: Option<&'static str>,
}

/// Debian's libtcmalloc is gperftools', not Google's present TCMalloc, and is named so.
const DEBIAN: [DebianObject; 5] = [
    DebianObject {
        name: "debian-jemalloc",
        file: "libjemalloc.so.2",
        package: "libjemalloc2",
        about: "jemalloc as Debian builds it",
        stands_for: Some("jemalloc"),
    },
    DebianObject {
        name: "debian-gperftools",
        file: "libtcmalloc_minimal.so.4",
        package: "libtcmalloc-minimal4",
        about: "gperftools' tcmalloc, minimal, as Debian builds it",
        stands_for: Some("tcmalloc"),
    },
    DebianObject {
        name: "debian-mimalloc2",
        file: "libmimalloc.so.2.0",
        package: "libmimalloc2.0",
        about: "mimalloc v2 as Debian builds it",
        stands_for: Some("mimalloc2"),
    },
    DebianObject {
        name: "debian-tbb",
        file: "libtbbmalloc_proxy.so.2",
        package: "libtbbmalloc2",
        about: "oneTBB's scalable allocator as Debian builds it",
        stands_for: None,
    },
    DebianObject {
        name: "debian-scudo",
        file: "llvm-19/lib/clang/19/lib/linux/libclang_rt.scudo_standalone-x86_64.so",
        package: "libclang-rt-19-dev",
        about: "LLVM's Scudo, the hardened allocator of Android, as Debian builds it",
        stands_for: None,
    },
];

const LIBRARY_FOLDERS: [&str; 5] =
    ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib"];

/// The managers of the packages that are installed. Most commands list them, so `dpkg-query` runs once for all versions.
pub(super) fn installed() -> impl Iterator<Item = Manager> {
    let found: Vec<_> = DEBIAN.iter().filter_map(|object| Some((object, library(object)?))).collect();
    let packages: Vec<_> = found.iter().map(|(object, _)| object.package).collect();
    let versions = if packages.is_empty() { HashMap::new() } else { versions(&packages) };
    found.into_iter().map(move |(object, path)| manager(object, path, versions.get(object.package).cloned()))
}

fn library(object: &DebianObject) -> Option<PathBuf> {
    LIBRARY_FOLDERS.iter().map(|folder| Path::new(folder).join(object.file)).find(|path| path.is_file())
}

/// The versions of those packages that dpkg knows. It fails where it does not know one, and prints the others.
fn versions(packages: &[&str]) -> HashMap<String, String> {
    let query = ["-W", "-f", "${Package} ${Version}\\n"];
    let output = Command::new("dpkg-query").args(query).args(packages).output();
    output.map(|output| versions_in(&String::from_utf8_lossy(&output.stdout))).unwrap_or_default()
}

/// Packages with their versions, as `dpkg-query` prints them; one that is only known by name has none.
fn versions_in(printed: &str) -> HashMap<String, String> {
    let pairs = printed.lines().filter_map(|line| line.split_once(' '));
    pairs
        .filter(|(_, version)| !version.is_empty())
        .map(|(package, version)| (package.into(), version.into()))
        .collect()
}

fn manager(object: &DebianObject, path: PathBuf, version: Option<String>) -> Manager {
    Manager {
        name: object.name.into(),
        origin: match &version {
            Some(_) => format!("Debian package {}", object.package),
            None => path.display().to_string(),
        },
        version: version.unwrap_or_else(|| "unknown".into()),
        object: Some(path),
        environment: vec![],
        about: object.about.into(),
        kind: ManagerSource::Debian,
        stands_for: object.stands_for,
        base: object.name.into(),
        ..glibc()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_query_has_the_version_of_each_package_that_is_installed() {
        let found = versions_in("libjemalloc2 5.3.0-1\nlibtbbmalloc2 \nlibmimalloc2.0 2.0.9+ds-2\n");
        assert_eq!(found.len(), 2);
        assert_eq!(found["libjemalloc2"], "5.3.0-1");
        assert_eq!(found["libmimalloc2.0"], "2.0.9+ds-2");
    }
}
