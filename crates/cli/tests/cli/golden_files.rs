//! Golden files: what commands write of stored files is compared with what they wrote before, or written anew.

use std::path::{Path, PathBuf};

use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::Value;

use crate::fixture::{CommandOutput, Fixture};

/// A golden file's name, and the words that make it; `@` is the file that they write.
pub type Golden = (&'static str, &'static str);

/// A folder with the stored files, unpacked.
pub fn stored_files() -> Fixture {
    let fixture = Fixture::new();
    for entry in
        std::fs::read_dir(folder()).expect("the folder of stored files").map(|entry| entry.expect("an entry"))
    {
        let (path, name) = (entry.path(), entry.file_name().into_string().expect("a name"));
        match name.strip_suffix(".zst") {
            Some(name) => std::fs::write(fixture.path(name), unpacked(&path)).expect("writes"),
            None if path.is_file() => drop(std::fs::copy(&path, fixture.path(&name)).expect("copies")),
            None => {}
        }
    }
    fixture
}

/// What is stored, of the product's tests and the laboratory's.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/cli/tests/stored")
}

fn unpacked(path: &Path) -> Vec<u8> {
    let packed = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    zstd::decode_all(&packed[..]).expect("it is packed by zstd")
}

/// What a command wrote, as it is compared: JSON without the test's own folder, and of Parquet the rows, as the file
/// itself depends on its writer's version.
fn comparable(fixture: &Fixture, name: &str) -> Vec<u8> {
    let bytes = std::fs::read(fixture.path(name)).expect("it was written");
    if name.ends_with(".json") {
        return String::from_utf8(bytes).expect("text").replace(&fixture.at(""), "").into_bytes();
    }
    if !name.ends_with(".parquet") {
        return bytes;
    }
    let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).expect("a file of Parquet");
    let rows = reader.get_row_iter(None).expect("rows").map(|row| format!("{}\n", row.expect("a row")));
    rows.collect::<String>().into_bytes()
}

/// Compares with a golden file, or writes it. Returns what is not as it was.
pub fn compare(name: &str, now: &[u8]) -> Vec<String> {
    let path = Path::new(crate::golden::FOLDER).join(format!("{name}.zst"));
    let difference = || {
        let before = unpacked(&path);
        match name.ends_with(".json") {
            true => {
                let parsed = |bytes: &[u8]| serde_json::from_slice(bytes).expect("JSON");
                let mut changes = Vec::new();
                changed(&parsed(&before), Some(&parsed(now)), name, &mut changes);
                changes
            }
            false if before == now => Vec::new(),
            false => {
                let lines = |bytes: &[u8]| {
                    String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect::<Vec<_>>()
                };
                let (before, now) = (lines(&before), lines(now));
                let at = before.iter().zip(&now).take_while(|(before, now)| before == now).count();
                vec![format!("{name}, line {}: {:?} became {:?}", at + 1, before.get(at), now.get(at))]
            }
        }
    };
    if std::env::var_os("WRITE_GOLDEN").is_none() {
        return difference();
    }
    if !path.exists() || !difference().is_empty() {
        println!("{name} is another");
    }
    std::fs::write(&path, zstd::encode_all(now, 19).expect("packs")).expect("writes the golden file");
    Vec::new()
}

/// Runs a command in the folder of the stored files; `@` in its words is this file.
#[track_caller]
fn ran(fixture: &Fixture, words: &str, file: &str) -> CommandOutput {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").display().to_string();
    let words: Vec<String> =
        words.split(' ').map(|word| word.replace("ROOT", &root).replace('@', file)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut command = fixture.command(&words);
    let output = command.current_dir(fixture.path("")).env("COLUMNS", "120").output();
    CommandOutput::from(output.expect("heaptoll starts")).exits(0)
}

#[track_caller]
pub fn assert_as_before(all: &[Golden]) {
    let fixture = stored_files();
    let mut changes = Vec::new();
    for (name, words) in all {
        ran(&fixture, words, name);
        changes.extend(compare(name, &comparable(&fixture, name)));
    }
    assert!(changes.is_empty(), "{}", changes.join("\n"));
}

/// Compares the terminal's text of commands as NAME.txt, and NAME.md.
#[track_caller]
pub fn assert_shown_as_before(all: &[Golden]) {
    let fixture = stored_files();
    let mut changes = Vec::new();
    for (name, words) in all {
        let page = format!("{name}.md");
        let output = ran(&fixture, &format!("{words} --markdown @"), &page);
        let lines = std::fs::read_to_string(fixture.path(&page)).expect("a page");
        for (file, text) in [(format!("{name}.txt"), output.out), (page, lines)] {
            changes.extend(compare(&file, text.replace(&fixture.at(""), "").as_bytes()));
        }
    }
    assert!(changes.is_empty(), "`make golden` accepts:\n{}", changes.join("\n"));
}

/// Members that hold sentences, whose wording is no part of a format.
const SENTENCES: [&str; 14] = [
    "about",
    "machine_origin",
    "missing",
    "no_hardware_counters",
    "not_built",
    "notes",
    "precision",
    "proof",
    "reason",
    "text",
    "title",
    "verdict",
    "warnings",
    "words",
];

/// Paths of members of `old` that `new` lacks or gives another value.
pub fn changed(old: &Value, new: Option<&Value>, path: &str, changes: &mut Vec<String>) {
    match (old, new) {
        (Value::Object(old), Some(Value::Object(new))) => {
            for (name, value) in old.iter().filter(|(name, _)| !SENTENCES.contains(&name.as_str())) {
                changed(value, new.get(name), &format!("{path}.{name}"), changes);
            }
        }
        (Value::Array(old), Some(Value::Array(new))) if old.len() == new.len() => {
            for (index, value) in old.iter().enumerate() {
                changed(value, new.get(index), &format!("{path}[{index}]"), changes);
            }
        }
        (old, Some(new)) if old == new => {}
        (old, new) => changes.push(format!("{path}: {old} became {new:?}")),
    }
}
