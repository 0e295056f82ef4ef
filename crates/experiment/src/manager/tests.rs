//! Managers by name, path and group, with layers and options, over lists of managers that are known.

use super::definition::IGNORING_FREES;
use super::*;
use crate::laboratory;
use crate::places::Places;

fn manager(name: &str, kind: ManagerSource, stands_for: Option<&'static str>) -> Manager {
    Manager { name: name.into(), base: name.into(), kind, stands_for, ..glibc() }
}

#[test]
fn a_stand_in_leaves_when_the_real_one_is_built() {
    let names = |known: &[Manager]| -> Vec<String> {
        default_set(known).into_iter().map(|manager| manager.name).collect()
    };
    let mut known = vec![
        manager("glibc", ManagerSource::Glibc, None),
        manager("debian-jemalloc", ManagerSource::Debian, Some("jemalloc")),
        manager("debian-tbb", ManagerSource::Debian, None),
    ];
    assert_eq!(names(&known), ["glibc", "debian-jemalloc"]);
    known.push(manager("jemalloc", ManagerSource::Built, None));
    assert_eq!(names(&known), ["glibc", "jemalloc"]);
}

#[test]
fn a_group_names_its_managers_once_and_a_name_given_twice_stays_twice() {
    let historic = |name| Manager { group: Group::Historic, ..manager(name, ManagerSource::Built, None) };
    let known =
        [glibc(), manager("mimalloc3", ManagerSource::Built, None), historic("knuth"), historic("bump")];
    let names = |words: &[&str]| -> Vec<String> {
        let chosen = choose(&known, words.iter().copied()).expect("all are known");
        chosen.into_iter().map(|manager| manager.name).collect()
    };
    assert_eq!(names(&["historic"]), ["knuth", "bump"]);
    assert_eq!(names(&["bump", "historic", "glibc"]), ["bump", "knuth", "glibc"]);
    assert_eq!(names(&["modern"]), ["glibc", "mimalloc3"]);
    assert_eq!(names(&["all"]), ["glibc", "mimalloc3", "knuth", "bump"]);
    assert_eq!(names(&["glibc", "glibc"]), ["glibc", "glibc"]);
    assert!(choose(&known, ["ancient"]).is_err());
}

#[test]
fn a_name_without_its_version_is_the_newest_that_is_built() {
    let named = |name| manager(name, ManagerSource::Built, None);
    let known = [glibc(), named("mimalloc2"), named("mimalloc10"), named("mimalloc3"), named("jemalloc")];
    let name = |word| find(&known, word).map(|manager| manager.name).ok();
    assert_eq!(name("mimalloc").as_deref(), Some("mimalloc10"));
    assert_eq!(name("quarantine=1/mimalloc").as_deref(), Some("quarantine=1B/mimalloc10"));
    assert_eq!(name("mimalloc2").as_deref(), Some("mimalloc2"));
    assert_eq!((name("jemallo"), name("")), (None, None));
}

#[test]
fn layers_stand_in_front_of_every_member_of_a_group_that_bears_them() {
    let collector = |name| Manager { group: Group::Collectors, ..manager(name, ManagerSource::Built, None) };
    let known = [glibc(), manager("tithe", ManagerSource::Built, None), collector("bdw")];
    let names = |words: &[&str]| -> Result<Vec<String>, ManagerError> {
        Ok(choose(&known, words.iter().copied())?.into_iter().map(|manager| manager.name).collect())
    };
    assert_eq!(names(&["forward/modern"]).expect("both"), ["forward/glibc", "forward/tithe"]);
    assert_eq!(
        names(&["quarantine=2M/all", "sweep/modern"]).expect("one each"),
        ["quarantine=2M/glibc", "sweep/glibc"]
    );
    // A group of which nothing is left is an error, not a run of the baseline alone.
    let error = names(&["quarantine=2M/collectors"]).expect_err("no member bears it").to_string();
    assert!(error.contains("quarantine=2M/bdw"), "{error}");
}

