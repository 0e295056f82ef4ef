//! The JSON Schemas of everything that heaptoll writes as JSON: of experiments, and of studies.

use heaptoll_experiments::schema::{ALL, CommandSchema};

use crate::results::{Results, SCHEMA};

/// Every schema.
pub fn all() -> impl Iterator<Item = CommandSchema> {
    ALL.iter().copied().chain([CommandSchema::of::<Results>(SCHEMA)])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// `make reference` writes them by this test.
    #[test]
    fn every_command_has_a_schema_of_its_own_name() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/schemas");
        let mut names = BTreeSet::new();
        for command in all() {
            assert!(names.insert(command.command()), "{} twice", command.command());
            if std::env::var_os("WRITE_DOCS").is_some() {
                std::fs::create_dir_all(&folder).expect("the folder");
                let text = serde_json::to_string_pretty(&command.schema()).expect("JSON");
                let path = folder.join(format!("{}.schema.json", command.command()));
                std::fs::write(path, text + "\n").expect("writes");
            }
        }
        assert!(names.contains("experiment") && names.contains("study"), "{names:?}");
    }
}
