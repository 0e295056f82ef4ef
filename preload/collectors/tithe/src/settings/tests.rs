//! Tests of the settings.

extern crate std;

use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, vec};

use proptest::prelude::*;

use super::*;

mod manual;

fn read(entries: &[&str]) -> Result<Settings, SettingError> {
    Settings::read(entries.iter().map(|entry| entry.as_bytes()))
}

fn good(entry: &str) -> Settings {
    read(&[entry]).unwrap_or_else(|wrong| panic!("{entry}: {}", text(&wrong)))
}

fn text(wrong: &SettingError) -> String {
    let message = wrong.message();
    std::str::from_utf8(message.as_bytes()).expect("a message is text").to_string()
}

#[test]
fn nothing_set_means_the_defaults() {
    assert_eq!(read(&[]), Ok(Settings::new()));
    assert_eq!(
        read(&["PATH=/bin", "TITHEX=1", "TITHE_MODE", "", "=", "MY_TITHE_MODE=x"]),
        Ok(Settings::new())
    );
}

#[test]
fn each_variable_is_understood() {
    let new = Settings::new();
    assert_eq!(good("TITHE_MODE=hybrid"), new);
    let collect = (mode::COLLECT_HEADROOM, mode::COLLECT_MIN_HEADROOM);
    assert_eq!(
        good("TITHE_MODE=collect"),
        Settings {
            mode: Mode::Collect,
            headroom: collect.0,
            min_headroom: collect.1,
            cost_headroom: mode::COLLECT_COST_HEADROOM,
            generations: true,
            ..new
        }
    );
    assert_eq!(good("TITHE_MODE=explicit"), Settings { mode: Mode::Explicit, ..new });
    assert_eq!(good("TITHE_POLICY=proportional"), new);
    assert_eq!(good("TITHE_POLICY=zorn1992"), Settings { rule: Rule::Zorn1992, ..new });
    assert_eq!(good("TITHE_POLICY=membalancer"), Settings { rule: Rule::MemBalancer, ..new });
    assert_eq!(
        read(&["TITHE_POLICY=fixed", "TITHE_MAX_HEAP=64M"]),
        Ok(Settings { rule: Rule::Fixed, max_heap: Some(64 << 20), ..new })
    );
    assert_eq!(good("TITHE_HEADROOM=1"), Settings { headroom: 1, adaptive: false, ..new });
    assert_eq!(good("TITHE_HEADROOM=10000"), Settings { headroom: 10_000, adaptive: false, ..new });
    assert_eq!(good("TITHE_MIN_HEADROOM=65536"), Settings { min_headroom: 65536, ..new });
    assert_eq!(good("TITHE_MIN_HEADROOM=64k"), Settings { min_headroom: 65536, ..new });
    assert_eq!(good("TITHE_MAX_HEAP=3G"), Settings { max_heap: Some(3 << 30), ..new });
    assert_eq!(good("TITHE_MAX_HEAP=64T"), Settings { max_heap: Some(64 << 40), ..new });
    assert_eq!(good("TITHE_EVERY=1"), Settings { every: Some(1), ..new });
    assert_eq!(good("TITHE_EVERY=64K"), Settings { every: Some(64 << 10), ..new });
    assert_eq!(good("TITHE_RECLAIM=1"), new);
    assert_eq!(good("TITHE_RECLAIM=4294967296"), Settings { reclaim: 1 << 32, ..new });
    assert_eq!(good("TITHE_SWEEP=lazy"), new);
    assert_eq!(good("TITHE_SWEEP=eager"), Settings { eager: true, ..new });
    assert_eq!(good("TITHE_MARKERS=64"), Settings { markers: Some(64), ..new });
    assert_eq!(good("TITHE_WHY=0x7ffff0A0"), Settings { why: Some(0x7fff_f0a0), ..new });
    assert_eq!(good("TITHE_SIGNAL=rtmax"), Settings { signal: Some(libc::SIGRTMAX()), ..new });
    assert_eq!(good("TITHE_SIGNAL=rtmax-5"), Settings { signal: Some(libc::SIGRTMAX() - 5), ..new });
    assert_eq!(good("TITHE_SIGNAL=30"), Settings { signal: Some(30), ..new });
    assert_eq!(good("TITHE_PATIENCE=50"), Settings { patience_ms: 50, ..new });
    assert_eq!(good("TITHE_ABORT=on"), Settings { abort: true, ..new });
    assert_eq!(good("TITHE_ABORT=off"), new);
    assert_eq!(good("TITHE_POISON=1"), Settings { poison: true, ..new });
    assert_eq!(good("TITHE_POISON=0"), new);
    assert_eq!(good("TITHE_GENERATIONS=on"), Settings { generations: true, ..new });
    assert_eq!(good("TITHE_GENERATIONS=off"), new);
    assert_eq!(good("TITHE_PAUSE=5ms"), Settings { pause_ns: Some(5_000_000), ..new });
    assert_eq!(good("TITHE_PAUSE=20"), Settings { pause_ns: Some(20_000_000), ..new });
    assert_eq!(good("TITHE_CHECK=young"), Settings { generations: true, check_young: true, ..new });
    assert!(good("TITHE_LOG=-").log.is_some());
}

