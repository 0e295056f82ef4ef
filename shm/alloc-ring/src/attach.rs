//! Registration: a process image attaches to the file at its first event, a process registers after each fork, and
//! each thread registers at its first event.

use core::ffi::CStr;
use core::mem::size_of;

use heaptoll_assertions::assert_internal;

use crate::address_space::{FEWEST_RINGS, fewer};
use crate::atomic::{AtomicU8, AtomicU32, Ordering};
use crate::attachment::{Attachment, stage};
use crate::layout::{FIXED, Geometry, Header, MAGIC, PAGE, Process, SHARED, VARIABLE, VERSION, gate, state};
use crate::lock::lock;
use crate::memory::Need;
use crate::pointers::{control, process_entry, ring_words};
use crate::state::{Claim, ProcessLocal, STATE_BYTES, State};
use crate::sys::{self, Descriptor, Errno};
use crate::thread_word::mark;
use crate::wait::{PATIENCE_NS, ToolWatch, wake_tool};

/// How long a thread waits while nothing becomes free: after that, every ring belongs to a running thread.
const NOTHING_FREED_NS: u64 = 1_000_000_000;

/// How long a process or thread waits while entries become free and others take them.
const LONGEST_WAIT_NS: u64 = 20_000_000_000;

impl Attachment {
    /// Registers the calling thread, whose word was `word`, after attaching and registering the process if needed.
    /// Returns the thread's new word; 0 when detached.
    #[cold]
    #[inline(never)]
    pub(crate) fn register(&self, word: usize) -> usize {
        let _errno = Errno::keep();
        if !self.attach() {
            return 0;
        }
        // SAFETY: `attach` has returned true, so `map` has set `local` and `header`.
        let (local, header) = unsafe { (&*self.local(), self.mapped_header()) };
        if !lock(&local.lock, sys::gettid() as u32, local.pid.load(Ordering::Relaxed)) {
            return 0;
        }
        let word = self.register_locked(local, header, word);
        assert_internal!(
            local.lock.load(Ordering::Relaxed) == sys::gettid() as u32,
            "a registration ends under the lock that it took"
        );
        local.lock.store(0, Ordering::Release);
        word
    }

