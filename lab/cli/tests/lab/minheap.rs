//! `heaptoll lab minheap` on programs whose need is known.

use serde_json::Value;

use crate::fixture::{Fixture, eventually, goes_on_after, read_json, retains, runs_in, stored};

const MIB: u64 = 1 << 20;
/// Enough repeats to find a program in which every other run differs.
const REPEATS: &str = "3";

/// The figures of a program.
fn search(
    fixture: &Fixture,
    options: &[&str],
    code: i32,
    program: &str,
) -> (Value, crate::fixture::CommandOutput) {
    let file = fixture.at("heaps.json");
    let fixed = ["lab", "minheap", "--json", &file, "--tolerance", "2", "-n", REPEATS, "--every", "64K"];
    let output = fixture.heaptoll(&[&fixed, options, &["--", program]].concat()).exits(code);
    (read_json(&file)["programs"][0].clone(), output)
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

#[test]
fn the_smallest_heap_is_what_a_program_retains() {
    let fixture = Fixture::new();
    let program = fixture.program("retains", &retains(4 * MIB, ""));
    let options = ["-m", "sweep,every=64K/glibc", "-m", "tithe-collect", "-b", "glibc"];
    let (found, output) = search(&fixture, &options, 0, &program);
    for row in found["collectors"].as_array().expect("collectors") {
        let (heap, failed) = (number(&row["search"]["heap"]), number(&row["search"]["failed_at"]));
        assert!((4 * MIB..6 * MIB).contains(&heap), "{row}");
        assert!(failed < heap && (heap - failed) as f64 <= 0.02 * heap as f64 + 4096.0, "{row}");
        let at = |bytes: u64| {
            let tried = row["search"]["tried"].as_array().expect("tried").clone();
            tried.into_iter().find(|one| one["heap"] == bytes).expect("it was tried")
        };
        assert!(number(&at(heap)["done"]) >= 3, "{row}");
        assert!(number(&at(failed)["out_of_memory"]) >= 3 || failed == 0, "{row}");
    }
    let baselines = found["baselines"].as_array().expect("baselines");
    assert_eq!(baselines.len(), 2, "one period, and the program's own frees");
    for footprint in baselines.iter().flat_map(|one| one["used_high_bytes"].as_array().expect("runs")) {
        assert!((4 * MIB..9 * MIB).contains(&number(footprint)), "{found}");
    }
    // It frees nothing, so honouring frees changes nothing.
    let ratio = |at: usize| found["overheads"][at]["ratio"].as_f64().expect("a ratio");
    assert!((0.7..1.5).contains(&ratio(0)) && (ratio(0) / ratio(1) - 1.0).abs() < 0.1, "{found}");
    output.shows(&["smallest heap, KiB", "sweep,every=64K/glibc", "Smallest heap over footprint"]);
}

/// The program itself ends otherwise in small heaps: that is not lack of memory, and not silently so.
#[test]
fn a_third_outcome_stays_one() {
    let fixture = Fixture::new();
    let source = "int main(void) {
        char *options = getenv(\"HEAPTOLL_SWEEP\"), *heap = options ? strstr(options, \"heap=\") : 0;
        malloc(100);
        if (heap && atol(heap + 5) < 300000) return 7;
        return 0; }";
    let program = fixture.program("seven", source);
    let (found, output) = search(&fixture, &["-m", "sweep/glibc", "-b", "glibc"], 0, &program);
    let search = &found["collectors"][0]["search"];
    let tried = search["tried"].as_array().expect("tried");
    let odd: Vec<&Value> = tried.iter().filter(|one| number(&one["heap"]) < 300_000).collect();
    assert!(!odd.is_empty() || number(&search["heap"]) < 300_000, "{search}");
    assert!(odd.iter().all(|one| one["out_of_memory"] == 0 && one["done"] == 0), "{search}");
    assert!(
        number(&search["heap"]) >= 300_000 && search["failed_otherwise"][0] == "exit status 7",
        "{search}"
    );
    output.shows(&["failed for another reason than memory", "exit status 7"]);
}

/// Every other run needs 4 MiB more.
#[test]
fn a_flaky_program_is_called_one() {
    let fixture = Fixture::new();
    let source = format!(
        "int main(int count, char **words) {{
            FILE *file = fopen(\"{}\", \"a+\"); fputc('x', file); fseek(file, 0, SEEK_END);
            long runs = ftell(file); fclose(file);
            static char *volatile all[64];
            for (int i = 0; i < (runs % 2 ? 64 : 32); i++)
                if (!(all[i] = malloc(131072))) return 1; else memset(all[i], 1, 131072);
            return 0; }}",
        fixture.at("runs")
    );
    let program = fixture.program("flaky", &source);
    let (found, output) = search(&fixture, &["-m", "sweep/glibc", "-b", "glibc"], 0, &program);
    let search = &found["collectors"][0]["search"];
    assert!(number(&search["heap"]) >= 8 * MIB, "{search}");
    assert!(number(&search["sometimes_from"]) < 8 * MIB, "{search}");
    output.shows(&["flaky: it completed in"]);
}

