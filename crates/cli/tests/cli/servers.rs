//! Servers: driven by their load, stopped cleanly, and marked when they do not do their part.

use crate::fixture::{
    Fixture, assert_none_left, eventually, line, marker, processes_with, read_json, rows_of,
};

/// A server: prints `ready` on either stream, allocates for each line of a FIFO, and ends on SIGTERM. A word after the
/// FIFO's path chooses what it does wrong; the next may be a file for its number.
const SERVER: &str = r#"
static volatile sig_atomic_t over;
static void end(int s) { over = 1; }
int main(int c, char **v) {
    const char *how = c > 2 ? v[2] : "";
    free(malloc(9));
    if (!strcmp(how, "dies")) return 5;
    if (c > 3 && v[3][0] == '/') {
        FILE *pid = fopen(v[3], "w");
        fprintf(pid, "%d\n", getpid());
        fclose(pid);
    }
    struct sigaction a = {.sa_handler = strcmp(how, "stubborn") ? end : SIG_IGN};
    sigaction(SIGTERM, &a, 0);
    mkfifo(v[1], 0600);
    int f = open(v[1], O_RDWR | O_NONBLOCK);
    if (strcmp(how, "silent")) fprintf(stderr, "listening\nready to serve\n");
    char block[4096];
    memset(block, '.', sizeof block);
    block[99] = '\n';
    while (!over) {
        char buffer[512];
        ssize_t n = read(f, buffer, sizeof buffer);
        if (n > 0 && !strcmp(how, "quits")) return 0;
        if (n > 0 && !strcmp(how, "crashes")) abort();
        for (ssize_t i = 0; i < n; i++) {
            char *p = malloc(3000); memset(p, i, 3000); free(p);
            for (volatile int k = 0; k < 20000; k++);
        }
        if (!strcmp(how, "chatty")) write(1, block, sizeof block);
        else if (n <= 0) { struct timespec t = {0, 2000000}; nanosleep(&t, 0); }
    }
    return !strcmp(how, "fails") ? 6 : 0;
}
"#;

/// A load that sends 2000 bytes and reports figures.
const LOAD: &str = "sh -c 'head -c 2000 /dev/zero > {tmp}/fifo; sleep 0.3; echo \"SET: 1,250.5 requests per second\"; \
                    echo \"GET: 900 requests per second\"'";

fn serve(
    fixture: &Fixture,
    how: &str,
    load: &str,
    options: &[&str],
) -> (crate::fixture::CommandOutput, serde_json::Value) {
    let server = fixture.path("server");
    if !server.exists() {
        fixture.program("server", &format!("#include <sys/stat.h>\n{SERVER}"));
    }
    let (json, command) = (fixture.at("o.json"), format!("{} {{tmp}}/fifo {how}", server.display()));
    let run = ["run", "-n", "1", "--warmup", "0", "--json", &json, "--serve", &command, "--load", load];
    let output = fixture.heaptoll(&[&run[..], &["--ready", "^ready"], options].concat());
    let read = std::path::Path::new(&json).exists().then(|| read_json(&json));
    (output, read.unwrap_or_default())
}

#[test]
fn a_server_is_driven_and_its_cpu_and_the_loads_figures_are_read() {
    let fixture = Fixture::new();
    let manager = fixture.manager("other.so", "");
    let figures = r"(?P<name>[A-Z]+): (?P<per_s>[\d,.]+) requests";
    let (output, json) = serve(&fixture, "", LOAD, &["-m", "glibc", "-m", &manager, "--figures", figures]);
    let output = output.exits(0);
    for stack in ["glibc", &manager] {
        let row = rows_of(&json, stack, "timed")[0];
        assert_eq!(row["outcome"]["kind"], "ok", "{}", output.out);
        let serve = &row["serve"];
        assert_eq!(serve["load_figures"], serde_json::json!({"SET per_s": 1250.5, "GET per_s": 900.0}));
        assert!(serve["load_s"].as_f64() >= Some(0.3), "{serve}");
        let loaded = serve["loaded_cpu_s"].as_f64().expect("a number");
        let all = row["user_s"].as_f64().unwrap_or(0.0) + row["system_s"].as_f64().unwrap_or(0.0);
        assert!(loaded > 0.0 && loaded <= all + 0.002, "{row}");
        assert_eq!(line(&json, stack)["load_figures"]["SET per_s"], 1250.5);
    }
    let tracks = json["experiment"]["tracks"].as_array().expect("tracks");
    assert!(tracks.iter().any(|track| track["samples"].as_array().is_some_and(|samples| samples.len() >= 2)));
}

