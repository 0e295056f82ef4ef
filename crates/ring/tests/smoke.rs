//! One thread's events come out as they went in.

use std::cell::Cell;

use heaptoll_ring::{Options, Rings, Said, Shared, Sink, Tap, ThreadWord};

thread_local! {
    static WORD: Cell<usize> = const { Cell::new(0) };
}

struct Word;

impl ThreadWord for Word {
    fn get() -> usize {
        WORD.get()
    }
    fn set(word: usize) {
        WORD.set(word);
    }
}

static RINGS: Rings<Word> = Rings::new();

#[derive(Default)]
struct Heard(Vec<String>);

impl Sink for Heard {
    fn said(&mut self, thread: u32, said: Said<'_>) {
        if !matches!(said, Said::Time { .. }) {
            self.0.push(format!("{thread} {said:?}"));
        }
    }
    fn thread(&mut self, thread: u32, _tid: i32) {
        self.0.push(format!("thread {thread}"));
    }
}

#[test]
fn one_thread_is_heard() {
    let mut shared = Shared::create(&Options::default()).unwrap();
    // SAFETY: no other thread of this process reads or changes the environment.
    unsafe { std::env::set_var("HEAPTOLL_RECORD", shared.path()) };
    assert!(RINGS.attach());
    let arrivals = shared.arrivals();
    assert_eq!(arrivals.len(), 1);
    let mut tap = Tap::new(&shared, arrivals[0].index);
    for n in 1..100_000 {
        let mut producer = RINGS.thread().unwrap();
        producer.alloc(n * 16, 24, 40);
        let mut producer = RINGS.thread().unwrap();
        producer.free(n * 16, false);
        if n % 10_000 == 0 {
            shared.tick();
            let mut heard = Heard::default();
            let drained = tap.drain(1 << 20, &mut heard);
            assert!(drained.idle);
        }
    }
    let mut producer = RINGS.thread().unwrap();
    producer.site(7);
    producer.alloc_long(0x7fff_0000_1234, 1 << 30, 1 << 31, 3, 4);
    RINGS.thread().unwrap().define_site(7, &[1, 2, 3]);
    let mut heard = Heard::default();
    tap.drain(1 << 20, &mut heard);
    println!("{:?}", &heard.0[heard.0.len() - 4..]);
    let more = std::thread::spawn(|| RINGS.thread().unwrap().alloc(800, 8, 8));
    more.join().unwrap();
    RINGS.thread().unwrap().free(800, true);
    let mut heard = Heard::default();
    println!("{:?}", tap.drain(1 << 20, &mut heard));
    println!("{:?}", heard.0);
}
