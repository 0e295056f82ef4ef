//! `heaptoll lab corpus`: programs recorded into one folder with an index, resumed, verified.

use crate::fixture::{Fixture, read_json};
use crate::schemas::validate;

/// A folder of entries: two programs that allocate, and one that is not here.
fn entries(fixture: &Fixture) -> String {
    for (name, count) in [("one", 100), ("two", 300)] {
        let program = fixture.program(
            name,
            &format!("int main(void) {{ for (int i = 0; i < {count}; i++) free(malloc(24)); puts(\"done\"); return 0; }}"),
        );
        entry(fixture, name, &program);
    }
    entry(fixture, "gone", "/no/such/program");
    fixture.at("entries")
}

fn entry(fixture: &Fixture, name: &str, program: &str) {
    std::fs::create_dir_all(fixture.path("entries")).expect("a folder");
    let text = format!(
        "name = \"{name}\"\nabout = \"allocates for a test\"\npackage = \"a-package\"\nthreads = 1\ncommand = [\"{program}\"]\n\n[sizes.quick]\n"
    );
    std::fs::write(fixture.path("entries").join(format!("{name}.toml")), text).expect("writes");
}

#[test]
fn a_corpus_is_recorded_resumed_and_verified() {
    let fixture = Fixture::new();
    let (entries, folder) = (entries(&fixture), fixture.at("traces"));
    let make = |programs: &[&str]| {
        let named = programs.iter().flat_map(|name| ["-p", name]);
        let words: Vec<&str> =
            ["corpus", "-o", &folder, "--catalog", &entries].into_iter().chain(named).collect();
        fixture.heaptoll(&words)
    };
    make(&["one", "gone"]).exits(1).complains(&["one: ", "gone", "a-package", "1 program"]);
    let index = fixture.path("traces/corpus.json");
    let json = read_json(&fixture.at("traces/corpus.json"));
    validate("corpus.json", &std::fs::read_to_string(&index).expect("reads"));
    assert_eq!(json["missing"][0]["name"], "gone");
    let one = &json["programs"][0];
    assert_eq!((&one["name"], &one["size"]), (&"one".into(), &"quick".into()));
    assert!(one["traces"][0]["events"].as_u64().is_some_and(|events| events >= 200), "{one:#}");
    let roles: Vec<&str> =
        one["files"].as_array().expect("files").iter().filter_map(|file| file["role"].as_str()).collect();
    assert!(
        roles.contains(&"program") && roles.contains(&"library") && roles.contains(&"object"),
        "{roles:?}"
    );

    let begun =
        std::fs::metadata(fixture.path("traces/one.heaptoll")).expect("there").modified().expect("a time");
    make(&["one", "two"]).exits(0).complains(&["one is there", "two: ", "2 programs"]);
    let now =
        std::fs::metadata(fixture.path("traces/one.heaptoll")).expect("there").modified().expect("a time");
    assert_eq!(begun, now, "what is there is not recorded again");
    let page = std::fs::read_to_string(fixture.path("traces/README.md")).expect("reads");
    assert!(page.contains("| two (quick) |") && page.contains("CC0-1.0"), "{page}");
    fixture
        .heaptoll(&["lab", "corpus", "--check", &folder])
        .exits(0)
        .shows(&["2 of 2 traces whole, of 2 programs"]);

    std::fs::write(fixture.path("traces/two.heaptoll"), "cut").expect("writes");
    fixture.heaptoll(&["lab", "corpus", "--check", &folder]).exits(1).complains(&["two.heaptoll", "SHA-256"]);
    make(&["two"]).exits(0).complains(&["two: "]);
    fixture.heaptoll(&["lab", "corpus", "--check", &folder]).exits(0);
}

#[test]
fn what_cannot_be_a_corpus_is_refused() {
    let fixture = Fixture::new();
    let (entries, folder) = (entries(&fixture), fixture.at("traces"));
    let words = ["lab", "corpus", "-o", &folder, "--catalog", &entries];
    fixture.heaptoll(&[&words[..], &["-p", "gone"]].concat()).exits(2).complains(&["none of 1 program"]);
    let small = [&words[..], &["-p", "one", "--most", "1"]].concat();
    fixture.heaptoll(&small).exits(2).complains(&["--most allows more"]);
    assert!(!fixture.path("traces/one.heaptoll").exists());
    std::fs::write(fixture.path("traces/corpus.json"), "{}").expect("writes");
    fixture
        .heaptoll(&[&words[..], &["-p", "one"]].concat())
        .exits(2)
        .complains(&["is not an index of a corpus"]);
    fixture.heaptoll(&["lab", "corpus", "--check", &entries]).exits(2).complains(&["has no corpus"]);
    fixture
        .heaptoll(&["lab", "corpus", "-o", "/proc/nowhere", "-p", "one"])
        .exits(2)
        .complains(&["/proc/nowhere"]);
}
