//! The lower bound of overhead, of experiments as they are measured.

use crate::fixture::{Fixture, read_json, text};

/// A program that makes this many blocks, and counts to a hundred times as many.
fn work(fixture: &Fixture, blocks: u32) -> String {
    let source = r#"
int main(void) {
    volatile unsigned long x = 0;
    for (int i = 0; i < BLOCKS; i++) { char *p = malloc(i % 100 + 1); p[0] = 1; free(p); }
    for (long i = 0; i < 100L * BLOCKS; i++) x += i;
    return 0;
}
"#;
    fixture.program("work", &format!("#define BLOCKS {blocks}\n{source}"))
}

#[test]
fn every_experiment_bounds_the_overhead_of_its_managers() {
    let fixture = Fixture::new();
    let program = work(&fixture, 200_000);
    let (db, json, html) = (fixture.at("e.db"), fixture.at("e.json"), fixture.at("e.html"));
    let words =
        ["run", "--bounds", "-n", "6", "--warmup", "0", "--db", &db, "--json", &json, "--html", &html];
    let stacks = ["-m", "glibc", "-m", "sweep,every=64K,markers=1,sweep=eager/glibc", "--", &program];
    fixture.heaptoll(&[&words[..], &stacks].concat()).exits(0).shows(&[
        "lower bound of overhead",
        "collections: ",
        "glibc: nothing is subtracted",
    ]);
    let read = read_json(&json);
    let bounds = &read["comparison"]["lower_bounds"]["programs"][0];
    let rows = bounds["cpu"]["rows"].as_array().expect("rows");
    let sweep = rows.iter().find(|row| text(&row["stack"]).starts_with("sweep")).expect("the collector");
    assert_eq!(sweep["attributed"]["collections"], true);
    let (total, taken) = (sweep["total_s"].as_f64().expect("s"), sweep["attributed_s"].as_f64().expect("s"));
    assert!(0.0 < taken && taken < total, "{sweep}");
    // What is left under the baseline is no more than what is left under any.
    let least = bounds["cpu"]["baseline_s"].as_f64().expect("s");
    for row in rows {
        let left = row["total_s"].as_f64().expect("s") - row["attributed_s"].as_f64().expect("s");
        assert!(least <= left * 1.25, "{row}: {least}");
    }
    let page = std::fs::read_to_string(&html).expect("a page");
    assert!(page.contains("Lower bounds of overhead</"), "the page shows it");
}

#[test]
fn exact_counts_of_another_file_are_taken_where_the_work_is_the_same() {
    let fixture = Fixture::new();
    let program = work(&fixture, 20_000);
    let (timed, traced) = (fixture.at("timed.db"), fixture.at("traced.db"));
    fixture
        .heaptoll(&["run", "-n", "3", "--warmup", "0", "-m", "glibc", "--db", &timed, "--", &program])
        .exits(0);
    fixture.heaptoll(&["exact", "instructions", "-m", "glibc", "--db", &traced, "--", &program]).exits(0);
    let json = fixture.at("e.json");
    fixture
        .heaptoll(&["report", &timed, "--instructions", &traced, "--json", &json])
        .exits(0)
        .shows(&["malloc and free: "]);
    let read = read_json(&json);
    let row = &read["comparison"]["lower_bounds"]["programs"][0]["cpu"]["rows"][0];
    assert_eq!(
        (text(&row["stack"]), row["attributed"]["malloc_and_free"].clone()),
        ("glibc".into(), true.into())
    );
    assert!(row["bound"]["ratio"].as_f64().is_some_and(|ratio| ratio > 1.0), "{row}");
    // Of other work, or of nothing in common, nothing is taken.
    let other = fixture.at("other.db");
    fixture.heaptoll(&["exact", "instructions", "-m", "glibc", "--db", &other, "--", "/bin/ls"]).exits(0);
    fixture
        .heaptoll(&["report", &timed, "--instructions", &other])
        .exits(2)
        .complains(&["has no exact counts of a program and a manager of this experiment"]);
}
