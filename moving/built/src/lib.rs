//! In place of the crate `built`, which MMTk's build script calls to state which build it is: the real one compiles a
//! library of Git in C and what reads URLs, which takes longer than MMTk itself. A package from the registry has no
//! commit to state.

use std::io;
use std::path::PathBuf;

/// Writes the constants that MMTk includes.
///
/// # Errors
/// Cargo has not set the folder or the version; the file cannot be written.
pub fn write_built_file() -> io::Result<()> {
    let variable = |name: &str| std::env::var(name).map_err(io::Error::other);
    let text = format!(
        "pub const PKG_VERSION: &str = {:?};\npub const FEATURES_STR: &str = {:?};\n\
         pub const GIT_COMMIT_HASH: Option<&str> = None;\npub const GIT_DIRTY: Option<bool> = None;\n",
        variable("CARGO_PKG_VERSION")?,
        features(std::env::vars().map(|(name, _)| name)),
    );
    std::fs::write(PathBuf::from(variable("OUT_DIR")?).join("built.rs"), text)
}

/// The features that Cargo has set variables for.
fn features(variables: impl Iterator<Item = String>) -> String {
    let mut names: Vec<String> =
        variables.filter_map(|name| name.strip_prefix("CARGO_FEATURE_").map(str::to_string)).collect();
    names.sort_unstable();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::features;

    #[test]
    fn features_are_those_that_cargo_names() {
        let variables = ["CARGO_FEATURE_VO_BIT", "CARGO_PKG_NAME", "CARGO_FEATURE_ANALYSIS"];
        assert_eq!(features(variables.into_iter().map(String::from)), "ANALYSIS, VO_BIT");
    }
}
