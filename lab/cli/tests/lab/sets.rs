//! Named sets of programs: selected by name, without those that cannot run here.

use crate::fixture::{Fixture, read_json};

/// A catalog of a program that collects often, two that never do, and one that is not there.
fn catalog(fixture: &Fixture) -> String {
    let folder = fixture.path("catalog");
    std::fs::create_dir_all(folder.join("sets")).expect("makes");
    let often = fixture.program(
        "often",
        "int main(void) {\n\
         for (int i = 0; i < 4000; i++) { char *block = malloc(65536); memset(block, i, 64); free(block); }\n\
         puts(\"done\");\nreturn 0;\n}\n",
    );
    let never = fixture.program("never", "int main(void) { free(malloc(99)); puts(\"done\"); return 0; }");
    let never = never.as_str();
    for (name, path) in
        [("often", often.as_str()), ("never", never), ("gone", "/nowhere/gone"), ("other", never)]
    {
        let entry = format!(
            "name = \"{name}\"\nabout = \"allocates\"\ncommand = [\"{path}\"]\n[sizes.quick]\nparameters = {{}}\n"
        );
        std::fs::write(folder.join(format!("{name}.toml")), entry).expect("writes");
    }
    let set = "name = \"three\"\nabout = \"small ones\"\ncriteria = [\"They are small.\"]\n\
               programs = [\"often\", \"gone\", \"never\"]\n";
    std::fs::write(folder.join("sets/three.toml"), set).expect("writes");
    fixture.at("catalog")
}

#[test]
fn a_set_is_listed_and_runs_without_the_program_that_is_not_here() {
    let fixture = Fixture::new();
    let catalog = catalog(&fixture);
    fixture
        .heaptoll(&["programs", "--catalog", &catalog])
        .exits(0)
        .shows(&["set three (small ones): often, gone, never", "set twenty (real programs"]);
    let json = fixture.at("programs.json");
    fixture.heaptoll(&["programs", "--catalog", &catalog, "--json", &json]).exits(0);
    let found = read_json(&json);
    let sets = found["sets"].as_array().expect("sets");
    let twenty = sets.iter().find(|set| set["name"] == "twenty").expect("the set of the catalog");
    assert_eq!(twenty["programs"].as_array().map(Vec::len), Some(20));
    let words = ["--catalog", &catalog, "--quick", "-n", "1", "-m", "glibc"];
    let file = fixture.at("delay.json");
    fixture
        .heaptoll(
            &[&["lab", "delay", "--set", "three", "--sizes", "64K", "--json", &file], &words[..]].concat(),
        )
        .exits(0)
        .complains(&["gone is left out"]);
    let found = read_json(&file);
    let programs: Vec<&str> = found["curves"]
        .as_array()
        .expect("curves")
        .iter()
        .filter_map(|curve| curve["program"].as_str())
        .collect();
    assert_eq!(programs, ["often", "never"]);
    fixture.heaptoll(&[&["run", "--set", "thre"], &words[..]].concat()).exits(2).complains(&[
        "no set of programs is called `thre`; there are: interpreters, spec-kin, three, twenty",
    ]);
    let file = fixture.at("run.json");
    let named = ["run", "--set", "three", "-p", "other", "-p", "often", "--json", &file];
    fixture.heaptoll(&[&named[..], &words[..]].concat()).exits(0);
    let found = read_json(&file);
    let programs: Vec<&str> = found["experiment"]["programs"]
        .as_array()
        .expect("programs")
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    assert_eq!(programs, ["often", "never", "other"]);
    fixture
        .heaptoll(&[&["run", "--set", "three", "-p", "gone"], &words[..]].concat())
        .exits(2)
        .complains(&["gone: "]);
}

#[test]
fn one_program_of_a_set_that_never_collects_is_named_and_the_others_are_measured() {
    let fixture = Fixture::new();
    let catalog = catalog(&fixture);
    let words = ["--set", "three", "--catalog", &catalog, "--quick", "-n", "1"];
    let options = ["-m", "sweep/glibc", "--every", "4M,16M", "--reclaim", "1"];
    fixture.heaptoll(&[&["lab", "frequency"], &words[..], &options[..]].concat()).exits(0).shows(&[
        "fewer than 10 collections",
        "never under sweep/glibc (0 collections",
        "often",
    ]);
}
