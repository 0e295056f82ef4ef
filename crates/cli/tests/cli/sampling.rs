//! `record --sample` and `sample`: estimates against the exact recorder, what programs do to a layer, and the socket.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::exporting::pprof_sums;
use crate::fixture::{CommandOutput, Fixture, read_json};

/// Sites of known size: `most` holds 24 MiB at the end, `less` 6 MiB, `churn` nothing of 60 MiB.
const PLANTED: &str = r#"
    static void *volatile kept[60000];
    static volatile int now;
    __attribute__((noinline)) static void most(int i) { kept[i] = malloc(1200); now++; }
    __attribute__((noinline)) static void less(int i) { kept[30000 + i] = calloc(3, 100); now++; }
    __attribute__((noinline)) static void churn(int i) { free(malloc(2000 + i % 1000)); now++; }
    int main(void) {
        for (int i = 0; i < 24000; i++) {
            most(i); less(i); churn(i);
            if (i % 8 == 0) { free(kept[i]); free(kept[30000 + i]); }
        }
        return 0;
    }
"#;

/// heaptoll with a seed.
fn seeded(fixture: &Fixture, seed: u32, arguments: &[&str]) -> CommandOutput {
    let mut command = fixture.command(arguments);
    command.env("HEAPTOLL_SAMPLE_SEED", seed.to_string()).output().expect("heaptoll starts").into()
}

