//! Roots: a pointer that lies in one place only is found there, and what cannot hold one is not read.

mod common;

use std::arch::asm;
use std::cell::Cell;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use common::{Flag, Mapping, Occurrences, Secret, WORLD, alone, in_child, search, search_without};
use heaptoll_roots::{Origin, RootKinds};

const PAGE: usize = 4096;
const READ: i32 = libc::PROT_READ;
const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;
const PRIVATE: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;

/// A thread that hides a word somewhere, and on [`Hider::finish`] clears it and ends.
struct Hider {
    flags: Arc<[Flag; 2]>,
    thread: JoinHandle<()>,
}

impl Hider {
    /// `hide` is given two flags: it raises the first when the word is hidden, and returns when the second is up.
    fn new(hide: impl FnOnce(&Flag, &Flag) + Send + 'static) -> Hider {
        let flags = Arc::new([Flag::new(), Flag::new()]);
        let shared = flags.clone();
        let thread = std::thread::spawn(move || hide(&shared[0], &shared[1]));
        flags[0].wait();
        Hider { flags, thread }
    }

    fn finish(self) {
        self.flags[1].raise();
        self.thread.join().expect("the thread ends");
    }
}

/// Keeps a word in a register, or in a location given by its distance from the stack pointer, while a flag is down.
macro_rules! hold {
    ($secret:expr, $ready:expr, $end:expr, $hide:literal, $clear:literal, $($used:tt)*) => {
        // SAFETY: the registers named are declared as outputs, nothing uses what lies below the stack pointer, and the
        // flags live on.
        unsafe {
            asm!(
                "not rax",
                $hide,
                "xor eax, eax",
                "mov byte ptr [rcx], 1",
                "2: pause",
                "cmp byte ptr [rdx], 0",
                "je 2b",
                $clear,
                inout("rax") $secret.hidden() => _,
                in("rcx") $ready.as_ptr(),
                in("rdx") $end.as_ptr(),
                $($used)*
            );
        }
    };
}

#[test]
fn a_word_that_is_nowhere_is_not_found() {
    let _alone = alone(None, 5000);
    for _ in 0..20 {
        assert!(!search(Secret::new()).any());
    }
}

#[test]
#[expect(clippy::single_range_in_vec_init, reason = "a list of one range is meant")]
fn a_word_in_anonymous_memory_is_found_and_left_out_with_its_range() {
    let _alone = alone(None, 5000);
    let secret = Secret::new();
    let mapping = Mapping::anonymous(1 << 20);
    for offset in [0, 4096, 8 * 4096 - 8, (1 << 20) - 8] {
        secret.write(mapping.word(offset));
        assert_eq!(search(secret).mapping, 1, "at {offset}");
        assert!(!search_without(&[mapping.range()], secret).any());
        let at = mapping.start + offset;
        assert!(!search_without(&[at..at + 8], secret).any(), "at {offset}");
        assert!(!search_without(&[at + 1..at + 2], secret).any(), "at {offset}");
        assert_eq!(
            search_without(&[mapping.start..at, at + 8..mapping.start + (1 << 20)], secret).mapping,
            1
        );
        // SAFETY: the word is the test's.
        unsafe { mapping.word(offset).write(0) };
    }
    assert!(!search(secret).any());
}

#[test]
fn a_static_word_is_found() {
    static ZEROED: AtomicUsize = AtomicUsize::new(0);
    static DATA: AtomicUsize = AtomicUsize::new(1);
    let _alone = alone(None, 5000);
    for place in [&ZEROED, &DATA] {
        let secret = Secret::new();
        secret.write(place.as_ptr());
        assert_eq!(search(secret).statics, 1);
        place.store(0, Ordering::Relaxed);
    }
}