#[test]
fn a_load_that_fails_marks_the_round_and_the_server_is_stopped() {
    let fixture = Fixture::new();
    let mark = marker("load");
    let (output, json) = serve(&fixture, &mark, "sh -c 'echo no such key >&2; exit 4'", &["-m", "glibc"]);
    output.exits(1).shows(&["its load ended with", "no such key"]);
    assert_eq!(rows_of(&json, "glibc", "timed")[0]["outcome"]["kind"], "serve_failed");
    assert_none_left(&mark);
}

#[test]
fn a_load_without_the_figures_marks_the_round() {
    let fixture = Fixture::new();
    let (output, _) = serve(&fixture, "", "true", &["-m", "glibc", "--figures", "(?P<x>[0-9]+) per hour"]);
    output.exits(1).shows(&["contains no figure that the pattern finds"]);
}

#[test]
fn a_load_that_is_no_program_marks_the_round() {
    let fixture = Fixture::new();
    let (output, _) = serve(&fixture, "", "/no/such/load", &["-m", "glibc"]);
    output.exits(1).shows(&["its load", "No such file"]);
}

#[test]
fn a_server_that_ends_before_it_is_ready_is_reported_at_once() {
    let fixture = Fixture::new();
    let begun = std::time::Instant::now();
    let (output, _) = serve(&fixture, "dies", "true", &["-m", "glibc"]);
    let output = output.exits(1).complains(&["exit status 5", "before a line matched `^ready`"]);
    assert!(!output.err.contains("within 30 s"), "{}", output.err);
    assert!(begun.elapsed().as_secs() < 25, "not the half minute that it may take to be ready");
}

#[test]
fn a_server_that_ends_under_its_load_is_marked_however_it_ends() {
    let fixture = Fixture::new();
    // It loads the server until that has ended, dead and not yet waited for.
    let load = "sh -c 'head -c 2000 /dev/zero > {tmp}/fifo; \
                while grep -q \"^State:.[^ZX]\" /proc/$(cat {tmp}/pid)/status; do sleep 0.02; done'";
    for (how, words) in [
        ("quits", "ended with exit status 0 while it was loaded"),
        ("crashes", "was killed by signal 6 while"),
    ] {
        let (output, json) = serve(&fixture, &format!("{how} {{tmp}}/pid"), load, &["-m", "glibc"]);
        output.exits(1).shows(&[words]);
        assert_eq!(rows_of(&json, "glibc", "timed")[0]["serve"]["loaded_cpu_s"], 0.0);
    }
}

#[test]
fn a_server_that_ends_badly_is_marked() {
    let fixture = Fixture::new();
    let (output, _) = serve(&fixture, "fails", LOAD, &["-m", "glibc"]);
    output.exits(1).shows(&["exit status 6"]);
}

#[test]
fn a_server_never_ready_or_never_ending_is_marked_at_the_time_limit() {
    let fixture = Fixture::new();
    for how in ["silent", "stubborn"] {
        let mark = marker(how);
        let server = format!("{how} {mark}");
        let (output, json) = serve(&fixture, &server, "true", &["-m", "glibc", "--timeout", "1.5"]);
        output.exits(1).shows(&["over the time limit of 1.5 s"]);
        assert_eq!(rows_of(&json, "glibc", "timed")[0]["outcome"]["kind"], "timeout");
        assert_none_left(&mark);
    }
}

#[test]
fn a_server_that_ignores_its_stop_signal_is_ended_after_a_while() {
    let fixture = Fixture::new();
    let mark = marker("ignores");
    let (output, json) = serve(&fixture, &format!("stubborn {mark}"), "true", &["-m", "glibc"]);
    output.exits(1).shows(&["did not end within 15 s of SIGTERM"]);
    assert_eq!(rows_of(&json, "glibc", "timed")[0]["outcome"]["kind"], "serve_failed");
    assert_none_left(&mark);
}

