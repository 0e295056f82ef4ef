//! `heaptoll run --vary`: one setting at several values, next to the same manager without it.

use crate::fixture::{Fixture, rows_of};

/// Takes, writes and frees 100 blocks of 64 KiB one after another: one is live at a time.
const ONE_AT_A_TIME: &str = r#"
int main(void) {
    for (int i = 0; i < 100; i++) {
        char *block = malloc(65536);
        memset(block, i, 65536);
        if (block[i] != (char)i) return 1;
        free(block);
    }
    puts("done");
    return 0;
}
"#;

#[test]
fn a_setting_has_a_stack_a_value_and_a_curve_over_the_manager_without_it() {
    let fixture = Fixture::new();
    let program = fixture.program("queue", ONE_AT_A_TIME);
    let (db, page) = (fixture.at("e.db"), fixture.at("page.html"));
    let words = ["run", "--vary", "quarantine=64K..200K,evict=random", "-m", "glibc", "-n", "2", "--db", &db];
    let output = fixture.heaptoll(&[&words[..], &["--html", &page, "--", &program]].concat()).exits(0);
    let output =
        output.shows(&["Over values of quarantine", "glibc: too few repetitions to claim a difference"]);
    assert!(output.out.starts_with("queue under 1 memory manager"), "{}", output.out);
    assert!(std::fs::read_to_string(&page).expect("a page").contains("Peak memory: queue"));

    let json = fixture.json(&db);
    assert_eq!(json["experiment"]["settings"]["pairing"], "interleaved", "lockstep makes memory dearer");
    let [curve] = &json["comparison"]["varied"].as_array().expect("curves")[..] else { panic!("{json:#}") };
    assert_eq!([&curve["program"], &curve["manager"], &curve["setting"]], ["queue", "glibc", "quarantine"]);
    let points = curve["points"].as_array().expect("points");
    let values: Vec<_> = points.iter().map(|point| (point["at"].as_u64(), point["value"].as_str())).collect();
    assert_eq!(
        values,
        [(Some(65536), Some("64K")), (Some(131_072), Some("128K")), (Some(204_800), Some("200K"))]
    );
    assert!(points.iter().all(|point| point["good"] == 2), "{points:#?}");

    // The rows are an experiment's, as others are.
    let again = fixture.heaptoll(&["report", &db]).exits(0);
    assert_eq!(
        again.out.split("Over values of quarantine").nth(1),
        output.out.split("Over values of quarantine").nth(1)
    );
    fixture.heaptoll(&["run", "--resume", &db, "-n", "3"]).exits(0).shows(&["Over values of quarantine"]);
    assert_eq!(rows_of(&fixture.json(&db), "quarantine=128K,evict=random/glibc", "timed").len(), 3);
}

#[test]
fn an_option_varies_where_a_manager_takes_it_and_means_are_over_programs() {
    let fixture = Fixture::new();
    let words = ["run", "--vary", "every=256K,1M", "-m", "tithe-collect", "-n", "2", "--warmup", "0"];
    let db = fixture.at("e.db");
    let programs = ["-m", "glibc", "--size", "tiny", "-p", "cfrac", "-p", "route", "--db", &db];
    let output = fixture.heaptoll(&[&words[..], &programs].concat()).exits(0);
    let output = output.shows(&["overall: over values of every"]);
    output.complains(&["--vary does not apply to glibc: `glibc` has no option `every`"]);
    let json = fixture.json(&db);
    let curves = json["comparison"]["varied"].as_array().expect("curves");
    let programs: Vec<_> = curves.iter().map(|curve| curve["program"].as_str()).collect();
    assert_eq!(programs, [Some("cfrac"), Some("route"), None]);
    assert!(curves.iter().all(|curve| curve["manager"] == "tithe-collect"));
}

#[test]
fn what_cannot_vary_is_refused_with_what_to_give() {
    let fixture = Fixture::new();
    let refused = |vary: &str, text: &str| {
        let words = ["run", "--vary", vary, "-m", "glibc", "--", "true"];
        fixture.heaptoll(&words).exits(2).complains(&[text]);
    };
    refused("quarantine=2M..64K", "give the smaller value first");
    refused("quarantine=2M", "give a range or a list");
    refused("sweep,free=ignore..honour", "`ignore` is not a whole number or a size");
    refused("arenas=0,2", "arenas=0 is not possible");
    refused("arenas=-1,2", "arenas=-1 is not possible: give a whole number from 1 to 65536");
    let many: Vec<String> = (1..=65).map(|value| value.to_string()).collect();
    refused(&format!("arenas={}", many.join(",")), "give at most 64");
    refused("forward=1,2", "it takes no value of its own");
    refused("every=64K,1M", "`glibc` has no option `every`");
    let both = ["run", "--vary", "arenas=1,2", "--heaps", "-m", "glibc", "--", "true"];
    fixture.heaptoll(&both).exits(2).complains(&["--heaps"]);
}