#[test]
fn a_word_in_a_register_of_another_thread_is_found() {
    let _alone = alone(None, 5000);
    let general: [fn(Secret, &Flag, &Flag); 4] = [
        |secret, ready, end| hold!(secret, ready, end, "mov rsi, rax", "xor esi, esi", out("rsi") _),
        |secret, ready, end| hold!(secret, ready, end, "mov r8, rax", "xor r8d, r8d", out("r8") _),
        |secret, ready, end| hold!(secret, ready, end, "mov r12, rax", "xor r12d, r12d", out("r12") _),
        |secret, ready, end| hold!(secret, ready, end, "mov r15, rax", "xor r15d, r15d", out("r15") _),
    ];
    for hide in general {
        let secret = Secret::new();
        let hider = Hider::new(move |ready, end| hide(secret, ready, end));
        // The frame of the signal may be seen too: it is on the alternate stack that std gives the thread.
        let Occurrences { registers, stack, statics, .. } = search(secret);
        assert_eq!((registers, stack, statics), (1, 0, 0));
        hider.finish();
    }
}

#[test]
fn a_word_in_a_vector_register_of_another_thread_is_found() {
    let _alone = alone(None, 5000);
    let secret = Secret::new();
    let hider = Hider::new(move |ready, end| {
        hold!(secret, ready, end, "movq xmm9, rax", "pxor xmm9, xmm9", out("xmm9") _);
    });
    assert!(search(secret).registers >= 1);
    hider.finish();
    if std::is_x86_feature_detected!("avx") {
        let hider = Hider::new(move |ready, end| {
            // The upper half of a register is in the extended part of the state.
            hold!(
                secret, ready, end,
                "vmovq xmm9, rax
                 vinsertf128 ymm9, ymm9, xmm9, 1
                 vxorps xmm8, xmm8, xmm8
                 vblendps ymm9, ymm8, ymm9, 0xf0",
                "vzeroall", out("xmm8") _, out("xmm9") _, out("xmm0") _, out("xmm1") _, out("xmm2") _,
                out("xmm3") _, out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _, out("xmm10") _,
                out("xmm11") _, out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            );
        });
        assert!(search(secret).registers >= 1);
        hider.finish();
    }
    assert!(!search(secret).any());
}

#[test]
fn a_word_in_a_callee_saved_register_of_the_caller_is_found() {
    let _alone = alone(None, 5000);
    let secret = Secret::new();
    extern "C" fn stop_and_search(hidden: usize, found: &mut Occurrences) {
        let stopped = WORLD.stop().expect("all stop");
        *found = common::seek(&stopped, &[], secret_of(hidden));
    }
    fn secret_of(hidden: usize) -> Secret {
        Secret::of(hidden)
    }
    let mut found = Occurrences::default();
    // SAFETY: calls a function of the C convention, on a stack that is aligned for it, with the word in r13 only.
    unsafe {
        asm!(
            "mov r13, rdi",
            "not r13",
            "call {stop_and_search}",
            "xor r13d, r13d",
            stop_and_search = sym stop_and_search,
            in("rdi") secret.hidden(),
            in("rsi") &raw mut found,
            out("r13") _,
            clobber_abi("C"),
        );
    }
    // Either it is still in the register, or a function in between has saved it on the stack.
    assert!(found.registers + found.stack >= 1, "{found:?}");
    assert!(!search(secret).any());
}

#[test]
fn a_word_on_the_stack_of_another_thread_is_found() {
    let _alone = alone(None, 5000);
    let secret = Secret::new();
    let hider = Hider::new(move |ready, end| {
        let mut word = 0;
        secret.write(&mut word);
        ready.raise();
        end.wait();
        std::hint::black_box(&mut word);
    });
    assert_eq!(search(secret), Occurrences { stack: 1, ..Occurrences::default() });
    hider.finish();
}

#[test]
fn a_word_in_the_red_zone_of_another_thread_is_found() {
    let _alone = alone(None, 5000);
    let secret = Secret::new();
    let ends: [fn(Secret, &Flag, &Flag); 2] = [
        |secret, ready, end| hold!(secret, ready, end, "mov [rsp - 8], rax", "mov qword ptr [rsp - 8], 0",),
        |secret, ready, end| {
            hold!(secret, ready, end, "mov [rsp - 128], rax", "mov qword ptr [rsp - 128], 0",)
        },
    ];
    for hide in ends {
        let hider = Hider::new(move |ready, end| hide(secret, ready, end));
        assert_eq!(search(secret), Occurrences { stack: 1, ..Occurrences::default() });
        hider.finish();
    }
}

