//! The page of the fields of all JSON files, made from their schemas: `make reference` writes it.

use std::fmt::Write as _;

use heaptoll_report::markdown::marked_cell;
use serde_json::Value;

use crate::REGISTRY;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/json-fields.md");

const HEAD: &str = "# Fields of the JSON files

Every field of every JSON file, made by `make reference` from the types that write them. \
[JSON files](json-schema.md) has what is common to all. Of each file its own fields come first, then each type that \
they name.
";

/// A field, or a value that a field can have.
struct Row {
    name: String,
    kind: String,
    meaning: String,
}

fn text<'a>(schema: &'a Value, key: &str) -> &'a str {
    schema[key].as_str().unwrap_or_default()
}

fn list<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    schema[key].as_array().into_iter().flatten()
}

fn variants(schema: &Value) -> impl Iterator<Item = &Value> {
    list(schema, "oneOf").chain(list(schema, "anyOf"))
}

/// The type of a value.
fn kind(schema: &Value) -> String {
    let either = |kinds: Vec<String>| kinds.join(" or ");
    if let Some((_, name)) = text(schema, "$ref").rsplit_once('/') {
        return name.to_owned();
    }
    if let Some(only) = schema.get("const") {
        return only.to_string();
    }
    if variants(schema).next().is_some() {
        return either(variants(schema).map(kind).collect());
    }
    if schema.get("prefixItems").is_some() {
        return format!("[{}]", list(schema, "prefixItems").map(kind).collect::<Vec<_>>().join(", "));
    }
    let names = schema["type"].as_array().map_or(std::slice::from_ref(&schema["type"]), Vec::as_slice);
    let named = names.iter().map(|name| match name.as_str().unwrap_or("any") {
        "array" => format!("list of {}", kind(&schema["items"])),
        "object" if schema["additionalProperties"].is_object() => {
            format!("map of {}", kind(&schema["additionalProperties"]))
        }
        name => name.to_owned(),
    });
    either(named.collect())
}

/// The fields of a type, with those of its variants. A field without a meaning of its own has its variant's.
fn rows(schema: &Value, around: &str) -> Vec<Row> {
    let fields = schema["properties"].as_object().into_iter().flatten();
    let fields = fields.map(|(name, field)| Row {
        name: name.clone(),
        kind: kind(field),
        meaning: Some(text(field, "description")).filter(|own| !own.is_empty()).unwrap_or(around).to_owned(),
    });
    let values = variants(schema).flat_map(|variant| {
        let meaning = text(variant, "description");
        let value = variant.get("const").map(|value| Row {
            name: value.as_str().map_or_else(|| value.to_string(), str::to_owned),
            kind: "value".to_owned(),
            meaning: meaning.to_owned(),
        });
        value.into_iter().chain(rows(variant, meaning))
    });
    fields.chain(values).collect()
}

/// The rows of a file and of each type that it names.
fn tables(schema: &Value) -> Vec<(&str, &Value, Vec<Row>)> {
    let types = schema["$defs"].as_object().into_iter().flatten();
    let types = types.map(|(name, of_type)| (name.as_str(), of_type));
    let all = [("", schema)].into_iter().chain(types);
    all.map(|(name, schema)| (name, schema, rows(schema, text(schema, "description")))).collect()
}

/// Text as a cell of a table holds it: JSON has no `None`.
fn cell(text: &str) -> String {
    marked_cell(text).replace("`None`", "null")
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    for command in REGISTRY.schemas() {
        writeln!(page, "\n## `{}`", command.tag).expect("writing to a string");
        for (name, schema, rows) in tables(&command.schema()) {
            let title = if name.is_empty() { String::new() } else { format!("\n### {name}\n") };
            let meaning = cell(text(schema, "description"));
            let known = if rows.is_empty() { format!("Type: {}.\n", kind(schema)) } else { String::new() };
            write!(page, "{title}{meaning}\n{known}").expect("writing to a string");
            if !rows.is_empty() {
                page.push_str("\n| field | type | meaning |\n|---|---|---|\n");
            }
            for Row { name, kind, meaning } in &rows {
                writeln!(page, "| `{name}` | {} | {} |", cell(kind), cell(meaning))
                    .expect("writing to a string");
            }
        }
    }
    page
}

#[test]
fn the_page_has_the_fields_of_every_file_each_with_a_meaning() {
    for command in REGISTRY.schemas() {
        for (name, _, rows) in tables(&command.schema()) {
            let silent: Vec<&str> =
                rows.iter().filter(|row| row.meaning.is_empty()).map(|row| row.name.as_str()).collect();
            assert!(silent.is_empty(), "{} {name}: without a comment: {silent:?}", command.tag);
        }
    }
    let page = page();
    if std::env::var_os("WRITE_DOCS").is_some() {
        std::fs::write(PAGE, &page).expect("the page can be written");
    }
    let row = "| `peak_rss_kib` | integer | Peak resident memory of the largest single process. |";
    assert!(page.contains(row), "{page}");
}