#[test]
fn what_is_set_outweighs_the_modes_defaults_in_any_order() {
    for order in [["TITHE_HEADROOM=33", "TITHE_MODE=collect"], ["TITHE_MODE=collect", "TITHE_HEADROOM=33"]] {
        let settings = read(&order).expect("both are good");
        let expected = (33, mode::COLLECT_MIN_HEADROOM, 0);
        assert_eq!((settings.headroom, settings.min_headroom, settings.cost_headroom), expected);
    }
    let settings = read(&["TITHE_MODE=collect", "TITHE_MIN_HEADROOM=64K"]).expect("both are good");
    assert_eq!((settings.min_headroom, settings.cost_headroom), (64 << 10, 0), "what is set is not raised");
}

#[test]
fn mode_collect_has_generations_unless_it_is_set_when_to_collect() {
    let on = |entries: &[&str]| read(entries).expect("all are good").generations;
    assert!(on(&["TITHE_MODE=collect"]) && on(&["TITHE_MODE=collect", "TITHE_MAX_HEAP=1G"]));
    for other in ["TITHE_EVERY=1M", "TITHE_HEAP=32M", "TITHE_POLICY=membalancer", "TITHE_GENERATIONS=off"] {
        assert!(!on(&["TITHE_MODE=collect", other]), "{other}");
    }
    assert!(!on(&["TITHE_MODE=hybrid"]) && !on(&["TITHE_MODE=explicit"]));
}

#[test]
fn short_pauses_exclude_what_needs_whole_collections() {
    let settings = read(&["TITHE_MODE=collect", "TITHE_PAUSE=5ms"]).expect("both are good");
    assert!(!settings.generations);
    for other in ["TITHE_EVERY=1M", "TITHE_HEAP=32M", "TITHE_RECLAIM=2", "TITHE_SWEEP=eager"] {
        let wrong = read(&["TITHE_MODE=collect", "TITHE_PAUSE=5ms", other]).expect_err(other);
        assert_eq!(wrong.variable(), b"TITHE_PAUSE", "{other}");
    }
    assert!(read(&["TITHE_MODE=explicit", "TITHE_PAUSE=5ms"]).is_err());
    assert!(read(&["TITHE_MODE=collect", "TITHE_PAUSE=5ms", "TITHE_GENERATIONS=off"]).is_ok());
    let both =
        read(&["TITHE_MODE=collect", "TITHE_PAUSE=5ms", "TITHE_GENERATIONS=on"]).expect("all are good");
    assert!(both.generations && both.pause_ns == Some(5_000_000));
}

#[test]
fn mode_guard_has_whole_collections_and_clear_blocks() {
    let new = Settings::new();
    let (headroom, min_headroom) = Mode::Guard.headroom();
    assert_eq!(good("TITHE_MODE=guard"), Settings { mode: Mode::Guard, headroom, min_headroom, ..new });
    for other in ["TITHE_GENERATIONS=on", "TITHE_PAUSE=5ms", "TITHE_CHECK=young", "TITHE_POISON=1"] {
        let wrong = read(&["TITHE_MODE=guard", other]).expect_err(other);
        assert_eq!(wrong.variable(), other.split('=').next().expect("a name").as_bytes());
        assert!(text(&wrong).contains("TITHE_MODE is guard"), "{other}");
    }
    for same in ["TITHE_GENERATIONS=off", "TITHE_POISON=0"] {
        assert!(read(&["TITHE_MODE=guard", same]).is_ok(), "{same}");
    }
    let guard = |entry: &str| read(&["TITHE_MODE=guard", entry]).expect("both are good").guard;
    let new = GuardSettings::new();
    assert_eq!(guard("TITHE_WAITING=1M"), GuardSettings { waiting: Some(1 << 20), ..new });
    for at_bound in [AtBound::Collect, AtBound::Warn, AtBound::Release] {
        let entry = format!("TITHE_AT_BOUND={}", at_bound.as_str());
        let settings = read(&["TITHE_MODE=guard", "TITHE_WAITING=1M", &entry]).expect("all are good");
        assert_eq!(settings.guard, GuardSettings { at_bound, waiting: Some(1 << 20), ..new });
    }
    assert_eq!(guard("TITHE_CLEAR=off"), GuardSettings { clear: false, ..new });
    assert_eq!(guard("TITHE_FAULT=on"), GuardSettings { fault: true, ..new });
    assert_eq!(guard("TITHE_REPORT=stderr"), GuardSettings { to_stderr: true, ..new });
}