/// Before, `-m collectors` ran, and its answer named, a manager that never collects.
#[test]
fn a_manager_of_no_group_is_chosen_by_its_name_and_with_all() {
    let alone = Manager { group: Group::None, ..manager("tithe-explicit", ManagerSource::Built, None) };
    let known = [glibc(), alone];
    let names =
        |word| choose(&known, [word]).map(|all| all.iter().map(|one| one.name.clone()).collect::<Vec<_>>());
    assert_eq!(names("all").expect("both"), ["glibc", "tithe-explicit"]);
    assert_eq!(names("tithe-explicit").expect("it is there"), ["tithe-explicit"]);
    assert_eq!(names("modern").expect("one"), ["glibc"]);
    assert!(!is_group(&known, "-") && !is_group(&known, "collectors"));
}

#[test]
fn names_of_rows_are_those_of_stacks() {
    let known = [glibc(), manager("mimalloc3", ManagerSource::Built, None)];
    let words = ["quarantine=2048K/mimalloc", "modern", "forward/modern", "glibc", "nope"].map(String::from);
    assert_eq!(names_of(&known, &words), ["quarantine=2M/mimalloc3", "glibc"]);
}

#[test]
fn collectors_are_known_by_group_or_by_name() {
    let named = |name| manager(name, ManagerSource::Built, None);
    assert!(Manager { group: Group::Collectors, ..named("bdw") }.collects());
    assert!(!Manager { group: Group::None, ..named("tithe-explicit") }.collects());
    assert!(Manager { group: Group::None, ..named("tithe-guard") }.collects());
    assert!(Manager { group: Group::Historic, ..named("bw26") }.collects() && named("tithe").collects());
    assert!(!Manager { group: Group::Historic, ..named("lea") }.collects() && !glibc().collects());
}

/// Before, `bdw-nofree,incremental=on` was explicit management, and a layer with options collected nothing.
#[test]
fn a_stack_is_of_the_kind_of_its_manager_whatever_options_and_layers_it_has() {
    for name in IGNORING_FREES {
        for stack in [name.to_owned(), format!("{name},heap=2M,every=1M"), format!("record/{name}#2")] {
            assert!(ignores_frees(&stack) && collects(&stack), "{stack}");
        }
    }
    for stack in ["sweep/lea", "sweep,every=64K/lea", "quarantine=2M,check=on/sweep,every=1M,free=ignore/lea"]
    {
        assert!(ignores_frees(stack) && collects(stack), "{stack}");
    }
    // Stored by an installation with another layer, or with other options.
    for stack in ["other=2,x=y/sweep,every=64K/lea", "other/bw16", "sweep,new=on/quarantine=2M/lea"] {
        assert!(ignores_frees(stack) && collects(stack), "{stack}");
    }
    let honours = "other/sweep,new=on,free=honour/lea";
    assert!(!ignores_frees(honours) && collects(honours));
    assert!(!collects("/opt/sweep/x.so") && !collects("other/./sweep/x.so"));
    for stack in ["bdw,incremental=on", "tithe,heap=2M", "sweep,every=1M,free=honour/lea"] {
        assert!(!ignores_frees(stack) && collects(stack), "{stack}");
    }
    for stack in [
        "glibc",
        "mimalloc3,purge=0",
        "quarantine=2M,check=on/lea",
        "guard,waiting=2M/lea",
        "record/jemalloc#2",
        "./lib/x.so",
    ] {
        assert!(!ignores_frees(stack) && !collects(stack), "{stack}");
    }
}

/// An installation with one object and a description of it.
fn described(description: &str) -> (tempfile::TempDir, Result<Vec<Manager>, ManagerError>) {
    let home = tempfile::tempdir().expect("a temporary folder");
    let places = Places::at(home.path());
    std::fs::create_dir_all(places.managers()).expect("a folder");
    std::fs::write(places.managers().join("one.so"), "").expect("writes");
    std::fs::write(places.managers().join("one-b.toml"), description).expect("writes");
    let known = known(&places);
    (home, known)
}

