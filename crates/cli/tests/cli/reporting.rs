//! Managers that write to the statistics page of include/heaptoll.h: what they report is what is shown.

use crate::fixture::{Fixture, line, read_json, rows_of};

/// Counts requested bytes as mapped, rounded to nothing, and writes the most there ever was.
const REPORTING_MANAGER: &str = r#"
#include "heaptoll.h"
static struct heaptoll_stats_slot *slot;
static struct heaptoll_control control = {1, sizeof control, "reporter", "1.0"};
const struct heaptoll_control *heaptoll_control_v1(void) { return &control; }
__attribute__((constructor)) static void claim(void) {
    const char *path = getenv(HEAPTOLL_STATS_VARIABLE);
    if (!path) return;
    int f = open(path, O_RDWR | O_CLOEXEC);
    if (f < 0) return;
    off_t length = lseek(f, 0, SEEK_END);
    char *page = mmap(0, length, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
    close(f);
    if (page == MAP_FAILED) return;
    struct heaptoll_stats_header *header = (void *)page;
    if (header->magic != HEAPTOLL_STATS_MAGIC) return;
    uint32_t number = __atomic_fetch_add(&header->claimed, 1, __ATOMIC_RELAXED);
    if (number >= header->slots) return;
    slot = (void *)(page + header->header_bytes + (size_t)number * header->slot_bytes);
    slot->kind = HEAPTOLL_KIND_MANAGER;
    slot->pid = getpid();
    slot->parent_pid = getppid();
    strcpy(slot->writer, "reporter");
    __atomic_store_n(&slot->state, HEAPTOLL_SLOT_IN_USE, __ATOMIC_RELEASE);
}
static void report(size_t n) {
    if (!slot || n < (1 << 20)) return;
    slot->mapped_bytes += n;
    if (slot->mapped_bytes > slot->mapped_high_bytes) slot->mapped_high_bytes = slot->mapped_bytes;
}
#define BEFORE(n) report(n)
"#;

#[test]
fn a_known_amount_reads_back_as_that_amount() {
    let fixture = Fixture::new();
    let manager = fixture.manager("reporter.so", REPORTING_MANAGER);
    // Three blocks of 1 MiB and one of 7 MiB, killed in the end: the page outlives it.
    let program = fixture.program(
        "allocates",
        "int main(int c, char **v) { for (int i = 0; i < 3; i++) malloc(1 << 20); malloc(7 << 20); \
         if (c > 1) raise(SIGKILL); return 0; }",
    );
    let json = fixture.at("o.json");
    let run = ["run", "-m", &manager, "-n", "2", "--warmup", "0", "--json", &json, "--", &program];
    fixture.heaptoll(&run).exits(0);
    let read = read_json(&json);
    for row in rows_of(&read, &manager, "timed") {
        assert_eq!(row["heap_high_water_bytes"], 10 << 20, "{row}");
    }
    assert_eq!(line(&read, &manager)["heap_high_water_bytes"], (10 << 20) as f64);
    assert!(rows_of(&read, "glibc", "timed").iter().all(|row| row["heap_high_water_bytes"].is_null()));
    fixture.heaptoll(&[&run[..], &["killed"]].concat()).exits(1);
    let read = read_json(&json);
    assert_eq!(
        rows_of(&read, &manager, "timed")[0]["heap_high_water_bytes"],
        10 << 20,
        "killed, and known all the same"
    );
}

#[test]
fn a_manager_that_only_claims_to_report_gives_no_figure() {
    let fixture = Fixture::new();
    let mute =
        fixture.manager("mute.so", "const void *heaptoll_control_v1(void) { static long x[7]; return x; }");
    let json = fixture.at("o.json");
    fixture
        .heaptoll(&["run", "-m", &mute, "-n", "1", "--warmup", "0", "--json", &json, "--", "ls", "/"])
        .exits(0);
    assert!(rows_of(&read_json(&json), &mute, "timed")[0]["heap_high_water_bytes"].is_null());
}

#[test]
fn a_program_that_scribbles_over_the_page_does_no_harm() {
    let fixture = Fixture::new();
    let manager = fixture.manager("reporter.so", REPORTING_MANAGER);
    let program = fixture.program(
        "scribbler",
        "int main(void) { free(malloc(9)); const char *p = getenv(\"HEAPTOLL_STATS\"); if (!p || under(\"count\")) return 0; \
         truncate(p, 100); return 0; }",
    );
    let json = fixture.at("o.json");
    fixture
        .heaptoll(&["run", "-m", &manager, "-n", "1", "--warmup", "0", "--json", &json, "--", &program])
        .exits(0);
    assert!(rows_of(&read_json(&json), &manager, "timed")[0]["heap_high_water_bytes"].is_null());
}

#[test]
fn collections_that_are_reported_are_shown_in_every_form() {
    let fixture = Fixture::new();
    let statements = "slot->collections = 3; slot->pause_total_ns = 5000000; slot->pause_max_ns = 2500000; \
                slot->collected_bytes = 1 << 20; __atomic_store_n(&slot->state";
    let collector =
        fixture.manager("gc.so", &REPORTING_MANAGER.replace("__atomic_store_n(&slot->state", statements));
    let (json, csv, html) = (fixture.at("o.json"), fixture.at("o.csv"), fixture.at("o.html"));
    let forms = ["--json", &json, "--csv", &csv, "--html", &html];
    let run = ["run", "--collections", "-m", &collector, "-n", "2", "--warmup", "0"];
    let output = fixture.heaptoll(&[&run[..], &forms, &["--", "ls", "/"]].concat()).exits(0);
    output.shows(&["Garbage collections", "longest, wall ms"]);
    let read = read_json(&json);
    let row = rows_of(&read, &collector, "timed")[0];
    assert_eq!(row["collections"]["count"], 3, "{row}");
    assert_eq!(row["collections"]["pause_max_ns"], 2_500_000, "{row}");
    assert!(rows_of(&read, "glibc", "timed").iter().all(|row| row["collections"].is_null()));
    assert_eq!(line(&read, &collector)["collections"]["pause_total_s"], 0.005);
    let csv = std::fs::read_to_string(csv).expect("the CSV file is there");
    assert!(csv.lines().any(|line| line.contains(",3,5000000,2500000,1048576,")), "{csv}");
    let html = std::fs::read_to_string(html).expect("the page is there");
    assert!(html.contains("Garbage collections") && html.contains("<bdi>2.50</bdi>"));
}
