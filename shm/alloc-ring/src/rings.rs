//! The layer's handle on the shared file: one static per process, from which each thread gets its [`Producer`].

use core::ffi::CStr;
use core::marker::PhantomData;

use crate::atomic::Ordering;
use crate::attachment::{Attachment, FactsHook, stage};
use crate::execs::ExecNote;
use crate::flags::Flags;
use crate::layout::{Process, exec_state, gate};
use crate::producer::Producer;
use crate::state::State;
use crate::sys;
use crate::thread_word::{ThreadWord, mark};

/// The rings of this process. The layer has one static of it.
pub struct Rings<W> {
    attachment: Attachment,
    word: PhantomData<fn() -> W>,
}

impl<W: ThreadWord> Default for Rings<W> {
    fn default() -> Self {
        Rings::new()
    }
}

impl<W: ThreadWord> Rings<W> {
    /// Not attached yet: the first event, or [`Rings::attach`], attaches.
    pub const fn new() -> Rings<W> {
        Rings { attachment: Attachment::new(), word: PhantomData }
    }

    /// Maps the file that the environment names and registers the calling process and thread. False when there is no
    /// file, or no tool reads it: then every later call does nothing.
    pub fn attach(&self) -> bool {
        self.thread().is_some()
    }

    /// The calling thread's producer, for one event. `None`: detached, or the thread is registering.
    #[inline(always)]
    pub fn thread(&self) -> Option<Producer<'_, W>> {
        let word = W::get();
        if word & mark::OWN != 0 {
            let state = (word - mark::OWN) as *const State;
            // SAFETY: `register_locked` made a word with this mark from the address of a state in a mapping that stays.
            return Some(unsafe { Producer::new(&self.attachment, &*state) });
        }
        Some(Producer::new(&self.attachment, self.other_thread(word)?))
    }

    /// What the tool wants recorded. Nothing when not attached.
    #[inline]
    pub fn flags(&self) -> Flags {
        let header = self.attachment.header.load(Ordering::Acquire);
        // SAFETY: a header that is not null lies in a mapping that stays.
        if header.is_null() { Flags::default() } else { unsafe { (*header).flags() } }
    }

    /// Counts this process, which is attached, among those that are recorded without call stacks.
    pub fn without_stacks(&self) {
        // SAFETY: the caller has attached, so the header lies in a mapping that stays.
        unsafe { self.attachment.mapped_header() }.registry.0.without_stacks.fetch_add(1, Ordering::Relaxed);
    }

    /// Unmaps rings until those that no thread has used fit the limit of the address space, which was lowered. From then
    /// on more threads share a ring.
    pub fn leave_address_space(&self) {
        self.attachment.leave_address_space();
    }

    /// Whether events of this process are dropped.
    pub fn detached(&self) -> bool {
        self.attachment.stage.load(Ordering::Acquire) == stage::DETACHED
    }

    /// Sets the hook to call when the tool requests facts about this process.
    pub fn answer_with(&self, hook: FactsHook) {
        self.attachment.facts.store(hook as *mut (), Ordering::Release);
    }

    /// States which object's `malloc` serves this process, by its path. To be called before [`Rings::attach`].
    pub fn served_by(&self, object: &'static CStr) {
        self.attachment.manager.store(object.as_ptr().cast_mut(), Ordering::Release);
    }

    /// The state of a thread without a ring of its own, or of one not known yet, which is registered.
    #[cold]
    #[inline(never)]
    fn other_thread(&self, word: usize) -> Option<&State> {
        if word == mark::REGISTERING || self.attachment.stage.load(Ordering::Acquire) == stage::DETACHED {
            return None;
        }
        if (mark::is_shared(word) || mark::is_left_out(word)) && self.attachment.current(word) {
            // SAFETY: `state_of` gives pointers into mappings that stay.
            return self.attachment.state_of(word).map(|state| unsafe { &*state });
        }
        W::set(mark::REGISTERING);
        let word = self.attachment.register(word);
        W::set(word);
        // SAFETY: `state_of` gives pointers into mappings that stay.
        self.attachment.state_of(word).map(|state| unsafe { &*state })
    }

    /// Records that `exit` begins, in a process that has recorded something.
    pub fn exit_begins(&self) {
        if self.own_process().is_some()
            && let Some(producer) = self.thread()
        {
            producer.exit_begins();
        }
    }

    /// Called when the process is about to end: waits until the tool has read its memory. A process that has recorded
    /// nothing does not.
    ///
    /// `answers`: it answers requests for facts meanwhile, so it is not inside the manager.
    pub fn end(&self, answers: bool) {
        if let Some(process) = self.own_process() {
            self.attachment.wait_for_tool(process, gate::ENDING, answers);
        }
    }

    /// The entry of this process; none of a child of fork that has recorded nothing, and of a child of vfork, which has
    /// its parent's.
    fn own_process(&self) -> Option<&Process> {
        let local = self.attachment.local();
        if local.is_null() || self.detached() {
            return None;
        }
        // SAFETY: `local` is not null, and the private memory and the entries stay mapped.
        unsafe {
            let is_own = (*local).pid.load(Ordering::Relaxed) == sys::getpid() as u32;
            (*local).process.load(Ordering::Acquire).as_ref().filter(|_| is_own)
        }
    }

    /// Called in the child of a fork, by `pthread_atfork`, where that is available: the thread registers again at its
    /// next event in any case, but after a fork in a signal handler that interrupted the recording of an event, the
    /// child would continue to record that event.
    pub fn forked(&self) {
        W::set(0);
    }
}

/// Calls that replace the process's image, or start a process.
impl<W: ThreadWord> Rings<W> {
    /// Notes that this process is about to become another image, by executing `path`.
    pub fn exec_begins(&self, path: Option<&CStr>) -> ExecNote {
        self.attachment.note(path, exec_state::BEGUN)
    }

    /// Notes that this process is about to start another, whose number [`Rings::started`] records afterwards.
    pub fn start_begins(&self, path: Option<&CStr>) -> ExecNote {
        self.attachment.note(path, exec_state::CLAIMED)
    }

    /// Notes that this process starts another without the variables that load the layer.
    pub fn starts_without_layer(&self, path: &CStr) {
        let _ = self.attachment.note(Some(path), exec_state::WITHOUT);
    }

    /// Withdraws a note, because the call has failed. Preserves `errno`.
    pub fn withdraw(&self, note: ExecNote) {
        self.attachment.finish(note, exec_state::FREE);
    }

    /// Completes a note: the process was started, as number `pid`.
    pub fn started(&self, note: ExecNote, pid: i32) {
        self.attachment.finish(note, u64::from(pid as u32) << 8 | exec_state::BEGUN);
    }
}
