//! How runs of the probe are judged; fitness of real objects is tested in `tests/fitness.rs`.

use heaptoll_launcher::Usage;

use super::*;

fn run(output: &str) -> Finished {
    Finished {
        ended: Ended::Exit(0),
        usage: Usage::default(),
        output_bytes: output.len() as u64,
        digest: String::new(),
        output_head: output.into(),
        error_tail: String::new(),
    }
}

#[test]
fn a_step_is_moved_only_when_all_native_runs_agree_on_it() {
    let native = [run("small 1\nmany 2\nlarge 3\n"), run("small 1\nmany 5\nlarge 3\n")];
    let under = |output: &str| moved(&native, &steps(&run(output))).into_iter().collect::<Vec<_>>();
    assert!(under("small 1\nmany 7\nlarge 3\n").is_empty());
    assert_eq!(under("small 1\nmany 2\nlarge 4\n"), ["large"]);
    // A step that was not reached.
    assert_eq!(under("small 1\n"), ["large"]);
    assert!(moved(&[], &steps(&run("small 1\n"))).is_empty());
}

#[test]
fn refusals_name_the_call_and_what_follows() {
    let rseq = u32::try_from(libc::SYS_rseq).expect("a number");
    let text = refusals(&BTreeMap::from([((rseq, libc::ENOSYS.unsigned_abs()), 2)]));
    assert!(text.contains("rseq failed 2 times") && text.contains("caches by CPU"), "{text}");
}

#[test]
fn another_end_is_reported_with_both_ends_and_the_output() {
    let native = run("");
    let mut traced = run("");
    traced.ended = Ended::Signal(6);
    traced.error_tail = "no memory\n".into();
    let text = other_end(&native, &traced, &["unused".into()]);
    assert_eq!(text, "the probe is killed by signal 6 instead of ends with status 0: no memory");
}
