//! Notes of calls that start programs, by threads that call at the same time and by processes that die during the call.

use std::path::PathBuf;

use super::*;
use crate::layout::exec_state;

/// The files of the notes that are left when the recording ends.
fn noted_at_the_end(shared: &mut Shared) -> Vec<PathBuf> {
    shared.unregistered(true).into_iter().map(|unregistered| unregistered.path).collect()
}

#[test]
fn a_note_of_a_call_in_progress_is_not_taken_by_another_thread() {
    let (mut shared, _tap, rings, first) = fixture(Flags::default());
    let second = Worker::new();
    first.run(move || {
        let _ = rings.exec_begins(Some(c"/exec"));
    });
    second.run(move || {
        let spawn = rings.start_begins(Some(c"/spawn"));
        rings.withdraw(spawn);
        let exec = rings.exec_begins(Some(c"/fails"));
        rings.withdraw(exec);
    });
    assert_eq!(noted_at_the_end(&mut shared), [PathBuf::from("/exec")]);
}

#[test]
fn a_note_that_a_thread_could_not_withdraw_is_its_next_ones() {
    let (mut shared, _tap, rings, first) = fixture(Flags::default());
    first.run(move || {
        let _ = rings.exec_begins(Some(c"/first"));
        let _ = rings.exec_begins(Some(c"/second"));
    });
    assert_eq!(noted_at_the_end(&mut shared), [PathBuf::from("/second")]);
}

#[test]
fn an_entry_of_a_process_that_died_in_its_call_becomes_free() {
    let (mut shared, _tap, rings, first) = fixture(Flags::default());
    first.run(move || {
        let _ = rings.start_begins(Some(c"/living"));
    });
    let claimed = |pid: u32| u64::from(pid) << 8 | exec_state::CLAIMED;
    let map = std::sync::Arc::clone(&shared.map);
    let word = |index: usize| map.exec(index).state.load(Ordering::Relaxed);
    assert_eq!(word(0), claimed(std::process::id()));
    let mut child = std::process::Command::new("true").spawn().expect("it starts");
    child.wait().expect("it ends");
    map.exec(1).state.store(claimed(child.id()), Ordering::Relaxed);
    for _ in 0..100 {
        shared.unregistered(false);
    }
    assert_eq!((word(0), word(1)), (claimed(std::process::id()), exec_state::FREE));
}
