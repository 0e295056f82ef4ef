//! The binding report: to which functions the allocation calls of every loaded object are bound.
//!
//! `dlsym` finds the `malloc` that *would* be called. The one that *is* called is in each object's global offset table:
//! a program that exports its own malloc, one linked with `-Bsymbolic`, a plug-in opened with `RTLD_DEEPBIND` can be
//! recognised only there. The report is lines of tab-separated fields:
//!
//! ```text
//! report  1  PID  start|exit  MONOTONIC_NS  EXE
//! calls   MALLOC  REALLOC  FREE  NEW  DELETE  FAILED
//! layer   PATH                    this layer
//! default SYMBOL  OBJECT          what a global lookup finds
//! next    SYMBOL  OBJECT          what a lookup after this layer finds; - for nothing
//! object  PATH                    a loaded object; its slots follow
//! slot    SYMBOL  OBJECT          @layer, @lazy (never called yet), @plt (the program's own stub), @null, or a path
//! cut                             the report did not fit
//! end
//! ```
//!
//! Between reports are lines by which every layer, including this one, reports to which object it forwards
//! (`heaptoll_next`'s `preflight_report`).

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

use heaptoll_stats_page::shared;

use crate::WRITER;
use crate::text::Text;

/// When a report is made.
#[derive(Clone, Copy)]
pub enum Stage {
    Start,
    Exit,
}

/// Symbols whose next definition is reported: those that the manager lacks come from elsewhere.
const NEXT: [&CStr; 15] = [
    c"malloc",
    c"free",
    c"calloc",
    c"realloc",
    c"reallocarray",
    c"memalign",
    c"posix_memalign",
    c"aligned_alloc",
    c"valloc",
    c"pvalloc",
    c"malloc_usable_size",
    c"free_sized",
    c"free_aligned_sized",
    c"_Znwm",
    c"_ZdlPv",
];
const DEFAULT: [&CStr; 3] = [c"malloc", c"free", c"_Znwm"];
const OBJECTS: usize = 1024;

#[derive(Clone, Copy)]
struct Object {
    start: usize,
    end: usize,
    base: usize,
    dynamic: *const Dynamic,
    name: *const c_char,
}

#[repr(C)]
struct Dynamic {
    tag: i64,
    value: usize,
}

#[repr(C)]
struct Rela {
    offset: usize,
    info: u64,
    addend: i64,
}

#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: usize,
    size: u64,
}

const DT_NULL: i64 = 0;
const DT_PLTRELSZ: i64 = 2;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_PLTREL: i64 = 20;
const DT_JMPREL: i64 = 23;

struct State {
    text: Text,
    objects: [Object; OBJECTS],
    count: usize,
    /// Addresses of the program's own stubs that stand for undefined functions (non-PIC programs).
    stubs: [usize; 64],
    stub_count: usize,
    path: [u8; 4096],
    exe: [u8; 4096],
    exe_length: usize,
    next: [*mut c_void; NEXT.len()],
    default: [*mut c_void; DEFAULT.len()],
}

struct Guarded(UnsafeCell<State>);

// SAFETY: only `with_state` accesses the state, on the thread that has set `BUSY`.
unsafe impl Sync for Guarded {}

static BUSY: AtomicBool = AtomicBool::new(false);
static PREPARED: AtomicBool = AtomicBool::new(false);
static STATE: Guarded = Guarded(UnsafeCell::new(State {
    text: Text::new(),
    objects: [Object { start: 0, end: 0, base: 0, dynamic: ptr::null(), name: ptr::null() }; OBJECTS],
    count: 0,
    stubs: [0; 64],
    stub_count: 0,
    path: [0; 4096],
    exe: [0; 4096],
    exe_length: 0,
    next: [ptr::null_mut(); NEXT.len()],
    default: [ptr::null_mut(); DEFAULT.len()],
}));

/// Runs `work` on the state unless it is in use: a signal handler may call `_exit` and interrupt a report.
fn with_state(work: impl FnOnce(&mut State)) {
    if BUSY.swap(true, Ordering::Acquire) {
        return;
    }
    // SAFETY: this thread has changed `BUSY` from false, so no other reference to the state exists.
    work(unsafe { &mut *STATE.0.get() });
    BUSY.store(false, Ordering::Release);
}