#[test]
fn a_description_may_share_an_object_and_set_variables() {
    let text = "name = 'one-b'\nversion = '1'\norigin = 'ours'\nobject = 'one.so'\ngroup = 'collectors'\n\
                [environment]\nONE_MODE = 'b'\nONE_LOG = '-'";
    let (home, known) = described(text);
    let one = find(&known.expect("it can be read"), "one-b").expect("it is there");
    assert_eq!(one.object, Some(home.path().join("lib/heaptoll/managers/one.so")));
    assert_eq!(one.environment, [("ONE_LOG".into(), "-".into()), ("ONE_MODE".into(), "b".into())]);
    assert_eq!(one.group, Group::Collectors);
}

/// Those of Java are entries without an object, for commands that run whole programs.
#[test]
fn a_collector_of_java_is_an_entry_that_names_the_scratch_folder() {
    let text = "name = 'jvm-x'\nversion = '1'\norigin = 'a JDK'\ngroup = 'jvm'\n\
                [environment]\nJAVA_TOOL_OPTIONS = '-Xlog:gc:file=\"{tmp}/x\"'";
    let (home, known) = described(text);
    assert!(find(&known.expect("it can be read"), "jvm-x").is_err(), "it serves no malloc");
    let all = known_with_java(&Places::at(home.path())).expect("it can be read");
    let java = find(&all, "jvm-x").expect("it is there");
    assert!(
        java.is_java() && java.object.is_none() && uses_folder(&java.environment) && is_group(&all, "jvm")
    );
    let filled: Vec<_> = in_folder(&java.environment, std::path::Path::new("/s")).collect();
    assert_eq!(filled, [("JAVA_TOOL_OPTIONS".into(), "-Xlog:gc:file=\"/s/x\"".into())]);
}

#[test]
fn added_managers_are_in_their_own_group_only_and_give_way_to_those_that_are_installed() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let added = home.path().join("added");
    std::fs::create_dir_all(&added).expect("a folder");
    for name in ["fine", "glibc"] {
        std::fs::write(added.join(format!("{name}.so")), "").expect("writes");
        let text = format!("name = '{name}'\nversion = '1'\norigin = 'o'\ngroup = 'modern'");
        std::fs::write(added.join(format!("{name}.toml")), text).expect("writes");
    }
    let known = known::known_with(&Places::at(home.path()), &added).expect("it can be read");
    let fine = find(&known, "fine").expect("it is there");
    assert_eq!((fine.kind, fine.group), (ManagerSource::Added, Group::Added));
    assert_eq!(find(&known, "glibc").map(|one| one.kind).ok(), Some(ManagerSource::Glibc));
    let names = |words: &[&str]| -> Vec<String> {
        let chosen = choose(&known, words.iter().copied()).expect("all are known");
        chosen.into_iter().map(|manager| manager.name).collect()
    };
    assert_eq!(names(&["added"]), ["fine"]);
    for group in ["modern", "all"] {
        assert!(!names(&[group]).contains(&"fine".to_owned()), "{group}");
    }
    assert!(default_set(&known).iter().all(|one| one.name != "fine"));
    assert!(is_group(&known, "forward/added") && !is_group(&[glibc()], "added"));
    std::fs::remove_file(added.join("fine.so")).expect("removed");
    let error = known::known_with(&Places::at(home.path()), &added).expect_err("it is refused").to_string();
    assert!(error.contains("fine.so") && error.contains("or remove the file"), "{error}");
}

