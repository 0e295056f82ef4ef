//! `heaptoll lab oracle --graph`: a program of which it is known when its objects can be reached no more.

use serde_json::Value;

use crate::fixture::{Fixture, read_json};

/// `drop` makes an object of 8 MB to which no pointer leads, and which is freed much later. That of `stay`, 2 MB, is freed
/// at once, while a variable leads to it. That of `conceal`, 300 kB, is used by a pointer that is stored inverted.
const KNOWN: &str = r#"
    static volatile unsigned long dropped, concealed;
    static char *volatile stale;
    static void churn(void) { for (int at = 0; at < 60; at++) { char *volatile made = malloc(1000); free(made); } }
    __attribute__((noinline)) static void drop(void) {
        char *made = malloc(8000000);
        memset(made, 1, 8000000);
        dropped = ~(unsigned long)made;
    }
    __attribute__((noinline)) static void use(void) {
        char *volatile made = malloc(8000000);
        memset(made, 2, 8000000);
        free(made);
    }
    __attribute__((noinline)) static void stay(void) { stale = malloc(2000000); free(stale); }
    __attribute__((noinline)) static void conceal(void) { concealed = ~(unsigned long)malloc(300000); }
    int main(void) {
        drop();
        churn();
        use();
        churn();
        free((void *)~dropped);
        stay();
        churn();
        stale = 0;
        churn();
        conceal();
        churn();
        *(volatile char *)~concealed = 1;
        churn();
        free((void *)~concealed);
        puts("done");
        return 0;
    }
"#;

fn recorded(fixture: &Fixture, program: &str, folder: &str, more: &[&str]) -> Value {
    let json = fixture.at("oracle.json");
    std::fs::create_dir_all(folder).expect("a folder");
    let arguments =
        [&["lab", "oracle", "--force", "-o", folder, "--json", &json], more, &["--", program]].concat();
    fixture.heaptoll(&arguments).exits(0);
    read_json(&json)["programs"][0].clone()
}

fn bytes(json: &Value, what: &str) -> u64 {
    json["unreachable"][what]["bytes"].as_u64().expect("a figure")
}

#[test]
fn objects_are_freed_when_they_cannot_be_reached_any_more_before_or_after_their_free() {
    let fixture = Fixture::new();
    let program = fixture.program("reach", KNOWN);
    let folder = fixture.at("oracles");
    let json = recorded(&fixture, &program, &folder, &["--graph"]);
    assert!(json["sequence"]["differs"].is_null() && json["proof"]["fails"].is_null(), "{json:#}");
    assert!((8_300_000..8_400_000).contains(&bytes(&json, "before_free")), "{json:#}");
    assert!(bytes(&json, "after_free") >= 2_000_000, "{json:#}");
    let hidden = &json["unreachable"]["hidden"];
    assert_eq!((hidden["objects"].as_u64(), hidden["bytes"].as_u64()), (Some(1), Some(300_000)), "{json:#}");
    let peak = |live: &Value| live["peak_bytes"].as_u64().expect("a figure");
    let (last_use, free) = (peak(&json["live_last_use"]), peak(&json["live_free"]));
    let unreachable = peak(&json["unreachable"]["live"]);
    assert!(last_use <= unreachable && unreachable < free - 5_000_000, "{json:#}");

    let out = fixture.at("r.json");
    let study =
        ["reclamation", "-m", "glibc", "-n", "1", "--oracles", &folder, "--json", &out, "--", &program];
    fixture.heaptoll(&study).exits(0);
    let found = read_json(&out);
    let points = found["points"].as_array().expect("points");
    assert_eq!((points.len(), &points[1]), (8, &"unreachable".into()), "{found:#}");
    let rows = found["curves"][0]["rows"].as_array().expect("rows");
    let memory = |at: usize| rows[at]["medians"]["peak_rss_kib"].as_f64().expect("memory");
    assert_eq!((&rows[1]["point"], &rows[2]["point"]), (&"unreachable".into(), &"free".into()));
    assert!(memory(1) + 5_000.0 < memory(2), "two objects of 8 MB: {rows:#?}");
}

#[test]
fn a_recording_without_points_of_unreachability_is_named() {
    let fixture = Fixture::new();
    let program = fixture.program("plain", "int main(void) { free(malloc(10)); return 0; }");
    let folder = fixture.at("oracles");
    assert!(recorded(&fixture, &program, &folder, &["--no-proof"])["unreachable"].is_null());
    let stack = format!("oracle=unreachable,file={folder}/plain.oracle/glibc");
    let lacks = "plain.oracle has no points of unreachability; record it with `heaptoll lab oracle --graph`";
    fixture.heaptoll(&["run", "-n", "1", "-m", &stack, "--", &program]).exits(2).complains(&[lacks]);
    let layer = heaptoll_testing::staged::home().join("lib/heaptoll/layers/libheaptoll_oracle.so");
    let by_hand = std::process::Command::new(&program)
        .env("LD_PRELOAD", layer)
        .env("HEAPTOLL_ORACLE", format!("point=unreachable,file={folder}/plain.oracle"))
        .output()
        .expect("starts");
    let error = String::from_utf8_lossy(&by_hand.stderr);
    assert!(by_hand.status.code() == Some(93) && error.contains("no points of unreachability"), "{error}");
}