#[test]
fn a_chatty_server_does_not_grow_heaptoll() {
    let fixture = Fixture::new();
    fixture.program("server", &format!("#include <sys/stat.h>\n{SERVER}"));
    let server = format!("{} {{tmp}}/fifo chatty", fixture.at("server"));
    let run = fixture.start(&[
        "run", "-m", "glibc", "-n", "1", "--warmup", "0", "--serve", &server, "--load", "sleep 1", "--ready",
        "^ready",
    ]);
    let mut peak = 0u64;
    loop {
        let status = std::fs::read_to_string(format!("/proc/{}/status", run.pid())).unwrap_or_default();
        let Some(mark) = status.lines().find(|line| line.starts_with("VmHWM:")) else { break };
        peak = peak.max(mark.split_ascii_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    run.wait().exits(0);
    assert!(peak > 1000 && peak < 100 * 1024, "{peak} KiB");
}

#[test]
fn ctrl_c_ends_server_and_load() {
    let fixture = Fixture::new();
    fixture.program("server", &format!("#include <sys/stat.h>\n{SERVER}"));
    let mark = marker("serve-ctrl-c");
    let (server, load) =
        (format!("{} {{tmp}}/fifo {mark}", fixture.at("server")), format!("sh -c 'sleep 60; : {mark}-load'"));
    let run =
        fixture.start(&["run", "-m", "glibc", "--serve", &server, "--load", &load, "--ready", "^ready"]);
    eventually("the load runs", || !crate::fixture::programs_with(&format!("{mark}-load")).is_empty());
    run.signal(libc::SIGINT);
    run.wait().exits(130);
    eventually("nothing is left", || processes_with(&mark).is_empty());
}

#[test]
fn redis_of_the_catalog_is_measured() {
    if !std::path::Path::new("/usr/bin/redis-server").exists() {
        eprintln!("redis-server is not installed");
        return;
    }
    let fixture = Fixture::new();
    let json = fixture.at("o.json");
    fixture
        .heaptoll(&[
            "run",
            "--program",
            "redis",
            "--quick",
            "-m",
            "glibc",
            "-m",
            "debian-jemalloc",
            "-n",
            "1",
            "--warmup",
            "0",
            "--json",
            &json,
        ])
        .exits(0)
        .complains(&["libjemalloc.so.2 without heaptoll; the baseline is debian-jemalloc"])
        .shows(&["which is debian-jemalloc, the baseline."]);
    let read = read_json(&json);
    assert_eq!(read["experiment"]["baseline"], "debian-jemalloc");
    let row = rows_of(&read, "glibc", "timed")[0];
    assert_eq!(row["outcome"]["kind"], "ok");
    let figures = row["serve"]["load_figures"].as_object().expect("figures");
    let sets = figures.iter().find(|(name, _)| name.starts_with("SET requests_per_s"));
    assert!(sets.is_some_and(|(_, value)| value.as_f64() > Some(0.0)), "{figures:?}");
    // Debian's redis links jemalloc: a row is of glibc's malloc only because libc itself is preloaded.
    assert!(
        read["experiment"]["stacks"][0]["proof"].to_string().contains("libc"),
        "{}",
        read["experiment"]["stacks"]
    );
}

#[test]
fn a_server_that_is_never_ready_is_tried_once_and_its_last_lines_are_shown() {
    let fixture = Fixture::new();
    let counter = fixture.at("starts");
    let server = format!(
        "sh -c 'echo one >> {counter}; echo to standard output; echo The server accepts connections >&2; exit 3'"
    );
    let db = fixture.at("e.db");
    let words = ["run", "--db", &db, "-m", "glibc", "-m", "glibc", "-n", "3", "--serve", &server];
    fixture
        .heaptoll(&[&words[..], &["--ready", "Accepts?", "--load", "true"]].concat())
        .exits(1)
        .complains(&[
            "before a line matched `Accepts?`",
            "to standard output",
            "The server accepts connections",
        ])
        .complains(&["Give --ready a pattern that matches one"]);
    let json = fixture.json(&db);
    assert_eq!(crate::fixture::rows(&json).len(), 1, "neither again nor under the other manager");
}

#[test]
fn a_server_and_its_load_can_be_named_by_the_file_of_an_entry() {
    let fixture = Fixture::new();
    let server = fixture.program("server", &format!("#include <sys/stat.h>\n{SERVER}"));
    let entry = format!(
        "name = \"mine\"\nabout = \"made for a test\"\n[serve]\nserver = [\"{server}\", \"{{tmp}}/fifo\"]\n\
         load = [\"sh\", \"-c\", \"head -c 2000 /dev/zero > {{tmp}}/fifo; sleep 0.1; echo 7\"]\nready = \"^ready\"\n\
         [sizes.full]\n"
    );
    std::fs::write(fixture.path("server.toml"), entry).expect("writes");
    let (file, json) = (fixture.at("server.toml"), fixture.at("o.json"));
    let run = ["run", "-n", "1", "--warmup", "0", "-m", "glibc", "--json", &json, "-p"];
    fixture.heaptoll(&[&run[..], &[&file]].concat()).exits(0).shows(&["mine"]);
    assert_eq!(rows_of(&read_json(&json), "glibc", "timed")[0]["outcome"]["kind"], "ok");
    let none = fixture.at("none.toml");
    fixture.heaptoll(&[&run[..], &[&none]].concat()).exits(2).complains(&["none.toml", "No such file"]);
}
