//! `heaptoll leaks --fail-on growing`: what grows though the program frees it before it ends, and what does not grow.

use serde_json::Value;

use crate::fixture::{Fixture, read_json};
use crate::planted::compiled;

/// Whether the gate of growth finds any in a run of a program that is recorded; its figures.
fn grows(fixture: &Fixture, program: &str) -> (bool, Value) {
    let (trace, json) = (fixture.at("a.heaptoll"), fixture.at("a.json"));
    fixture.heaptoll(&["record", "--sites", "-f", "-o", &trace, "--", program]).exits(0);
    let judged = fixture.heaptoll(&["leaks", "--fail-on", "growing", "--json", &json, &trace]);
    (judged.code == Some(1), read_json(&json))
}

/// It lasts for more than a second: a shorter run does not show growth.
const LIST: &str = r#"
    #include <unistd.h>
    struct cell { struct cell *next; char rest[192]; };
    int main(void) {
        struct cell *all = 0;
        for (int i = 0; i < 3000; i++) {
            if (i % 100 == 0) usleep(40000);
            free(malloc(300));
            struct cell *one = malloc(sizeof *one);
            one->next = all;
            all = one;
        }
        while (all) { void *next = all->next; free(all); all = next; }
        puts("done");
        exit(0);
    }"#;

/// Before, growth was judged when `exit` began: a list in a variable of `main`, which is freed before, did not grow.
#[test]
fn what_main_frees_before_it_ends_grows() {
    let fixture = Fixture::new();
    let vector = "#include <string>\n#include <unistd.h>\n#include <vector>\n\
        int main() { std::vector<std::string> all; for (int i = 0; i < 3000; i++) { \
        if (i % 100 == 0) usleep(40000); all.push_back(std::string(200, 'x')); } return 0; }";
    let boxes = "fn main() { let mut all: Vec<Box<[u8; 200]>> = Vec::new(); \
        for i in 0..3000 { \
        if i % 100 == 0 { std::thread::sleep(std::time::Duration::from_millis(40)); } \
        all.push(Box::new([i as u8; 200])); } println!(\"{}\", all.len()); }";
    let list = fixture.program("list", LIST);
    for program in [
        list.clone(),
        compiled(&fixture, "c++", &["-g"], "vector.cc", vector),
        compiled(&fixture, "rustc", &["-g"], "boxes.rs", boxes),
    ] {
        let (is_found, figures) = grows(&fixture, &program);
        assert!(is_found, "{program}: {figures:#}");
        let of = |sum: &Value| sum["objects"].as_u64().expect("a number");
        assert!(of(&figures["growing"][0]["at_end"]) >= 2900, "{program}: {:#}", figures["growing"]);
        assert!(of(&figures["freed_last"]) >= 2900, "{program}: {:#}", figures["freed_last"]);
    }
    let (trace, json) = (fixture.at("a.heaptoll"), fixture.at("b.json"));
    fixture
        .heaptoll(&["leaks", &trace])
        .exits(0)
        .shows(&["freed at the end of the run", "before the last frees"]);
    // The tracer's answer is the same.
    fixture.heaptoll(&["leaks", "--fail-on", "growing", "--json", &json, "--", &list]).exits(1);
    assert_eq!(read_json(&json)["growing"][0]["at_end"]["objects"], 3000);
}

/// Before, a shutdown that allocated more than a byte for 64 that it freed hid what had grown.
#[test]
fn a_map_whose_entries_are_printed_while_they_are_erased_grows() {
    let fixture = Fixture::new();
    let source = "#include <cstdio>\n#include <map>\n#include <string>\n#include <unistd.h>\n\
        int main() { std::map<long, std::string> all; for (long i = 0; i < 6000; i++) { \
        if (i % 100 == 0) usleep(20000); all[i] = \"x\"; } \
        while (!all.empty()) { std::string line(20, 'x'); fputs(line.c_str(), stdout); all.erase(all.begin()); } }";
    let program = compiled(&fixture, "c++", &["-g"], "map.cc", source);
    let (is_found, figures) = grows(&fixture, &program);
    assert!(is_found, "{figures:#}");
    assert!(figures["growing"][0]["at_end"]["objects"].as_u64() >= Some(6000), "{:#}", figures["growing"]);
    fixture.heaptoll(&["leaks", &fixture.at("a.heaptoll")]).exits(0).shows(&["Growing until the last frees"]);
}

/// Before, growth was judged by bytes allocated alone: what was built at the start, and all the work after it without
/// allocation, was growth over the whole run.
#[test]
fn a_program_that_builds_a_table_and_then_works_without_allocating_does_not_grow() {
    let source = "
        #include <unistd.h>
        static void *volatile table[20000];
        int main(void) {
            for (int i = 0; i < 20000; i++) table[i] = malloc(100 + i % 40);
            usleep(3000000);
            return 0;
        }";
    let fixture = Fixture::new();
    let (is_found, figures) = grows(&fixture, &fixture.program("builds", source));
    assert!(!is_found && figures["is_short"] == false, "{figures:#}");
    fixture
        .heaptoll(&["leaks", &fixture.at("a.heaptoll")])
        .exits(0)
        .shows(&["Nothing grows: main", "then stayed"]);
}

#[test]
fn a_program_that_frees_what_it_makes_in_phases_does_not_grow() {
    let fixture = Fixture::new();
    let phases = LIST
        .replace("40000", "10000")
        .replace("for (int", "for (int phase = 0; phase < 4; phase++) { for (int");
    let program = fixture.program("phases", &phases.replace("puts(", "} puts("));
    let (is_found, figures) = grows(&fixture, &program);
    assert!(!is_found, "{:#}", figures["growing"]);
    assert!(
        figures["freed_last"]["objects"].as_u64() >= Some(2900),
        "the last phase: {:#}",
        figures["freed_last"]
    );
}

/// Before, arrays that double failed no gate: one block after another is replaced, each by another call site.
#[test]
fn arrays_that_double_fail_the_gate_of_growth_and_are_named() {
    let source = "
        #include <unistd.h>
        #define ARRAY(at) static char *a##at; __attribute__((noinline)) static void array_##at(size_t to) { \\
            char *more = malloc(to); free(a##at); a##at = more; }
        ARRAY(0) ARRAY(1) ARRAY(2) ARRAY(3) ARRAY(4) ARRAY(5) ARRAY(6) ARRAY(7)
        ARRAY(8) ARRAY(9) ARRAY(10) ARRAY(11) ARRAY(12) ARRAY(13) ARRAY(14) ARRAY(15)
        static void (*all[])(size_t) = { array_0, array_1, array_2, array_3, array_4, array_5, array_6, array_7,
            array_8, array_9, array_10, array_11, array_12, array_13, array_14, array_15 };
        int main(void) {
            size_t length[16];
            for (int at = 0; at < 16; at++) all[at](length[at] = 64 << at % 4);
            for (size_t used = 64; used < 20000; used++) {
                if (used % 300 == 0) usleep(18000);
                free(malloc(1000));
                for (int at = 0; at < 16; at++)
                    if (used * (16 + at) / 16 > length[at]) all[at](length[at] *= 2);
            }
            return 0;
        }";
    let fixture = Fixture::new();
    let program = fixture.program("doubles", source);
    let (is_found, figures) = grows(&fixture, &program);
    assert!(is_found && figures["growing"] == Value::Array(Vec::new()), "{figures:#}");
    let shown = fixture.heaptoll(&["leaks", &fixture.at("a.heaptoll")]).exits(0);
    shown.shows(&["No single call site grows, but all live bytes together do", "most came from array_"]);
}
