//! What `--version` prints: the version, and the commit that was built.
//!
//! The commit comes from the environment of the compiler, where `make` puts it for the tool's own builds
//! (`scripts/commit`). There is no build script that watches the repository: it would compile this crate again at every
//! commit, also for tests, which do not need it.

use std::sync::LazyLock;

const COMMIT: Option<&str> = option_env!("HEAPTOLL_COMMIT");

static VERSION: LazyLock<String> = LazyLock::new(|| described(env!("CARGO_PKG_VERSION"), COMMIT));

/// The commit that was built, where `make` built it.
pub fn commit() -> Option<&'static str> {
    COMMIT.map(str::trim).filter(|commit| !commit.is_empty())
}

/// `0.1.0 (f345c92e 2026-11-25)`.
pub fn version() -> &'static str {
    VERSION.as_str()
}

fn described(version: &str, commit: Option<&str>) -> String {
    match commit.map(str::trim).filter(|commit| !commit.is_empty()) {
        Some(commit) => format!("{version} ({commit})"),
        None => format!("{version} (not built by make: no commit)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_states_its_commit_or_that_it_has_none() {
        assert_eq!(described("1.2.3", Some("f345c92e 2026-11-25\n")), "1.2.3 (f345c92e 2026-11-25)");
        for none in [None, Some(""), Some(" ")] {
            assert_eq!(described("1.2.3", none), "1.2.3 (not built by make: no commit)");
        }
    }

    #[test]
    fn the_citation_has_this_version() {
        let citation = include_str!("../../../CITATION.cff");
        assert!(citation.contains(concat!("\nversion: ", env!("CARGO_PKG_VERSION"), "\n")), "{citation}");
    }
}