    fn register_locked(&self, local: &ProcessLocal, header: &Header, word: usize) -> usize {
        if local.process.load(Ordering::Acquire).is_null() && !self.register_process(local, header) {
            return 0;
        }
        // SAFETY: `process` is not null: it was set before, or by `register_process` just now. Entries stay mapped.
        let process = unsafe { &*local.process.load(Ordering::Acquire) };
        // The threads of a process that shares our memory under another number (a child of vfork) are not threads of
        // this process: their rings are kept until this process ends.
        let tid =
            if sys::getpid() as u32 == local.pid.load(Ordering::Relaxed) { sys::gettid() as u32 } else { 0 };
        let mapped = self.mapped.load(Ordering::Relaxed);
        let geometry = self.geometry();
        let shared = geometry.shared_rings(mapped);
        if word & (mark::OWN | mark::SHARED | mark::LEFT_OUT) != 0 {
            // This is the thread that forked, so no other can have the address of a state from before the fork.
            for (used, claimed) in self.used.iter().zip(&local.claimed) {
                used.store(claimed.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
        let thread = process.threads.fetch_add(1, Ordering::AcqRel);
        if thread > 0 {
            process.gate.0.fetch_or(gate::SEQUENCED, Ordering::AcqRel);
        }
        let image = local.image.load(Ordering::Relaxed);
        // Once one thread has waited in vain the others do not wait: each would delay all that register.
        let waits = process.threads_left_out.load(Ordering::Relaxed) == 0;
        let word = self.retry(header, waits, || {
            if let Some(state) = self.claim_ring(local, header, geometry, shared..mapped, thread, tid) {
                return Some(state as usize | mark::OWN);
            }
            process.gate.0.fetch_or(gate::SEQUENCED, Ordering::AcqRel);
            if local.shared.load(Ordering::Acquire).is_null() {
                let state = self.claim_ring(local, header, geometry, 0..shared, SHARED, 0)?;
                local.shared.store(state, Ordering::Release);
            }
            Some(mark::shared(thread, tid, image))
        });
        word.unwrap_or_else(|| {
            header.registry.0.threads_left_out.fetch_add(1, Ordering::Relaxed);
            process.threads_left_out.fetch_add(1, Ordering::Relaxed);
            mark::left_out(image)
        })
    }

    /// Calls `attempt` until it succeeds; if the caller `waits`, as long as the tool runs and entries become free from
    /// time to time, up to a limit, because both are read from shared memory.
    fn retry<T>(&self, header: &Header, waits: bool, mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
        let found = attempt();
        if found.is_some() || !waits {
            return found;
        }
        let registry = &header.registry.0;
        registry.waiting.fetch_add(1, Ordering::SeqCst);
        let mut watch = ToolWatch::new();
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
            } else if now - since_ns > NOTHING_FREED_NS || watch.check(self, header).is_err() {
                break None;
            }
        };
        registry.waiting.fetch_sub(1, Ordering::SeqCst);
        found
    }

    /// The ring that threads share.
    pub(crate) fn shared_state(&self, local: &ProcessLocal) -> Option<&State> {
        let known = local.shared.load(Ordering::Acquire);
        let state = if known.is_null() { self.open_shared(local)? } else { known };
        // SAFETY: `claim_ring` made the pointer, into the mapping of states, which stays.
        Some(unsafe { &*state })
    }

    /// Claims the ring for threads without one of their own, if the process has none yet.
    #[cold]
    fn open_shared(&self, local: &ProcessLocal) -> Option<*mut State> {
        // SAFETY: the caller has `local`, which `map` sets when it attaches.
        let header = unsafe { self.mapped_header() };
        let geometry = self.geometry();
        if !lock(&local.lock, sys::gettid() as u32, local.pid.load(Ordering::Relaxed)) {
            return None;
        }
        let known = local.shared.load(Ordering::Acquire);
        let state = if known.is_null() {
            let shared = geometry.shared_rings(self.mapped.load(Ordering::Relaxed));
            // SAFETY: the caller records an event, for which its process has registered; entries stay mapped.
            unsafe {
                (*local.process.load(Ordering::Acquire)).gate.0.fetch_or(gate::SEQUENCED, Ordering::AcqRel)
            };
            let made = self.claim_ring(local, header, geometry, 0..shared, SHARED, 0);
            local.shared.store(made.unwrap_or(core::ptr::null_mut()), Ordering::Release);
            made
        } else {
            Some(known)
        };
        local.lock.store(0, Ordering::Release);
        state
    }

    /// Maps the file, once.
    fn attach(&self) -> bool {
        loop {
            match self.stage.compare_exchange(
                stage::NEW,
                stage::ATTACHING,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => {
                    let mapped = self.map();
                    let now = if mapped { stage::ATTACHED } else { stage::DETACHED };
                    self.stage.store(now, Ordering::Release);
                    return mapped;
                }
                Err(stage::ATTACHING) => sys::yield_now(),
                Err(known) => return known == stage::ATTACHED,
            }
        }
    }

    fn map(&self) -> bool {
        let Some(path) = sys::variable(VARIABLE) else { return false };
        let bytes = path.to_bytes_with_nul();
        // SAFETY: `attach` lets only one thread call this, and others read `path` only once `header` is set, below.
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
        let limit = sys::address_space_limit();
        let header = loop {
            let fits = limit.is_none_or(|limit| geometry.may_map(rings, limit));
            let map = if fits { file.map(geometry.bytes(rings)) } else { core::ptr::null_mut() };
            if !map.is_null() {
                break map.cast::<Header>();
            }
            if rings <= FEWEST_RINGS {
                count_limited(&file);
                return false;
            }
            rings = fewer(rings);
        };
        let own = size_of::<ProcessLocal>().next_multiple_of(PAGE);
        let local = sys::wiped_on_fork(own + rings * STATE_BYTES);
        if local.is_null() {
            // SAFETY: `file.map` returned this mapping above, and no pointer to it has been published.
            unsafe { sys::unmap(header.cast(), geometry.bytes(rings)) };
            return false;
        }
        self.entries.store(geometry.processes, Ordering::Relaxed);
        if limit.is_some() {
            // SAFETY: `file.map` returned this mapping above, and no entry is in use.
            unsafe { self.leave_entries(header, geometry) };
        }
        // SAFETY: `attach` lets only one thread call this, and others read `geometry` only once `header` is set, below.
        unsafe { *self.geometry.get() = geometry };
        self.budget.store(budget, Ordering::Relaxed);
        self.mapped.store(rings, Ordering::Relaxed);
        self.local.store(local.cast(), Ordering::Release);
        self.header.store(header, Ordering::Release);
        true
    }

    /// The inode of our namespace of process numbers; without `/proc`, the last known one.
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
    fn register_process(&self, local: &ProcessLocal, header: &Header) -> bool {
        if header.closed.load(Ordering::Acquire) != 0 {
            self.detach();
            return false;
        }
        let geometry = self.geometry();
        let pid = sys::getpid();
        let registry = &header.registry.0;
        let claim = u64::from(pid as u32) << 8 | state::CLAIMED;
        let waits = registry.processes_left_out.load(Ordering::Relaxed) == 0;
        let claimed = self.retry(header, waits, || {
            let hint = registry.process_hint.load(Ordering::Relaxed) as usize;
            let entries = self.entries.load(Ordering::Relaxed);
            (0..entries).map(|n| (hint + n) % entries).find(|&n| {
                if !self.has_entry(header, geometry, n) {
                    return false;
                }
                // SAFETY: `n` is below `entries`, so the entry lies in the mapping; `has_entry` has reserved
                // it.
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
        // SAFETY: `find` above has given an index of an entry in the mapping whose memory `has_entry` has reserved.
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
        // The entry's last process may have died while it answered.
        entry.facts_lock.store(0, Ordering::Relaxed);
        let stop = &header.stop.0;
        let stops = stop.image.load(Ordering::Relaxed) == image;
        let stop_after = if stops { stop.events.load(Ordering::Relaxed) } else { 0 };
        entry.stop_after.store(stop_after, Ordering::Relaxed);
        let has_parents_gate = !self.gate.load(Ordering::Relaxed).is_null();
        entry.forked.store(u32::from(has_parents_gate), Ordering::Relaxed);
        // It stops by an event's number, so all events have one from the first.
        let numbers = if stop_after > 0 { gate::SEQUENCED } else { 0 };
        entry.gate.0.store(gate::VALID | gate::TICK | numbers, Ordering::Relaxed);
        write_exe(entry);
        write_path(self.manager().map_or(b"", CStr::to_bytes), &entry.manager, &entry.manager_bytes);
        local.unassigned.shut();
        local.index.store(index as u32, Ordering::Relaxed);
        local.image.store(image, Ordering::Relaxed);
        local.pid.store(pid as u32, Ordering::Relaxed);
        self.gate.store(core::ptr::from_ref(&entry.gate.0).cast_mut(), Ordering::Release);
        local.process.store(core::ptr::from_ref(entry).cast_mut(), Ordering::Release);
        push(&registry.newest, &entry.next, index);
        self.settle_exec(pid, namespace);
        wake_tool(header);
        true
    }

    /// Claims a free ring of `among` and begins a state on it.
    fn claim_ring(
        &self,
        local: &ProcessLocal,
        header: &Header,
        geometry: Geometry,
        among: core::ops::Range<usize>,
        thread: u32,
        tid: u32,
    ) -> Option<*mut State> {
        let owner_id = u64::from(local.index.load(Ordering::Relaxed) + 1) << 32 | u64::from(tid);
        let from =
            if thread == SHARED { 0 } else { header.registry.0.ring_hint.load(Ordering::Relaxed) as usize };
        let blocks = geometry.first_blocks();
        let need = if thread == SHARED { Need::Shared } else { Need::First };
        let ring = (from.max(among.start)..among.end)
            .chain(among.start..from.clamp(among.start, among.end))
            .find(|&n| {
                // SAFETY: `n` is a mapped ring, so its control words lie in the mapping; the tool reserved the
                // directory.
                let control = unsafe { &*control(header, geometry, n) };
                let owner = &control.owner.0.id;
                let claimed = self.may_use(local, n)
                    && owner.load(Ordering::Relaxed) == 0
                    && owner.compare_exchange(0, owner_id, Ordering::AcqRel, Ordering::Relaxed).is_ok();
                let held = &control.consumer.0.held;
                // If there is no memory for this one, a ring that was used before may have some.
                let has = claimed && self.reserve_blocks(header, geometry, (n, held), 0..blocks, need);
                if claimed && !has {
                    owner.store(0, Ordering::Release);
                }
                has
            })?;
        if thread != SHARED {
            header.registry.0.ring_hint.store(ring as u32 + 1, Ordering::Relaxed);
        }
        local.claimed[ring / 8].fetch_or(1 << (ring % 8), Ordering::Relaxed);
        self.used[ring / 8].fetch_or(1 << (ring % 8), Ordering::Relaxed);
        assert_internal!(ring < self.mapped.load(Ordering::Relaxed), "a claimed ring is mapped");
        assert_internal!(
            thread != SHARED || among.contains(&ring),
            "threads share a ring of those reserved for it"
        );
        let own = size_of::<ProcessLocal>().next_multiple_of(PAGE);
        // SAFETY: `map` made the mapping of states large enough for each mapped ring; the ring was claimed above, so no
        // other thread of this process uses its state; the caller has registered the process, so `process` is not null.
        unsafe {
            let control = &*control(header, geometry, ring);
            let state = self.local().cast::<u8>().add(own + ring * STATE_BYTES).cast::<State>();
            let words = ring_words(header, geometry, ring);
            control.owner.0.thread.store(thread, Ordering::Relaxed);
            let grows = blocks < geometry.ring_blocks();
            let reach = if grows { blocks } else { blocks | FIXED };
            control.consumer.0.reach.store(reach, Ordering::Relaxed);
            let process = &*local.process.load(Ordering::Acquire);
            let simple = !header.flags().event_time && thread != SHARED;
            let block_words = geometry.block_words();
            let claim = Claim { number: ring as u32, owner_id, thread, block_words, blocks, grows, simple };
            (*state).begin(words, control, process, &claim);
            push(&process.newest.0, &control.owner.0.next, ring);
            Some(state.cast_mut())
        }
    }

    /// Whether this process may use a ring's state. After a fork, the thread that forked may still have the address of
    /// a state from before, until its next event; if another thread claimed that ring first, both would write to it.
    fn may_use(&self, local: &ProcessLocal, ring: usize) -> bool {
        let (bit, mask) = (ring / 8, 1 << (ring % 8));
        (self.used[bit].load(Ordering::Relaxed) & !local.claimed[bit].load(Ordering::Relaxed)) & mask == 0
    }
}

/// Pushes entry `index` onto a list that its reader takes as a whole. In one order with the doorbell: either the tool
/// sees the entry before it sleeps, or the caller then sees that it sleeps.
fn push(newest: &AtomicU32, next: &AtomicU32, index: usize) {
    let mut head = newest.load(Ordering::Relaxed);
    loop {
        next.store(head, Ordering::Relaxed);
        match newest.compare_exchange_weak(head, index as u32 + 1, Ordering::SeqCst, Ordering::Relaxed) {
            Ok(_) => return,
            Err(other) => head = other,
        }
    }
}

/// Maps the header alone and reads the geometry, and the blocks that all rings together may have.
fn read_header(file: &Descriptor) -> Option<(Geometry, u32)> {
    if file.length() < PAGE {
        return None;
    }
    let map = file.map(PAGE);
    if map.is_null() {
        return None;
    }
    // SAFETY: the mapping is a page, as large as a header, and the file is no shorter, as checked above; the header
    // consists of atomic integers. Nothing refers to the mapping once it is unmapped.
    unsafe {
        let header = &*map.cast::<Header>();
        let good = header.magic.load(Ordering::Acquire) == MAGIC
            && header.version.load(Ordering::Relaxed) == VERSION
            && header.closed.load(Ordering::Relaxed) == 0;
        let header_values = if good { header.geometry() } else { None };
        let header_values = header_values.map(|geometry| (geometry, header.budget.load(Ordering::Relaxed)));
        sys::unmap(map, PAGE);
        header_values
    }
}

/// Counts this process among those that have no space for the mapping. The file has a header, which was checked.
fn count_limited(file: &Descriptor) {
    let map = file.map(PAGE);
    if map.is_null() {
        return;
    }
    // SAFETY: the mapping is a page, as large as a header, which the file has, as `read_header` has found. Nothing refers
    // to the mapping once it is unmapped.
    unsafe {
        (*map.cast::<Header>()).registry.0.limited.fetch_add(1, Ordering::Relaxed);
        sys::unmap(map, PAGE);
    }
}

/// A function of its own, since stacks may be small.
#[inline(never)]
fn write_exe(entry: &Process) {
    let mut path = [0u8; 1024];
    let read = sys::exe(&mut path);
    write_path(&path[..read], &entry.exe, &entry.exe_bytes);
}

/// Writes the end of a path that is longer than its place.
fn write_path(path: &[u8], place: &[AtomicU8], length: &AtomicU32) {
    let kept = path.len().min(place.len());
    for (to, from) in place.iter().zip(&path[path.len() - kept..]) {
        AtomicU8::store(to, *from, Ordering::Relaxed);
    }
    length.store(kept as u32, Ordering::Relaxed);
}
