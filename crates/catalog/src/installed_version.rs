//! Which version of a Debian package is installed: the output of some programs depends on it, and so does its digest.

use std::fs;

/// Where dpkg keeps what is installed.
const STATUS: &str = "/var/lib/dpkg/status";

/// The version of an installed package; none where it is not installed, or this is no Debian system.
pub(crate) fn installed_version(package: &str) -> Option<String> {
    version_in(&fs::read_to_string(STATUS).ok()?, package)
}

fn version_in(status: &str, package: &str) -> Option<String> {
    let paragraph = status.split("\n\n").find(|paragraph| {
        let field = |name: &str| paragraph.lines().find_map(|line| line.strip_prefix(name));
        field("Package: ") == Some(package)
            && field("Status: ").is_some_and(|state| state.ends_with(" installed"))
    })?;
    paragraph.lines().find_map(|line| line.strip_prefix("Version: ")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::version_in;

    const STATUS: &str = "Package: jq\nStatus: deinstall ok config-files\nVersion: 1.5\n\nPackage: jq\nStatus: install ok \
                          installed\nArchitecture: amd64\nVersion: 1.6-2.1\nDescription: JSON\n Version: no\n\nPackage: jqp\n\
                          Status: install ok installed\nVersion: 3\n";

    #[test]
    fn the_version_is_that_of_the_installed_package_of_exactly_this_name() {
        assert_eq!(version_in(STATUS, "jq").as_deref(), Some("1.6-2.1"));
        assert_eq!(version_in(STATUS, "jqp").as_deref(), Some("3"));
        assert_eq!(version_in(STATUS, "j"), None);
        assert_eq!(version_in("", "jq"), None);
    }
}
