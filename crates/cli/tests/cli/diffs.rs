//! `heaptoll diff` on recordings of programs that are known to differ.

use std::fmt::Write;

use crate::fixture::{Fixture, read_json};

/// A program of 2,000 call sites (more than are shown with their callers), each of which allocates 200 bytes 4 times and frees half of them; site 1234 allocates
/// `factor` times as many.
fn planted(factor: usize) -> String {
    let mut source = String::from("static void *kept[40000]; static int used;\n");
    for site in 0..2000 {
        let times = if site == 1234 { 4 * factor } else { 4 };
        let _ = writeln!(
            source,
            "__attribute__((noinline)) static void site_{site}(void) {{ for (int at = 0; at < {times}; at++) {{ \
             kept[used++] = malloc(200); free(malloc(100)); }} __asm__ volatile(\"\"); }}"
        );
    }
    source.push_str("int main(void) {\n");
    (0..2000).for_each(|site| {
        let _ = writeln!(source, "    site_{site}();");
    });
    source.push_str("    return 0;\n}\n");
    source
}

#[test]
fn a_site_that_doubles_its_bytes_is_first_and_the_rows_close() {
    let fixture = Fixture::new();
    let trace = |name: &str, factor: usize| {
        let program = fixture.program("planted", &planted(factor));
        let trace = fixture.path(name);
        let trace = trace.to_str().expect("a name of text").to_owned();
        let output = fixture.heaptoll(&["record", "--sites", "-o", &trace, "--", &program]);
        assert_eq!(output.code, Some(0), "{}", output.err);
        trace
    };
    let (before, after) = (trace("before", 1), trace("after", 2));
    let json = fixture.path("diff.json");
    let json = json.to_str().expect("a name of text");
    let output = fixture.heaptoll(&["diff", &before, &after, "--json", json]);
    assert_eq!(output.code, Some(0), "{}", output.err);
    let first = output.out.lines().find(|line| line.contains("holds at the peak")).unwrap_or_default();
    assert!(
        first.starts_with("site_1234 holds at the peak 800 B more: 800 B became 1.56 KiB"),
        "{}",
        output.out
    );
    let figures = read_json(json);
    for (figure, difference) in [("live", 800), ("exit", 800), ("bytes", 1200), ("calls", 8)] {
        let all = &figures["sites"][figure];
        assert_eq!(all["difference"], difference, "{figure}");
        assert_eq!(all["grown"].as_array().map(Vec::len), Some(1), "{figure}: {all:#}");
        assert_eq!(all["grown"][0]["part"]["name"], "site_1234", "{figure}");
        assert_eq!(all["rest"]["parts"], 1999, "{figure}");
    }
    let same = fixture.heaptoll(&["diff", &after, &after]);
    assert!(same.out.contains("Nothing: every call site"), "{}", same.out);
}

#[test]
fn two_times_of_one_run_show_what_is_live_at_each() {
    let fixture = Fixture::new();
    let program = fixture.program(
        "growing",
        "static void *kept[1000];\n__attribute__((noinline)) static void *session(int at) { return kept[at] = malloc(1 << \
         10); }\nint main(void) { for (int at = 0; at < 1000; at++) { if (!session(at)) return 1; usleep(400); } return \
         0; }\n",
    );
    let trace = fixture.path("trace");
    let trace = trace.to_str().expect("a name of text");
    let output = fixture.heaptoll(&["record", "--sites", "-o", trace, "--", &program]);
    assert_eq!(output.code, Some(0), "{}", output.err);
    let json = fixture.path("diff.json");
    let json = json.to_str().expect("a name of text");
    let output = fixture.heaptoll(&["diff", trace, "--between", "0.2s,1h", "--json", json]);
    assert_eq!(output.code, Some(0), "{}", output.err);
    // Before, two times after the end were equal without a word.
    assert!(output.out.contains("what is shown at 3600 s is its end"), "{}", output.out);
    assert!(!output.out.contains("at 200 ms is its end"), "{}", output.out);
    let exit = &read_json(json)["sites"]["exit"];
    assert_eq!(exit["grown"][0]["part"]["name"], "session < main", "{exit:#}");
    assert_eq!(exit["grown"][0]["new"], 1000 << 10);
    let before = exit["grown"][0]["base"].as_u64().expect("a figure");
    // However slow the machine is, 400 microseconds pass between two sessions.
    assert!(before < 501 << 10, "{before}");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let fixture = Fixture::new();
    let trace = fixture.path("trace");
    let trace = trace.to_str().expect("a name of text");
    let program = fixture.program("small", "int main(void) { free(malloc(10)); return 0; }");
    assert_eq!(fixture.heaptoll(&["record", "-o", trace, "--", &program]).code, Some(0));
    let refused = |arguments: &[&str], why: &str| {
        let output = fixture.heaptoll(arguments);
        assert_eq!(output.code, Some(2), "{arguments:?}: {}", output.out);
        assert!(output.err.contains(why), "{arguments:?}: {}", output.err);
    };
    refused(&["diff", trace, trace], "record the program again with --sites");
    refused(&["diff", trace], "--between");
    refused(&["diff", trace, "--between", "5s,1s"], "after the first");
    refused(&["diff", "/bin/true", trace], "/bin/true");
    refused(&["diff", trace, "/nowhere"], "/nowhere");
}
