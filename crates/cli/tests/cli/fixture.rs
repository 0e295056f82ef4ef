//! The fixture of these tests: a folder with its own state and cache, a C compiler, and heaptoll to be started in it.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::schemas;

/// One test's own folder, state and cache.
pub struct Fixture {
    folder: tempfile::TempDir,
    /// Files to which commands that a test started itself were to write their figures.
    json_files: Mutex<Vec<PathBuf>>,
}

/// Exit status and output of a heaptoll command.
#[derive(Debug)]
pub struct CommandOutput {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl CommandOutput {
    /// Validates standard output where it holds figures.
    fn new(code: Option<i32>, out: String, err: String) -> CommandOutput {
        if code == Some(0) && out.starts_with("{\n  \"schema\"") {
            schemas::validate("standard output", &out);
        }
        CommandOutput { code, out, err }
    }

    /// Asserts the exit status; shows everything when it is another.
    #[track_caller]
    pub fn exits(self, code: i32) -> CommandOutput {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    /// Asserts that standard error holds every one of these.
    #[track_caller]
    pub fn complains(self, words: &[&str]) -> CommandOutput {
        for word in words {
            assert!(self.err.contains(word), "no `{word}` in stderr:\n{}\nstdout:\n{}", self.err, self.out);
        }
        self
    }

    /// Asserts that standard output holds every one of these.
    #[track_caller]
    pub fn shows(self, words: &[&str]) -> CommandOutput {
        for word in words {
            assert!(self.out.contains(word), "no `{word}` in stdout:\n{}\nstderr:\n{}", self.out, self.err);
        }
        self
    }
}

impl From<std::process::Output> for CommandOutput {
    fn from(output: std::process::Output) -> CommandOutput {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        CommandOutput::new(output.status.code(), text(&output.stdout), text(&output.stderr))
    }
}

/// Whether a manager is glibc's or built here. `heaptoll managers` would start a program under each.
pub fn is_built(manager: &str) -> bool {
    let description = heaptoll_testing::staged::home().join(format!("lib/heaptoll/managers/{manager}.toml"));
    let is_built = manager == "glibc" || description.is_file();
    if !is_built {
        eprintln!("skipped: {manager} is not built");
    }
    is_built
}

impl Fixture {
    pub fn new() -> Fixture {
        let folder = tempfile::Builder::new().prefix("heaptoll-test-").tempdir().expect("a folder");
        Fixture { folder, json_files: Mutex::default() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A path as text for command lines.
    pub fn at(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// heaptoll with arguments, not started yet.
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.json_files.lock().expect("no test panicked").extend(self.json_files_of(arguments));
        self.to_run(arguments)
    }

    fn to_run(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(crate::HEAPTOLL);
        command.args(arguments).stdin(Stdio::null());
        self.prepare(&mut command);
        command
    }

    /// The files to which a command writes its figures.
    fn json_files_of(&self, arguments: &[&str]) -> Vec<PathBuf> {
        let words = arguments.windows(2).filter(|words| words[0] == "--json");
        words.map(|words| self.path(words[1])).collect()
    }

    /// Sets this fixture's folders in a command's environment and removes what the caller's shell may have set.
    pub fn prepare(&self, command: &mut Command) {
        command
            .env("XDG_STATE_HOME", self.path("state"))
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env("XDG_DATA_HOME", self.path("data"))
            .env_remove("NO_COLOR")
            .env_remove("COLUMNS")
            .env_remove("GITHUB_STEP_SUMMARY")
            .env_remove("LD_PRELOAD");
        // A script that runs the tests in its background has interrupts ignored, and heaptoll leaves ignored what its
        // caller ignores.
        let default_signals = || {
            for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP, libc::SIGTERM] {
                // SAFETY: `signal` takes no pointer here and is async-signal-safe, as the child between fork and exec needs.
                unsafe { libc::signal(signal, libc::SIG_DFL) };
            }
            Ok(())
        };
        // SAFETY: `default_signals` calls nothing but `signal`, which is async-signal-safe, and allocates nothing.
        unsafe { command.pre_exec(default_signals) };
    }

    /// How to run heaptoll as a user that is not root, in a folder that such a user may write to; `None` if the build
    /// lies where only root can reach it, as a clone in root's home does.
    pub fn unprivileged(&self) -> Option<impl Fn(&[&str]) -> CommandOutput + '_> {
        let run = |arguments: &[&str]| {
            let mut command = self.command(arguments);
            if is_root() {
                command = Command::new(UNPRIVILEGED[0]);
                command.args(&UNPRIVILEGED[1..]).arg(crate::HEAPTOLL).args(arguments);
                self.prepare(&mut command);
            }
            command.stdin(Stdio::null()).current_dir("/").output().expect("setpriv starts").into()
        };
        let permissions = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(self.path("."), permissions).expect("changes the mode");
        let output: CommandOutput = run(&["programs"]);
        if output.code != Some(0) {
            eprintln!("SKIPPED: another user cannot reach the build: {}", output.err);
        }
        (output.code == Some(0)).then_some(run)
    }