/// What lies there may be in use: see the coroutines below.
#[test]
fn words_below_stack_pointers_are_found() {
    let _alone = alone(None, 5000);
    let secret = Secret::new();
    // Far enough not to be written over by the signal's frame.
    let hider = Hider::new(move |ready, end| {
        hold!(secret, ready, end, "mov [rsp - 65536], rax", "mov qword ptr [rsp - 65536], 0",)
    });
    assert_eq!(search(secret), Occurrences { stack: 1, ..Occurrences::default() });
    hider.finish();
    let place = (&raw const secret as usize - (48 << 10)) & !7;
    secret.write(place as *mut usize);
    assert_eq!(search(secret), Occurrences { stack: 1, ..Occurrences::default() });
    secret.erase(place as *mut usize);
}

#[test]
fn a_thread_local_word_is_found() {
    thread_local! { static LOCAL: Cell<usize> = const { Cell::new(0) } }
    let _alone = alone(None, 5000);
    let secret = Secret::new();
    let hider = Hider::new(move |ready, end| {
        LOCAL.with(|local| secret.write(local.as_ptr()));
        ready.raise();
        end.wait();
        LOCAL.set(0);
    });
    assert_eq!(search(secret), Occurrences { stack: 1, ..Occurrences::default() });
    hider.finish();
}

#[test]
fn a_static_word_of_an_object_opened_later_is_found() {
    let _alone = alone(None, 5000);
    let secret = Secret::new();
    // A small library of the C library's, which no program uses.
    let name = c"libBrokenLocale.so.1";
    // SAFETY: it has no constructors of note.
    let object = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
    assert!(!object.is_null(), "{name:?} cannot be opened");
    let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
    let data = maps.lines().find(|line| line.contains("libBrokenLocale") && line.contains(" rw-p "));
    let end = data.and_then(|line| line.split([' ', '-']).nth(1)).expect("its data");
    let end = usize::from_str_radix(end, 16).expect("an address");
    let place = (end - 8) as *mut usize;
    assert!(!search(secret).any());
    // The last word of the page, after the data.
    secret.write(place);
    assert_eq!(search(secret), Occurrences { statics: 1, ..Occurrences::default() });
    secret.erase(place);
    // SAFETY: opened above.
    unsafe { libc::dlclose(object) };
}

#[test]
fn a_word_in_shared_memory_is_found_by_a_forked_child_too() {
    let _alone = alone(None, 5000);
    let secret = Secret::new();
    let mapping = Mapping::new(16 * PAGE, READ_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1);
    secret.write(mapping.word(5 * PAGE + 16));
    assert_eq!(search(secret), Occurrences { mapping: 1, ..Occurrences::default() });
    // The child has not touched it: its page tables are empty there.
    assert_eq!(in_child(|| i32::from(search(secret).mapping != 1)), 0);
}

#[test]
fn words_of_the_parent_are_found_by_a_forked_child() {
    let _alone = alone(None, 5000);
    let secret = Secret::new();
    let mapping = Mapping::anonymous(PAGE);
    secret.write(mapping.word(0));
    assert_eq!(in_child(|| i32::from(search(secret).mapping != 1)), 0);
}

#[test]
fn a_word_in_a_block_of_malloc_is_found() {
    let _alone = alone(None, 5000);
    for bytes in [64, 1 << 20] {
        let secret = Secret::new();
        // SAFETY: a new block of at least one word.
        let block = unsafe { libc::malloc(bytes) }.cast::<usize>();
        secret.write(block);
        assert_eq!(search(secret), Occurrences { mapping: 1, ..Occurrences::default() });
        secret.erase(block);
        // SAFETY: `block` came from malloc above, and is not used after this.
        unsafe { libc::free(block.cast()) };
    }
}

