//! What surrounds the two sides in one execution of a model: the memory that they share, its modelled atomics, futexes,
//! and which threads have ended. loom runs the threads of a model as coroutines of one thread, which has one world.

use std::any::{Any, TypeId};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::ptr;
use std::rc::Rc;

use loom::sync::atomic as modelled;
use loom::sync::{Condvar, Mutex};

use core::sync::atomic::Ordering;

/// A thread that is killed unwinds with this.
pub(crate) struct Killed;

/// Modelled atomics that exist before the threads do, of each type. loom takes what a thread makes itself for unordered
/// with what other threads do.
const SPARE: usize = 96;

struct World {
    objects: HashMap<usize, Rc<dyn Any>>,
    spare: HashMap<TypeId, Vec<Rc<dyn Any>>>,
    /// Whether other threads than the first may run.
    threads: bool,
    /// Memory whose atomics are not modelled.
    unmodelled: Vec<Range<usize>>,
    futexes: HashMap<usize, Rc<Futex>>,
    /// Mappings, unmapped with the world; the first is the file, which the tool unmaps.
    private: Vec<(*mut u8, usize)>,
    file: *mut u8,
    file_bytes: usize,
    /// Threads and processes that have ended, a bit each.
    ended: Option<Rc<modelled::AtomicU32>>,
    /// Values that live as long as the world.
    owned: Vec<Box<dyn Any>>,
    /// Stores that a mutant delays, with their threads.
    deferred: Vec<(i32, Box<dyn FnOnce()>)>,
    /// Whether the tool's delays are over whenever they are checked; otherwise they never are.
    hasty: bool,
    /// The thread that is killed, and the steps that it lives.
    life: Option<(i32, Cell<u32>)>,
}

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

loom::thread_local! {
    /// The numbers of the process and the thread.
    static NUMBERS: Cell<(i32, i32)> = Cell::new((1, 1));
}

struct Futex {
    mutex: Mutex<()>,
    sleepers: Condvar,
}

impl Drop for World {
    fn drop(&mut self) {
        for &(map, bytes) in &self.private {
            // SAFETY: `private_memory` mapped it for this world.
            unsafe { libc::munmap(map.cast(), bytes) };
        }
    }
}

fn with<R>(action: impl FnOnce(&mut World) -> R) -> R {
    WORLD.with_borrow_mut(|world| action(world.as_mut().expect("a model has begun")))
}

fn map(bytes: usize) -> *mut u8 {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: with a null address the kernel maps memory that nothing uses.
    let map = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
    assert!(map != libc::MAP_FAILED, "no memory for the model");
    map.cast()
}

/// Begins an execution: a world with a file of so many bytes, all zero. Returns the file's mapping, which the tool's map
/// unmaps.
pub(crate) fn begin(file_bytes: usize) -> *mut u8 {
    let file = map(file_bytes);
    WORLD.set(Some(World {
        objects: HashMap::new(),
        spare: HashMap::new(),
        threads: false,
        unmodelled: Vec::new(),
        futexes: HashMap::new(),
        private: Vec::new(),
        file,
        file_bytes,
        ended: None,
        owned: Vec::new(),
        deferred: Vec::new(),
        hasty: false,
        life: None,
    }));
    let ended = Rc::new(modelled::AtomicU32::new(0));
    with(|world| world.ended = Some(ended));
    file
}

/// The file's mapping and its length.
pub(crate) fn file() -> (*mut u8, usize) {
    with(|world| (world.file, world.file_bytes))
}

/// Zeroed memory that lives as long as the world.
pub(crate) fn private_memory(bytes: usize) -> *mut u8 {
    let memory = map(bytes);
    with(|world| world.private.push((memory, bytes)));
    memory
}

/// A value that lives as long as the world.
pub(crate) fn own<T: 'static>(value: T) -> &'static T {
    let value = Box::new(value);
    let reference = ptr::from_ref(&*value);
    with(|world| world.owned.push(value));
    // SAFETY: the box is in the world, which is dropped when the next execution begins, after all threads of this one.
    unsafe { &*reference }
}

/// The atomics in this memory are not modelled: no two threads use them at once.
pub(crate) fn leave_out(memory: Range<usize>) {
    with(|world| world.unmodelled.push(memory));
}