    /// Runs heaptoll to its end.
    pub fn heaptoll(&self, arguments: &[&str]) -> CommandOutput {
        let output = self.to_run(arguments).output().expect("heaptoll starts").into();
        validate_json(&self.json_files_of(arguments));
        output
    }

    fn compile(&self, name: &str, source: &str, flags: &[&str]) -> String {
        let code = self.path(&format!("{name}.c"));
        std::fs::write(&code, source).expect("writes the source");
        // Without -fno-builtin the compiler removes pairs of malloc and free.
        let output = Command::new("cc")
            .args(["-O1", "-fno-builtin", "-w", "-I"])
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include"))
            .arg("-o")
            .arg(self.path(name))
            .arg(&code)
            .args(flags)
            .output()
            .expect("cc runs");
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        self.at(name)
    }

    /// Compiles a C program; returns its path.
    pub fn program(&self, name: &str, source: &str) -> String {
        self.compile(name, &format!("{PROGRAM_HEAD}{source}"), &[])
    }

    /// Compiles a C program statically.
    pub fn static_program(&self, name: &str, source: &str) -> String {
        self.compile(name, &format!("{PROGRAM_HEAD}{source}"), &["-static"])
    }

    /// Compiles this source alone into a shared object.
    pub fn object(&self, name: &str, source: &str) -> String {
        self.compile(name, source, &["-shared", "-fPIC"])
    }

    /// A manager that forwards to glibc's own functions. `source` may use its macros: `BEFORE(bytes)` runs before
    /// each allocation, and may return from it.
    pub fn manager(&self, name: &str, source: &str) -> String {
        self.object(name, &format!("{PROGRAM_HEAD}{source}\n{MANAGER_BODY}"))
    }

    pub fn script(&self, name: &str, text: &str) -> String {
        heaptoll_scratch::write_executable(&self.path(name), text).expect("writes");
        self.at(name)
    }

    /// The experiment in a file, read back through `heaptoll report --json`.
    pub fn json(&self, db: &str) -> Value {
        let file = self.at("read-back.json");
        self.heaptoll(&["report", db, "--json", &file]).exits(0);
        read_json(&file)
    }

    /// Starts heaptoll with both outputs in pipes.
    pub fn start(&self, arguments: &[&str]) -> UnderWay {
        let mut command = self.command(arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("heaptoll starts");
        UnderWay { child }
    }
}

/// What was written by commands that a test started itself is validated, too.
impl Drop for Fixture {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            validate_json(&self.json_files.lock().expect("no test panicked"));
        }
    }
}

/// Validates those files that commands wrote.
fn validate_json(files: &[PathBuf]) {
    for path in files.iter().filter(|path| path.is_file()) {
        let text = std::fs::read_to_string(path).expect("the file is text");
        schemas::validate(&path.display().to_string(), &text);
    }
}

/// Reads a JSON file that heaptoll wrote.
pub fn read_json(path: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).expect("the JSON file is there")).expect("it is JSON")
}

/// Rows of an experiment as JSON.
pub fn rows(json: &Value) -> &Vec<Value> {
    json["experiment"]["observations"].as_array().expect("rows")
}