#[test]
fn a_word_in_memory_that_was_protected_is_found_while_it_can_be_read() {
    let _alone = alone(None, 5000);
    let secret = Secret::new();
    let mapping = Mapping::anonymous(PAGE);
    secret.write(mapping.word(8));
    for (access, count) in
        [(READ, 1), (READ | libc::PROT_EXEC, 1), (libc::PROT_NONE, 0), (libc::PROT_WRITE, 1), (READ_WRITE, 1)]
    {
        mapping.protect(access);
        assert_eq!(search(secret).mapping, count, "with access {access}");
    }
}

/// The ranges of a mapping that are shown.
fn shown(mapping: &Mapping) -> Vec<(usize, usize)> {
    let mut ranges = Vec::with_capacity(1000);
    let stopped = WORLD.stop().expect("all stop");
    stopped
        .roots(RootKinds::ALL, &[], &mut |root| {
            // The kernel joins a mapping with its neighbours where these are alike.
            let (start, end) =
                (root.range.start.max(mapping.range().start), root.range.end.min(mapping.range().end));
            if start < end && ranges.len() < ranges.capacity() {
                assert_eq!(root.origin, Origin::Mapping);
                ranges.push((start - mapping.start, end - start));
            }
        })
        .expect("readable");
    ranges
}

#[test]
fn untouched_pages_are_not_read() {
    let _alone = alone(None, 5000);
    let mapping = Mapping::anonymous(1 << 30);
    assert_eq!(shown(&mapping), []);
    for page in [3, 4, 9] {
        Secret::new().write(mapping.word(page * PAGE));
    }
    assert_eq!(shown(&mapping), [(3 * PAGE, 2 * PAGE), (9 * PAGE, PAGE)]);
    // SAFETY: the mapping is the test's.
    unsafe { libc::madvise(mapping.word(4 * PAGE).cast(), PAGE, libc::MADV_DONTNEED) };
    assert_eq!(shown(&mapping), [(3 * PAGE, PAGE), (9 * PAGE, PAGE)]);
}

#[test]
fn guards_within_a_mapping_are_not_read() {
    const MADV_GUARD_INSTALL: i32 = 102;
    let _alone = alone(None, 5000);
    let mapping = Mapping::anonymous(8 * PAGE);
    for page in 0..8 {
        Secret::new().write(mapping.word(page * PAGE));
    }
    // SAFETY: the mapping is the test's.
    if unsafe { libc::madvise(mapping.word(2 * PAGE).cast(), PAGE, MADV_GUARD_INSTALL) } != 0 {
        // Linux before 6.13 has none.
        return;
    }
    assert_eq!(shown(&mapping), [(0, 2 * PAGE), (3 * PAGE, 5 * PAGE)]);
}

#[test]
fn pages_that_are_still_a_files_are_not_read() {
    let _alone = alone(None, 5000);
    let secret = Secret::new();
    let path = std::env::temp_dir().join(format!("heaptoll-roots-{}", std::process::id()));
    let file = std::fs::File::options().read(true).write(true).create(true).truncate(true).open(&path);
    let file = file.expect("a temporary file");
    file.set_len(4 * PAGE as u64).expect("its length");
    let shared = Mapping::new(4 * PAGE, READ_WRITE, libc::MAP_SHARED, file.as_raw_fd());
    secret.write(shared.word(PAGE));
    assert_eq!(search(secret).mapping, 1, "by a shared mapping");
    let private = Mapping::new(4 * PAGE, READ_WRITE, libc::MAP_PRIVATE, file.as_raw_fd());
    // SAFETY: the mapping is the test's. Now the page is there.
    assert_eq!(unsafe { !private.word(PAGE).read_volatile() }, secret.hidden());
    let found = search_without(&[shared.range()], secret);
    assert!(!found.any(), "{found:?} by a private mapping, unwritten");
    secret.write(private.word(PAGE + 64));
    let found = search_without(&[shared.range()], secret);
    assert_eq!(found.statics, 2, "by a private mapping, written");
    // Nothing can be read after the file's end.
    file.set_len(0).expect("its length");
    assert!(!search(secret).any() || search(secret).statics == 0);
    std::fs::remove_file(&path).expect("the file");
}

