//! Registration: of the file at a process image's first event, of a process after each fork, of each thread.

use core::ffi::{CStr, c_char};
use core::mem::size_of;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use crate::layout::{
    EXE_BYTES, FIXED, Geometry, Header, MAGIC, PAGE, Process, SHARED, VARIABLE, VERSION, gate, state,
};
use crate::lock::lock;
use crate::memory::Need;
use crate::places::{control, process_entry, ring_words};
use crate::rings::{Core, mark, stage};
use crate::state::{Claim, Life, STATE_BYTES, State};
use crate::sys::{self, Descriptor, Errno};
use crate::wait::{PATIENCE_NS, Watch, wake_tool};

/// Of a limited address space, this part may go to the mapping.
const PART_OF_ADDRESS_SPACE: usize = 8;

/// How long nothing becomes free before there is no hope: every ring belongs to a thread that lives.
const NOTHING_FREED_NS: u64 = 1_000_000_000;

/// How long a process or thread waits where something becomes free all the time and others take it.
const LONGEST_WAIT_NS: u64 = 20_000_000_000;

/// Fewest rings worth having.
const FEWEST_RINGS: usize = 4;

impl Core {
    /// The process's own memory.
    pub(crate) fn life(&self) -> *const Life {
        self.life.load(Ordering::Acquire)
    }

    /// The gate of this process, or until it has registered, of the one it was forked from.
    #[inline(always)]
    pub(crate) fn gate(&self) -> u32 {
        // SAFETY: asked by producers, which exist only once this process or that one has registered; gates lie in the
        // mapping, which stays.
        unsafe { (*self.gate.load(Ordering::Relaxed)).load(Ordering::Relaxed) }
    }

    /// The mapped header.
    ///
    /// # Safety
    /// Attached.
    pub(crate) unsafe fn mapped_header(&self) -> &Header {
        // SAFETY: the caller says that there is a mapping; it stays.
        unsafe { &*self.header.load(Ordering::Acquire) }
    }

    /// Where everything lies.
    pub(crate) fn geometry(&self) -> Geometry {
        // SAFETY: written by the one thread that attached, before there was a header for anybody to come here with.
        unsafe { *self.geometry.get() }
    }

    /// Whether a word of a thread without a ring of its own was made in this process, not before a fork.
    pub(crate) fn current(&self, word: usize) -> bool {
        // SAFETY: such a word was made after attaching, so there is a life.
        let life = unsafe { &*self.life() };
        !life.process.load(Ordering::Acquire).is_null()
            && life.image.load(Ordering::Relaxed) as u8 == mark::image(word)
    }

    /// The state that a thread of this word writes by.
    pub(crate) fn state_of(&self, word: usize) -> Option<*const State> {
        if word & mark::OWN != 0 {
            Some((word - mark::OWN) as *const State)
        } else if mark::is_shared(word) {
            // SAFETY: such a word was made after attaching, so there is a life.
            Some(unsafe { &raw const (*self.life()).nobody })
        } else {
            None
        }
    }

    /// No more events go anywhere, from this process and from children it forks.
    pub(crate) fn detach(&self) {
        self.attached.store(stage::DETACHED, Ordering::Release);
        let life = self.life();
        if !life.is_null() {
            // SAFETY: the life and the entries stay mapped.
            unsafe {
                let process = (*life).process.load(Ordering::Acquire);
                if !process.is_null() {
                    (*process).detached.store(1, Ordering::Release);
                }
            }
        }
    }

    /// Registers the calling thread, whose word was `word`, and before it what is needed. Gives the thread's new word;
    /// 0 when detached.
    #[cold]
    #[inline(never)]
    pub(crate) fn register(&self, word: usize) -> usize {
        let _errno = Errno::keep();
        if !self.attach() {
            return 0;
        }
        // SAFETY: attached, so there are a life and a header.
        let (life, header) = unsafe { (&*self.life(), self.mapped_header()) };
        if !lock(&life.lock, sys::gettid() as u32, life.pid.load(Ordering::Relaxed)) {
            return 0;
        }
        let word = self.register_locked(life, header, word);
        life.lock.store(0, Ordering::Release);
        word
    }

