//! `heaptoll lab oracle` and `heaptoll lab reclamation`: programs of which every last use is known, programs whose allocations
//! depend on something, and early frees that are not safe.

use serde_json::Value;

use crate::fixture::{CommandOutput, Fixture, read_json};

/// Ten objects of 100,000 bytes are each used once and all freed at the end; a realloc, a block from before `main`, a
/// copied environment, a child process.
const KNOWN: &str = r#"
    #include <sys/wait.h>
    extern char **environ;
    int main(void) {
        char *all[10], *grown = malloc(40), *text;
        int at, sum = 0;
        for (at = 0; at < 10; at++) {
            all[at] = malloc(100000);
            memset(all[at], at, 100000);
            sum += all[at][99999];
        }
        grown[39] = 7;
        grown = realloc(grown, 100000);
        sum += grown[39];
        for (at = 0; environ[at]; at++) {
            text = strdup(environ[at]);
            sum += text[0] != 0;
            free(text);
        }
        for (at = 0; at < 10; at++) free(all[at]);
        fflush(stdout);
        if (fork() == 0) {
            all[0] = malloc(300);
            grown = realloc(grown, 200000);
            _exit(grown[39] == 7 && all[0] ? 0 : 1);
        }
        wait(&at);
        printf("%d %d %s\n", sum > 52, at, getenv("LD_PRELOAD") || getenv("HEAPTOLL_ORACLE") ? "seen" : "hidden");
        free(grown);
        return 0;
    }
"#;

/// Under the tracer, whose process has another name, it does what its argument is not.
const DIFFERS: &str = r#"
    static int native(void) {
        char name[32] = "";
        FILE *file = fopen("/proc/self/comm", "r");
        if (!file || !fgets(name, sizeof name, file)) return 0;
        fclose(file);
        return strncmp(name, "differs", 7) == 0;
    }
    int main(int count, char **words) {
        char *used = malloc(100), *others[50];
        int is_native = native();
        used[0] = 'u';
        for (count = 0; count < 50; count++) others[count] = malloc(words[1][0] == 's' && is_native ? 200 : 100);
        if (words[1][0] == 'u' && is_native) used[1] = used[0];
        for (count = 0; count < 50; count++) free(others[count]);
        free(used);
        return words[1][0] == 'm' && is_native && !malloc(8);
    }
"#;

const THREAD: &str = r#"
    #include <pthread.h>
    static void *run(void *block) { return block; }
    int main(void) {
        pthread_t thread;
        free(malloc(10));
        return pthread_create(&thread, NULL, run, NULL) || pthread_join(thread, NULL);
    }
"#;

fn recorded(fixture: &Fixture, command: &[&str], status: i32) -> (Value, CommandOutput) {
    let (json, file) = (fixture.at("oracle.json"), fixture.at("p.oracle"));
    let arguments = [&["lab", "oracle", "--force", "-o", &file, "--json", &json, "--"], command].concat();
    let output = fixture.heaptoll(&arguments).exits(status);
    (read_json(&json)["programs"][0].clone(), output)
}

#[test]
fn objects_are_freed_at_their_last_use_and_the_program_is_the_same() {
    let fixture = Fixture::new();
    let program = fixture.program("known", KNOWN);
    let (json, _) = recorded(&fixture, &[&program], 0);
    assert!(json["sequence"]["differs"].is_null() && json["proof"]["fails"].is_null(), "{json}");
    let peak = |point: &str| json[format!("live_{point}")]["peak_bytes"].as_u64().expect("a figure");
    assert!((100_000..250_000).contains(&peak("last_use")), "one object at a time: {json}");
    assert!(peak("free") > 1_000_000 && peak("free") <= peak("never"), "{json}");
    assert_eq!(json["resized"], 1);

    let file = json["file"].as_str().expect("it is kept");
    let stacks: Vec<String> = ["free", "last-use", "delay,bytes=64K", "collect,bytes=256K", "never"]
        .iter()
        .flat_map(|point| {
            ["glibc", "tithe-explicit"].map(|manager| format!("oracle={point},file={file}/{manager}"))
        })
        .collect();
    let out = fixture.at("run.json");
    let mut arguments = vec!["run", "-n", "1", "--warmup", "0", "--json", &out];
    arguments.extend(stacks.iter().flat_map(|stack| ["-m", stack.as_str()]));
    fixture.heaptoll(&[&arguments[..], &["--", &program]].concat()).exits(0);
    let rows = read_json(&out);
    let rows = rows["experiment"]["observations"].as_array().expect("rows").clone();
    let of = |stack: &str| {
        let row = rows.iter().find(|row| row["stack"] == stack && row["phase"] == "timed");
        row.unwrap_or_else(|| panic!("{stack} ran"))["peak_rss_kib"].as_u64().expect("memory")
    };
    let (early, free) = (of(&stacks[2]), of(&stacks[0]));
    assert!(early + 700 < free, "ten objects of 100,000 bytes: {early} and {free} KiB");
    for digest in rows.iter().map(|row| &row["output_digest_sha256"]).filter(|digest| !digest.is_null()) {
        assert_eq!(*digest, rows[0]["output_digest_sha256"]);
    }
}

