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
    use std::path::PathBuf;

    use serde_json::Value;

    use super::*;

    fn folder() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/schemas")
    }

    #[test]
    fn the_schemas_of_the_documents_are_those_of_the_types() {
        for command in all() {
            let path = folder().join(format!("{}.schema.json", command.command()));
            let schema = command.schema();
            if std::env::var_os("WRITE_DOCS").is_some() {
                let text = serde_json::to_string_pretty(&schema).expect("JSON");
                std::fs::write(&path, text + "\n").expect("writes");
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let kept: Value = serde_json::from_str(&text).unwrap_or_default();
            assert!(kept == schema, "{}: run this test with WRITE_DOCS=1", path.display());
        }
        let names = |name: &CommandSchema| format!("{}.schema.json", name.command());
        let expected: BTreeSet<String> = all().map(|command| names(&command)).collect();
        let found = std::fs::read_dir(folder()).expect("the folder").flatten();
        let found: BTreeSet<String> =
            found.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        assert_eq!(found, expected, "a file of every command that has a schema, and no others");
    }
}
