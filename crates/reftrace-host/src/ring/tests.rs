use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;

use super::*;
use crate::testing::Producer;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn open(path: &Path) -> Ring {
    Ring::open(path).expect("opens").expect("is ready")
}

/// The events of a block up to its end: each has as many words as its first word states.
fn events(words: &[u64], received: &mut Vec<Vec<u64>>) {
    let mut at = 0;
    while at < words.len() && words[at] != 0 {
        let length = words[at] as usize;
        received.push(words[at..at + length].to_vec());
        at += length;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    /// Any events in blocks of any size, published at any fill, killed at any time, arrive whole and in order.
    #[test]
    fn what_was_written_arrives_whole(
        lengths in proptest::collection::vec((1..9usize, 0..20u8), 0..400),
        words in 8..40usize,
        blocks in 1..5u64,
        lag in 0..3u8,
    ) {
        let folder = folder();
        let mut producer = Producer::create(folder.path(), (7, 1), (words, blocks));
        let mut ring = open(&producer.path);
        let written: Vec<(Vec<u64>, bool)> = lengths
            .iter()
            .enumerate()
            // The first word is the length, the others may be anything, also zero.
            .map(|(number, &(length, flush))| {
                let event = (0..length).map(|at| if at == 0 { length as u64 } else { (number * at % 3) as u64 });
                (event.collect(), flush == 0)
            })
            .collect();
        let expected: Vec<Vec<u64>> = written.iter().map(|(event, _)| event.clone()).collect();
        let dead = Arc::new(AtomicBool::new(false));
        let dead_flag = Arc::clone(&dead);
        let thread = std::thread::spawn(move || {
            for (event, flush) in written {
                assert!(producer.write(&event));
                if flush {
                    producer.publish();
                }
            }
            // The content of the last block stays there: the producer was killed.
            dead_flag.store(true, Ordering::Release);
            producer
        });
        let mut received = Vec::new();
        loop {
            let over = dead.load(Ordering::Acquire);
            let any = ring.take(|block| events(block, &mut received)).is_some();
            if !any {
                if over {
                    break;
                }
                if lag > 0 {
                    ring.wait(Duration::from_millis(u64::from(lag)));
                }
            }
        }
        ring.rest(|block| events(block, &mut received));
        prop_assert_eq!(&received, &expected);
        let producer = thread.join().expect("the producer is well");
        prop_assert_eq!(producer.header(at::CONSUMED).load(Ordering::Relaxed), ring.consumed());
    }
}

#[test]
fn a_process_killed_at_any_time_has_recorded_what_it_did() {
    for microseconds in [0, 50, 300, 2000, 9000] {
        let folder = folder();
        let mut producer = Producer::create(folder.path(), (7, 1), (512, 4));
        let path = producer.path.clone();
        let mut ring = open(&path);
        // SAFETY: the child only writes to the shared mapping, without locks or allocation, until it is killed.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // The second word must be there once the next event is.
            for number in 1..u64::MAX {
                producer.write(&[2, number]);
                producer.header(504).store(number, Ordering::Release);
            }
        }
        let until = std::time::Instant::now() + Duration::from_micros(microseconds);
        let mut received = Vec::new();
        while std::time::Instant::now() < until {
            ring.take(|block| events(block, &mut received));
        }
        // SAFETY: `child` is a child of this process that was not waited for yet; a null status pointer is allowed.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
        while ring.take(|block| events(block, &mut received)).is_some() {}
        ring.rest(|block| events(block, &mut received));
        let numbers: Vec<u64> = received.iter().map(|event| event[1]).collect();
        assert!(numbers.iter().copied().eq(1..=numbers.len() as u64), "in order, none left out");
        let counted = ring.word(504).load(Ordering::Acquire);
        assert!((counted..=counted + 1).contains(&(numbers.len() as u64)), "{counted}, {}", numbers.len());
    }
}