#[test]
fn memory_named_ours_is_not_read_where_names_are_kept() {
    let _alone = alone(None, 5000);
    let secret = Secret::new();
    let mapping = Mapping::anonymous(PAGE);
    secret.write(mapping.word(0));
    // SAFETY: the mapping is the test's.
    let named = unsafe {
        let name = c"heaptoll test".as_ptr();
        libc::prctl(libc::PR_SET_VMA, libc::PR_SET_VMA_ANON_NAME, mapping.start, PAGE, name)
    };
    // Without `CONFIG_ANON_VMA_NAME` the kernel keeps no names.
    assert_eq!(search(secret).mapping, usize::from(named != 0));
}

static ON_ALTERNATE: Flag = Flag::new();
static LEAVE_ALTERNATE: Flag = Flag::new();
static HIDDEN_ON_ALTERNATE: AtomicUsize = AtomicUsize::new(0);

extern "C" fn on_alternate(_: i32) {
    let mut word = 0;
    Secret::of(HIDDEN_ON_ALTERNATE.load(Ordering::SeqCst)).write(&mut word);
    ON_ALTERNATE.raise();
    while !LEAVE_ALTERNATE.is_up() {
        std::hint::spin_loop();
    }
    std::hint::black_box(&mut word);
}

/// Runs a handler on an alternate stack, interrupting a function that hides `below`, until a flag is up.
#[inline(never)]
fn interrupt(stack: &mut [u8], below: Secret) {
    let mut word = 0;
    below.write(&mut word);
    // SAFETY: the handler and its stack are valid while it is installed.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_alternate as *const () as usize;
        action.sa_flags = libc::SA_ONSTACK;
        assert_eq!(libc::sigaction(libc::SIGUSR2, &action, std::ptr::null_mut()), 0);
        let stack = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: stack.len() };
        let mut former = std::mem::zeroed();
        assert_eq!(libc::sigaltstack(&stack, &mut former), 0);
        assert_eq!(libc::pthread_kill(libc::pthread_self(), libc::SIGUSR2), 0);
        assert_eq!(libc::sigaltstack(&former, std::ptr::null_mut()), 0);
    }
    std::hint::black_box(&mut word);
}

/// Finds words on both stacks of a thread that is on an alternate one.
fn on_two_stacks(run: impl FnOnce(Secret) + Send + 'static) {
    let (above, below) = (Secret::new(), Secret::new());
    HIDDEN_ON_ALTERNATE.store(above.hidden(), Ordering::SeqCst);
    ON_ALTERNATE.lower();
    LEAVE_ALTERNATE.lower();
    let thread = std::thread::spawn(move || run(below));
    ON_ALTERNATE.wait();
    let found = [search(above), search(below)];
    LEAVE_ALTERNATE.raise();
    thread.join().expect("the thread ends");
    assert_eq!(found.map(|found| found.stack + found.mapping), [1, 1], "{found:?}");
}

#[test]
fn words_on_both_stacks_of_a_thread_on_an_alternate_one_are_found() {
    let _alone = alone(None, 5000);
    on_two_stacks(|below| interrupt(&mut vec![0; 128 << 10], below));
    on_two_stacks(|below| {
        let mapping = Mapping::anonymous(128 << 10);
        // SAFETY: the mapping is the test's.
        interrupt(unsafe { std::slice::from_raw_parts_mut(mapping.start as *mut u8, 128 << 10) }, below);
    });
}

#[test]
fn frames_below_an_alternate_stack_that_is_an_array_are_found() {
    let _alone = alone(None, 5000);
    on_two_stacks(|below| {
        let mut array = [0_u8; 64 << 10];
        interrupt(std::hint::black_box(&mut array), below);
    });
}