/// Gathers what later reports must not look up themselves: its variable, since the program may rearrange
/// its environment, and by `dlsym`, which allocates when it fails.
pub fn prepare() {
    with_state(|state| {
        let Some(path) = heaptoll_process::environment::variable(c"HEAPTOLL_PREFLIGHT_REPORT") else {
            return;
        };
        let path = path.to_bytes_with_nul();
        if path.len() > state.path.len() {
            return;
        }
        // SAFETY: dlsym reads C literals; readlink writes at most 4095 bytes to `exe`; the block that malloc returns, or
        // null, is freed once.
        unsafe {
            state.path[..path.len()].copy_from_slice(path);
            let read = libc::readlink(c"/proc/self/exe".as_ptr(), state.exe.as_mut_ptr().cast(), 4095);
            state.exe_length = usize::try_from(read).unwrap_or(0);
            for (address, name) in state.next.iter_mut().zip(NEXT) {
                *address = heaptoll_next::family::symbol(name).unwrap_or(ptr::null_mut());
            }
            for (address, name) in state.default.iter_mut().zip(DEFAULT) {
                *address = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
            }
            // The first call takes the message of a failed lookup, the second frees it.
            libc::dlerror();
            libc::dlerror();
            // A layer after this one reports to which object it forwards when it is first called, which must be before
            // this report.
            heaptoll_next::forward::free(heaptoll_next::forward::malloc(1));
        }
        PREPARED.store(true, Ordering::Release);
    });
}

/// Appends a report, if one is requested. A child of `vfork` does not report: its memory is its parent's.
pub fn report(stage: Stage) {
    if !PREPARED.load(Ordering::Acquire) || !WRITER.owned_by_caller() {
        return;
    }
    with_state(|state| {
        state.text.clear();
        state.head(stage);
        // The loader's list is locked while a callback runs: everything is done within one, so that no object is
        // unloaded while its tables are read.
        // SAFETY: the callback gets a pointer to `state`, which outlives the call and to which nothing else refers
        // during it.
        unsafe { libc::dl_iterate_phdr(Some(inside), ptr::from_mut(state).cast()) };
        state.text.finish();
        if let Ok(path) = CStr::from_bytes_until_nul(&state.path) {
            shared::append(path, state.text.bytes());
        }
    });
}