/// Rows of one stack in one phase.
pub fn rows_of<'a>(json: &'a Value, stack: &str, phase: &str) -> Vec<&'a Value> {
    rows(json).iter().filter(|row| row["stack"] == stack && row["phase"] == phase).collect()
}

/// The kinds of outcome of one stack's timed rows.
pub fn outcomes(json: &Value, stack: &str) -> Vec<String> {
    rows_of(json, stack, "timed").iter().map(|row| text(&row["outcome"]["kind"])).collect()
}

/// One stack's row in the (first) table.
pub fn line<'a>(json: &'a Value, stack: &str) -> &'a Value {
    let lines = json["comparison"]["tables"][0]["rows"].as_array().expect("a table");
    lines.iter().find(|row| row["stack"] == stack).unwrap_or_else(|| panic!("no {stack} in {lines:?}"))
}

/// The notes of the first table.
pub fn notes(json: &Value) -> String {
    json["comparison"]["tables"][0]["notes"].to_string()
}

pub fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

/// heaptoll while it runs. Killed when dropped.
pub struct UnderWay {
    child: Child,
}

impl UnderWay {
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Sends a signal to heaptoll alone.
    pub fn signal(&self, signal: i32) {
        // SAFETY: `kill` takes no pointers; the child is not reaped before `wait`, so that its number is still its own.
        unsafe { libc::kill(self.pid(), signal) };
    }

    /// Reads both outputs to their end and waits for heaptoll.
    pub fn wait(mut self) -> CommandOutput {
        let (out, err) = (self.child.stdout.take(), self.child.stderr.take());
        let drain = |source: Option<Box<dyn std::io::Read + Send>>| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                if let Some(mut source) = source {
                    source.read_to_end(&mut bytes).expect("reads");
                }
                String::from_utf8_lossy(&bytes).into_owned()
            })
        };
        let out = drain(out.map(|pipe| Box::new(pipe) as Box<dyn std::io::Read + Send>));
        let err = drain(err.map(|pipe| Box::new(pipe) as Box<dyn std::io::Read + Send>));
        let status = self.child.wait().expect("waits");
        CommandOutput::new(status.code(), out.join().expect("a reader"), err.join().expect("a reader"))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Process numbers whose command line holds `marker`: programs, heaptoll and its launcher.
pub fn processes_with(marker: &str) -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let holds = |pid: &i32| words_of(*pid).iter().any(|word| word.contains(marker));
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(holds).collect()
}

/// Asserts that no process with the marker is left.
#[track_caller]
pub fn assert_none_left(marker: &str) {
    let left: Vec<Vec<String>> = processes_with(marker).into_iter().map(words_of).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Of [`processes_with`] those that are being measured.
pub fn programs_with(marker: &str) -> Vec<i32> {
    let own = |pid: &i32| {
        let words = words_of(*pid);
        let name = words.first().and_then(|word| word.rsplit('/').next()).unwrap_or_default();
        ["heaptoll", "heaptoll-lab", "heaptoll-launch"].contains(&name)
    };
    processes_with(marker).into_iter().filter(|pid| !own(pid)).collect()
}

fn words_of(pid: i32) -> Vec<String> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|&byte| byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// Waits until a condition holds; fails after two minutes, which no test waits for in vain on a machine that is merely
/// busy.
#[track_caller]
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(120);
    // What is waited for is often looked for among all processes, which takes milliseconds each time.
    let mut pause = Duration::from_millis(5);
    while !holds() {
        assert!(Instant::now() < until, "{what} within two minutes");
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(40));
    }
}

/// The file of an experiment, for reading, also while it is written.
pub fn database(db: &str) -> rusqlite::Result<rusqlite::Connection> {
    rusqlite::Connection::open_with_flags(db, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY)
}

/// Rows that an experiment has stored so far; none where it has no file yet.
pub fn stored(db: &str) -> i64 {
    database(db)
        .and_then(|db| db.query_row("SELECT count(*) FROM observation", [], |row| row.get(0)))
        .unwrap_or(0)
}