#[test]
fn a_thread_interrupted_on_an_alternate_stack_when_it_is_the_caller_loses_nothing() {
    static FOUND: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn collect(_: i32) {
        let found = search(Secret::of(HIDDEN_ON_ALTERNATE.load(Ordering::SeqCst)));
        FOUND.store(found.stack, Ordering::SeqCst);
    }
    #[inline(never)]
    fn run(secret: Secret, stack: &mut [u8]) {
        let mut word = 0;
        secret.write(&mut word);
        // SAFETY: handler and stack are valid while installed; no malloc is interrupted.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = collect as *const () as usize;
            action.sa_flags = libc::SA_ONSTACK;
            assert_eq!(libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()), 0);
            let stack = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: stack.len() };
            let mut former = std::mem::zeroed();
            assert_eq!(libc::sigaltstack(&stack, &mut former), 0);
            assert_eq!(libc::pthread_kill(libc::pthread_self(), libc::SIGUSR1), 0);
            assert_eq!(libc::sigaltstack(&former, std::ptr::null_mut()), 0);
        }
        std::hint::black_box(&mut word);
    }
    let _alone = alone(None, 5000);
    let secret = Secret::new();
    HIDDEN_ON_ALTERNATE.store(secret.hidden(), Ordering::SeqCst);
    let mut array = [0_u8; 128 << 10];
    run(secret, std::hint::black_box(&mut array));
    assert_eq!(FOUND.load(Ordering::SeqCst), 1);
}

/// Two contexts and what they do.
struct Coroutine {
    main: libc::ucontext_t,
    other: libc::ucontext_t,
    secret: Secret,
    found: Occurrences,
}

static COROUTINE: AtomicUsize = AtomicUsize::new(0);

/// The coroutine of the test that runs.
fn coroutine() -> *mut Coroutine {
    COROUTINE.load(Ordering::SeqCst) as *mut Coroutine
}

impl Coroutine {
    /// Enters a coroutine on a stack of its own.
    fn enter(&mut self, body: extern "C" fn(), stack: &mut [u8]) {
        COROUTINE.store(std::ptr::from_mut(self) as usize, Ordering::SeqCst);
        // SAFETY: the contexts and the stack outlive their use.
        unsafe {
            assert_eq!(libc::getcontext(&mut self.other), 0);
            self.other.uc_stack.ss_sp = stack.as_mut_ptr().cast();
            self.other.uc_stack.ss_size = stack.len();
            self.other.uc_link = &raw mut self.main;
            libc::makecontext(&mut self.other, body, 0);
            let this = std::ptr::from_mut(self);
            assert_eq!(libc::swapcontext(&raw mut (*this).main, &raw const (*this).other), 0);
        }
    }

    fn new(secret: Secret) -> Box<Coroutine> {
        // SAFETY: contexts are plain memory until they are made.
        let (main, other) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        Box::new(Coroutine { main, other, secret, found: Occurrences::default() })
    }
}

/// Hides a word on its stack, goes back to the main context, and ends when it is entered again.
extern "C" fn hide_and_leave() {
    let this = coroutine();
    let mut word = 0;
    // SAFETY: the coroutine lives while its test runs.
    unsafe {
        (*this).secret.write(&mut word);
        libc::swapcontext(&raw mut (*this).other, &raw const (*this).main);
    }
    std::hint::black_box(&mut word);
}

extern "C" fn stop_and_search() {
    let this = coroutine();
    // SAFETY: the coroutine lives while its test runs.
    unsafe { (*this).found = search((*this).secret) };
}

#[test]
fn a_word_on_the_stack_of_a_coroutine_that_waits_is_found() {
    let _alone = alone(None, 5000);
    let secret = Secret::new();
    let mapping = Mapping::anonymous(256 << 10);
    // SAFETY: the mapping is the test's.
    let stack = unsafe { std::slice::from_raw_parts_mut(mapping.start as *mut u8, 256 << 10) };
    let mut coroutine = Coroutine::new(secret);
    coroutine.enter(hide_and_leave, stack);
    assert_eq!(search(secret).mapping, 1);
    // It runs to its end.
    let this = &raw mut *coroutine;
    // SAFETY: the contexts live.
    assert_eq!(unsafe { libc::swapcontext(&raw mut (*this).main, &raw const (*this).other) }, 0);
}

