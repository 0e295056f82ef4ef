//! Every JSON file that a test has heaptoll write is valid by its command's schema, and is read back as the same figures.

use std::collections::HashMap;
use std::sync::OnceLock;

use heaptoll_experiments::schema::CommandSchema;
use heaptoll_papers::schema::all;
use jsonschema::Validator;
use serde_json::Value;

fn validators() -> &'static HashMap<&'static str, (CommandSchema, Validator)> {
    static VALIDATORS: OnceLock<HashMap<&'static str, (CommandSchema, Validator)>> = OnceLock::new();
    let compiled = |command: CommandSchema| {
        let validator = jsonschema::validator_for(&command.schema()).expect("a schema");
        (command.tag, (command, validator))
    };
    VALIDATORS.get_or_init(|| all().map(compiled).collect())
}

/// Asserts that a JSON file of heaptoll's is valid by the schema that it names, and that its figures can be read back.
#[track_caller]
pub fn validate(name: &str, text: &str) {
    let json: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{name} is no JSON: {error}"));
    let of_format = || Some(format!("{}/{}", json["format"].as_str()?, json["version"].as_u64()?));
    let tag = json["schema"].as_str().map(str::to_owned).or_else(of_format);
    let tag = tag.unwrap_or_else(|| panic!("{name} names no schema"));
    let Some((command, validator)) = validators().get(tag.as_str()) else {
        panic!("{name}: no schema {tag} in heaptoll_papers::schema");
    };
    let errors: Vec<String> = validator
        .iter_errors(&json)
        .take(5)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{name} is not valid by {tag}:\n{}", errors.join("\n"));
    let again = command.read_back(text).unwrap_or_else(|error| panic!("{name} cannot be read back: {error}"));
    assert!(again == json, "{name} is not read back as what was written");
}

#[test]
#[should_panic(expected = "is not valid by heaptoll-stat/1")]
fn figures_that_lack_a_field_are_refused() {
    validate("a file", r#"{"schema": "heaptoll-stat/1", "heaptoll": "0.1.0"}"#);
}
