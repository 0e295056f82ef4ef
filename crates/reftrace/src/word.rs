//! The format of the words, the same as in `tracer/words.h`.
//!
//! A word whose highest bit is clear is a reference: address in bits 0 to 47, size in bytes in bits 48 to 57, bit 62
//! set for a store. No reference is 0, so zeroes end the contents of a ring. A word whose highest bit is set is an
//! event: its kind in bits 56 to 62, a payload in bits 0 to 55, followed by as many words as the kind has.

use crate::numbered::numbered;

/// Highest bit: an event.
pub const EVENT: u64 = 1 << 63;
/// Bit of a reference: it is a store.
pub const STORE: u64 = 1 << 62;
/// Lowest bit of the size in a reference.
pub const SIZE_SHIFT: u32 = 48;
/// Largest size of one reference, bytes; a larger access is recorded as several.
pub const SIZE_MAX: u64 = (1 << 10) - 1;
/// Bits of the address in a reference.
pub const ADDRESS: u64 = (1 << 48) - 1;
/// Lowest bit of the kind in an event.
pub const KIND_SHIFT: u32 = 56;
/// Bit of the parent's number in [`EventKind::ThreadStart`]: code of the manager started the thread, as the call stack
/// shows, also outside of routines.
pub const BY_MANAGER: u64 = 1 << 32;
/// Bits of the payload in an event.
pub const PAYLOAD: u64 = (1 << 56) - 1;

/// One data reference of the program, its allocator or its collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Reference(pub u64);

impl Reference {
    /// A reference of `size` bytes (1 to 1023) at `address`.
    pub fn new(address: u64, size: u64, store: bool) -> Reference {
        debug_assert!((1..=SIZE_MAX).contains(&size));
        Reference((address & ADDRESS) | (size << SIZE_SHIFT) | if store { STORE } else { 0 })
    }

    /// First byte.
    #[inline(always)]
    pub fn address(self) -> u64 {
        self.0 & ADDRESS
    }

    /// Bytes.
    #[inline(always)]
    pub fn size(self) -> u64 {
        (self.0 >> SIZE_SHIFT) & SIZE_MAX
    }

    /// Whether it stores.
    #[inline(always)]
    pub fn is_store(self) -> bool {
        self.0 & STORE != 0
    }
}

numbered! {
    /// Kinds of events, with what follows the payload. `I` is the instructions of the thread that runs, since it began;
    /// `M` its loads in the lower and its stores in the upper 32 bits, both wrapping.
    pub enum EventKind {
        /// A guarded reference that was not made. Nothing follows.
        Nothing = 0,
        /// Payload: the thread that runs now. Nothing follows.
        Thread = 1,
        /// Payload: the routine entered + 256 x its family, 0 for C. I, M, three arguments in the order of C.
        Enter = 2,
        /// Payload: the routine left + 256 x its family + 65536 x (1 + another family that it called, or 0). I, M, the
        /// block it returned (0 for none or failure; of `posix_memalign` the block).
        Leave = 3,
        /// Payload: the routine that was left by `longjmp` or the like. I, M.
        Abandon = 4,
        /// Payload: number of the signal whose handler begins. I, M.
        Signal = 5,
        /// The handler has ended. I, M.
        SignalEnd = 6,
        /// Payload: `heaptoll_event_kind` that the manager announced. I, M, its value.
        Announced = 7,
        /// Payload: protection (1 read, 2 write, 4 execute) + 8 x origin (0 start, 1 mmap, 2 brk, 3 mremap, 4 stack).
        /// Address, length.
        Map = 8,
        /// Address, length.
        Unmap = 9,
        /// Payload: protection. Address, length.
        Protect = 10,
        /// A system call reads memory. Payload: bytes. Address.
        KernelLoad = 11,
        /// A system call writes memory. Payload: bytes. Address.
        KernelStore = 12,
        /// A system call that failed, as it would not in a native run. Payload: errno + 4096 x its number. Nothing.
        Refused = 13,
        /// Payload: the call site of the next [`EventKind::Enter`]. Nothing.
        Site = 14,
        /// Payload: frames + 256 x the site's number. As many words, the return addresses, innermost first.
        SiteDefinition = 15,
        /// Payload: bytes + 2^32 x the number of its [`Text`]. A word whose meaning depends on that, then the bytes,
        /// padded with zeroes to whole words.
        Text = 16,
        /// The last store was of this pointer into the range of the heap. Payload: the pointer + 2^48 x which of the
        /// aligned words that it wrote to, from 0. Nothing.
        Pointer = 17,
        /// No words but I, M.
        Tick = 18,
        /// Payload: the new thread. The thread that started it, and [`BY_MANAGER`] if the manager's code did.
        ThreadStart = 19,
        /// Payload: the thread that ended. I, M.
        ThreadEnd = 20,
        /// Payload: number of the child process, which has a stream of its own. Nothing.
        Fork = 21,
        /// Another image follows in a stream of its own. I, M.
        Exec = 22,
        /// The process has ended. Payload: its status. I, M.
        End = 23,
        /// Padding: as many words as the payload states have no meaning, because the ring's block has no space for the
        /// next event.
        Skip = 24,
        /// The program's `main` begins. I, M.
        Main = 25,
        /// A word that the kernel wrote holds a pointer into the range of the heap (payload). Its address.
        WordAt = 26,
        /// Payload: 1: a root point begins, 0: it ends. Nothing.
        Roots = 27,
        /// Payload: a word that may be a pointer + 2^48 x the number of its [`Place`]. Nothing.
        Root = 28,
        /// Payload: 1: a request that the program marks begins, 0: it ends. Nothing.
        Request = 29,
        /// `exit` begins: handlers and destructors follow. Nothing.
        Exit = 30,
        /// Payload: ns that the tracer's clock passed in a wait that its timeout ended. Nothing.
        Waited = 31,
    }
}

