//! Stacks as words: what is read, what is refused and with which message.

use super::*;

fn names(word: &str) -> (Vec<String>, String) {
    let (layers, rest) = layers(word).expect("layers");
    (layers.into_iter().map(|layer| layer.word).collect(), rest.into())
}

#[test]
fn layers_are_read_from_the_program_inwards() {
    assert_eq!(names("glibc"), (vec![], "glibc".into()));
    assert_eq!(names("quarantine=2048K/mimalloc3"), (vec!["quarantine=2M".into()], "mimalloc3".into()));
    assert_eq!(
        names("record/sweep,every=64K,free=honour/./mine.so"),
        (vec!["record".into(), "sweep,every=64K,free=honour".into()], "./mine.so".into())
    );
    assert_eq!(names("./quarantine/mine.so"), (vec![], "./quarantine/mine.so".into()));
}

#[test]
fn sizes_travel_in_bytes() {
    let (layers, _) = layers("quarantine=1B,check=on/glibc").expect("a layer");
    assert_eq!(layers[0].settings, [("size".into(), "1".into()), ("check".into(), "on".into())]);
}

#[test]
fn what_a_layer_does_not_know_is_refused_with_what_it_knows() {
    for (word, expected) in [
        ("quarantine/glibc", "quarantine=2M"),
        ("quarantine=2X/glibc", "`2X` is not a size"),
        ("quarantine=0/glibc", "`0` is not a size"),
        ("quarantine=600G/glibc", "the most is 512G"),
        ("quarantine=2M", "no manager after it"),
        ("sweep/", "no manager after it"),
        ("sweep=2M/glibc", "no value of its own"),
        ("sweep,period=2M/glibc", "it has every, heap"),
        ("sweep,every=,heap=1M/glibc", "give bytes, 1B or more"),
        ("sweep,free=maybe/glibc", "give ignore or honour"),
        ("sweep,every=1M,every=2M/glibc", "set twice"),
        ("forward,x=1/glibc", "it has none"),
    ] {
        let error = layers(word).map(|_| ()).expect_err(word).to_string();
        assert!(error.contains(expected), "{word}: {error}");
    }
}

#[test]
fn the_path_of_an_oracles_file_may_contain_slashes() {
    let (oracle, rest) = layers("oracle=last-use,file=/a/b.oracle,check=pages/./mine.so").expect("an oracle");
    let value = |name: &str| oracle[0].setting(name);
    assert_eq!(
        (value("point"), value("file"), value("check")),
        (Some("last-use"), Some("/a/b.oracle"), Some("pages"))
    );
    assert_eq!(rest, "./mine.so");
    let (oracle, rest) = layers("oracle=delay,bytes=64K,file=/a/{program}.oracle/glibc").expect("an oracle");
    assert_eq!((oracle[0].word.as_str(), rest), ("oracle=delay,bytes=64K,file=/a/{program}.oracle", "glibc"));
    assert_eq!(names("oracle=record/glibc"), (vec!["oracle=record".into()], "glibc".into()));
}

#[test]
fn an_oracle_without_a_file_has_the_recording_of_the_program() {
    let (oracle, rest) = layers("oracle=never/./a.oracle/mine.so").expect("an oracle");
    assert_eq!((oracle[0].word.as_str(), rest), ("oracle=never", "./a.oracle/mine.so"));
    let file = oracle[0].setting("file");
    assert!(file.is_some_and(|file| file.ends_with("heaptoll/oracles/{program}.oracle")), "{file:?}");
}

#[test]
fn an_oracle_without_what_its_point_needs_is_refused() {
    for (word, expected) in [
        ("oracle/glibc", "it needs a point"),
        ("oracle=soon,file=/a.oracle/glibc", "it needs a point"),
        ("oracle=collect,file=/a.oracle/glibc", "it needs bytes"),
        ("oracle=never,bytes=1,file=/a.oracle/glibc", "only delay and collect"),
        ("oracle=record,file=/a.oracle/glibc", "recorded without a file"),
        ("oracle=free,file=a.txt/glibc", "must end with .oracle"),
    ] {
        let error = layers(word).map(|_| ()).expect_err(word).to_string();
        assert!(error.contains(expected), "{word}: {error}");
    }
}
