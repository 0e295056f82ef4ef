//! The cases over the C library's malloc: what they require without a collector holds there, so that a failure
//! elsewhere is the manager's.

use std::time::Duration;

use heaptoll_conformance::proof::subject::Subject;
use heaptoll_conformance::proof::verdict::Verdict;
use heaptoll_conformance::suite::in_parallel;

use super::PROGRAM;

#[test]
#[ignore = "slow: each case again; the cases and the C library decide it alone"]
fn every_case_holds_over_glibc_or_needs_a_collector() {
    let subject = Subject::glibc();
    let verdicts =
        in_parallel(&PROGRAM.cases, |case| PROGRAM.judge(&case.name, &subject, Duration::from_secs(60)));
    let mut held = 0;
    for (case, verdict) in PROGRAM.cases.iter().zip(verdicts) {
        match verdict.expect("the case can be run") {
            Verdict::Holds => held += 1,
            Verdict::NotApplicable => {}
            Verdict::Fails(how) => panic!("{}: {how}", case.name),
        }
    }
    assert!(held >= 60, "only {held} of {} cases apply", PROGRAM.cases.len());
}