#[test]
fn a_program_whose_allocations_differ_natively_is_refused_with_the_place() {
    let fixture = Fixture::new();
    let program = fixture.program("differs", DIFFERS);
    for (what, expected) in [("size", "is of 200 bytes, and was of 100"), ("more", "was not made when")] {
        let (json, output) = recorded(&fixture, &[&program, what], 1);
        let differs = json["sequence"]["differs"].as_str().expect("it differs");
        assert!(differs.contains(expected) && differs.contains("differs+0x"), "{what}: {differs}");
        assert!(output.out.contains("every native run differs there"), "{}", output.out);
        assert!(json["file"].is_null() && !std::path::Path::new(&fixture.at("p.oracle")).exists(), "{json}");
    }
}

#[test]
fn a_use_that_the_recording_did_not_see_is_found_before_the_file_serves_anything() {
    let fixture = Fixture::new();
    let program = fixture.program("differs", DIFFERS);
    let (json, _) = recorded(&fixture, &[&program, "use"], 1);
    assert!(json["sequence"]["differs"].is_null(), "{json}");
    let fails = json["proof"]["fails"].as_str().expect("it is not safe");
    assert!(fails.contains("was touched after it was freed") && json["proof"]["how"] == "pages", "{json}");
    assert!(json["file"].is_null(), "{json}");
}

#[test]
fn a_program_that_knows_objects_by_their_addresses_is_refused() {
    let fixture = Fixture::new();
    let source = r#"
        int main(void) {
            char *deleted = malloc(16), *entry = malloc(16), *slot = deleted;
            puts(entry == slot ? "the same" : "different");
            free(entry);
            free(deleted);
            return 0;
        }
    "#;
    let program = fixture.program("sentinel", source);
    let (json, _) = recorded(&fixture, &[&program], 1);
    let fails = json["proof"]["fails"].as_str().expect("it is not safe");
    assert!(fails.contains("with memory reused"), "{fails}");
}

#[test]
fn blocks_from_before_main_are_freed_as_the_program_does_at_every_point() {
    let fixture = Fixture::new();
    let source = r#"
        static char *early;
        __attribute__((constructor)) static void before(void) { early = malloc(20000000); memset(early, 1, 20000000); }
        int main(void) {
            char *late;
            free(early);
            late = malloc(20000000);
            memset(late, 2, 20000000);
            free(malloc(late[7]));
            free(late);
            return 0;
        }
    "#;
    let program = fixture.program("early", source);
    let (json, _) = recorded(&fixture, &[&program], 0);
    let stack = format!("oracle=last-use,file={}/glibc", json["file"].as_str().expect("it is kept"));
    let checked =
        format!("oracle=free,check=pages,file={}/glibc", json["file"].as_str().expect("it is kept"));
    let out = fixture.at("run.json");
    let stacks = ["-m", &stack, "-m", &checked];
    let arguments =
        [&["run", "-n", "1", "--warmup", "0", "--json", &out][..], &stacks, &["--", &program]].concat();
    fixture.heaptoll(&arguments).exits(0);
    let rows = read_json(&out)["experiment"]["observations"].as_array().expect("rows").clone();
    let of = |stack: &str| {
        let row = rows.iter().find(|row| row["stack"] == stack && row["phase"] == "timed").expect("it ran");
        row["peak_rss_kib"].as_u64().expect("memory")
    };
    assert!(of(&stack) < of("glibc") + 8_000, "{} and {} KiB", of(&stack), of("glibc"));
}

#[test]
fn a_program_that_allocates_by_addresses_is_refused_with_that() {
    let fixture = Fixture::new();
    let source = "int main(void) { unsigned long at = (unsigned long)&errno >> 12; free(malloc(1 + at % 100000)); return 0; }";
    let program = fixture.program("addresses", &format!("#include <errno.h>\n{source}"));
    let (json, _) = recorded(&fixture, &[&program], 1);
    let differs = json["sequence"]["differs"].as_str().expect("it differs");
    assert!(differs.contains("by the order of addresses"), "{differs}");
}

