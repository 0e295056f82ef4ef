//! Managers that are none, or only half of one: each is refused by name, with what to do, and the others run on.

use crate::fixture::{Fixture, line, outcomes, read_json};

/// Exit status 1 of a run with a good manager, 2 where there is nothing else to compare.
#[track_caller]
fn refused_everywhere(fixture: &Fixture, manager: &str, words: &[&str]) {
    let run = |rest: &[&str], json: &str| {
        let words: Vec<&str> = ["run", "-n", "1", "--warmup", "0", "--json", json]
            .iter()
            .chain(rest)
            .chain(&["-m", manager, "--", "ls", "/"])
            .copied()
            .collect();
        fixture.heaptoll(&words)
    };
    let json = fixture.at("o.json");
    run(&[], &json).exits(2).complains(&["no manager is left to compare"]).complains(words);
    run(&["-m", "glibc", "-m", "glibc"], &json).exits(1);
    let read = read_json(&json);
    assert_eq!(outcomes(&read, "glibc#2"), ["ok"], "the others are measured");
    let reason = read["experiment"]["refused"].to_string();
    for word in words {
        assert!(reason.contains(word), "{reason}");
    }
    // As the baseline it ends the run.
    run(&["--baseline", manager, "-m", "glibc"], &json).exits(2).complains(words);
}

const NO_MALLOC: &str = "int answer(void) { return 42; }";
const HALF: &str = "#include <stddef.h>\nextern void *__libc_malloc(size_t); void *malloc(size_t n) { return __libc_malloc(n); }";
const CRASHES: &str = "__attribute__((constructor)) static void f(void) { abort(); }";
const UNDEFINED: &str = "extern int nobody_has_this(void); \
                         __attribute__((constructor)) static void f(void) { nobody_has_this(); }";

#[test]
fn the_list_shows_each_that_is_none_and_ends_with_1() {
    let fixture = Fixture::new();
    std::fs::write(fixture.path("text.so"), "words").expect("writes");
    std::fs::create_dir(fixture.path("a folder")).expect("makes");
    let none = [
        fixture.at("text.so"),
        "/bin/ls".to_owned(),
        fixture.object("nomalloc.so", NO_MALLOC),
        fixture.object("half.so", HALF),
        fixture.manager("crash.so", CRASHES),
        fixture.manager("undefined.so", UNDEFINED),
        fixture.manager("a folder/m.so", ""),
    ];
    let words: Vec<&str> = none.iter().flat_map(|name| ["-m", name]).collect();
    let shown = fixture.heaptoll(&[&["managers"], &words[..]].concat()).exits(1);
    let refused = |name: &&String| {
        let row = |line: &&str| line.starts_with(name.as_str());
        shown.out.lines().find(row).is_some_and(|line| !line.contains("  passes  "))
    };
    assert_eq!(none.iter().filter(refused).count(), none.len(), "{}", shown.out);
}

#[test]
fn a_text_file_is_no_manager() {
    let fixture = Fixture::new();
    let text = fixture.at("text.so");
    std::fs::write(&text, "words").expect("writes");
    refused_everywhere(&fixture, &text, &["text.so", "not a shared object"]);
}

#[test]
fn a_program_is_no_manager() {
    let fixture = Fixture::new();
    refused_everywhere(&fixture, "/bin/ls", &["/ls is not a shared object"]);
}

#[test]
fn an_object_without_malloc_would_measure_glibc_in_silence() {
    let fixture = Fixture::new();
    let object = fixture.object("nomalloc.so", NO_MALLOC);
    refused_everywhere(&fixture, &object, &["nomalloc.so exports no malloc"]);
}

#[test]
fn an_object_with_malloc_but_without_free_is_half_a_family() {
    let fixture = Fixture::new();
    let object = fixture.object("half.so", HALF);
    refused_everywhere(&fixture, &object, &["half.so exports malloc but not", "free"]);
}

#[test]
fn a_manager_that_crashes_in_its_constructor_is_to_blame_not_the_program() {
    let fixture = Fixture::new();
    let object = fixture.manager("crash.so", CRASHES);
    refused_everywhere(
        &fixture,
        &object,
        &["crash.so breaks even `sh -c :` when it is loaded", "killed by signal 6"],
    );
}

#[test]
fn a_manager_with_a_missing_dependency_is_refused_with_the_loaders_message() {
    let fixture = Fixture::new();
    let object = fixture.manager("undefined.so", UNDEFINED);
    refused_everywhere(&fixture, &object, &["undefined.so", "nobody_has_this"]);
}

