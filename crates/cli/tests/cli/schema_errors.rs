//! Where a value is not valid by a JSON Schema, of the words that our schemas use: an unknown word is an error too.

use serde_json::{Map, Value};

/// What is wrong with the value, each with its place.
pub fn errors(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    Check { root: schema }.value(schema, value, "", &mut found);
    found
}

struct Check<'a> {
    root: &'a Value,
}

impl Check<'_> {
    fn value(&self, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
        let Some(words) = schema.as_object() else {
            if schema != &Value::Bool(true) {
                found.push(format!("{at}: {value} is not allowed"));
            }
            return;
        };
        for (word, rule) in words {
            let holds = match word.as_str() {
                "$schema" | "$defs" | "title" | "description" | "default" | "format" => true,
                "$ref" => {
                    let path = rule.as_str().and_then(|path| path.strip_prefix('#')).unwrap_or("none");
                    let Some(part) = self.root.pointer(path) else {
                        found.push(format!("{at}: the schema has no {rule}"));
                        continue;
                    };
                    self.value(part, value, at, found);
                    true
                }
                "type" => one_or_many(rule).any(|name| is_of(value, name)),
                "const" => value == rule,
                "enum" => one_or_many(rule).any(|one| one == value),
                "minimum" => value.as_f64().zip(rule.as_f64()).is_none_or(|(value, least)| value >= least),
                "maximum" => value.as_f64().zip(rule.as_f64()).is_none_or(|(value, most)| value <= most),
                "minItems" => value.as_array().is_none_or(|all| all.len() as u64 >= count(rule)),
                "maxItems" => value.as_array().is_none_or(|all| all.len() as u64 <= count(rule)),
                "required" => {
                    let has = |name: &Value| value.get(name.as_str().unwrap_or_default()).is_some();
                    !value.is_object() || one_or_many(rule).all(has)
                }
                "allOf" => one_or_many(rule).all(|one| self.is_valid(one, value)),
                "anyOf" => one_or_many(rule).any(|one| self.is_valid(one, value)),
                "oneOf" => one_or_many(rule).filter(|one| self.is_valid(one, value)).count() == 1,
                "properties" | "additionalProperties" | "prefixItems" | "items" => {
                    self.parts(words, word, rule, value, at, found);
                    true
                }
                _ => false,
            };
            if !holds {
                found.push(format!("{at}: {value:.200} breaks `{word}: {rule:.200}`"));
            }
        }
    }

    /// What is in an object or an array.
    fn parts(
        &self,
        words: &Map<String, Value>,
        word: &str,
        rule: &Value,
        value: &Value,
        at: &str,
        found: &mut Vec<String>,
    ) {
        let known = |word: &str, name: &str| words.get(word).is_some_and(|all| all.get(name).is_some());
        let prefix = words.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
        for (name, part) in value.as_object().into_iter().flatten() {
            let schema = match word {
                "properties" => rule.get(name),
                "additionalProperties" if !known("properties", name) => Some(rule),
                _ => None,
            };
            schema.into_iter().for_each(|schema| self.value(schema, part, &format!("{at}/{name}"), found));
        }
        for (index, part) in value.as_array().into_iter().flatten().enumerate() {
            let schema = match word {
                "prefixItems" => rule.get(index),
                "items" if index >= prefix => Some(rule),
                _ => None,
            };
            schema.into_iter().for_each(|schema| self.value(schema, part, &format!("{at}/{index}"), found));
        }
    }

    fn is_valid(&self, schema: &Value, value: &Value) -> bool {
        let mut found = Vec::new();
        self.value(schema, value, "", &mut found);
        found.is_empty()
    }
}

fn one_or_many(rule: &Value) -> impl Iterator<Item = &Value> {
    rule.as_array().map_or(std::slice::from_ref(rule), Vec::as_slice).iter()
}

fn count(rule: &Value) -> u64 {
    rule.as_u64().expect("a count in the schema")
}

fn is_of(value: &Value, name: &Value) -> bool {
    match name.as_str().expect("a type's name in the schema") {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        name => panic!("the schema has a type {name}"),
    }
}

#[test]
fn each_word_of_a_schema_refuses_what_it_must() {
    let schema = |text: &str| -> Value { serde_json::from_str(text).expect("a schema") };
    for (rules, valid, invalid) in [
        (r#"{"type": ["integer", "null"]}"#, "3", "3.5"),
        (r#"{"type": "array", "items": {"type": "number"}}"#, "[1, 2.5]", r#"[1, "2"]"#),
        (r#"{"const": "heaptoll"}"#, r#""heaptoll""#, r#""other""#),
        (r#"{"enum": [1, 2]}"#, "2", "3"),
        (r#"{"minimum": 0, "maximum": 9}"#, "9", "-1"),
        (r#"{"minimum": 0, "maximum": 9}"#, "0", "10"),
        (r#"{"minItems": 1, "maxItems": 2}"#, "[1]", "[]"),
        (r#"{"minItems": 1, "maxItems": 2}"#, "[1, 2]", "[1, 2, 3]"),
        (r#"{"required": ["a"]}"#, r#"{"a": null}"#, r#"{"b": 1}"#),
        (r#"{"properties": {"a": {"type": "string"}}}"#, r#"{"b": 1}"#, r#"{"a": 1}"#),
        (r#"{"properties": {"a": true}, "additionalProperties": false}"#, r#"{"a": 1}"#, r#"{"b": 1}"#),
        (
            r#"{"prefixItems": [{"type": "string"}], "items": {"type": "null"}}"#,
            r#"["a", null]"#,
            r#"["a", "b"]"#,
        ),
        (r#"{"prefixItems": [{"type": "string"}]}"#, r#"["a", 1]"#, "[1]"),
        (r#"{"anyOf": [{"type": "string"}, {"type": "null"}]}"#, "null", "1"),
        (r#"{"oneOf": [{"minimum": 0}, {"maximum": 5}]}"#, "7", "3"),
        (r#"{"allOf": [{"minimum": 0}, {"maximum": 5}]}"#, "3", "7"),
        (r##"{"$ref": "#/$defs/A", "$defs": {"A": {"type": "string"}}}"##, r#""a""#, "1"),
    ] {
        let found = |value| errors(&schema(rules), &schema(value));
        assert_eq!(found(valid), Vec::<String>::new(), "{rules}");
        assert_eq!(found(invalid).len(), 1, "{rules} {invalid}: {:?}", found(invalid));
    }
    for unknown in [r#"{"pattern": "a"}"#, r##"{"$ref": "#/$defs/B"}"##] {
        assert_eq!(errors(&schema(unknown), &Value::Null).len(), 1, "{unknown}");
    }
}
