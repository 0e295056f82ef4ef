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

    use serde_json::Value;

    use super::*;

    /// Names of fields without a description, in what a schema has inside too. An alternative's own explains its fields.
    fn undescribed(schema: &Value, is_alternative: bool, found: &mut Vec<String>) {
        let Value::Object(members) = schema else {
            schema.as_array().into_iter().flatten().for_each(|inner| undescribed(inner, false, found));
            return;
        };
        let is_explained = is_alternative && members.contains_key("description");
        let fields = members.get("properties").and_then(Value::as_object).into_iter().flatten();
        let silent = fields.filter(|(_, field)| !is_explained && field.get("description").is_none());
        found.extend(silent.map(|(name, _)| name.clone()));
        for (key, inner) in members {
            match inner.as_array().filter(|_| key == "oneOf") {
                Some(all) => all.iter().for_each(|one| undescribed(one, true, found)),
                None => undescribed(inner, false, found),
            }
        }
    }

    #[test]
    fn every_field_of_the_json_is_described_in_its_schema() {
        for command in all() {
            let mut found = Vec::new();
            undescribed(&command.schema(), false, &mut found);
            assert!(found.is_empty(), "{}: {found:?}", command.tag);
        }
    }

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