/// The row of a function.
fn row<'a>(figures: &'a Value, function: &str) -> &'a Value {
    let rows = figures["rows"].as_array().expect("rows");
    let is_of = |row: &&Value| row["name"].as_str().is_some_and(|name| name.starts_with(function));
    rows.iter().find(is_of).unwrap_or_else(|| panic!("no {function} in {figures:#}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// Bytes allocated and live at the end of a function, by the exact recorder.
fn exact(figures: &Value, function: &str) -> [f64; 2] {
    let rows = figures["call_sites"].as_array().expect("call sites");
    let is_of = |row: &&Value| row["name"].as_str().is_some_and(|name| name.starts_with(function));
    let row = rows.iter().find(is_of).unwrap_or_else(|| panic!("no {function} in {rows:#?}"));
    [number(&row["bytes"]), number(&row["at_exit"]["bytes"])]
}

/// Before, redis-server was redis-check-rdb: the file to which its name leads.
#[test]
fn a_file_of_several_names_is_called_by_the_one_that_was_run() {
    let fixture = Fixture::new();
    let program = fixture.program("checks", "int main(void) { malloc(100000); return 0; }");
    let name = fixture.at("serves");
    std::os::unix::fs::symlink(&program, &name).expect("links");
    let sample = |program: &str| {
        fixture.heaptoll(&["record", "--sample", "1", "-fo", &fixture.at("p"), "--", program]).exits(0)
    };
    sample(&name).complains(&["Heap profile of serves"]);
    sample(&program).complains(&["Heap profile of checks"]);
}

#[test]
fn the_site_that_holds_most_is_first_and_intervals_hold_the_exact_figures() {
    let fixture = Fixture::new();
    let program = fixture.program("planted", PLANTED);
    let (trace, json) = (fixture.at("a.heaptoll"), fixture.at("exact.json"));
    fixture.heaptoll(&["record", "--sites", "-o", &trace, "--", &program]).exits(0);
    fixture.heaptoll(&["trace", "stat", &trace, "--json", &json]).exits(0);
    let recorded = read_json(&json);
    let (profile, json) = (fixture.at("a.pb.gz"), fixture.at("a.json"));
    let sample = ["record", "--sample", "128K", "-o", &profile, "--json", &json, "--", &program];
    let shown = seeded(&fixture, 7, &sample).exits(0);
    shown.complains(&["Heap profile of planted", "In use", "most < main", "95 % interval", "samples in"]);
    let figures = read_json(&json);
    assert!(figures["rows"][0]["name"].as_str().is_some_and(|name| name.starts_with("most")), "{figures:#}");
    for function in ["most", "less", "churn"] {
        let row = row(&figures, function);
        for (set, truth) in ["allocated", "live"].into_iter().zip(exact(&recorded, function)) {
            let bytes = &row[set]["bytes"];
            let holds = number(&bytes["low"]) <= truth && truth <= number(&bytes["high"]);
            assert!(holds, "{function}, {set}: {truth} in {bytes}");
        }
    }
    // The profile's sums are those of the figures, rounded for each stack.
    let sums = pprof_sums(&profile);
    for (at, set) in [(1, "allocated"), (3, "live")] {
        let estimate = number(&figures[set]["bytes"]["estimate"]);
        assert!((sums[at] as f64 - estimate).abs() < 10.0, "{sums:?} {estimate}");
    }
    // The same seed samples the same.
    let again = fixture.at("again.json");
    seeded(&fixture, 7, &["record", "--sample", "128K", "-fo", &profile, "--json", &again, "--", &program])
        .exits(0);
    let again = read_json(&again);
    assert_eq!((&again["rows"], &again["live"]), (&figures["rows"], &figures["live"]));
}

#[test]
fn a_distance_of_one_byte_is_exact_for_all_of_the_family() {
    let source = r#"
        static void *volatile kept[100];
        __attribute__((noinline)) static void grown(void) {
            kept[0] = realloc(realloc(malloc(10), 100), 1000);
            kept[1] = realloc(malloc(100000), 10);
            errno = 77; if (realloc(kept[1], SIZE_MAX / 2) || errno != ENOMEM) abort(); }
        __attribute__((noinline)) static void aligned(void) {
            void *p; posix_memalign(&p, 256, 1000); kept[2] = p; kept[3] = aligned_alloc(64, 640);
            kept[4] = memalign(32, 320); free(valloc(5000)); }
        __attribute__((noinline)) static void arrays(void) { kept[5] = calloc(7, 9); kept[6] = reallocarray(0, 5, 5); }
        __attribute__((noinline)) static void gone(void) { free(realloc(malloc(24), 48)); free(0); free(malloc(0)); }
        __attribute__((destructor)) static void late(void) {
            free(kept[0]); free(kept[5]); kept[5] = realloc(kept[6], 1 << 20); kept[6] = malloc(1 << 20); }
        int main(void) { errno = 5; grown(); aligned(); arrays(); gone(); return 0; }
    "#;
    let fixture = Fixture::new();
    let (program, json) = (fixture.program("family", source), fixture.at("a.json"));
    let profile = fixture.at("a.pb.gz");
    fixture.heaptoll(&["record", "--sample", "1", "-o", &profile, "--json", &json, "--", &program]).exits(0);
    let figures = read_json(&json);
    let of = |function: &str, set: &str| {
        let row = &row(&figures, function)[set];
        let bytes = &row["bytes"];
        assert_eq!((&bytes["low"], &bytes["high"]), (&bytes["estimate"], &bytes["estimate"]));
        (number(&row["objects"]["estimate"]), number(&bytes["estimate"]))
    };
    // A resize is a free and an allocation; one that fails is none.
    assert_eq!((of("grown", "allocated"), of("grown", "live")), ((5.0, 101_120.0), (2.0, 1010.0)));
    assert_eq!((of("aligned", "allocated"), of("aligned", "live")), ((4.0, 6960.0), (3.0, 1960.0)));
    assert_eq!(of("arrays", "live"), (2.0, 88.0));
    assert_eq!((of("gone", "allocated"), of("gone", "live")), ((2.0, 72.0), (0.0, 0.0)));
    // What the destructor frees was live when exit began, and what it allocates is none of the program's.
    assert!(!figures["rows"].to_string().contains("late"), "{figures:#}");
}

#[test]
fn threads_forks_signals_and_a_crash_are_followed() {
    let source = r#"
        #include <pthread.h>
        #include <sys/wait.h>
        static void *volatile kept[40000];
        __attribute__((noinline)) static void *in_thread(void *from) {
            for (int i = 0; i < 5000; i++) kept[(long)from + i] = malloc(100); return 0; }
        __attribute__((noinline)) static void in_parent(void) { for (int i = 0; i < 1000; i++) kept[30000 + i] = malloc(50); }
        __attribute__((noinline)) static void in_child(void) { for (int i = 0; i < 700; i++) kept[32000 + i] = malloc(30); }
        __attribute__((noinline)) static void in_handler(int s) { for (int i = 0; i < 5; i++) free(malloc(10)); }
        int main(void) {
            pthread_t t[4]; for (long i = 0; i < 4; i++) pthread_create(&t[i], 0, in_thread, (void *)(i * 5000));
            for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
            in_parent();
            signal(SIGUSR1, in_handler); raise(SIGUSR1);
            if (fork() == 0) {
                for (int i = 0; i < 500; i++) free(kept[30000 + i]);
                in_child(); _exit(0);
            }
            wait(0);
            raise(SIGKILL);
        }
    "#;
    let fixture = Fixture::new();
    let (program, json, profile) =
        (fixture.program("follow", source), fixture.at("a.json"), fixture.at("a.pb.gz"));
    let sample = ["record", "--sample", "1", "-o", &profile, "--json", &json, "--", &program];
    fixture.heaptoll(&sample).exits(137).complains(&["1 profile of processes", "a.pb.gz.children"]);
    let figures = read_json(&json);
    let live = |function: &str| number(&row(&figures, function)["live"]["bytes"]["estimate"]);
    assert_eq!((live("in_thread"), live("in_parent")), (2_000_000.0, 50_000.0), "{figures:#}");
    assert_eq!(number(&row(&figures, "in_handler")["allocated"]["objects"]["estimate"]), 5.0);
    // The child has a file of its own, in which nothing of its parent's is.
    let children: Vec<_> =
        std::fs::read_dir(fixture.path("a.pb.gz.children")).expect("a folder").flatten().collect();
    assert_eq!(children.len(), 1);
    let sums = pprof_sums(children[0].path().to_str().expect("text"));
    assert_eq!(sums, [700, 21_000, 700, 21_000]);
}

#[test]
fn the_program_is_left_alone_and_what_cannot_be_sampled_is_refused() {
    let fixture = Fixture::new();
    let small = fixture.program("small", r#"int main(int n, char **a) { char c; read(0, &c, 1); puts(getenv("LD_PRELOAD") ? "on" : "off"); return 9; }"#);
    let profile = fixture.at("a.pb.gz");
    let run = |arguments: &[&str]| {
        fixture.heaptoll(&[&["record", "--sample"], arguments, &["--", &small]].concat())
    };
    // Its exit status and output are its own; so little is rarely sampled, and this seed samples nothing.
    let few = seeded(&fixture, 1, &["record", "--sample", "1G", "-o", &profile, "--", &small]);
    few.exits(9).shows(&["on\n"]).complains(&["there is no sample"]);
    assert!(!fixture.path("a.pb.gz").exists());
    std::fs::write(fixture.path("a.pb.gz"), "mine").expect("writes");
    run(&["512K", "-o", &profile]).exits(2).complains(&["exists", "--force"]);
    run(&["0"]).exits(2).complains(&["between 1 byte and"]);
    run(&["512K", "--dormant"]).exits(2).complains(&["--socket"]);
    run(&["512K", "--sites"]).exits(2).complains(&["cannot be used with"]);
    run(&["512K", "-o", "-"]).exits(2).complains(&["the program uses it"]);
    run(&["512K", "--json", "-", "-o", &fixture.at("b")]).exits(2).complains(&["name a file"]);
    let taken = fixture.at("taken");
    std::fs::write(&taken, "mine").expect("writes");
    run(&["512K", "--socket", &taken, "-o", &fixture.at("b")])
        .exits(2)
        .complains(&["taken exists", "--socket"]);
    assert_eq!(std::fs::read_to_string(&taken).expect("reads"), "mine");
    // A full disk.
    run(&["1", "-o", "/dev/full"]).exits(9).complains(&["/dev/full", "space"]);
    let fine =
        fixture.program("fine", "int main(void) { *(void *volatile *)&(void *){0} = malloc(10); return 0; }");
    fixture
        .heaptoll(&["record", "--sample", "1", "-o", "/dev/full", "--", &fine])
        .exits(1)
        .complains(&["/dev/full"]);
}

/// A program that allocates a MiB for each byte that it reads, and writes the byte when that is done.
const STEPS: &str = r#"
    static void *volatile kept[100000];
    __attribute__((noinline)) static void step(int n) { for (int i = 0; i < 1024; i++) kept[n * 1024 + i] = malloc(1024); }
    int main(void) { char c; for (int n = 0; read(0, &c, 1) == 1; n++) { step(n); write(1, &c, 1); } return 0; }
"#;

/// A program under way, with its socket.
struct Steps<'a> {
    fixture: &'a Fixture,
    child: Child,
    socket: String,
}

impl<'a> Steps<'a> {
    fn start(fixture: &'a Fixture, options: &[&str]) -> Steps<'a> {
        let (program, socket, profile) =
            (fixture.program("steps", STEPS), fixture.at("s"), fixture.at("end.pb.gz"));
        let arguments =
            [&["record", "--sample", "16K", "--socket", &socket, "-o", &profile], options, &["--", &program]]
                .concat();
        let mut command = fixture.command(&arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.env("HEAPTOLL_SAMPLE_SEED", "5").spawn().expect("heaptoll starts");
        Steps { fixture, child, socket }
    }

    /// Has the program allocate a MiB.
    fn step(&mut self) {
        let mut byte = [b'x'];
        self.child.stdin.as_mut().expect("a pipe").write_all(&byte).expect("writes");
        self.child.stdout.as_mut().expect("a pipe").read_exact(&mut byte).expect("the program goes on");
    }

    fn sample(&self, arguments: &[&str]) -> CommandOutput {
        self.fixture.heaptoll(&[&["record", "attach", &self.socket], arguments].concat())
    }

    /// The live bytes of a profile that is fetched now.
    fn live_mib(&self, name: &str) -> f64 {
        let file = self.fixture.at(name);
        self.sample(&["dump", "-o", &file]).exits(0).shows(&["Heap profile of steps", "step < main"]);
        pprof_sums(&file)[3] as f64 / 1_048_576.0
    }

    /// Lets the program end.
    fn end(mut self) -> CommandOutput {
        drop(self.child.stdin.take());
        self.child.wait_with_output().expect("ends").into()
    }
}

#[test]
fn a_dormant_program_is_woken_and_put_to_sleep_through_its_socket() {
    let fixture = Fixture::new();
    let mut steps = Steps::start(&fixture, &["--dormant"]);
    steps.step();
    let mode = fixture.path("s").metadata().expect("a socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    steps.sample(&["status"]).exits(0).complains(&["is dormant; 0 samples"]);
    steps.sample(&["dump", "-o", &fixture.at("none")]).exits(2).complains(&["never started"]);
    steps.sample(&["start"]).exits(0).complains(&["samples; "]);
    for _ in 0..20 {
        steps.step();
    }
    // 1,280 samples: within a fifth, whatever the seed.
    let first = steps.live_mib("first");
    assert!((16.0..24.0).contains(&first), "{first}");
    steps.sample(&["dump", "-o", &fixture.at("first")]).exits(2).complains(&["exists", "--force"]);
    steps.sample(&["dump", "-f", "-o", "/dev/full"]).exits(1).complains(&["/dev/full"]);
    steps.sample(&["start", "-o", &fixture.at("x")]).exits(2).complains(&["-o names the profile of `dump`"]);
    steps.sample(&["stop"]).exits(0).complains(&["is dormant"]);
    for _ in 0..20 {
        steps.step();
    }
    assert_eq!(steps.live_mib("second"), first, "nothing more was sampled");
    // A second run cannot take the socket.
    let other = ["record", "--sample", "1M", "--socket", &steps.socket, "-o", &fixture.at("o"), "--", "true"];
    fixture.heaptoll(&other).exits(2).complains(&["exists", "something listens there"]);
    steps.end().exits(0).complains(&["Heap profile of steps"]);
    assert!(!fixture.path("s").exists(), "the socket is gone");
    assert_eq!(pprof_sums(&fixture.at("end.pb.gz"))[3], pprof_sums(&fixture.at("first"))[3]);
    fixture
        .heaptoll(&["record", "attach", &fixture.at("s"), "start"])
        .exits(2)
        .complains(&["does not exist"]);
    fixture
        .heaptoll(&["record", "attach", &fixture.at("first"), "start"])
        .exits(2)
        .complains(&["is not a socket"]);
}

#[test]
fn another_user_is_refused() {
    // SAFETY: geteuid takes no pointers and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("SKIPPED: only root can become another user");
        return;
    }
    let fixture = Fixture::new();
    let mut steps = Steps::start(&fixture, &[]);
    steps.step();
    // Others may pass the folder, but not the socket's mode.
    let Some(another) = fixture.unprivileged() else { return };
    another(&["record", "attach", &steps.socket, "start"]).exits(2).complains(&["only the user that runs"]);
    std::fs::set_permissions(&steps.socket, std::fs::Permissions::from_mode(0o666)).expect("mode");
    another(&["record", "attach", &steps.socket, "stop"]).exits(2).complains(&["another user samples"]);
    steps.sample(&["status"]).exits(0).complains(&["samples; "]);
    steps.end().exits(0);
}

/// A profiler outside sees the samples: gdb stops at both probes and prints their arguments.
#[test]
fn each_sample_and_each_free_of_a_sampled_block_fires_a_probe() {
    let fixture = Fixture::new();
    let program = fixture.program("planted", PLANTED);
    let (profile, json, script) = (fixture.at("a.pb.gz"), fixture.at("a.json"), fixture.at("probes.gdb"));
    seeded(&fixture, 7, &["record", "--sample", "1M", "-o", &profile, "--json", &json, "--", &program])
        .exits(0);
    let figures = read_json(&json);
    let print = |probe: &str, format: &str, arguments: &str| {
        format!(
            "break -probe-stap otel_memory:{probe}\ncommands\nsilent\nprintf \"{probe} {format}\\n\", {arguments}\ncontinue\nend\n"
        )
    };
    let commands = [
        "set confirm off\nbreak main\nrun\n".to_owned(),
        print("alloc", "%lu %lu", "$_probe_arg1, $_probe_arg2"),
        print("free", "%p", "$_probe_arg0"),
        "continue\n".to_owned(),
    ];
    std::fs::write(&script, commands.concat()).expect("writes");
    let traced =
        ["record", "--sample", "1M", "-fo", &profile, "--", "gdb", "-batch", "-x", &script, &program];
    let shown = seeded(&fixture, 7, &traced).exits(0);
    let stops = |probe: &str| shown.out.lines().filter(|line| line.starts_with(probe)).count() as u64;
    let samples = |set: &str| figures[set]["samples"].as_u64().expect("a number");
    assert!(samples("live") > 5 && samples("allocated") > samples("live"), "{figures:#}");
    assert_eq!(stops("alloc "), samples("allocated"), "{}", shown.out);
    assert_eq!(stops("free "), samples("allocated") - samples("live"), "{}", shown.out);
    let weighted =
        |line: &str| line.split(' ').next_back().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    let sum: u64 = shown.out.lines().filter(|line| line.starts_with("alloc ")).map(weighted).sum();
    let estimate = number(&figures["allocated"]["bytes"]["estimate"]);
    assert!((sum as f64 - estimate).abs() <= samples("allocated") as f64, "{sum} {estimate}");
}

/// Before, a program whose filter kills it for `getpid` came to its `_exit`, and was killed there by the layer's call.
#[test]
fn a_program_that_may_not_call_getpid_ends_as_it_does_natively() {
    let fixture = Fixture::new();
    let sandboxed = fixture.program(
        "sandboxed",
        "#include <linux/filter.h>\n#include <linux/seccomp.h>\n#include <sys/prctl.h>\n#include <sys/syscall.h>\n\
         int main(void) { free(malloc(9)); struct sock_filter all[] = { \
             BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpid, 0, 1), \
             BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) }; \
         struct sock_fprog filter = { 4, all }; \
         if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) return 3; \
         for (int i = 0; i < 1000; i++) free(malloc(200)); _exit(7); }",
    );
    let output = fixture.at("t");
    for how in [&["--sample", "1"][..], &["--sites"]] {
        let words = [&["record", "-fo", &output][..], how, &["--", &sandboxed]].concat();
        fixture.heaptoll(&words).exits(7);
    }
}