#[test]
fn a_word_on_the_stack_of_a_thread_that_runs_a_coroutine_is_found() {
    let _alone = alone(None, 5000);
    let secret = Secret::new();
    let mapping = Mapping::anonymous(256 << 10);
    // SAFETY: the mapping is the test's.
    let stack = unsafe { std::slice::from_raw_parts_mut(mapping.start as *mut u8, 256 << 10) };
    let mut coroutine = Coroutine::new(secret);
    let mut word = 0;
    secret.write(&mut word);
    coroutine.enter(stop_and_search, stack);
    std::hint::black_box(&mut word);
    assert_eq!(coroutine.found.stack + coroutine.found.mapping, 1, "{:?}", coroutine.found);
}

#[test]
fn a_word_on_the_stack_of_a_coroutine_below_that_of_the_one_that_runs_is_found() {
    let _alone = alone(None, 5000);
    let secret = Secret::new();
    // Two stacks in one mapping, and below it what resembles a guard.
    let guard = Mapping::new((512 << 10) + PAGE, libc::PROT_NONE, PRIVATE, -1);
    let pool = guard.start + PAGE;
    // SAFETY: the mapping is the test's.
    let (lower, upper) = unsafe {
        assert_eq!(libc::mprotect(pool as *mut _, 512 << 10, READ_WRITE), 0);
        std::slice::from_raw_parts_mut(pool as *mut u8, 512 << 10).split_at_mut(256 << 10)
    };
    let mut waiting = Coroutine::new(secret);
    waiting.enter(hide_and_leave, lower);
    let mut running = Coroutine::new(secret);
    running.enter(stop_and_search, upper);
    assert_eq!(running.found.stack, 1, "{:?}", running.found);
}

/// Enters a coroutine from below the array that is its stack.
#[inline(never)]
fn enter_from_deeper(coroutine: &mut Coroutine, stack: &mut [u8]) {
    let mut word = 0;
    coroutine.secret.write(&mut word);
    assert!((&raw const word).addr() < stack.as_ptr().addr());
    coroutine.enter(stop_and_search, stack);
    std::hint::black_box(&mut word);
}

#[test]
fn a_word_below_an_array_that_is_the_stack_of_the_coroutine_that_runs_is_found() {
    let _alone = alone(None, 5000);
    let mut array = [0_u8; 256 << 10];
    let mut running = Coroutine::new(Secret::new());
    enter_from_deeper(&mut running, std::hint::black_box(&mut array));
    assert_eq!(running.found.stack, 1, "{:?}", running.found);
}

#[test]
fn a_word_on_an_array_below_the_one_whose_coroutine_runs_is_found() {
    let _alone = alone(None, 5000);
    let mut arrays = [0_u8; 512 << 10];
    let (lower, upper) = std::hint::black_box(&mut arrays).split_at_mut(256 << 10);
    let secret = Secret::new();
    Coroutine::new(secret).enter(hide_and_leave, lower);
    let mut running = Coroutine::new(secret);
    running.enter(stop_and_search, upper);
    assert_eq!(running.found.stack, 1, "{:?}", running.found);
}

/// Starts a thread with attributes of the C library's and runs `work` while it waits.
fn with_a_thread(attributes: impl FnOnce(&mut libc::pthread_attr_t), work: impl FnOnce()) {
    extern "C" fn wait(flags: *mut libc::c_void) -> *mut libc::c_void {
        // SAFETY: the flags outlive the thread.
        let [ready, end] = unsafe { &*flags.cast::<[Flag; 2]>() };
        ready.raise();
        end.wait();
        std::ptr::null_mut()
    }
    let flags = [const { Flag::new() }; 2];
    // SAFETY: attributes and flags outlive their use.
    unsafe {
        let mut all = std::mem::zeroed();
        assert_eq!(libc::pthread_attr_init(&mut all), 0);
        attributes(&mut all);
        let mut thread = 0;
        let argument = (&raw const flags).cast_mut().cast();
        assert_eq!(libc::pthread_create(&mut thread, &all, wait, argument), 0);
        flags[0].wait();
        work();
        flags[1].raise();
        assert_eq!(libc::pthread_join(thread, std::ptr::null_mut()), 0);
        libc::pthread_attr_destroy(&mut all);
    }
}

