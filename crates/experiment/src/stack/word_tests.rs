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
        ("quarantine=2X/glibc", "`2X` is no size"),
        ("quarantine=0/glibc", "`0` is no size"),
        ("quarantine=600G/glibc", "512G is the most"),
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