#[test]
fn what_has_no_effect_without_another_setting_is_refused() {
    let guard = "TITHE_MODE=guard";
    let cases = [
        (["TITHE_MODE=hybrid", "TITHE_WAITING=1M"], guard),
        (["TITHE_MODE=collect", "TITHE_CLEAR=off"], guard),
        (["TITHE_MODE=explicit", "TITHE_REPORT=stderr"], guard),
        ([guard, "TITHE_AT_BOUND=release"], "TITHE_WAITING"),
        (["TITHE_CLEAR=off", "TITHE_FAULT=on"], guard),
    ];
    for (entries, needed) in cases {
        let wrong = read(&entries).expect_err(entries[1]);
        assert_eq!(wrong.variable(), entries[1].split('=').next().expect("a name").as_bytes());
        assert!(
            text(&wrong).contains(&format!("which needs {needed}; allowed: leave it out")),
            "{entries:?}"
        );
    }
    let wrong = read(&[guard, "TITHE_FAULT=on", "TITHE_CLEAR=off"]).expect_err("nothing is protected");
    assert!(text(&wrong).contains("which needs TITHE_CLEAR=on"));
    assert!(read(&[guard, "TITHE_FAULT=off", "TITHE_CLEAR=off"]).is_ok());
}

#[test]
fn each_wrong_value_is_refused_with_name_value_and_what_is_allowed() {
    let values: [(&str, &[&str]); 24] = [
        ("TITHE_MODE", &["", "Collect", "gc", "hybrid "]),
        ("TITHE_POLICY", &["", "zorn", "FIXED"]),
        ("TITHE_HEADROOM", &["", "0", "10001", "-5", "+5", "60%", "1.5", "99999999999999999999999"]),
        ("TITHE_MIN_HEADROOM", &["", "K", "63K", "65T", "2 M", "2MB", "-2M", "0x10000", "99999999999999G"]),
        ("TITHE_MAX_HEAP", &["", "0", "255K", "M", "65T", "1e9", "18446744073709551615"]),
        ("TITHE_EVERY", &["", "0", "0K", "65T", "1e9", "-1"]),
        ("TITHE_RECLAIM", &["", "0", "4294967297", "2K", "+2"]),
        ("TITHE_HEAP", &["", "0", "16383", "15K", "65T", "all"]),
        ("TITHE_SWEEP", &["", "Eager", "1", "both"]),
        ("TITHE_GENERATIONS", &["", "1", "yes", "young"]),
        ("TITHE_PAUSE", &["", "0", "60001", "5s", "ms", "5 ms", "-1"]),
        ("TITHE_CHECK", &["", "on", "Young", "full"]),
        ("TITHE_MARKERS", &["", "0", "65", "two", "-1"]),
        ("TITHE_LOG", &["", "/", "/nonexistent/tithe.log", "/dev/null/tithe.log"]),
        ("TITHE_WHY", &["", "0x", "0x0", "1234", "7fff0000", "0xg", "0x11112222333344445", "0x+1"]),
        (
            "TITHE_SIGNAL",
            &["", "0", "65", "9", "19", "11", "32", "33", "rtmax-31", "rtmax+1", "rtmax5", "SIGUSR1"],
        ),
        ("TITHE_PATIENCE", &["", "0", "600001", "2s"]),
        ("TITHE_ABORT", &["", "1", "yes", "ON"]),
        ("TITHE_WAITING", &["", "0", "1023K", "65T", "all"]),
        ("TITHE_AT_BOUND", &["", "Warn", "abort"]),
        ("TITHE_CLEAR", &["", "1", "yes"]),
        ("TITHE_FAULT", &["", "1", "ON"]),
        ("TITHE_REPORT", &["", "on", "stdout"]),
        ("TITHE_POISON", &["", "2", "yes", "true"]),
    ];
    assert_eq!(values.map(|(name, _)| name), VARIABLES.each_ref().map(|known| known.name));
    for ((name, wrong), known) in values.iter().zip(&VARIABLES) {
        let allowed = known.allowed;
        for value in *wrong {
            let entry = format!("{name}={value}");
            let Err(wrong) = read(&["A=1", &entry, "B=2"]) else { panic!("{entry} was taken") };
            assert_eq!((wrong.variable(), wrong.value()), (name.as_bytes(), value.as_bytes()));
            let message = text(&wrong);
            let start = format!("heaptoll: tithe: {name} is `{value}`; allowed: {allowed}");
            assert!(message.starts_with(&start), "{message}");
        }
    }
}