unsafe extern "C" fn inside(_: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: `data` is the state that `report` passed, to which nothing else refers. (The nested iteration takes the
    // recursive lock again.)
    unsafe {
        let state = &mut *data.cast::<State>();
        state.count = 0;
        state.stub_count = 0;
        libc::dl_iterate_phdr(Some(add_object), data);
        state.lookups();
        for number in 0..state.count {
            state.object(number);
        }
    }
    1
}

unsafe extern "C" fn add_object(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: `data` is the state; the loader's info and its program headers are valid during the callback.
    unsafe {
        let state = &mut *data.cast::<State>();
        if state.count == OBJECTS {
            state.text.cut = true;
            return 1;
        }
        let info = &*info;
        let base = info.dlpi_addr as usize;
        let mut object =
            Object { start: usize::MAX, end: 0, base, dynamic: ptr::null(), name: info.dlpi_name };
        for number in 0..info.dlpi_phnum as usize {
            let header = &*info.dlpi_phdr.add(number);
            let start = base.wrapping_add(header.p_vaddr as usize);
            match header.p_type {
                libc::PT_LOAD => {
                    object.start = object.start.min(start);
                    object.end = object.end.max(start.wrapping_add(header.p_memsz as usize));
                }
                libc::PT_DYNAMIC => object.dynamic = start as *const Dynamic,
                _ => {}
            }
        }
        state.objects[state.count] = object;
        state.count += 1;
    }
    0
}

impl State {
    fn head(&mut self, stage: Stage) {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: clock_gettime writes to `time`, a local variable; getpid takes no pointers and cannot fail.
        let pid = unsafe {
            libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time);
            libc::getpid()
        };
        let now = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
        let stage: &[u8] = match stage {
            Stage::Start => b"start",
            Stage::Exit => b"exit",
        };
        let text = &mut self.text;
        text.put(b"report\t1").number(pid as u64).field(stage).number(now);
        text.field(&self.exe[..self.exe_length]).put(b"\n");
        let slot = WRITER.slot();
        text.put(b"calls");
        for counter in [
            &slot.malloc_calls,
            &slot.realloc_calls,
            &slot.free_calls,
            &slot.new_calls,
            &slot.delete_calls,
            &slot.failed_calls,
        ] {
            text.number(counter.load(Ordering::Relaxed));
        }
        text.put(b"\n");
    }

    fn lookups(&mut self) {
        let own = self.containing(own_address());
        self.line(b"layer", None, own);
        for (number, name) in DEFAULT.iter().enumerate() {
            let object = self.containing(self.default[number] as usize);
            self.line(b"default", Some(name), object);
        }
        for (number, name) in NEXT.iter().enumerate() {
            let object = self.containing(self.next[number] as usize);
            self.line(b"next", Some(name), object);
        }
    }

    fn line(&mut self, head: &[u8], symbol: Option<&CStr>, object: Option<usize>) {
        self.text.put(head);
        if let Some(symbol) = symbol {
            self.text.field(symbol.to_bytes());
        }
        self.name(object);
        self.text.put(b"\n");
    }

    /// Appends an object's path; the program itself has none in the loader's list.
    fn name(&mut self, object: Option<usize>) {
        let Some(number) = object else {
            self.text.field(b"-");
            return;
        };
        let name = self.objects[number].name;
        // SAFETY: the loader's names are C strings, valid while its list is locked, which it is during `inside`.
        let name = if name.is_null() { &[][..] } else { unsafe { CStr::from_ptr(name).to_bytes() } };
        if name.is_empty() && number == 0 {
            self.text.field(&self.exe[..self.exe_length]);
        } else {
            self.text.field(name);
        }
    }

    fn containing(&self, address: usize) -> Option<usize> {
        self.objects[..self.count].iter().position(|o| o.start <= address && address < o.end)
    }

    /// Reports one object's slots.
    fn object(&mut self, number: usize) {
        let object = self.objects[number];
        if object.dynamic.is_null() || self.containing(own_address()) == Some(number) {
            return;
        }
        self.line(b"object", None, Some(number));
        let (mut strings, mut symbols, mut rela, mut rela_bytes) = (0, 0, 0, 0);
        let (mut jump, mut jump_bytes, mut jump_kind) = (0, 0, DT_RELA as usize);
        // SAFETY: `dynamic` is the object's dynamic section, a DT_NULL-terminated array that the loader has processed
        // and that is mapped while the loader's list is locked.
        unsafe {
            let mut entry = object.dynamic;
            while (*entry).tag != DT_NULL {
                let value = (*entry).value;
                // The loader replaces these by addresses, except in objects whose dynamic section is read-only.
                let address = if value < object.start { value.wrapping_add(object.base) } else { value };
                match (*entry).tag {
                    DT_STRTAB => strings = address,
                    DT_SYMTAB => symbols = address,
                    DT_RELA => rela = address,
                    DT_RELASZ => rela_bytes = value,
                    DT_JMPREL => jump = address,
                    DT_PLTRELSZ => jump_bytes = value,
                    DT_PLTREL => jump_kind = value,
                    _ => {}
                }
                entry = entry.add(1);
            }
        }
        if strings == 0 || symbols == 0 {
            return;
        }
        if jump != 0 && jump_kind == DT_RELA as usize {
            self.slots(number, jump, jump_bytes, strings, symbols);
        }
        if rela != 0 {
            self.slots(number, rela, rela_bytes, strings, symbols);
        }
    }

    fn slots(&mut self, number: usize, table: usize, bytes: usize, strings: usize, symbols: usize) {
        let object = self.objects[number];
        for index in 0..bytes / size_of::<Rela>() {
            // SAFETY: the loader itself has relocated the object by these tables, so every index in them is within
            // bounds and every slot is mapped.
            unsafe {
                let rela = &*(table as *const Rela).add(index);
                let symbol_number = (rela.info >> 32) as usize;
                if symbol_number == 0 {
                    continue;
                }
                let symbol = &*(symbols as *const Symbol).add(symbol_number);
                let name = CStr::from_ptr((strings + symbol.name as usize) as *const c_char);
                if !of_family(name.to_bytes()) {
                    continue;
                }
                let undefined = symbol.section == 0;
                if number == 0 && undefined && symbol.value != 0 && self.stub_count < self.stubs.len() {
                    self.stubs[self.stub_count] = object.base.wrapping_add(symbol.value);
                    self.stub_count += 1;
                }
                let slot = object.base.wrapping_add(rela.offset) as *const usize;
                let value = slot.read_unaligned();
                let own = !undefined && value == object.base.wrapping_add(symbol.value);
                self.slot(number, name, value, own);
            }
        }
    }

    /// Reports one slot; `own`: it holds the object's own definition of the symbol.
    fn slot(&mut self, number: usize, symbol: &CStr, value: usize, own: bool) {
        let target = self.containing(value);
        self.text.put(b"slot").field(symbol.to_bytes());
        if value == 0 {
            self.text.field(b"@null");
        } else if target == self.containing(own_address()) {
            self.text.field(b"@layer");
        } else if self.stubs[..self.stub_count].contains(&value) && target != Some(number) {
            self.text.field(b"@plt");
        } else if target == Some(number) && !own {
            // Still the path through the object's procedure linkage table, which calls the loader at the first call.
            self.text.field(b"@lazy");
        } else {
            self.name(target);
        }
        self.text.put(b"\n");
    }
}

/// An address within this layer.
fn own_address() -> usize {
    ptr::from_ref(&BUSY) as usize
}

/// Whether a relocation's symbol is one of the malloc family or an `operator new` or `operator delete`.
fn of_family(name: &[u8]) -> bool {
    if let Some(operator) = name.strip_prefix(b"_Z") {
        return [&b"nwm"[..], b"nam", b"dlPv", b"daPv"].iter().any(|p| operator.starts_with(p));
    }
    NEXT.iter().any(|family| family.to_bytes() == name)
}
