//! Debian's packages of allocators, which stand in for those that are not built here.

use std::path::Path;
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

/// The managers of the packages that are installed.
pub(super) fn installed() -> impl Iterator<Item = Manager> {
    DEBIAN.iter().filter_map(debian)
}

fn package_version(package: &str) -> Option<String> {
    let output = Command::new("dpkg-query").args(["-W", "-f", "${Version}", package]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn debian(object: &DebianObject) -> Option<Manager> {
    let path = LIBRARY_FOLDERS
        .iter()
        .map(|folder| Path::new(folder).join(object.file))
        .find(|path| path.is_file())?;
    let version = package_version(object.package);
    Some(Manager {
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
    })
}
