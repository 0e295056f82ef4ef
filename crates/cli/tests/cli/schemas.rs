//! Every JSON file that a test has heaptoll write is valid by its command's schema, and is read back as the same figures.

use std::collections::HashMap;
use std::sync::OnceLock;

use heaptoll_command::schema::CommandSchema;
use serde_json::Value;

fn schemas() -> &'static HashMap<&'static str, (CommandSchema, Value)> {
    static SCHEMAS: OnceLock<HashMap<&'static str, (CommandSchema, Value)>> = OnceLock::new();
    let all =
        || crate::REGISTRY.schemas().into_iter().map(|command| (command.tag, (command, command.schema())));
    SCHEMAS.get_or_init(|| all().collect())
}

/// A JSON Schema with the keywords that schemars writes for heaptoll's types. (A validator of all keywords takes 16 CPU
/// seconds to compile.)
struct Schema<'a> {
    root: &'a Value,
}

impl<'a> Schema<'a> {
    /// Adds to `wrong` where in a value a rule is broken.
    fn check(&self, rules: &'a Value, value: &Value, place: &str, wrong: &mut Vec<String>) {
        if rules == &Value::Bool(false) {
            wrong.push(format!("{place}: not allowed"));
        }
        for (keyword, rule) in rules.as_object().into_iter().flatten() {
            for (name, rules, value) in self.below(rules, keyword, value) {
                self.check(rules, value, &format!("{place}/{name}"), wrong);
            }
            if !self.is_kept(keyword, rule, value) {
                wrong.push(format!("{place}: not {keyword} {rule}"));
            }
        }
    }

    fn holds(&self, rules: &'a Value, value: &Value) -> bool {
        let mut wrong = Vec::new();
        self.check(rules, value, "", &mut wrong);
        wrong.is_empty()
    }

    /// What a keyword has rules about: the names and values of parts, and their rules.
    fn below<'v>(
        &self,
        rules: &'a Value,
        keyword: &str,
        value: &'v Value,
    ) -> Vec<(String, &'a Value, &'v Value)> {
        let rule = &rules[keyword];
        let members = value.as_object().into_iter().flatten();
        let elements =
            value.as_array().into_iter().flatten().enumerate().map(|(at, value)| (at.to_string(), value));
        match keyword {
            "$ref" => {
                let there = self.root.pointer(text(rule).trim_start_matches('#')).expect("a definition");
                vec![(String::new(), there, value)]
            }
            "properties" => {
                members.filter_map(|(name, value)| Some((name.clone(), rule.get(name)?, value))).collect()
            }
            "additionalProperties" => {
                let others = members.filter(|(name, _)| rules["properties"].get(name).is_none());
                others.map(|(name, value)| (name.clone(), rule, value)).collect()
            }
            "prefixItems" => {
                elements.zip(all_of(rule)).map(|((name, value), rules)| (name, rules, value)).collect()
            }
            "items" => {
                let first = rules["prefixItems"].as_array().map_or(0, Vec::len);
                elements.skip(first).map(|(name, value)| (name, rule, value)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn is_kept(&self, keyword: &str, rule: &'a Value, value: &Value) -> bool {
        let number = || value.as_f64().zip(rule.as_f64());
        let length = || value.as_array().map(|all| all.len() as u64).zip(rule.as_u64());
        let fitting = || all_of(rule).filter(|rules| self.holds(rules, value)).count();
        match keyword {
            "$schema" | "$defs" | "title" | "description" | "default" | "format" => true,
            "$ref" | "properties" | "additionalProperties" | "prefixItems" | "items" => true,
            "type" if rule.is_array() => all_of(rule).any(|kind| is_of(value, kind)),
            "type" => is_of(value, rule),
            "const" => value == rule,
            "minimum" => number().is_none_or(|(is, least)| is >= least),
            "maximum" => number().is_none_or(|(is, most)| is <= most),
            "minItems" => length().is_none_or(|(is, least)| is >= least),
            "maxItems" => length().is_none_or(|(is, most)| is <= most),
            "anyOf" => fitting() > 0,
            "oneOf" => fitting() == 1,
            "required" => !value.is_object() || all_of(rule).all(|name| value.get(text(name)).is_some()),
            _ => panic!("schemas have the keyword {keyword} now, which this test does not know"),
        }
    }
}

fn all_of(rule: &Value) -> impl Iterator<Item = &Value> {
    rule.as_array().expect("a list").iter()
}

fn text(rule: &Value) -> &str {
    rule.as_str().expect("a text")
}

fn is_of(value: &Value, kind: &Value) -> bool {
    match text(kind) {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        kind => panic!("schemas have the type {kind} now, which this test does not know"),
    }
}

/// Asserts that a JSON file of heaptoll's is valid by the schema that it names, and that its figures can be read back.
#[track_caller]
pub fn validate(name: &str, text: &str) {
    let json: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{name} is no JSON: {error}"));
    let of_format = || Some(format!("{}/{}", json["format"].as_str()?, json["version"].as_u64()?));
    let tag = json["schema"].as_str().map(str::to_owned).or_else(of_format);
    let tag = tag.unwrap_or_else(|| panic!("{name} names no schema"));
    let Some((command, root)) = schemas().get(tag.as_str()) else {
        panic!("{name}: no command states that it writes {tag}");
    };
    let mut wrong = Vec::new();
    Schema { root }.check(root, &json, "", &mut wrong);
    wrong.truncate(5);
    assert!(wrong.is_empty(), "{name} is not valid by {tag}:\n{}", wrong.join("\n"));
    let again = command.read_back(text).unwrap_or_else(|error| panic!("{name} cannot be read back: {error}"));
    assert!(again == json, "{name} is not read back as what was written");
}

#[test]
#[should_panic(expected = "is not valid by heaptoll-stat/1")]
fn figures_that_lack_a_field_are_refused() {
    validate("a file", r#"{"schema": "heaptoll-stat/1", "heaptoll": "0.1.0"}"#);
}

#[test]
fn each_rule_that_a_schema_has_finds_a_value_that_breaks_it() {
    let broken = [
        (r##"{"$defs": {"a": {"type": "null"}}, "$ref": "#/$defs/a"}"##, "1"),
        (r#"{"type": ["integer", "null"]}"#, "1.5"),
        (r#"{"type": "array"}"#, "{}"),
        (r#"{"const": "a"}"#, r#""b""#),
        (r#"{"minimum": 0}"#, "-1"),
        (r#"{"maximum": 255}"#, "256"),
        (r#"{"minItems": 2}"#, "[1]"),
        (r#"{"maxItems": 2}"#, "[1, 2, 3]"),
        (r#"{"anyOf": [{"type": "string"}, {"const": 1}]}"#, "2"),
        (r#"{"oneOf": [{"type": "number"}, {"const": 1}]}"#, "1"),
        (r#"{"required": ["a"]}"#, "{}"),
        (r#"{"properties": {"a": {"type": "string"}}}"#, r#"{"a": 1}"#),
        (r#"{"properties": {"a": true}, "additionalProperties": false}"#, r#"{"a": 1, "b": 1}"#),
        (r#"{"additionalProperties": {"type": "string"}}"#, r#"{"a": 1}"#),
        (r#"{"prefixItems": [{"type": "string"}]}"#, "[1]"),
        (r#"{"prefixItems": [true], "items": {"type": "string"}}"#, r#"[1, "a", 2]"#),
    ];
    for (rules, value) in broken {
        let [root, value] = [rules, value].map(|text| serde_json::from_str(text).expect("JSON"));
        assert!(!Schema { root: &root }.holds(&root, &value), "{rules} allows {value}");
    }
}