#[test]
fn a_description_may_not_reach_outside_or_change_what_is_measured() {
    for (text, expected) in [
        ("object = '../one.so'", "not a file name"),
        ("object = 'two.so'", "does not exist"),
        ("object = 'one.so'\n[environment]\nLD_PRELOAD = 'x.so'", "LD_PRELOAD"),
        ("object = 'one.so'\n[environment]\nHEAPTOLL_STATS = 'x'", "HEAPTOLL_STATS"),
        ("object = 'one.so'\n[environment]\n'A=B' = 'x'", "A=B"),
    ] {
        let (_home, known) = described(&format!("name = 'b'\nversion = '1'\norigin = 'o'\n{text}"));
        let error = known.expect_err("it is refused").to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_name_finds_debians_object_where_none_is_built_here() {
    let debian = manager("debian-jemalloc", ManagerSource::Debian, Some("jemalloc"));
    let tbb = manager("debian-tbb", ManagerSource::Debian, None);
    let mut known = vec![glibc(), debian, tbb];
    let found = |known: &[Manager], word: &str| find(known, word).map(|manager| manager.name).ok();
    assert_eq!(found(&known, "jemalloc").as_deref(), Some("debian-jemalloc"));
    assert_eq!(found(&known, "tbb").as_deref(), Some("debian-tbb"));
    assert_eq!(found(&known, "quarantine=2M/jemalloc").as_deref(), Some("quarantine=2M/debian-jemalloc"));
    assert_eq!(names_of(&known, [&"jemalloc".to_owned()]), ["debian-jemalloc"]);
    known.push(manager("jemalloc", ManagerSource::Built, None));
    assert_eq!(found(&known, "jemalloc").as_deref(), Some("jemalloc"));
    assert!(stand_in(&known, "jemalloc").is_none());
}

#[test]
fn a_name_without_a_version_stands_for_the_newest() {
    let built = |name| manager(name, ManagerSource::Built, None);
    let known = [glibc(), built("mimalloc2"), built("mimalloc3")];
    let stands_for = |name| version_for(&known, name).map(|manager| manager.name.as_str());
    assert_eq!(stands_for("mimalloc"), Some("mimalloc3"));
    assert_eq!((stands_for("mimalloc3"), stands_for("glibc"), stands_for("nope")), (None, None, None));
}

#[test]
fn unknown_names_and_paths_are_distinguished() {
    let known = [glibc()];
    assert!(matches!(find(&known, "nope"), Err(ManagerError::Unknown { .. })));
    let misspelt = find(&known, "glib").expect_err("it is refused").to_string();
    assert!(misspelt.contains("no manager `glib`; did you mean `glibc`? Known"), "{misspelt}");
    assert!(matches!(find(&known, "./nope.so"), Err(ManagerError::NoFile { .. })));
    assert!(matches!(find(&known, "/tmp"), Err(ManagerError::NoFile { .. })));
    assert_eq!(find(&known, "glibc").map(|manager| manager.kind).ok(), Some(ManagerSource::Glibc));
}

#[test]
fn a_misspelt_layer_is_not_taken_for_a_missing_file() {
    let found = |word: &str| find(&[glibc()], word);
    for (word, name) in
        [("swep/glibc", "swep"), ("qarantine=2M,check=on/glibc", "qarantine"), ("modern/x", "modern")]
    {
        let error = found(word).expect_err(word).to_string();
        assert!(
            error.contains(&format!("no layer `{name}`")) && error.contains("quarantine, guard, sweep"),
            "{error}"
        );
    }
    for path in ["./mine.so", "/lib/mine.so", "../mine.so", "mine.so"] {
        assert!(!matches!(found(path), Err(ManagerError::NoLayer { .. })), "{path}");
    }
}

#[test]
fn what_comes_with_the_laboratory_is_refused_with_how_to_get_it() {
    let refused = |word: &str| choose(&[glibc()], [word]).expect_err(word).to_string();
    for word in ["jvm", "jvm-g1,heap=64M", "historic", "quarantine=1M/lea"] {
        assert!(refused(word).contains(laboratory::GET), "{}", refused(word));
    }
    let of_layer = |name: &str| ManagerError::NoLayer {
        name: name.into(),
        suggestion: String::new(),
        known: "sweep".into(),
    };
    assert!(of_layer("oracle").to_string().contains(laboratory::GET));
    for other in [refused("nope"), of_layer("swep").to_string()] {
        assert!(!other.contains(laboratory::GET), "{other}");
    }
}