#[test]
fn a_ring_that_is_not_finished_is_waited_for_and_one_of_another_version_refused() {
    let folder = folder();
    let producer = Producer::create(folder.path(), (7, 1), (64, 2));
    producer.header(at::MAGIC).store(0, Ordering::Release);
    assert!(Ring::open(&producer.path).expect("opens").is_none());
    producer.header(at::MAGIC).store(MAGIC, Ordering::Release);
    assert_eq!(open(&producer.path).pid, 7);
    producer.header(at::WORDS).store(1 << 40, Ordering::Release);
    assert!(Ring::open(&producer.path).expect_err("refuses").to_string().contains("make build"));
    producer.header(at::WORDS).store(64, Ordering::Release);
    producer.header(at::VERSION).store(VERSION + 1, Ordering::Release);
    let other = format!("version {}", VERSION + 1);
    assert!(Ring::open(&producer.path).expect_err("refuses").to_string().contains(&other));
    let empty = folder.path().join("8.0");
    std::fs::write(&empty, "").expect("writes");
    assert!(Ring::open(&empty).expect("opens").is_none());
}

#[test]
fn the_command_is_read_with_empty_arguments_and_cut_off_ones() {
    let folder = folder();
    let producer = Producer::create(folder.path(), (7, 1), (64, 2));
    let command = |words: &[&[u8]]| {
        producer.command(&[&[0; HEADER - at::COMMAND]]);
        producer.command(words);
        open(&producer.path).command.clone()
    };
    assert_eq!(command(&[b"/bin/sh", b"-c", b"a\xffb"]), ["/bin/sh", "-c", "a\u{fffd}b"]);
    assert_eq!(command(&[b"/bin/sh", b"", b"x"]), ["/bin/sh", "", "x"]);
    assert_eq!(command(&[b"/bin/sh"]), ["/bin/sh"]);
    let long = vec![b'y'; HEADER];
    // An argument without its NUL was truncated, and is left out.
    assert_eq!(command(&[b"/bin/sh", &long]), ["/bin/sh"]);
    let fits = vec![b'y'; HEADER - at::COMMAND - 3];
    assert_eq!(command(&[b"z", &fits]).len(), 2);
}

#[test]
fn a_stopped_producer_writes_no_more() {
    let folder = folder();
    let mut producer = Producer::create(folder.path(), (7, 1), (8, 1));
    let ring = open(&producer.path);
    assert!(producer.write(&[1]));
    ring.stop_producer();
    assert!(!producer.write(&[1]));
}

#[test]
fn a_corrupted_producer_is_not_believed() {
    let folder = folder();
    let producer = Producer::create(folder.path(), (7, 1), (8, 2));
    let mut ring = open(&producer.path);
    producer.header(at::PUBLISHED).store(u64::MAX, Ordering::Release);
    assert_eq!(ring.waiting(), 2);
    assert!(ring.take(|block| assert_eq!(block.len(), 8)).is_some());
}

#[test]
fn words_that_change_while_they_are_decoded_stay_what_they_were() {
    let folder = folder();
    let mut producer = Producer::create(folder.path(), (7, 1), (8, 2));
    assert!(producer.write(&[1, 2, 3]));
    producer.publish();
    assert!(producer.write(&[4]));
    let spoil = || {
        let file = File::options().write(true).open(&producer.path).expect("opens");
        std::os::unix::fs::FileExt::write_all_at(&file, &[0xff; 2 * 8 * 8], HEADER as u64).expect("writes");
    };
    let mut ring = open(&producer.path);
    let seen = ring.take(|words| {
        spoil();
        words.to_vec()
    });
    assert_eq!(seen, Some(vec![1, 2, 3, 0, 0, 0, 0, 0]));
    // The overwritten words are damage, and no more.
    ring.rest(|words| assert_eq!(words, [u64::MAX; 8]));
}

#[test]
fn a_geometry_that_no_tracer_has_is_refused_though_its_file_is_as_long() {
    let folder = folder();
    let producer = Producer::create(folder.path(), (7, 1), (64, 2));
    let (words, blocks) = (1u64 << 32, 2);
    producer.header(at::WORDS).store(words, Ordering::Release);
    let file = File::options().write(true).open(&producer.path).expect("opens");
    file.set_len(HEADER as u64 + words * blocks * 8).expect("grows");
    assert!(Ring::open(&producer.path).is_err());
}

#[test]
fn a_ring_for_which_there_was_no_space_is_not_touched() {
    use std::os::unix::fs::MetadataExt;
    let memory = rustix::fs::memfd_create("ring", rustix::fs::MemfdFlags::empty()).expect("a file in memory");
    let file = std::fs::File::from(memory);
    file.set_len(1 << 20).expect("its length");
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    assert!(Ring::open(Path::new(&path)).expect("opens").is_none());
    assert_eq!(file.metadata().expect("its state").blocks(), 0);
}