#[test]
fn threads_servers_and_bad_names_are_refused() {
    let fixture = Fixture::new();
    let program = fixture.program("thread", &format!("{THREAD}\n"));
    let refused = |arguments: &[&str], part: &str| {
        let output = fixture.heaptoll(arguments).exits(2);
        assert!(output.err.contains(part), "{arguments:?}: {}", output.err);
    };
    let file = fixture.at("t.oracle");
    refused(&["lab", "oracle", "-o", &file, "--", &program], "starts a thread");
    refused(&["lab", "oracle", "-o", &fixture.at("t.txt"), "--", &program], "the ending .oracle");
    refused(&["lab", "oracle", "-o", &fixture.at("a,b.oracle"), "--", &program], "comma");
    refused(&["lab", "oracle", "-o", &file, "-p", "redis"], "is a server");
    let none = format!("oracle=last-use,file={file}/glibc");
    for (stack, part) in [
        ("oracle/glibc", "it needs a point"),
        ("oracle=later,file=a.oracle/glibc", "it needs a point"),
        (
            "oracle=last-use/glibc",
            "cache/heaptoll/oracles/thread.oracle is missing; `heaptoll lab oracle` makes it",
        ),
        ("oracle=delay,file=a.oracle/glibc", "it needs bytes"),
        ("oracle=free,bytes=1,file=a.oracle/glibc", "only delay and collect"),
        ("oracle=free,file=a.txt/glibc", "must end with .oracle"),
        ("oracle=free,file=a.oracle/tithe-collect", "is a collector"),
        ("forward/oracle=free,file=a.oracle/glibc", "must be the first layer"),
        ("quarantine=1M/oracle=free,file=a.oracle/glibc", "must be the first layer"),
        (none.as_str(), "is missing"),
    ] {
        refused(&["run", "-n", "1", "-m", stack, "--", &program], part);
    }
}

/// Before, the exit status was 0.
#[test]
fn of_several_programs_one_that_cannot_be_recorded_makes_the_command_fail() {
    let fixture = Fixture::new();
    let sources = [("known", KNOWN), ("thread", THREAD)];
    let [catalog, _] = sources.map(|(name, source)| fixture.entry(name, &fixture.program(name, source)));
    let folder = fixture.at("oracles");
    let words = ["lab", "oracle", "--catalog", &catalog, "-p", "known", "-p", "thread", "--size", "quick"];
    let output = fixture.heaptoll(&[&words[..], &["--no-proof", "-o", &folder]].concat()).exits(1);
    output.complains(&["thread", "starts a thread"]);
    let kept = ["known", "thread"].map(|name| fixture.path(&format!("oracles/{name}.oracle")).exists());
    assert_eq!(kept, [true, false]);
}

#[test]
fn a_file_of_another_command_or_build_or_damaged_serves_nothing() {
    let fixture = Fixture::new();
    let program = fixture.program("differs", DIFFERS);
    recorded(&fixture, &[&program, "none"], 0);
    let file = fixture.at("p.oracle");
    let stack = format!("oracle=last-use,file={file}/glibc");
    let refused = |command: &[&str], part: &str| {
        let arguments = [&["run", "-n", "1", "-m", &stack, "--"], command].concat();
        let output = fixture.heaptoll(&arguments).exits(2);
        assert!(output.err.contains(part), "{command:?}: {}", output.err);
    };
    refused(&[&program, "other"], "is a recording of another command");
    let whole = std::fs::read(&file).expect("the file");
    std::fs::write(&file, &whole[..whole.len() - 1]).expect("a cut file");
    refused(&[&program, "none"], "is cut or damaged");
    std::fs::write(&file, &whole).expect("the file again");
    fixture.program("differs", &format!("{DIFFERS}\nint more(void) {{ return 1; }}\n"));
    refused(&[&program, "none"], "its content has changed");
}

#[test]
fn the_study_records_what_is_missing_and_shows_every_point() {
    let fixture = Fixture::new();
    let program = fixture.program("known", KNOWN);
    let (json, folder, page) = (fixture.at("r.json"), fixture.at("oracles"), fixture.at("r.html"));
    let arguments = [
        "lab",
        "reclamation",
        "-m",
        "glibc",
        "--points",
        "last-use,delay:64K,collect:1M,never",
        "-n",
        "1",
        "--oracles",
        &folder,
        "--json",
        &json,
        "--html",
        &page,
        "--",
        &program,
    ];
    let first = fixture.heaptoll(&arguments).exits(0);
    assert!(first.err.contains("known is recorded first"), "{}", first.err);
    let found = read_json(&json);
    let points = found["points"].as_array().expect("points");
    assert_eq!(points.len(), 5, "the program's own free is among them: {found}");
    assert_eq!(found["curves"][0]["rows"].as_array().map(Vec::len), Some(5));
    let alive: Vec<u64> = found["alive"]
        .as_array()
        .expect("alive")
        .iter()
        .map(|one| one["live"]["peak_bytes"].as_u64().unwrap_or(0))
        .collect();
    let (last_use, free, never) = (alive[0], alive[1], alive[4]);
    assert!(last_use < free && free <= alive[2] && alive[2] <= never && alive[3] <= never, "{alive:?}");
    let again = fixture.heaptoll(&arguments).exits(0);
    assert!(!again.err.contains("recorded first"), "the recording serves again: {}", again.err);
}
