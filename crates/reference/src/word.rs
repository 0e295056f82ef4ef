//! The format of the words, the same as in `tracer/words.h`.
//!
//! A word whose highest bit is clear is a reference: address in bits 0 to 47, size in bytes in bits 48 to 57, bit 62 set
//! for a store. No reference is 0, so zeroes end what a ring holds. A word whose highest bit is set is an event: its kind
//! in bits 56 to 62, a payload in bits 0 to 55, and behind it as many words as the kind has.

/// Highest bit: an event.
pub const EVENT: u64 = 1 << 63;
/// Of a reference: a store.
pub const STORE: u64 = 1 << 62;
/// Where a reference has its size,
pub const SIZE_SHIFT: u32 = 48;
/// and how large it can be, bytes; a larger one is told as several.
pub const SIZE_MAX: u64 = (1 << 10) - 1;
/// Address of a reference.
pub const ADDRESS: u64 = (1 << 48) - 1;
/// Where an event has its kind.
pub const KIND_SHIFT: u32 = 56;
/// Beside the thread that started another: code of the manager's did, as its stack says, outside of routines too.
pub const BY_MANAGER: u64 = 1 << 32;
/// Payload of an event.
pub const PAYLOAD: u64 = (1 << 56) - 1;

/// One data reference of the program, its allocator or its collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Reference(pub u64);

impl Reference {
    /// Of `size` bytes (1 to 1023) at `address`.
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

/// Kinds of events, with what follows the payload. `I` is the instructions of the thread that runs, since it began; `M`
/// its loads in the lower and its stores in the upper 32 bits, both wrapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A guarded reference that was not made. Nothing follows.
    Nothing = 0,
    /// Payload: the thread that runs now. Nothing follows.
    Thread = 1,
    /// Payload: the routine entered. I, M, the first three arguments.
    Enter = 2,
    /// Payload: the routine left. I, M, the block it gave (0 for none or failure; of `posix_memalign` the block).
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
    /// A system call that a native run would not see fail that way. Payload: errno + 4096 x its number. Nothing.
    Refused = 13,
    /// Payload: the call site of the next [`Kind::Enter`]. Nothing.
    Site = 14,
    /// Payload: frames + 256 x the site's number. As many words, the return addresses, innermost first.
    SiteDefinition = 15,
    /// Payload: bytes + 2^32 x what it is ([`Text`]). A word whose meaning depends on that, then the bytes, padded with
    /// zeroes to whole words.
    Text = 16,
    /// The last store was of this pointer (payload) into the range of the heap. Nothing.
    Pointer = 17,
    /// Nothing but I, M.
    Tick = 18,
    /// Payload: the new thread. The thread that started it, and [`BY_MANAGER`] where it was code of the manager's.
    ThreadStart = 19,
    /// Payload: the thread that ended. I, M.
    ThreadEnd = 20,
    /// Payload: number of the child process, which has a stream of its own. Nothing.
    Fork = 21,
    /// Another image follows in a stream of its own. I, M.
    Exec = 22,
    /// The process has ended. Payload: its status. I, M.
    End = 23,
    /// As many words as the payload says are of no meaning: the block of the ring has no more room.
    Skip = 24,
    /// The program's `main` begins. I, M.
    Main = 25,
}

/// What a [`Kind::Text`] holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Text {
    /// The name of a frame; the word is its address. Of inlined code there are several, innermost first.
    Frame = 1,
    /// An object file that was loaded; the word is where its text begins.
    Object = 2,
    /// Something the user should know. The word is 0.
    Warning = 3,
    /// The object that a routine belongs to; the word is the routine's number.
    RoutineObject = 4,
    /// Where a frame lies: the address in its object in hexadecimal, a blank, and the object. The word is the frame's
    /// address.
    FrameObject = 5,
}

impl Text {
    /// By its number.
    pub fn from_number(number: u64) -> Option<Text> {
        [Text::Frame, Text::Object, Text::Warning, Text::RoutineObject, Text::FrameObject]
            .into_iter()
            .find(|text| *text as u64 == number)
    }
}

impl Kind {
    const ALL: [Kind; 26] = [
        Kind::Nothing,
        Kind::Thread,
        Kind::Enter,
        Kind::Leave,
        Kind::Abandon,
        Kind::Signal,
        Kind::SignalEnd,
        Kind::Announced,
        Kind::Map,
        Kind::Unmap,
        Kind::Protect,
        Kind::KernelLoad,
        Kind::KernelStore,
        Kind::Refused,
        Kind::Site,
        Kind::SiteDefinition,
        Kind::Text,
        Kind::Pointer,
        Kind::Tick,
        Kind::ThreadStart,
        Kind::ThreadEnd,
        Kind::Fork,
        Kind::Exec,
        Kind::End,
        Kind::Skip,
        Kind::Main,
    ];

    /// By its number.
    pub fn from_number(number: u64) -> Option<Kind> {
        Kind::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// Words behind that of the event.
    pub fn following(self, payload: u64) -> u64 {
        match self {
            Kind::Nothing | Kind::Thread | Kind::Refused | Kind::Site | Kind::Pointer | Kind::Fork => 0,
            Kind::KernelLoad | Kind::KernelStore | Kind::ThreadStart => 1,
            Kind::Abandon
            | Kind::Signal
            | Kind::SignalEnd
            | Kind::Map
            | Kind::Unmap
            | Kind::Protect
            | Kind::Tick
            | Kind::ThreadEnd
            | Kind::Exec
            | Kind::End
            | Kind::Main => 2,
            Kind::Leave | Kind::Announced => 3,
            Kind::Enter => 5,
            Kind::SiteDefinition => payload & 0xff,
            Kind::Text => 1 + (payload & 0xffff_ffff).div_ceil(8),
            Kind::Skip => payload,
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
        for (number, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!((Kind::from_number(number as u64), kind as usize), (Some(kind), number));
        }
        assert_eq!(Kind::from_number(26), None);
    }
}