/// Every run that an experiment has stored, in its order: stack, phase, repetition, and when it began.
pub fn runs_in(db: &str) -> Vec<(String, String, i64, f64)> {
    let db = database(db).expect("the file is there");
    let select = "SELECT stack, phase, repetition, started_unix_s FROM observation ORDER BY position";
    let mut rows = db.prepare(select).expect("the layout");
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)));
    rows.expect("rows").map(|row| row.expect("a row")).collect()
}

/// Asserts that an experiment has these first runs and others, and none of them twice.
#[track_caller]
pub fn goes_on_after(before: &[(String, String, i64, f64)], db: &str) {
    let all = runs_in(db);
    assert!(all.len() > before.len() && all.starts_with(before), "{before:?} then {all:?}");
    let cells: std::collections::BTreeSet<_> = all.iter().map(|run| (&run.0, &run.1, run.2)).collect();
    assert_eq!(cells.len(), all.len(), "{all:?}");
}

/// A word that occurs in no other process's command line, nor in those of a test that runs at the same time.
pub fn marker(name: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("marker-{}-{name}-{}", NEXT.fetch_add(1, Ordering::Relaxed), std::process::id())
}

/// How root starts a program as a user without any rights.
pub const UNPRIVILEGED: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

/// Whether this is root, which some refusals need to be provoked.
pub fn is_root() -> bool {
    // SAFETY: `geteuid` takes no pointers and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// At the head of a program of thousands of functions: they compile in a third of the time.
pub const UNOPTIMISED: &str = "#pragma GCC optimize(\"O0\")\n";

/// The head of every program. `small_pages()` is for one whose resident memory is compared with a number: where the
/// system gives huge pages to every process, a byte that is written would be 2 MiB.
const PROGRAM_HEAD: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <malloc.h>
static int under(const char *word) {
    const char *preload = getenv("LD_PRELOAD");
    return preload && strstr(preload, word);
}
static void small_pages(void) { prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); }
"#;

const MANAGER_BODY: &str = r#"
#ifndef BEFORE
#define BEFORE(bytes)
#endif
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);
void *malloc(size_t n) { BEFORE(n); return __libc_malloc(n); }
void *calloc(size_t n, size_t m) { BEFORE(n * m); return __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { BEFORE(n); return __libc_realloc(p, n); }
void free(void *p) { __libc_free(p); }
void *memalign(size_t a, size_t n) { BEFORE(n); return __libc_memalign(a, n); }
void *aligned_alloc(size_t a, size_t n) { BEFORE(n); return __libc_memalign(a, n); }
int posix_memalign(void **p, size_t a, size_t n) {
    *p = __libc_memalign(a, n);
    return *p ? 0 : ENOMEM;
}
#ifndef NO_REALLOCARRAY
void *reallocarray(void *p, size_t n, size_t m) { return realloc(p, n * m); }
#endif
"#;

/// Runs git in a folder, as an author of its own and without the user's configuration. Returns what it prints, trimmed.
pub fn git(folder: &Path, words: &[&str]) -> String {
    let mut git = Command::new("git");
    git.arg("-C").arg(folder).args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(words);
    let done = git.env("GIT_CONFIG_GLOBAL", "/dev/null").output().expect("git runs");
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

/// A program in C that retains these bytes in blocks of 256 and drops as much again, and reports a failed allocation.
/// `first` is done before.
pub fn retains(bytes: u64, first: &str) -> String {
    format!(
        "struct node {{ struct node *next; char rest[248]; }} *volatile all;
int main(void) {{
    {first}
    for (int i = 0; i < {}; i++) {{
        struct node *one = malloc(sizeof *one), *garbage = malloc(sizeof *garbage);
        if (!one || !garbage) {{ puts(\"no memory\"); return 1; }}
        memset(garbage, 1, sizeof *garbage);
        one->next = all; all = one;
    }}
    long count = 0;
    for (struct node *one = all; one; one = one->next) count++;
    printf(\"%ld\\n\", count);
    return 0; }}",
        bytes / 256
    )
}