#[test]
fn a_word_in_a_mapping_that_is_joined_to_a_stack_without_a_guard_is_found() {
    let _alone = alone(None, 5000);
    const BYTES: usize = 1 << 20;
    let area = Mapping::new(2 * BYTES + PAGE, libc::PROT_NONE, PRIVATE, -1);
    let (data, stack) = (area.start + PAGE, area.start + PAGE + BYTES);
    let map = |start: usize| {
        let flags = PRIVATE | libc::MAP_FIXED | libc::MAP_STACK;
        // SAFETY: the area is the test's.
        let made = unsafe { libc::mmap(start as *mut _, BYTES, READ_WRITE, flags, -1, 0) };
        assert_eq!(made as usize, start);
    };
    map(data);
    map(stack);
    let secret = Secret::new();
    secret.write(data as *mut usize);
    with_a_thread(
        // SAFETY: the stack is the test's, and outlives the thread.
        |attributes| unsafe {
            assert_eq!(libc::pthread_attr_setstack(attributes, stack as *mut _, BYTES), 0);
        },
        || assert_eq!(search(secret), Occurrences { stack: 1, ..Occurrences::default() }),
    );
}

#[test]
fn working_memory_is_not_shown() {
    let _alone = alone(None, 5000);
    let hider = Hider::new(|ready, end| {
        ready.raise();
        end.wait();
    });
    let mut kept = Vec::with_capacity(1000);
    let mut mapped = Vec::with_capacity(10_000);
    let stopped = WORLD.stop().expect("all stop");
    let shown = stopped.roots(RootKinds::ALL, &[], &mut |root| {
        // General registers are kept in memory of the library; others, of another length, are on stacks.
        let list = if root.origin == Origin::Registers && root.range.len() == 19 * 8 {
            &mut kept
        } else {
            &mut mapped
        };
        if list.len() < list.capacity() {
            list.push(root.range);
        }
    });
    drop(stopped);
    shown.expect("readable");
    hider.finish();
    assert!(kept.len() >= 2 && kept.len() < kept.capacity() && mapped.len() < mapped.capacity());
    for registers in kept {
        assert!(!mapped.iter().any(|range| range.contains(&registers.start)), "{registers:x?}");
    }
}

#[test]
fn a_word_belongs_to_the_thread_on_whose_stack_it_is() {
    let _alone = alone(None, 5000);
    let (place, tid) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let published = (place.clone(), tid.clone());
    let hider = Hider::new(move |ready, end| {
        let word = 0_usize;
        published.0.store(&raw const word as usize, Ordering::SeqCst);
        // SAFETY: `gettid` takes no pointers and cannot fail.
        published.1.store(unsafe { libc::gettid() } as usize, Ordering::SeqCst);
        ready.raise();
        end.wait();
        std::hint::black_box(&word);
    });
    let (own, global) = (0_usize, Mapping::anonymous(PAGE));
    let stopped = WORLD.stop().expect("all stop");
    let shown = stopped.roots(RootKinds::ALL, &[], &mut |_| {});
    let of = [place.load(Ordering::SeqCst), &raw const own as usize, global.start]
        .map(|word| stopped.thread_of(word));
    drop(stopped);
    hider.finish();
    shown.expect("readable");
    // SAFETY: `gettid` takes no pointers and cannot fail.
    assert_eq!(of, [Some(tid.load(Ordering::SeqCst) as i32), Some(unsafe { libc::gettid() }), None]);
}
