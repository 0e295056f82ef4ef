//! What every command writes of stored databases and traces, in `tests/stored/golden/`. For scripts: JSON, CSV, Parquet,
//! SQL and the formats of other tools, in which only sentences may change ([`SENTENCES`]). For readers: the terminal's
//! text and Markdown, whose every word is compared.
//!
//! `make golden` writes the files anew, and names those that are others than before.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::fixture::{CommandOutput, Fixture};
use crate::stored::changed;

/// A golden file's name, and the words that make it; `@` is the file that they write.
type Golden = (&'static str, &'static str);

const OF_EXPERIMENTS: [Golden; 10] = [
    ("report-repetitions.json", "report repetitions.db --json @"),
    ("report-repetitions.csv", "report repetitions.db --csv @"),
    ("report-repetitions.parquet", "report repetitions.db --parquet @"),
    ("report-instructions.json", "report instructions.db --json @"),
    ("report-locality.json", "report locality.db --json @"),
    ("report-drag.json", "report drag.db --json @"),
    ("report-drag.csv", "report drag.db --csv @"),
    ("report-reclamation.json", "report reclamation.db --json @"),
    ("report-frequency.csv", "report frequency.db --csv @"),
    ("study-mimalloc.json", "study --from ROOT/docs/results/study-mimalloc-2026-11-27.json.xz --json @"),
];

const OF_TRACES: [Golden; 12] = [
    ("stat-calls.json", "stat calls.heaptoll --json @"),
    ("stat-snapshots.json", "stat snapshots.heaptoll --json @"),
    ("stat-pointers.json", "stat pointers.graph --json @"),
    ("lifetimes-snapshots.json", "lifetimes snapshots.heaptoll --json @"),
    ("ledger-snapshots.json", "ledger snapshots.heaptoll --json @"),
    ("leaks-snapshots.json", "leaks snapshots.heaptoll --json @"),
    ("leaks-pointers.json", "leaks pointers.graph --json @"),
    ("bound-calls.json", "bound calls.heaptoll --json @"),
    ("conservatism-pointers.json", "conservatism pointers.graph --json @"),
    ("diff-sampled.json", "diff sampled.pb.gz sampled.pb.gz --json @"),
    ("diff-sites.json", "diff snapshots.heaptoll snapshots.heaptoll --json @"),
    ("diff-kinds.json", "diff sampled.pb.gz snapshots.heaptoll --json @"),
];

const EXPORTED: [Golden; 10] = [
    ("calls.parquet", "export calls.heaptoll -o @"),
    ("snapshots.parquet", "export snapshots.heaptoll -o @"),
    ("snapshots.pprof", "export snapshots.heaptoll --to pprof -o @"),
    ("snapshots.firefox", "export snapshots.heaptoll --to firefox -o @"),
    ("snapshots.folded", "export snapshots.heaptoll --to folded -o @"),
    ("snapshots.dhat", "export snapshots.heaptoll --to dhat -o @"),
    ("snapshots.callgrind", "export snapshots.heaptoll --to callgrind -o @"),
    ("snapshots.speedscope", "export snapshots.heaptoll --to speedscope -o @"),
    ("snapshots.perfetto", "export snapshots.heaptoll --to perfetto -o @"),
    ("sampled.folded", "export sampled.pb.gz --to folded -o @"),
];

/// What readers get: the terminal's text as NAME.txt, and NAME.md.
const SHOWN: [Golden; 18] = [
    ("report-repetitions", "report repetitions.db"),
    ("report-instructions", "report instructions.db"),
    ("report-locality", "report locality.db"),
    ("report-drag", "report drag.db"),
    ("report-reclamation", "report reclamation.db --bounds"),
    ("report-frequency", "report frequency.db --collections"),
    ("study-mimalloc", "lab study --from ROOT/docs/results/study-mimalloc-2026-11-27.json.xz"),
    ("stat-calls", "trace stat calls.heaptoll"),
    ("stat-snapshots", "trace stat snapshots.heaptoll"),
    ("stat-pointers", "trace stat pointers.graph"),
    ("lifetimes-snapshots", "trace lifetimes snapshots.heaptoll"),
    ("ledger-snapshots", "ledger snapshots.heaptoll"),
    ("leaks-snapshots", "leaks snapshots.heaptoll"),
    ("leaks-pointers", "leaks pointers.graph"),
    ("bound-calls", "trace bound calls.heaptoll"),
    ("conservatism-pointers", "lab conservatism pointers.graph"),
    ("diff-sites", "diff snapshots.heaptoll snapshots.heaptoll"),
    ("diff-kinds", "diff sampled.pb.gz snapshots.heaptoll"),
];

/// A folder with the stored files, unpacked.
fn stored_files() -> Fixture {
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

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stored")
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
fn compare(name: &str, now: &[u8]) -> Vec<String> {
    let path = folder().join("golden").join(format!("{name}.zst"));
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
fn assert_as_before(all: &[Golden]) {
    let fixture = stored_files();
    let mut changes = Vec::new();
    for (name, words) in all {
        ran(&fixture, words, name);
        changes.extend(compare(name, &comparable(&fixture, name)));
    }
    assert!(changes.is_empty(), "{}", changes.join("\n"));
}

#[test]
fn what_readers_get_of_stored_files_is_as_before() {
    let fixture = stored_files();
    let mut changes = Vec::new();
    for (name, words) in SHOWN {
        let page = format!("{name}.md");
        let output = ran(&fixture, &format!("{words} --markdown @"), &page);
        let lines = std::fs::read_to_string(fixture.path(&page)).expect("a page");
        for (file, text) in [(format!("{name}.txt"), output.out), (page, lines)] {
            changes.extend(compare(&file, text.replace(&fixture.at(""), "").as_bytes()));
        }
    }
    assert!(changes.is_empty(), "`make golden` accepts:\n{}", changes.join("\n"));
}

#[test]
fn what_scripts_read_of_stored_experiments_is_as_before() {
    assert_as_before(&OF_EXPERIMENTS);
}

#[test]
fn what_scripts_read_of_stored_traces_is_as_before() {
    assert_as_before(&OF_TRACES);
}

#[test]
fn what_other_tools_read_of_stored_traces_is_as_before() {
    assert_as_before(&EXPORTED);
}

#[test]
fn the_documented_queries_answer_as_before() {
    let fixture = stored_files();
    let queries =
        std::fs::File::open(folder().join("../../../../docs/reference/sql-examples.sql")).expect("opens");
    let mut sqlite = Command::new("sqlite3");
    let output = sqlite.arg(fixture.path("repetitions.db")).stdin(queries).stderr(Stdio::inherit()).output();
    let changes = compare("queries.txt", &output.expect("sqlite3 runs").stdout);
    assert!(changes.is_empty(), "{}", changes.join("\n"));
}
