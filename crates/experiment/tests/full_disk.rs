//! A disk that becomes full while rows are appended: a typed error, and every row before it stays.
//!
//! A process of its own, since a limit on file sizes holds for a whole process.

use heaptoll_experiment::experiment::{Experiment, Protocol};
use heaptoll_experiment::observation::{MemoryTrack, Observation};
use heaptoll_experiment::store::{Store, StoreError};

/// Sets the soft limit on file sizes of this process.
fn limit_file_size(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: both calls take plain values, `limit` outlives its call, and no other thread of this test runs yet.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &limit), 0);
    }
}

fn experiment() -> Experiment {
    Experiment::begun(Protocol::default(), "glibc".into(), vec![])
}

fn row(order: u32) -> Observation {
    Observation { order, stderr_tail: "x".repeat(1000), ..Observation::default() }
}

#[test]
fn rows_before_the_disk_was_full_are_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("e.db");
    let mut store = Store::create(&path, &experiment()).expect("creates");
    let length = std::fs::metadata(&path).expect("is there").len();
    // The limit holds for the harness too, whose own output may be a long file: so it is lifted before anything is
    // printed.
    limit_file_size(length + 64 * 1024);
    let mut kept = 0;
    let of_row = loop {
        match store.append(&row(kept)) {
            Ok(()) => kept += 1,
            Err(error) => break error,
        }
        if kept > 1000 {
            break StoreError::Missing(path.clone());
        }
    };
    let of_block = store.append_all(&[row(kept), row(kept + 1)]);
    let track = MemoryTrack {
        program: "prog".into(),
        stack: "glibc".into(),
        repetition: 0,
        samples: (0..10_000).map(|at| (f64::from(at), 1)).collect(),
        vm_hwm_kib: 1,
        anonymous_peak_kib: 1,
    };
    let of_track = store.append_track(&track);
    limit_file_size(libc::RLIM_INFINITY);

    let of_block = of_block.expect_err("a full disk");
    let of_track = of_track.expect_err("a full disk");
    for error in [of_row, of_block, of_track] {
        assert!(matches!(error, StoreError::Sqlite { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("disk is full") && text.contains("e.db"), "{text}");
    }
    assert!((10..1000).contains(&kept), "{kept}");
    let read = Store::read(&path).expect("reads");
    assert_eq!((read.observations.len(), read.tracks.len()), (kept as usize, 0));
    // With space again it is continued.
    store.append(&row(kept)).expect("appends");
    drop(store);
    assert_eq!(Store::resume(&path).expect("resumes").1.observations.len(), kept as usize + 1);
}
