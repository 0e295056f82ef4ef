//! Instructions of each function, against callgrind's.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use heaptoll_callgrind::profile;
use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::launch::Invocation;
use heaptoll_experiment::places::Places;
use heaptoll_reftrace::{Owner, Reference, Sink, event::Event};
use heaptoll_reftrace_host::{Options, Traced, Tracer, trace};

struct Nothing;

impl Sink for Nothing {
    fn references(&mut self, _: Owner, _: &[Reference]) {}
    fn event(&mut self, _: &Event<'_>) {}
}

/// Compiles a program in C++, whose symbols are mangled.
fn compiled(folder: &Path, source: &str) -> PathBuf {
    let (file, binary) = (folder.join("program.cc"), folder.join("program"));
    std::fs::write(&file, source).expect("writes");
    let mut compiler = Command::new("c++");
    compiler.args(["-O1", "-g", "-fno-inline", "-pthread", "-o"]).args([&binary, &file]);
    assert!(compiler.status().expect("there is a compiler").success());
    binary
}

fn traced(command: Vec<OsString>, functions: bool) -> Traced<Nothing> {
    let places = Places::at(&heaptoll_testing::staged::home());
    let tracer = Tracer::find(&places).expect("the tracer is staged: run `make build`");
    let invocation = Invocation {
        command,
        environment: vec![("LD_BIND_NOW".into(), "1".into())],
        ..Invocation::default()
    };
    let options = Options { functions, ..Options::default() };
    trace(&tracer, &places.launcher(), &invocation, &options, &Interrupt::default(), |_| Nothing)
        .expect("it is traced")
}

const WORK: &str = r#"
#include <map>
#include <string>
#include <cstdio>
namespace counted {
static unsigned long sum;
__attribute__((noinline)) void heavy(unsigned times) { for (unsigned i = 0; i < times; i++) sum += sum / 3 + i; }
__attribute__((noinline)) unsigned long deep(unsigned n) { return n < 2 ? n : deep(n - 1) + deep(n - 2); }
}
int main() {
    std::map<std::string, int> words;
    for (int i = 0; i < 500; i++) words["word" + std::to_string(i % 37)]++;
    counted::heavy(10000);
    printf("%zu %lu\n", words.size(), counted::deep(12));
}
"#;

#[test]
fn each_function_of_the_program_has_executed_what_callgrind_counts() {
    let folder = tempfile::tempdir().expect("a folder");
    let binary = compiled(folder.path(), WORK);
    let traced = traced(vec![binary.clone().into_os_string()], true);
    let image = &traced.images[0];
    let sum: u64 = image.functions.iter().map(|function| function.instructions).sum();
    assert_eq!(sum, image.instructions(), "every instruction is one function's");

    let out = folder.path().join("callgrind.out");
    let words = profile::valgrind(&out);
    let run = Command::new(&words[0]).args(&words[1..]).arg(&binary).env("LD_BIND_NOW", "1").output();
    assert!(run.expect("Valgrind is installed").status.success());
    let text = std::fs::read_to_string(&out).expect("a profile");
    let object = binary.to_string_lossy().into_owned();
    let of_program = |found: BTreeMap<(String, String), u64>| -> BTreeMap<String, u64> {
        let own = found.into_iter().filter(|((of, _), _)| *of == object);
        own.map(|((_, name), cost)| (name, cost))
            .filter(|(name, _)| name.starts_with("_ZN7counted"))
            .collect()
    };
    let ours = image.functions.iter();
    let ours = ours.map(|one| ((one.object.clone(), one.symbol.clone()), one.instructions)).collect();
    let (ours, theirs) = (of_program(ours), of_program(profile::exclusive(&text)));
    assert_eq!(ours.len(), 2, "{ours:?}");
    assert_eq!(ours, theirs);
}

/// Found when it was designed: the counters are in memory that a child of fork has from its parent.
#[test]
fn a_child_of_fork_and_an_image_after_exec_count_their_own_instructions_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = r#"
#include <sys/wait.h>
#include <unistd.h>
static volatile unsigned long sum;
extern "C" __attribute__((noinline)) void parent_work(void) { for (int i = 0; i < 50000; i++) sum = sum + i; }
extern "C" __attribute__((noinline)) void child_work(void) { for (int i = 0; i < 1000; i++) sum = sum + i; }
int main(int count, char **words) {
    if (count > 1) return 0;
    parent_work();
    pid_t child = fork();
    if (child == 0) { child_work(); execl(words[0], words[0], "again", (char *)0); _exit(1); }
    waitpid(child, 0, 0);
}
"#;
    let binary = compiled(folder.path(), source);
    let traced = traced(vec![binary.into_os_string()], true);
    assert_eq!(traced.images.len(), 3);
    for image in &traced.images {
        let sum: u64 = image.functions.iter().map(|function| function.instructions).sum();
        assert_eq!(sum, image.instructions(), "{:?}", image.image);
    }
    let has = |image: usize, name: &str| traced.images[image].functions.iter().any(|one| one.symbol == name);
    assert!(has(0, "parent_work") && !has(0, "child_work"));
    assert!(!has(1, "parent_work") && has(1, "child_work"));
    assert!(!has(2, "parent_work") && !has(2, "child_work"));
}

