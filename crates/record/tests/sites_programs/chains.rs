//! Rust: generics, closures, a panic that is caught.

use std::hint::black_box;

trait Animal {
    fn eat(&self, bytes: usize);
}

struct Cat;

impl Animal for Cat {
    #[inline(never)]
    fn eat(&self, bytes: usize) {
        black_box(vec![1u8; bytes]);
    }
}

#[inline(never)]
fn feed<A: Animal>(animal: &A, bytes: usize) {
    animal.eat(black_box(bytes));
    black_box(());
}

#[inline(never)]
fn careful(bytes: usize) {
    let caught = std::panic::catch_unwind(|| {
        feed(&Cat, bytes);
        std::panic::resume_unwind(Box::new([0u8; 3002]));
    });
    black_box(caught.is_err());
}

fn main() {
    for _ in 0..3 {
        careful(3001);
    }
    std::thread::spawn(|| feed(&Cat, 3003)).join().unwrap();
}
