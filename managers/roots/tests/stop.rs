//! Stopping: whatever threads do, they stand while the world stands, and run on after.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{Crew, WORLD, alone};

#[test]
fn threads_in_tight_loops_stand_still() {
    let _alone = alone(None, 5000);
    let counters: Arc<Vec<AtomicU64>> = Arc::new((0..4).map(|_| AtomicU64::new(0)).collect());
    let counted = counters.clone();
    let crew = Crew::new(4, move |number| {
        for _ in 0..1000 {
            counted[number].fetch_add(1, Ordering::SeqCst);
        }
    });
    let read = || -> [u64; 4] { std::array::from_fn(|number| counters[number].load(Ordering::SeqCst)) };
    let mut last = [0; 4];
    for _ in 0..100 {
        let stopped = WORLD.stop().expect("all stop");
        assert!(stopped.threads() >= 5, "{} threads", stopped.threads());
        let before = read();
        for _ in 0..200_000 {
            std::hint::spin_loop();
        }
        assert_eq!(read(), before);
        drop(stopped);
        last = before;
    }
    // Everybody runs on.
    while read().iter().zip(&last).any(|(now, then)| now <= then) {
        std::thread::yield_now();
    }
    crew.finish();
}