    fn register_locked(&self, life: &Life, header: &Header, word: usize) -> usize {
        if life.process.load(Ordering::Acquire).is_null() && !self.register_process(life, header) {
            return 0;
        }
        // SAFETY: registered just now or before; entries stay mapped.
        let process = unsafe { &*life.process.load(Ordering::Acquire) };
        // A process that shares our memory under another number (a child of vfork) has threads that are not found
        // among ours: their rings are kept until this process ends.
        let tid =
            if sys::getpid() as u32 == life.pid.load(Ordering::Relaxed) { sys::gettid() as u32 } else { 0 };
        let mapped = self.mapped.load(Ordering::Relaxed);
        let geometry = self.geometry();
        let shared = geometry.shared_rings(mapped);
        if word & (mark::OWN | mark::SHARED | mark::LEFT_OUT) != 0 {
            // The thread that forked is here, so no other can come with the address of a state from before the fork.
            for (used, claimed) in self.used.iter().zip(&life.claimed) {
                used.store(claimed.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
        let thread = process.threads.fetch_add(1, Ordering::AcqRel);
        if thread > 0 {
            process.gate.0.fetch_or(gate::SEQUENCED, Ordering::AcqRel);
        }
        let image = life.image.load(Ordering::Relaxed);
        // Where one thread has waited in vain the others do not: each would hold up all that register.
        let waits = process.threads_left_out.load(Ordering::Relaxed) == 0;
        let word = self.patiently(header, waits, || {
            if let Some(state) = self.claim_ring(life, header, geometry, shared..mapped, thread, tid) {
                return Some(state as usize | mark::OWN);
            }
            process.gate.0.fetch_or(gate::SEQUENCED, Ordering::AcqRel);
            if life.shared.load(Ordering::Acquire).is_null() {
                let state = self.claim_ring(life, header, geometry, 0..shared, SHARED, 0)?;
                life.shared.store(state, Ordering::Release);
            }
            Some(mark::shared(thread, tid, image))
        });
        word.unwrap_or_else(|| {
            header.registry.0.threads_left_out.fetch_add(1, Ordering::Relaxed);
            process.threads_left_out.fetch_add(1, Ordering::Relaxed);
            mark::left_out(image)
        })
    }

    /// Tries until it succeeds; where the caller `waits`, as long as the tool lives and, now and then, something becomes
    /// free, but not for ever: what says so lies in shared memory.
    fn patiently<T>(
        &self,
        header: &Header,
        waits: bool,
        mut attempt: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        let found = attempt();
        if found.is_some() || !waits {
            return found;
        }
        let registry = &header.registry.0;
        registry.waiting.fetch_add(1, Ordering::SeqCst);
        let mut watch = Watch::new();
        let begun_ns = sys::now_ns();
        let mut since_ns = begun_ns;
        let found = loop {
            let freed = registry.freed.load(Ordering::SeqCst);
            let found = attempt();
            if found.is_some() {
                break found;
            }
            wake_tool(header);
            sys::futex_wait(&registry.freed, freed, PATIENCE_NS);
            let now = sys::now_ns();
            if now - begun_ns > LONGEST_WAIT_NS {
                break None;
            }
            if registry.freed.load(Ordering::SeqCst) != freed {
                since_ns = now;
            } else if now - since_ns > NOTHING_FREED_NS || watch.look(self, header).is_err() {
                break None;
            }
        };
        registry.waiting.fetch_sub(1, Ordering::SeqCst);
        found
    }

    /// The ring that threads share.
    pub(crate) fn shared_state(&self, life: &Life) -> Option<&State> {
        let known = life.shared.load(Ordering::Acquire);
        let state = if known.is_null() { self.open_shared(life)? } else { known };
        // SAFETY: states stay mapped.
        Some(unsafe { &*state })
    }

    /// The ring for threads without one of their own; for a process that has none yet.
    #[cold]
    fn open_shared(&self, life: &Life) -> Option<*mut State> {
        // SAFETY: attached, as there is a life.
        let header = unsafe { self.mapped_header() };
        let geometry = self.geometry();
        if !lock(&life.lock, sys::gettid() as u32, life.pid.load(Ordering::Relaxed)) {
            return None;
        }
        let known = life.shared.load(Ordering::Acquire);
        let state = if known.is_null() {
            let shared = geometry.shared_rings(self.mapped.load(Ordering::Relaxed));
            // SAFETY: who tells an event has registered its process; entries stay mapped.
            unsafe {
                (*life.process.load(Ordering::Acquire)).gate.0.fetch_or(gate::SEQUENCED, Ordering::AcqRel)
            };
            let made = self.claim_ring(life, header, geometry, 0..shared, SHARED, 0);
            life.shared.store(made.unwrap_or(core::ptr::null_mut()), Ordering::Release);
            made
        } else {
            Some(known)
        };
        life.lock.store(0, Ordering::Release);
        state
    }

    /// Maps the file, once.
    fn attach(&self) -> bool {
        loop {
            match self.attached.compare_exchange(
                stage::NEW,
                stage::ATTACHING,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => {
                    let mapped = self.map();
                    let now = if mapped { stage::ATTACHED } else { stage::DETACHED };
                    self.attached.store(now, Ordering::Release);
                    return mapped;
                }
                Err(stage::ATTACHING) => sys::yield_now(),
                Err(known) => return known == stage::ATTACHED,
            }
        }
    }

    fn map(&self) -> bool {
        let mut name = [0u8; 32];
        name[..VARIABLE.len()].copy_from_slice(VARIABLE.as_bytes());
        // SAFETY: the name is a C string; what getenv gives is one.
        let path = unsafe {
            let path = libc::getenv(name.as_ptr().cast::<c_char>());
            if path.is_null() {
                return false;
            }
            CStr::from_ptr(path)
        };
        let bytes = path.to_bytes_with_nul();
        // SAFETY: only the one thread that attaches is here; see `Core`.
        let kept = unsafe { &mut *self.path.get() };
        if bytes.len() > kept.len() {
            return false;
        }
        kept[..bytes.len()].copy_from_slice(bytes);
        let Ok(file) = Descriptor::open(path) else { return false };
        let Some((geometry, budget)) = read_header(&file) else { return false };
        if file.length() < geometry.bytes(geometry.rings) || file.locked() == Some(false) {
            return false;
        }
        let mut rings = geometry.rings;
        if let Some(limit) = sys::address_space_limit() {
            while rings > FEWEST_RINGS && geometry.bytes(rings) > limit / PART_OF_ADDRESS_SPACE {
                rings = (rings / 2).max(FEWEST_RINGS);
            }
        }
        let header = loop {
            let map = file.map(geometry.bytes(rings));
            if !map.is_null() {
                break map.cast::<Header>();
            }
            if rings <= FEWEST_RINGS {
                return false;
            }
            rings = (rings / 2).max(FEWEST_RINGS);
        };
        let own = size_of::<Life>().next_multiple_of(PAGE);
        let life = sys::wiped_on_fork(own + rings * STATE_BYTES);
        if life.is_null() {
            // SAFETY: our own mapping, which nobody else has seen.
            unsafe { sys::unmap(header.cast(), geometry.bytes(rings)) };
            return false;
        }
        // SAFETY: as for `path`.
        unsafe { *self.geometry.get() = geometry };
        self.budget.store(budget, Ordering::Relaxed);
        self.mapped.store(rings, Ordering::Relaxed);
        self.life.store(life.cast(), Ordering::Release);
        self.header.store(header, Ordering::Release);
        true
    }

    /// The inode of our namespace of process numbers. Where there is no `/proc` any more, it is what it was.
    fn find_namespace(&self, header: &Header) -> u64 {
        let found = sys::namespace();
        if found != 0 {
            self.namespace.store(found, Ordering::Relaxed);
        }
        let namespace = self.namespace.load(Ordering::Relaxed);
        let same = namespace != 0 && namespace == header.namespace.load(Ordering::Relaxed);
        self.same_namespace.store(u32::from(same), Ordering::Relaxed);
        namespace
    }

    /// Claims an entry of the process table and fills it in.
    fn register_process(&self, life: &Life, header: &Header) -> bool {
        if header.closed.load(Ordering::Acquire) != 0 {
            self.detach();
            return false;
        }
        let geometry = self.geometry();
        let pid = sys::getpid();
        let registry = &header.registry.0;
        let claim = u64::from(pid as u32) << 8 | state::CLAIMED;
        let waits = registry.processes_left_out.load(Ordering::Relaxed) == 0;
        let claimed = self.patiently(header, waits, || {
            let hint = registry.process_hint.load(Ordering::Relaxed) as usize;
            (0..geometry.processes).map(|n| (hint + n) % geometry.processes).find(|&n| {
                if !self.has_entry(header, geometry, n) {
                    return false;
                }
                // SAFETY: an entry of the table, which lies in the mapping, with memory.
                let entry = unsafe { &(*process_entry(header, n)).state };
                entry.load(Ordering::Relaxed) == state::FREE
                    && entry.compare_exchange(state::FREE, claim, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            })
        });
        let Some(index) = claimed else {
            registry.processes_left_out.fetch_add(1, Ordering::Relaxed);
            self.detach();
            return false;
        };
        registry.process_hint.store(index as u32 + 1, Ordering::Relaxed);
        // SAFETY: as above.
        let entry = unsafe { &*process_entry(header, index) };
        let image = registry.images.fetch_add(1, Ordering::Relaxed);
        entry.parent_pid.store(sys::getppid(), Ordering::Relaxed);
        entry.image.store(image, Ordering::Relaxed);
        entry.started_ns.store(sys::now_ns(), Ordering::Relaxed);
        let namespace = self.find_namespace(header);
        entry.namespace.store(namespace, Ordering::Relaxed);
        entry.sequence.0.store(0, Ordering::Relaxed);
        entry.newest.0.store(0, Ordering::Relaxed);
        entry.threads.store(0, Ordering::Relaxed);
        entry.detached.store(0, Ordering::Relaxed);
        entry.threads_left_out.store(0, Ordering::Relaxed);
        // Of a process that died while it answered.
        entry.facts_lock.store(0, Ordering::Relaxed);
        entry.gate.0.store(gate::VALID | gate::TICK, Ordering::Relaxed);
        write_exe(entry);
        life.nobody.shut();
        life.index.store(index as u32, Ordering::Relaxed);
        life.image.store(image, Ordering::Relaxed);
        life.pid.store(pid as u32, Ordering::Relaxed);
        self.gate.store(core::ptr::from_ref(&entry.gate.0).cast_mut(), Ordering::Release);
        life.process.store(core::ptr::from_ref(entry).cast_mut(), Ordering::Release);
        push(&registry.newest, &entry.next, index);
        self.settle_exec(pid, namespace);
        wake_tool(header);
        true
    }

    /// Claims a free ring among `among` and begins a state on it.
    fn claim_ring(
        &self,
        life: &Life,
        header: &Header,
        geometry: Geometry,
        among: core::ops::Range<usize>,
        thread: u32,
        tid: u32,
    ) -> Option<*mut State> {
        let who = u64::from(life.index.load(Ordering::Relaxed) + 1) << 32 | u64::from(tid);
        let from =
            if thread == SHARED { 0 } else { header.registry.0.ring_hint.load(Ordering::Relaxed) as usize };
        let blocks = geometry.first_blocks();
        let need = if thread == SHARED { Need::Shared } else { Need::First };
        let ring = (from.max(among.start)..among.end)
            .chain(among.start..from.clamp(among.start, among.end))
            .find(|&n| {
                // SAFETY: a mapped ring's control words.
                let control = unsafe { &*control(header, geometry, n) };
                let owner = &control.owner.0.who;
                let claimed = self.may_use(life, n)
                    && owner.load(Ordering::Relaxed) == 0
                    && owner.compare_exchange(0, who, Ordering::AcqRel, Ordering::Relaxed).is_ok();
                let held = &control.consumer.0.held;
                // Where there is no memory, a ring that was used before may have some.
                let has = claimed && self.reserve_blocks(header, geometry, (n, held), 0..blocks, need);
                if claimed && !has {
                    owner.store(0, Ordering::Release);
                }
                has
            })?;
        if thread != SHARED {
            header.registry.0.ring_hint.store(ring as u32 + 1, Ordering::Relaxed);
        }
        life.claimed[ring / 8].fetch_or(1 << (ring % 8), Ordering::Relaxed);
        self.used[ring / 8].fetch_or(1 << (ring % 8), Ordering::Relaxed);
        let own = size_of::<Life>().next_multiple_of(PAGE);
        // SAFETY: the mapping of states has room for a state of each mapped ring; the ring is ours, so no other thread
        // of this process uses its state; the process is registered.
        unsafe {
            let control = &*control(header, geometry, ring);
            let state = self.life().cast::<u8>().add(own + ring * STATE_BYTES).cast::<State>();
            let words = ring_words(header, geometry, ring);
            control.owner.0.thread.store(thread, Ordering::Relaxed);
            let grows = blocks < geometry.ring_blocks();
            let reach = if grows { blocks } else { blocks | FIXED };
            control.consumer.0.reach.store(reach, Ordering::Relaxed);
            let process = &*life.process.load(Ordering::Acquire);
            let simple = !header.flags().event_time && thread != SHARED;
            let block_words = geometry.block_words();
            let claim = Claim { number: ring as u32, who, thread, block_words, blocks, grows, simple };
            (*state).begin(words, control, process, &claim);
            push(&process.newest.0, &control.owner.0.next, ring);
            Some(state.cast_mut())
        }
    }

    /// Whether this process may use a ring's state. After a fork, the thread that forked may still have the address of
    /// a state from before, until its next event; if another thread claimed that ring first, both would write by it.
    fn may_use(&self, life: &Life, ring: usize) -> bool {
        let (bit, mask) = (ring / 8, 1 << (ring % 8));
        (self.used[bit].load(Ordering::Relaxed) & !life.claimed[bit].load(Ordering::Relaxed)) & mask == 0
    }
}

/// Pushes entry `index` on a list that its reader takes as a whole.
fn push(newest: &AtomicU32, next: &AtomicU32, index: usize) {
    let mut head = newest.load(Ordering::Relaxed);
    loop {
        next.store(head, Ordering::Relaxed);
        match newest.compare_exchange_weak(head, index as u32 + 1, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return,
            Err(other) => head = other,
        }
    }
}

/// Maps the header alone and reads what it says: where everything lies, and the blocks that all rings may have.
fn read_header(file: &Descriptor) -> Option<(Geometry, u32)> {
    if file.length() < PAGE {
        return None;
    }
    let map = file.map(PAGE);
    if map.is_null() {
        return None;
    }
    // SAFETY: the mapping is a page and the file as long; all of the header is atomic integers.
    unsafe {
        let header = &*map.cast::<Header>();
        let good = header.magic.load(Ordering::Acquire) == MAGIC
            && header.version.load(Ordering::Relaxed) == VERSION
            && header.closed.load(Ordering::Relaxed) == 0;
        let said = if good { header.geometry() } else { None };
        let said = said.map(|geometry| (geometry, header.budget.load(Ordering::Relaxed)));
        sys::unmap(map, PAGE);
        said
    }
}

fn write_exe(entry: &Process) {
    // Stacks may be small. Of a path beyond this the middle is kept, then.
    let mut path = [0u8; 1024];
    let read = sys::exe(&mut path);
    let kept = read.min(EXE_BYTES);
    for (to, from) in entry.exe.iter().zip(&path[read - kept..read]) {
        AtomicU8::store(to, *from, Ordering::Relaxed);
    }
    entry.exe_bytes.store(kept as u32, Ordering::Relaxed);
}