numbered! {
    /// Where a root lies.
    pub enum Place {
        /// A register of a thread.
        Register = 0,
        /// A thread's stack.
        Stack = 1,
        /// Data of the program or of a library.
        Static = 2,
        /// Other writable memory.
        Mapping = 3,
    }
}

numbered! {
    /// What an [`EventKind::Text`] holds.
    pub enum Text {
        /// The name of a frame; the word is its address. Inlined code has several, innermost first.
        Frame = 1,
        /// An object file that was loaded; the word is the address of its text.
        Object = 2,
        /// A message for the user. The word is 0.
        Warning = 3,
        /// The object that contains a routine; the word is the routine's number + 256 x its family.
        RoutineObject = 4,
        /// The location of a frame: the address in its object in hexadecimal, a blank, and the object. The word is the
        /// frame's address.
        FrameObject = 5,
        /// A function: its object, a zero byte, its symbol as the object has it; either may be empty. The word is how
        /// many instructions it has executed itself.
        Function = 6,
        /// The object with a function that only routines call, and that was called from elsewhere: a routine was
        /// inlined there. The word is 256 x the family.
        Inlined = 7,
        /// A function that called the standard library, named as in [`Text::Function`]. The word is how many
        /// instructions that library executed from then until another function called it.
        Caller = 8,
    }
}

impl EventKind {
    /// Words after that of the event.
    pub fn following(self, payload: u64) -> u64 {
        match self {
            EventKind::Nothing
            | EventKind::Thread
            | EventKind::Refused
            | EventKind::Site
            | EventKind::Pointer
            | EventKind::Fork
            | EventKind::Roots
            | EventKind::Root
            | EventKind::Request
            | EventKind::Exit
            | EventKind::Waited => 0,
            EventKind::KernelLoad | EventKind::KernelStore | EventKind::ThreadStart | EventKind::WordAt => 1,
            EventKind::Abandon
            | EventKind::Signal
            | EventKind::SignalEnd
            | EventKind::Map
            | EventKind::Unmap
            | EventKind::Protect
            | EventKind::Tick
            | EventKind::ThreadEnd
            | EventKind::Exec
            | EventKind::End
            | EventKind::Main => 2,
            EventKind::Leave | EventKind::Announced => 3,
            EventKind::Enter => 5,
            EventKind::SiteDefinition => payload & 0xff,
            EventKind::Text => 1 + (payload & 0xffff_ffff).div_ceil(8),
            EventKind::Skip => payload,
        }
    }

    /// The word of an event.
    pub fn word(self, payload: u64) -> u64 {
        EVENT | ((self as u64) << KIND_SHIFT) | (payload & PAYLOAD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_give_back_what_they_were_made_of() {
        let reference = Reference::new(0x7fff_1234_5678, 32, true);
        assert_eq!(
            (reference.address(), reference.size(), reference.is_store()),
            (0x7fff_1234_5678, 32, true)
        );
        assert_eq!(reference.0 & EVENT, 0);
        assert!(!Reference::new(0, 1, false).is_store());
    }

    #[test]
    fn numbers_and_kinds_are_one_to_one() {
        for (number, kind) in EventKind::ALL.into_iter().enumerate() {
            assert_eq!((EventKind::from_number(number as u64), kind as usize), (Some(kind), number));
        }
        assert_eq!(EventKind::from_number(EventKind::ALL.len() as u64), None);
    }
}
