//! Made-up results of a small study, for tests; nothing of it was measured.

use std::collections::BTreeMap;

use crate::budget::Planned;
use crate::definition::{Estimand, Study};
use crate::effect::Effect;
use crate::exhibit::{Body, Ours, Pair, Shown};
use crate::figures::{Absent, Figures};
use crate::results::{Ended, PaperResult, Ran, Results};
use crate::verdict::{Answer, Tested, Verdict};
use heaptoll_facts::Basis;

const STUDY: &str = r#"
name = "made"
title = "Made up 1992: what nothing costs"
source = "No author, nowhere"
about = ["A study for tests."]

[names.managers]
sunos = "cartesian"

[[step]]
id = "made-time"
kind = "run"
programs = ["cfrac", "gawk"]
managers = ["cartesian", "kingsley"]

[[exhibit]]
id = "table3"
title = "Table 3: CPU time"
form = "table"
step = "made-time"
metric = "cpu_s"
unit = "s"
relative_to = "cartesian"

[[claim]]
id = "dearer"
place = "§5.1"
words = "Everything costs more"
myth = true
exhibits = ["table3"]

[[claim.test]]
words = "kingsley needs more time"
rule = "mean"
above = 1.0
quantity = { step = "made-time", metric = "cpu_s", of = { managers = ["kingsley"] }, over = { managers = ["cartesian"] } }
"#;

/// The results.
pub fn results() -> Results {
    let study = Study::parse(STUDY, "made.toml").expect("the study is sound");
    let effect = Effect {
        words: "kingsley over cartesian, mean of 2 programs".into(),
        value: 1.04,
        low: 0.95,
        high: 1.14,
        basis: Basis::Pairs(6),
    };
    let tested = Tested {
        words: study.claims[0].tests[0].words.clone(),
        answer: Answer::Undecided,
        reason: "1.04 (0.95 to 1.14)".into(),
        detectable: Some(1.09),
        effects: vec![effect],
        other_estimand: None,
    };
    let verdict = Verdict {
        study: study.name.clone(),
        claim: study.claims[0].id.clone(),
        place: study.claims[0].place.clone(),
        words: study.claims[0].words.clone(),
        myth: true,
        ours: false,
        estimand: Estimand::default(),
        other_estimand: None,
        answer: Answer::Undecided,
        reason: tested.reason.clone(),
        exhibits: vec!["table3".into()],
        tests: vec![tested],
    };
    let value = |value, ratio| Pair {
        published: vec!["88.1".into()],
        ours: Some(Ours { value, interval: Some((0.9 * value, 1.1 * value)), ratio, exact: false }),
        missing: None,
    };
    let rows = ["cfrac", "gawk"].map(|program| {
        (program.to_owned(), vec![value(0.25, None), value(0.26, Some((1.04, Some((0.95, 1.14)))))])
    });
    let shown = Shown {
        id: "table3".into(),
        title: study.exhibits[0].title.clone(),
        text: vec![],
        commands: vec!["heaptoll run cfrac gawk".into()],
        body: Body::Table {
            columns: ["Program", "cartesian", "kingsley"].map(String::from).into(),
            rows: rows.into(),
        },
        notes: vec![],
    };
    let planned = Planned {
        study: study.name.clone(),
        step: "made-time".into(),
        programs: 2,
        of_programs: 2,
        managers: 2,
        of_managers: 2,
        repetitions: 6,
        of_repetitions: 10,
        size: "quick".into(),
        seconds: 3.0,
        deadline_s: 9.0,
    };
    let step = Ran {
        planned,
        command: "heaptoll run cfrac gawk".into(),
        seconds: 4.0,
        ending: Ended::Cut,
        commit: None,
        precision: "6 of 10 repetitions: intervals 1.6 times as wide".into(),
        warnings: vec![],
        originals: BTreeMap::new(),
        reserves: BTreeMap::new(),
    };
    Results {
        begun_unix_s: 1_795_320_000.0,
        seconds: 4.0,
        budget_s: None,
        heaptoll_version: "0.1.0".into(),
        command: "heaptoll lab study made.toml".into(),
        facts: vec![("machine".into(), "two cores".into())],
        complete: false,
        warnings: vec![],
        papers: vec![PaperResult { study, verdicts: vec![verdict], exhibits: vec![shown] }],
        steps: vec![step],
        figures: Figures::default(),
        absent: Absent::default(),
    }
}
