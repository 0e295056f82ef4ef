//! Managers that are one object in several modes: each description's variables reach every run of it, and nothing else.

use crate::fixture::{CommandOutput, Fixture, outcomes, read_json};

/// Ends the program at load when it is not in the mode that its description sets.
const MODAL: &str = r#"
__attribute__((constructor)) static void check(void) {
    const char *mode = getenv("MODAL_MODE");
    if (!mode || strcmp(mode, "b")) _exit(9);
}
"#;

#[test]
fn a_description_sets_variables_for_every_run_and_overrules_the_users() {
    let fixture = Fixture::new();
    let managers = fixture.path("home/lib/heaptoll/managers");
    std::fs::create_dir_all(&managers).expect("makes");
    let home = heaptoll_testing::staged::home();
    std::os::unix::fs::symlink(home.join("share"), fixture.path("home/share")).expect("links");
    for piece in ["heaptoll-launch", "layers", "programs"] {
        std::os::unix::fs::symlink(
            home.join("lib/heaptoll").join(piece),
            fixture.path("home/lib/heaptoll").join(piece),
        )
        .expect("links");
    }
    std::fs::rename(fixture.manager("modal.so", MODAL), managers.join("modal.so")).expect("moves");
    for mode in ["a", "b"] {
        let text = format!(
            "name = \"modal-{mode}\"\nversion = \"1\"\norigin = \"test\"\nobject = \"modal.so\"\n\
             [environment]\nMODAL_MODE = \"{mode}\"\n"
        );
        std::fs::write(managers.join(format!("modal-{mode}.toml")), text).expect("writes");
    }
    let json = fixture.at("o.json");
    let run = |outside: Option<&str>, managers: &[&str]| -> CommandOutput {
        let words = ["run", "-n", "1", "--warmup", "0", "--json", &json];
        let mut command = fixture.command(&[&words[..], managers, &["--", "ls", "/"]].concat());
        command.env("HEAPTOLL_HOME", fixture.path("home"));
        match outside {
            Some(mode) => command.env("MODAL_MODE", mode),
            None => command.env_remove("MODAL_MODE"),
        };
        command.output().expect("runs").into()
    };
    run(None, &["-m", "modal-b"]).exits(0);
    assert_eq!(outcomes(&read_json(&json), "modal-b"), ["ok"]);
    // The preflight runs in the same mode, and reports what the manager did.
    run(None, &["-m", "modal-a"]).exits(2).complains(&["exit status 9"]);
    run(Some("a"), &["-m", "modal-b"]).exits(0).complains(&["MODAL_MODE is set, but modal-b sets it itself"]);
    let read = read_json(&json);
    assert_eq!(outcomes(&read, "modal-b"), ["ok"]);
    let stacks = read["experiment"]["stacks"].as_array().expect("stacks");
    let modal = stacks.iter().find(|stack| stack["name"] == "modal-b").expect("it is described");
    assert_eq!(modal["environment"], serde_json::json!([["MODAL_MODE", "b"]]));
}