/// From now on other threads run.
pub(crate) fn threads_begin() {
    fn spare<T: Any>(make: impl Fn() -> T) -> (TypeId, Vec<Rc<dyn Any>>) {
        (TypeId::of::<T>(), (0..SPARE).map(|_| Rc::new(make()) as Rc<dyn Any>).collect())
    }
    let few = |(id, mut all): (TypeId, Vec<Rc<dyn Any>>)| {
        all.truncate(16);
        (id, all)
    };
    let spare = [
        few(spare(|| modelled::AtomicU8::new(0))),
        spare(|| modelled::AtomicU32::new(0)),
        few(spare(|| modelled::AtomicI32::new(0))),
        spare(|| modelled::AtomicU64::new(0)),
    ];
    with(|world| {
        world.spare = spare.into_iter().collect();
        world.threads = true;
    });
}

/// The modelled atomic at an address; `None`: it is not modelled.
pub(crate) fn object<T: Any>(address: usize, zero: bool, make: impl FnOnce() -> T) -> Option<Rc<T>> {
    let (known, threads) = with(|world| {
        if world.unmodelled.iter().any(|unmodelled| unmodelled.contains(&address)) {
            return (None, None);
        }
        (world.objects.get(&address).cloned(), Some(world.threads))
    });
    let threads = threads?;
    let object = known.unwrap_or_else(|| {
        let made: Rc<dyn Any> = if threads {
            assert!(zero, "an atomic that threads find first is zero");
            let spare = with(|world| world.spare.get_mut(&TypeId::of::<T>()).and_then(Vec::pop));
            spare.expect("there are spare atomics")
        } else {
            Rc::new(make())
        };
        with(|world| world.objects.insert(address, Rc::clone(&made)));
        made
    });
    Some(object.downcast::<T>().expect("an address has one type"))
}

/// Sleeps while the word holds `expected`, until it is woken.
pub(crate) fn futex_wait(address: usize, is_expected: impl FnOnce() -> bool) {
    let futex = futex(address);
    // As the kernel does: what changes the word before it wakes is seen, or wakes.
    let held = futex.mutex.lock().expect("no panic");
    if is_expected() {
        drop(futex.sleepers.wait(held).expect("no panic"));
    }
}

/// Wakes all that sleep.
pub(crate) fn futex_wake(address: usize) {
    let futex = futex(address);
    let _held = futex.mutex.lock().expect("no panic");
    futex.sleepers.notify_all();
}

fn futex(address: usize) -> Rc<Futex> {
    if let Some(known) = with(|world| world.futexes.get(&address).cloned()) {
        return known;
    }
    let made = Rc::new(Futex { mutex: Mutex::new(()), sleepers: Condvar::new() });
    with(|world| world.futexes.insert(address, Rc::clone(&made)));
    made
}

/// The numbers of the calling process and thread.
pub(crate) fn numbers() -> (i32, i32) {
    NUMBERS.with(Cell::get)
}

/// Gives the calling thread its numbers.
pub(crate) fn set_numbers(process: i32, thread: i32) {
    NUMBERS.with(|numbers| numbers.set((process, thread)));
}

/// A thread or process has ended, and all can see that.
pub(crate) fn end(number: i32) {
    let ended = with(|world| world.ended.clone()).expect("begin made it");
    ended.fetch_or(1 << number, Ordering::AcqRel);
}

/// Whether a thread or process has ended.
pub(crate) fn has_ended(number: i32) -> bool {
    let ended = with(|world| world.ended.clone()).expect("begin made it");
    ended.load(Ordering::Acquire) & 1 << number != 0
}

/// A store that happens after the thread's next.
pub(crate) fn defer(store: impl FnOnce() + 'static) {
    let (_, thread) = numbers();
    with(|world| world.deferred.push((thread, Box::new(store))));
}

/// The stores that the calling thread has deferred.
pub(crate) fn run_deferred() {
    if with(|world| world.deferred.is_empty()) {
        return;
    }
    let (_, thread) = numbers();
    let due: Vec<_> = with(|world| world.deferred.extract_if(.., |(whose, _)| *whose == thread).collect());
    for (_, store) in due {
        store();
    }
}

/// From now on the tool's delays are over whenever they are checked.
pub(crate) fn be_hasty() {
    with(|world| world.hasty = true);
}

/// Whether the tool's delays are over.
pub(crate) fn is_hasty() -> bool {
    with(|world| world.hasty)
}

/// The thread is killed after so many steps.
pub(crate) fn kill_after(thread: i32, steps: u32) {
    with(|world| world.life = Some((thread, Cell::new(steps))));
}

/// A step of the calling thread, which may be its last.
pub(crate) fn step() {
    if with(|world| world.life.is_none()) {
        return;
    }
    let (_, thread) = numbers();
    let dies = with(|world| {
        world
            .life
            .as_ref()
            .is_some_and(|(whose, left)| *whose == thread && left.replace(left.get().saturating_sub(1)) == 0)
    });
    if dies {
        std::panic::resume_unwind(Box::new(Killed));
    }
}