#[test]
fn what_cannot_be_searched_is_refused() {
    let fixture = Fixture::new();
    fixture.heaptoll(&["lab", "minheap"]).exits(2).complains(&["nothing to run"]);
    fixture.heaptoll(&["lab", "minheap", "-m", "glibc", "--", "true"]).exits(2).complains(&["sweep/glibc"]);
    fixture
        .heaptoll(&["lab", "minheap", "-m", "sweep,heap=1M/glibc", "--", "true"])
        .exits(2)
        .complains(&["leave out heap="]);
    fixture
        .heaptoll(&["lab", "minheap", "-b", "tithe-collect", "--", "true"])
        .exits(2)
        .complains(&["is a collector"]);
    fixture.heaptoll(&["lab", "minheap", "--tolerance", "99", "--", "true"]).exits(2).complains(&["0 to 50"]);
    let failing = fixture.program("failing", "int main(void) { free(malloc(9)); return 3; }");
    let options = ["lab", "minheap", "-m", "sweep/glibc", "-b", "glibc", "--"];
    fixture
        .heaptoll(&[&options[..], &[&failing]].concat())
        .exits(2)
        .complains(&["exit status 3", "--expect-status"]);
}

#[test]
fn a_static_program_has_no_heap_to_search() {
    let fixture = Fixture::new();
    let program = fixture.static_program("static", "int main(void) { return malloc(10) == 0; }");
    let command = ["lab", "minheap", "-m", "sweep/glibc", "-b", "glibc", "--", &program];
    fixture.heaptoll(&command).exits(2).complains(&["statically linked"]);
}

/// Each run is on disk before the next, so a kill loses the one under way.
#[test]
fn a_search_that_was_killed_goes_on_and_makes_no_run_twice() {
    let fixture = Fixture::new();
    let program = fixture.program("retains", &retains(MIB, "usleep(50000);"));
    let (db, json, again) = (fixture.at("heaps.db"), fixture.at("heaps.json"), fixture.at("again.json"));
    let words = ["lab", "minheap", "-m", "sweep/glibc", "-b", "glibc", "--every", "64K", "--tolerance", "2"];
    let under_way = fixture.start(&[&words[..], &["-n", "2", "--db", &db, "--", &program]].concat());
    eventually("rows", || stored(&db) >= 5);
    under_way.signal(libc::SIGKILL);
    under_way.wait();
    let before = runs_in(&db);
    assert!(before.iter().all(|run| run.1 == "search"), "{before:?}");
    let resume = ["lab", "minheap", "--resume", &db, "--json"];
    fixture
        .heaptoll(&[&resume[..], &[&json]].concat())
        .exits(0)
        .shows(&["smallest heap, KiB"])
        .complains(&["again, or in other forms: heaptoll lab minheap --resume"]);
    goes_on_after(&before, &db);
    let (found, all) = (read_json(&json), runs_in(&db));
    let row = &found["programs"][0]["collectors"][0];
    assert!((MIB..3 * MIB).contains(&number(&row["search"]["heap"])), "{row}");
    assert_eq!((&found["complete"], &found["repeats"]), (&true.into(), &2.into()));
    // A complete one is shown again, by its rows alone.
    fixture.heaptoll(&[&resume[..], &[&again]].concat()).exits(0);
    assert_eq!((read_json(&again), runs_in(&db)), (found, all));
    // More runs at the edge, and of each baseline.
    fixture.heaptoll(&[&resume[..], &[&again, "-n", "3"]].concat()).exits(0);
    let more = read_json(&again)["programs"][0]["baselines"][0]["used_high_bytes"].clone();
    assert_eq!(more.as_array().map(Vec::len), Some(3));
    fixture.heaptoll(&["report", &db]).exits(0);
}

#[test]
fn what_is_fixed_when_a_search_begins_is_refused_with_a_resume_and_so_is_another_experiment() {
    let fixture = Fixture::new();
    for option in [["-m", "sweep/glibc"], ["--every", "1M"], ["--tolerance", "2"], ["--timeout", "9"]] {
        let words = [&["lab", "minheap", "--resume", "x.db"], &option[..]].concat();
        fixture.heaptoll(&words).exits(2).complains(&["cannot be used with"]);
    }
    let (db, program) =
        (fixture.at("run.db"), fixture.program("p", "int main(void) { free(malloc(9)); return 0; }"));
    fixture.heaptoll(&["run", "-m", "glibc", "-n", "1", "--db", &db, "--", &program]).exits(0);
    fixture.heaptoll(&["lab", "minheap", "--resume", &db]).exits(2).complains(&["is not a minheap study"]);
    fixture
        .heaptoll(&["lab", "proximity", "--resume", &db])
        .exits(2)
        .complains(&["is not a proximity study"]);
}