#[test]
fn a_path_that_the_loader_would_split_is_refused() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path("a folder")).expect("makes");
    let object = fixture.manager("a folder/m.so", "");
    refused_everywhere(&fixture, &object, &["contains a space or a colon", "symbolic link"]);
    // The advice helps.
    let link = fixture.at("link.so");
    std::os::unix::fs::symlink(&object, &link).expect("links");
    fixture
        .heaptoll(&["run", "-m", &link, "-n", "1", "--warmup", "0", "--", "ls", "/"])
        .exits(0)
        .shows(&["link.so"]);
}

#[test]
fn a_missing_reallocarray_is_a_warning_and_aligned_functions_that_fall_through_too() {
    let fixture = Fixture::new();
    let lacking = fixture.manager("lacking.so", "#define NO_REALLOCARRAY");
    let array = fixture.program(
        "array",
        "int main(void) { char *p = reallocarray(0, 10, 10); p = realloc(p, 2000); free(p); return 0; }",
    );
    // glibc's reallocarray calls the realloc that is bound, so blocks stay in one heap and it is no trouble.
    fixture.heaptoll(&["run", "-m", &lacking, "-n", "1", "--warmup", "0", "--", &array]).exits(0);
    let valloc = fixture.program("valloc", "int main(void) { free(malloc(9)); return valloc(100) == 0; }");
    let json = fixture.at("o.json");
    fixture
        .heaptoll(&["run", "-m", &lacking, "-n", "1", "--warmup", "0", "--json", &json, "--", &valloc])
        .exits(0)
        .shows(&["refers to valloc, which the manager lacks"]);
    assert_eq!(outcomes(&read_json(&json), &lacking), ["ok"]);
}

/// In one run, since it starts a program under each manager.
#[test]
fn the_list_names_managers_that_pass_layers_and_options_as_plain_text_and_as_figures() {
    let fixture = Fixture::new();
    let (good, json) = (fixture.manager("good.so", ""), fixture.at("managers.json"));
    let stack = ["-m", "quarantine=4096/glibc"];
    let list = [&["managers"], &stack[..], &["-m", &good, "--json", &json]].concat();
    let output = fixture.heaptoll(&list).exits(0).shows(&[
        &good,
        "quarantine=SIZE",
        "check=on|off",
        "every=SIZE",
        "quarantine=4K/glibc",
        "tithe-collect",
    ]);
    assert!(!output.out.contains('\x1b') && !output.err.contains('\x1b'), "{}", output.out);
    let passes = |line: &str| line.contains("  passes  ");
    assert!(output.out.lines().any(|line| line.starts_with("glibc ") && passes(line)), "{}", output.out);
    assert!(output.out.lines().any(|line| line.contains(" crate ") && passes(line)), "{}", output.out);
    let found = read_json(&json);
    let named = found["managers"].as_array().and_then(|rows| rows.last()).expect("managers");
    assert_eq!((&named["name"], &named["usable"]), (&good.into(), &true.into()));
    assert!(found["layers"].as_array().is_some_and(|layers| !layers.is_empty()));
}

#[test]
fn a_manager_named_twice_is_compared_with_itself() {
    let fixture = Fixture::new();
    let json = fixture.at("o.json");
    fixture
        .heaptoll(&["run", "-m", "glibc", "-m", "glibc", "-n", "7", "--json", &json, "--", "ls", "/"])
        .exits(0)
        .shows(&["glibc#2"]);
    let read = read_json(&json);
    assert_eq!(outcomes(&read, "glibc#2").len(), 7);
    assert_eq!(read["comparison"]["baseline"], "glibc");
}

#[test]
fn a_group_runs_its_managers_and_ours_report_the_size_of_their_heap() {
    let fixture = Fixture::new();
    let json = fixture.at("o.json");
    let run = ["run", "-m", "historic", "-n", "1", "--warmup", "0", "--json", &json, "--", "perl", "-e"];
    fixture
        .heaptoll(&[&run[..], &["my @a = (1) x 1e5; print scalar @a"]].concat())
        .exits(0)
        .shows(&["heap MiB"]);
    let read = read_json(&json);
    for manager in
        ["knuth", "bestfit", "cartesian", "kingsley", "haertel", "buddy", "lea", "quickfit", "pow2", "bump"]
    {
        assert_eq!(outcomes(&read, manager), ["ok"], "{manager}");
        let high = line(&read, manager)["heap_high_water_bytes"].as_f64().expect("a size");
        assert!((1e6..64e6).contains(&high), "{manager}: {high} bytes");
    }
}