#[test]
fn a_log_that_cannot_be_opened_gives_the_reason() {
    let message = |value: &str| text(&read(&[&format!("TITHE_LOG={value}")]).expect_err(value));
    assert!(message("/").ends_with("; this one: it is a directory"));
    assert!(message("/nonexistent/log").ends_with("; this one: no such file or directory"));
    assert!(message("/dev/null/log").ends_with("; this one: a part of its path is not a directory"));
    assert!(message(&"a/".repeat(4000)).ends_with("; this one: its name is too long"));
}

#[test]
fn a_limit_alone_means_that_a_full_heap_collects() {
    let (heap, new) = (Some(16 << 10), Settings::new());
    let full = Settings { heap, rule: Rule::Fixed, ..new };
    assert_eq!(good("TITHE_HEAP=16384"), full);
    assert_eq!(read(&["TITHE_POLICY=fixed", "TITHE_HEAP=16K"]), Ok(full));
    let entries = ["TITHE_HEAP=16K", "TITHE_POLICY=proportional"];
    for order in [entries, [entries[1], entries[0]]] {
        assert_eq!(read(&order), Ok(Settings { heap, ..new }), "unless something else is wanted");
    }
}

#[test]
fn what_concerns_collections_is_refused_where_there_are_none() {
    for entry in ["TITHE_EVERY=64K", "TITHE_RECLAIM=4", "TITHE_SWEEP=eager"] {
        for order in [[entry, "TITHE_MODE=explicit"], ["TITHE_MODE=explicit", entry]] {
            let message = text(&read(&order).expect_err(entry));
            assert!(message.contains(", but nothing is ever collected: TITHE_MODE is explicit"), "{message}");
            assert!(message.contains(entry.split('=').next().expect("a name")), "{message}");
        }
    }
    let limited = read(&["TITHE_HEAP=1M", "TITHE_MODE=explicit"]).map(|settings| settings.heap);
    assert_eq!(limited, Ok(Some(1 << 20)), "a limit holds without collections too");
}

#[test]
fn fixed_needs_a_maximum() {
    let wrong = read(&["TITHE_POLICY=fixed", "TITHE_HEADROOM=50"]).expect_err("no maximum");
    let message = text(&wrong);
    assert!(
        message
            .contains("TITHE_POLICY is `fixed`, which needs TITHE_HEAP or TITHE_MAX_HEAP: bytes from 256K"),
        "{message}"
    );
}

#[test]
fn unknown_variables_are_refused_with_the_nearest_known_one() {
    for (name, nearest) in [
        ("TITHE_MOED", "TITHE_MODE"),
        ("TITHE_mode", "TITHE_MODE"),
        ("TITHE_MIN_HEADROM", "TITHE_MIN_HEADROOM"),
        ("TITHE_MINHEADROOM", "TITHE_MIN_HEADROOM"),
        ("TITHE_HEAD_ROOM", "TITHE_HEADROOM"),
        ("TITHE_MAXHEAP", "TITHE_MAX_HEAP"),
        ("TITHE_MARKER", "TITHE_MARKERS"),
        ("TITHE_LOGS", "TITHE_LOG"),
        ("TITHE_POLICE", "TITHE_POLICY"),
        ("TITHE_POISSON", "TITHE_POISON"),
    ] {
        let message = text(&read(&[&format!("{name}=1")]).expect_err(name));
        let expected = format!("{name} is `1`, but there is no such variable; did you mean {nearest}?");
        assert!(message.ends_with(&expected), "{message}");
    }
}

