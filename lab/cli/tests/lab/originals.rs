//! `heaptoll programs add`: what is fetched is checked, built and proved; each refusal has a reason, and the rest goes on.

use std::fs;

use sha2::{Digest, Sha256};

use crate::fixture::{CommandOutput, Fixture, git, read_json};

/// C as it was written before 1989, which allocates an object for each argument and prints how many.
const COUNT: &str = "char *keep();\nmain(argc, argv) int argc; char **argv; {\n    unsigned short i;\n    for (i = 0; i < 5000; i++) if (!keep(i)) return 1;\n    printf(\"%s %d\\n\", GREETING, i);\n    return 0;\n}\n";
const KEEP: &str = "char *malloc();\nchar *keep(size) { return malloc(SIZE); }\n";

fn digest(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A repository with the programs `good` and `other`, and a recipe of them: a folder each.
fn made_up(fixture: &Fixture) {
    let mut manifest = String::new();
    for program in ["good", "other"] {
        let folder = fixture.path("tree").join("suite").join(program);
        fs::create_dir_all(folder.join("INPUT")).expect("made");
        for (name, content) in [("count.c", COUNT), ("keep.c", KEEP), ("INPUT/words", "words\n")] {
            fs::write(folder.join(name), content).expect("written");
            manifest.push_str(&format!("{}  suite/{program}/{name}\n", digest(content.as_bytes())));
        }
    }
    fs::create_dir_all(fixture.path("recipe")).expect("made");
    fs::write(fixture.path("recipe/files.sha256"), manifest).expect("written");
    write_recipe(fixture, |_| {});
}

/// Writes the recipe, with what `change` makes of it.
fn write_recipe(fixture: &Fixture, change: impl FnOnce(&mut String)) {
    let program = |name: &str, greeting: &str| {
        format!(
            "[programs.{name}]\nlicence = \"none\"\nfolders = [\"suite/{name}\"]\nsources = [\"count.c\", \"keep.c\"]\n\
             flags = ['-DSIZE=24']\n\
             [[programs.{name}.changes]]\nfile = \"suite/{name}/count.c\"\nline = 3\ndigest = \"{}\"\n\
             find = \"unsigned short\"\nput = \"unsigned\"\n\
             [programs.{name}.forms.plain]\nflags = ['-DGREETING=\"{greeting}\"']\n\
             [programs.{name}.forms.plain.proof]\narguments = [\"{{here}}/{name}/INPUT/words\"]\noutput = \"{}\"\n\
             objects = 5001\nresizes = 0\n",
            digest(b"    unsigned short i;"),
            digest(format!("{greeting} 5000\n").as_bytes()),
        )
    };
    let mut recipe = format!(
        "name = \"made-up\"\nurl = \"file:///nowhere/at-all\"\ncommit = \"{}\"\n\
         flags = [\"-O1\", \"-std=gnu89\", \"-fcommon\", \"-w\"]\n{}{}",
        "0".repeat(40),
        program("good", "hello"),
        program("other", "again"),
    );
    change(&mut recipe);
    fs::write(fixture.path("recipe/recipe.toml"), recipe).expect("written");
}

fn add_from(fixture: &Fixture, from: &str) -> CommandOutput {
    fixture.heaptoll(&["programs", "add", &fixture.at("recipe"), "--from", from])
}

fn add(fixture: &Fixture) -> CommandOutput {
    add_from(fixture, &fixture.at("tree"))
}

fn binary(fixture: &Fixture, program: &str) -> bool {
    fixture.path("data/heaptoll/programs/made-up").join(program).join("bin/plain").is_file()
}

#[test]
fn programs_are_built_and_proved_by_their_counts() {
    let fixture = Fixture::new();
    made_up(&fixture);
    for _ in ["new", "in the place of the old ones"] {
        add(&fixture)
            .exits(0)
            .shows(&["data/heaptoll/programs/made-up"])
            .complains(&["good:plain: 5001 objects, 0 resizes", "other:plain: 5001 objects"]);
        assert!(binary(&fixture, "good") && binary(&fixture, "other"));
    }
    let folder = fixture.path("data/heaptoll/programs/made-up");
    let names = fs::read_dir(&folder).expect("there").map(|entry| entry.expect("read").file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert_eq!(names, ["good", "other"], "nothing temporary is left");
    let changed = fs::read_to_string(folder.join("good/good/count.c")).expect("there");
    assert!(changed.contains("    unsigned i;\n"), "{changed}");
}

#[test]
fn another_digest_and_a_missing_input_are_refused_and_the_rest_goes_on() {
    let fixture = Fixture::new();
    made_up(&fixture);
    fs::write(fixture.path("tree/suite/other/keep.c"), format!("{KEEP} ")).expect("written");
    add(&fixture).exits(1).complains(&[
        "good:plain: 5001 objects",
        "other: suite/other/keep.c is another file than the recipe's",
    ]);
    assert!(binary(&fixture, "good") && !binary(&fixture, "other"));
    fs::remove_file(fixture.path("tree/suite/good/INPUT/words")).expect("removed");
    add(&fixture).exits(2).complains(&["good: suite/good/INPUT/words is missing"]);
    assert!(binary(&fixture, "good"), "what was added earlier stays");
}

#[test]
fn a_form_that_does_not_build_or_is_not_proved_is_refused_and_the_rest_goes_on() {
    let fixture = Fixture::new();
    made_up(&fixture);
    let cases: [(&str, &str, &[&str]); 4] = [
        ("flags = ['-DGREETING=\"again\"']", "flags = []", &["other:plain: it does not build", "GREETING"]),
        ("objects = 5001", "objects = 4900", &["makes 5001 calls of malloc and calloc, not 4900"]),
        ("resizes = 0", "resizes = 9", &["makes 0 calls of realloc, not 9"]),
        ("'-DGREETING=\"again\"'", "'-DGREETING=\"never\"'", &["prints something else"]),
    ];
    for (from, to, words) in cases {
        write_recipe(&fixture, |recipe| {
            let at = recipe.rfind(from).expect("in the recipe");
            recipe.replace_range(at..at + from.len(), to);
        });
        add(&fixture)
            .exits(1)
            .complains(&["good:plain: 5001 objects", "error: other:plain"])
            .complains(words);
        assert!(!binary(&fixture, "other"), "{to}: what is not proved is not left to be measured");
    }
}

#[test]
fn a_change_that_fits_no_line_is_refused() {
    let fixture = Fixture::new();
    made_up(&fixture);
    write_recipe(&fixture, |recipe| *recipe = recipe.replacen("line = 3", "line = 4", 1));
    add(&fixture).exits(1).complains(&["good: line 4 of suite/good/count.c is not the line to be changed"]);
}

#[test]
fn a_bare_repository_serves_and_stays_as_it_is() {
    let fixture = Fixture::new();
    made_up(&fixture);
    let tree = fixture.path("tree");
    git(&tree, &["init", "--quiet"]);
    git(&tree, &["add", "."]);
    git(&tree, &["commit", "--quiet", "-m", "all"]);
    git(&tree, &["clone", "--quiet", "--bare", ".", &fixture.at("bare")]);
    add_from(&fixture, &fixture.at("bare")).exits(0);
    assert!(binary(&fixture, "good"));
    assert!(!fixture.path("bare/index").exists(), "the index is elsewhere");
    add_from(&fixture, &format!("file://{}", fixture.at("bare"))).exits(0);
}

#[test]
fn without_network_compiler_or_sources_nothing_is_added() {
    let fixture = Fixture::new();
    made_up(&fixture);
    let recipe = fixture.at("recipe");
    fixture.heaptoll(&["programs", "add", &recipe]).exits(2).complains(&[
        "cannot fetch file:///nowhere/at-all",
        "check the network, or give a clone, a bare repository or a folder that is here by --from",
    ]);
    fs::create_dir_all(fixture.path("empty")).expect("made");
    add_from(&fixture, &fixture.at("empty")).exits(2).complains(&["has none of the folders of made-up"]);
    let mut command = fixture.command(&["programs", "add", &recipe, "--from", &fixture.at("tree")]);
    let output: CommandOutput = command.env("CC", "false").output().expect("runs").into();
    output.exits(2).complains(&["false compiles no C of 1989", "set CC to a compiler that takes -std=gnu89"]);
    fixture
        .heaptoll(&["programs", "add", "malloc-branch"])
        .exits(2)
        .complains(&["there are: malloc-bench, mimalloc-bench, lucene"]);
}

#[test]
fn a_program_that_was_not_added_is_refused_with_the_command_and_the_licence() {
    let fixture = Fixture::new();
    fixture.heaptoll(&["programs"]).exits(0).shows(&["mb-cfrac", "programs add malloc-bench"]);
    let run = ["run", "--program", "mb-cfrac", "--size", "tiny", "-m", "glibc", "-n", "1"];
    fixture.heaptoll(&run).exits(2).complains(&[
        "`heaptoll programs add malloc-bench` fetches and builds it for you",
        "not to be used for profit",
    ]);
}

/// A layer in front of a collector, and one in front of a manager without pointer-free memory, sees these calls.
#[test]
fn pointer_free_memory_is_recorded_in_front_of_any_manager() {
    let fixture = Fixture::new();
    let program = fixture.program(
        "pointer-free",
        "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdlib.h>\n#include <string.h>\n\
         int main(void) { void *(*get)(size_t) = (void *(*)(size_t))dlsym(RTLD_DEFAULT, \"heaptoll_malloc_pointer_free\");\n\
         if (!get) return 1; for (int i = 0; i < 1000; i++) { char *p = get(333); if (!p) return 2; memset(p, 1, 333); \
         free(p); } return 0; }",
    );
    for manager in ["glibc", "kingsley", "bw16", "bw26", "treadmill", "tithe-collect"] {
        let (trace, json) = (fixture.at("trace"), fixture.at("stat.json"));
        fixture.heaptoll(&["record", "-f", "-o", &trace, "-m", manager, "--", &program]).exits(0);
        fixture.heaptoll(&["trace", "stat", &trace, "--json", &json]).exits(0);
        let objects = read_json(&json)["objects"].as_u64().expect("a number");
        assert!((1000..1100).contains(&objects), "{manager}: {objects}");
    }
}

/// A stand-in for an installed SPEC CPU 2017, of its shape: one benchmark built and set up for a workload, one not built.
fn spec_tree(fixture: &Fixture) -> String {
    let run = |benchmark: &str| format!("cpu2017/benchspec/CPU/{benchmark}/run/run_base_test_mine.0000");
    let source = "int main(int c, char **v) { char t[99]; free(malloc(64)); FILE *f = fopen(v[1], \"r\"); \
                  if (!f || !fgets(t, 99, f)) return 3; fputs(t, stdout); return 0; }";
    for benchmark in ["505.mcf_r", "507.cactuBSSN_r"] {
        std::fs::create_dir_all(fixture.path(&run(benchmark))).expect("a folder");
    }
    fixture.program(&format!("{}/mcf_r_base.mine", run("505.mcf_r")), source);
    std::fs::write(fixture.path(&run("505.mcf_r")).join("inp.in"), "an input\n").expect("writes");
    let line = |name: &str| {
        format!(
            "-C /built/there\n-o inp.out -e inp.err ../run_base_test_mine.0000/{name} inp.in > inp.out 2>> inp.err\n"
        )
    };
    std::fs::write(fixture.path(&run("505.mcf_r")).join("speccmds.cmd"), line("mcf_r_base.mine"))
        .expect("writes");
    std::fs::write(fixture.path(&run("507.cactuBSSN_r")).join("speccmds.cmd"), line("cactus"))
        .expect("writes");
    fixture.at("cpu2017")
}

#[test]
fn an_installed_spec_cpu_2017_is_measured_by_its_path() {
    let fixture = Fixture::new();
    let tree = spec_tree(&fixture);
    fixture.heaptoll(&["programs", "add", "spec2017"]).exits(2).complains(&["--from"]);
    fixture
        .heaptoll(&["programs", "add", "spec2017", "--from", &fixture.at("no")])
        .exits(2)
        .complains(&["benchspec/CPU"]);
    let added = fixture.heaptoll(&["programs", "add", "spec2017", "--from", &tree]);
    added.exits(1).complains(&[
        "spec-mcf_r: 505.mcf_r (test)",
        "507.cactuBSSN_r: ",
        "is not built",
        "--catalog",
    ]);
    let entries = fixture.path("data").join("heaptoll/programs/spec2017").display().to_string();
    let json = fixture.at("run.json");
    let words =
        ["run", "--catalog", &entries, "-p", "spec-mcf_r", "--size", "quick", "-m", "glibc", "-m", "knuth"];
    fixture.heaptoll(&[&words[..], &["-n", "2", "--json", &json]].concat()).exits(0).shows(&["spec-mcf_r"]);
    let rows = crate::fixture::read_json(&json);
    let timed: Vec<_> = crate::fixture::rows(&rows).iter().filter(|row| row["phase"] == "timed").collect();
    assert!(timed.iter().all(|row| row["output_bytes"] == 9 && row["outcome"]["kind"] == "ok"), "{timed:#?}");
    assert!(!fixture.path("cpu2017/benchspec/CPU/505.mcf_r/run/run_base_test_mine.0000/inp.out").exists());
}