/// Found by attack: each exec that failed listed all functions once more.
#[test]
fn a_function_is_listed_once_though_execs_fail() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = r#"
#include <unistd.h>
static volatile unsigned long sum;
extern "C" __attribute__((noinline)) void work(void) { for (int i = 0; i < 1000; i++) sum = sum + i; }
int main() {
    for (int i = 0; i < 3; i++) { work(); execl("/nonexistent/program", "program", (char *)0); }
    work();
}
"#;
    let binary = compiled(folder.path(), source);
    let traced = traced(vec![binary.into_os_string()], true);
    let image = &traced.images[0];
    let sum: u64 = image.functions.iter().map(|function| function.instructions).sum();
    assert_eq!(sum, image.instructions());
    let work: Vec<u64> =
        image.functions.iter().filter(|one| one.symbol == "work").map(|one| one.instructions).collect();
    assert!(work.len() == 1 && work[0] > 4 * 1000, "{work:?}");
}

/// Found by attack: names were cut at 4096 bytes, and a path with a line feed was cut there.
#[test]
fn long_symbols_and_odd_paths_are_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let inside = folder.path().join("new\nline");
    std::fs::create_dir(&inside).expect("a folder");
    let names = ["a", "b"].map(|end| format!("{}{end}", "long_".repeat(1000)));
    let functions = names
        .each_ref()
        .map(|name| format!("extern \"C\" void {name}() {{ for (int i = 0; i < 99; i++) sum = sum + i; }}"));
    let [a, b] = &names;
    let source = format!(
        "static volatile unsigned long sum;\n{}\nint main() {{ {a}(); {b}(); }}\n",
        functions.join("\n")
    );
    let binary = compiled(&inside, &source);
    let traced = traced(vec![binary.clone().into_os_string()], true);
    let object = binary.to_string_lossy();
    let found = traced.images[0].functions.iter().filter(|one| one.object == object);
    let found: Vec<&str> = found.map(|one| one.symbol.as_str()).collect();
    assert!(names.iter().all(|name| found.contains(&name.as_str())), "{} functions", found.len());
}

#[test]
fn what_the_c_library_executes_is_counted_for_the_function_that_called_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = r#"
#include <cstdlib>
#include <cstring>
#include <thread>
static char from[100000], to[100000];
static int compare(const void *a, const void *b) { return *(const char *)a - *(const char *)b; }
extern "C" __attribute__((noinline)) void copies(void) { for (int i = 0; i < 100; i++) memmove(to, from, sizeof to - i); }
extern "C" __attribute__((noinline)) void copies_once(void) { memmove(to, from, sizeof to); to[0] = 1; }
extern "C" __attribute__((noinline)) void sorts(void) { qsort(from, 300, 1, compare); from[0] = 1; }
int main() { copies(); copies_once(); sorts(); std::thread(copies_once).join(); }
"#;
    let binary = compiled(folder.path(), source);
    let traced = traced(vec![binary.into_os_string()], true);
    let image = &traced.images[0];
    let is_library = |object: &str| {
        let file = object.rsplit('/').next().unwrap_or_default();
        ["libc.", "libm.", "ld-linux", "libstdc++.", "libgcc_s."].iter().any(|start| file.starts_with(start))
    };
    let library = image.functions.iter().filter(|one| is_library(&one.object));
    let library: u64 = library.map(|one| one.instructions).sum();
    assert_eq!(image.functions.iter().map(|one| one.for_it).sum::<u64>(), library, "all of it has a caller");
    let of = |name: &str| image.functions.iter().find(|one| one.symbol == name).map_or(0, |one| one.for_it);
    let (copies, once) = (of("copies"), of("copies_once"));
    assert!(copies > 40 * once && once > 0, "{copies} and {once}: 100 and 2 copies");
    assert!(of("sorts") > 1000 && of("_ZL7comparePKvS0_") == 0, "the library goes on after it calls back");
    assert!(of("(before any call)") > 0, "the loader begins before any function of the program");
}

#[test]
fn functions_are_counted_on_request_only() {
    let traced = traced(vec!["true".into()], false);
    assert!(traced.images.iter().all(|image| image.functions.is_empty()));
}
