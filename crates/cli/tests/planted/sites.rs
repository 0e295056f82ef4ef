//! 2,000 call sites that allocate through generics, which the compiler inlines into them. The argument chooses what site
//! 1234 does otherwise: `leak` loses an object, `twice` allocates twice as many; `pins` has the survivors of `log_audit`
//! between the objects of all others, which are freed.

use std::hint::black_box;

struct Item<const BYTES: usize>([u8; BYTES]);

struct Pool<T>(Vec<Box<T>>);

impl<T> Pool<T> {
    #[inline(always)]
    fn make(&mut self, item: T) {
        self.keep(Box::new(item));
    }

    #[inline(always)]
    fn fill(&mut self, times: usize, item: impl Fn() -> T) {
        for _ in 0..times {
            self.make(item());
        }
    }

    #[inline(never)]
    fn keep(&mut self, item: Box<T>) {
        self.0.push(item);
    }
}

struct State {
    middle: Pool<Item<200>>,
    audit: Pool<Item<72>>,
    leaks: bool,
    planted: usize,
}

extern "C" {
    fn prctl(option: i32, value: u64, ...) -> i32;
}

macro_rules! sites {
    ($($site:ident)*) => {
        $(#[inline(never)] fn $site(state: &mut State) { state.middle.fill(4, || Item([1; 200])); })*
        static OTHERS: &[fn(&mut State)] = &[$($site),*];
    };
}
sites! { SITES }

#[inline(never)]
fn site_1234(state: &mut State) {
    let times = 4 * state.planted;
    state.middle.fill(times, || Item([2; 200]));
    if state.leaks {
        std::mem::forget(black_box(Box::new(Item([3; 100]))));
    }
}

#[inline(never)]
fn log_audit(state: &mut State) {
    state.audit.make(Item([4; 72]));
}

fn main() {
    // SAFETY: PR_SET_THP_DISABLE takes numbers alone.
    unsafe { prctl(41, 1, 0_u64, 0_u64, 0_u64) };
    let mode = std::env::args().nth(1).unwrap_or_default();
    let mut state = State {
        middle: Pool(Vec::with_capacity(100_000)),
        audit: Pool(Vec::with_capacity(100_000)),
        leaks: mode == "leak",
        planted: if mode == "twice" { 2 } else { 1 },
    };
    let pins = mode == "pins";
    for _ in 0..if pins { 10 } else { 1 } {
        for (at, site) in OTHERS.iter().enumerate() {
            site(&mut state);
            if at == 1234 {
                site_1234(&mut state);
            }
            if pins && at % 8 == 0 {
                log_audit(&mut state);
            }
        }
    }
    if pins {
        state.middle.0.clear();
    }
    // Nothing else is freed: what is left at the end is what a snapshot shows.
    std::process::exit(i32::from(black_box(&state).audit.0.capacity() == 0));
}