#[test]
fn a_name_like_none_gets_the_whole_list() {
    for name in ["TITHE_NURSERY_LENGTH", "TITHE_XYZXYZXYZ"] {
        let message = text(&read(&[&format!("{name}=1")]).expect_err(name));
        for known in &VARIABLES {
            assert!(message.contains(known.name), "{message}");
        }
    }
}

#[test]
fn the_first_of_two_entries_holds_as_for_getenv() {
    assert_eq!(read(&["TITHE_MARKERS=3", "TITHE_MARKERS=5", "TITHE_MARKERS=x"]), Ok(good("TITHE_MARKERS=3")));
}

#[test]
fn no_message_is_cut_however_long_the_value() {
    let long = "y".repeat(5000);
    let mut entries: Vec<String> = VARIABLES.iter().map(|known| format!("{}={long}", known.name)).collect();
    entries.push(format!("TITHE_{}={long}", "X".repeat(300)));
    for entry in &entries {
        let message = text(&read(&[entry]).expect_err("a wrong value"));
        // A message has 511 bytes at most.
        assert!(message.len() < 511, "{} bytes: {message}", message.len());
        assert!(message.contains("yyy...`"), "{message}");
    }
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let wrong = Settings::read([b"TITHE_MODE=\x1b[2J\n\xff\xc3\xa9".as_slice()]).expect_err("no mode");
    assert!(text(&wrong).contains("TITHE_MODE is `?[2J??é`; allowed"), "{}", text(&wrong));
}

#[test]
fn the_environment_of_this_process_is_read() {
    // A child with a variable of its own: all tests share this process's environment.
    let program = std::env::current_exe().expect("this program");
    let run = |value: &str| {
        std::process::Command::new(&program)
            .args(["--exact", "settings::tests::as_a_child", "--ignored", "--nocapture"])
            .env("TITHE_MARKERS", value)
            .output()
            .expect("a child")
    };
    let output = |value| String::from_utf8_lossy(&run(value).stdout).to_string();
    assert!(output("17").contains("markers: Some(17)"), "{}", output("17"));
    assert!(output("170").contains("heaptoll: tithe: TITHE_MARKERS is `170`"), "{}", output("170"));
}

#[test]
#[ignore = "run by the_environment_of_this_process_is_read"]
fn as_a_child() {
    match Settings::from_environment() {
        Ok(settings) => std::println!("{settings:?}"),
        Err(wrong) => std::println!("{}", text(&wrong)),
    }
}

#[test]
fn distances_are_levenshteins() {
    let pairs = [("", "", 0), ("a", "", 1), ("", "abc", 3), ("kitten", "sitting", 3), ("MODE", "mode", 0)];
    for (one, other, expected) in pairs {
        assert_eq!(distance(one.as_bytes(), other.as_bytes()), expected, "{one} {other}");
    }
}

proptest! {
    #[test]
    fn no_environment_makes_it_panic(
        entries in proptest::collection::vec(
            (0..VARIABLES.len() + 1, proptest::collection::vec(1u8..=255, 0..40)),
            0..20,
        ),
    ) {
        let entries: Vec<Vec<u8>> = entries
            .into_iter()
            // Not the log: files with such names would be created.
            .map(|(index, value)| match VARIABLES.get(index) {
                Some(known) if known.name == "TITHE_LOG" => vec![],
                Some(known) => [known.name.as_bytes(), b"=", &value].concat(),
                None => [b"TITHE_".as_slice(), &value].concat(),
            })
            .filter(|entry| !entry.starts_with(b"TITHE_LOG="))
            .collect();
        match Settings::read(entries.iter().map(Vec::as_slice)) {
            Ok(settings) => prop_assert!(settings.headroom >= 1 && settings.min_headroom >= crate::policy::LEAST),
            Err(wrong) => prop_assert!(text(&wrong).starts_with("heaptoll: tithe: TITHE_")),
        }
    }

    #[test]
    fn sizes_have_the_value_written(number in 1usize..1024, unit in 0u32..5) {
        let suffix = ["", "K", "M", "G", "T"][unit as usize];
        let bytes = number << (10 * unit);
        let expected = (64 << 10..=64 << 40).contains(&bytes).then_some(bytes);
        let read = read(&[&format!("TITHE_MIN_HEADROOM={number}{suffix}")]);
        prop_assert_eq!(read.ok().map(|settings| settings.min_headroom), expected);
    }
}
