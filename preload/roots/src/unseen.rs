//! Places where the program may keep an address which no collection can read, as far as a collection notices that they are in
//! use.

/// A set of such places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unseen(u64);

impl Unseen {
    /// Requests that io_uring has taken from its ring: the kernel alone has their user data.
    pub const IO_URING: Unseen = Unseen(1 << 0);
    /// The same of requests of `io_submit`.
    pub const IO_SUBMIT: Unseen = Unseen(1 << 1);
    /// More values of queued signals wait than are recorded.
    pub const SIGNALS: Unseen = Unseen(1 << 2);
    /// Epoll's data or timers, in files that are closed to this process.
    pub const CLOSED: Unseen = Unseen(1 << 3);

    /// All, with the names that logs have.
    pub const NAMES: [(Unseen, &str); 4] = [
        (Unseen::IO_URING, "io_uring"),
        (Unseen::IO_SUBMIT, "io_submit"),
        (Unseen::SIGNALS, "sigqueue"),
        (Unseen::CLOSED, "closed"),
    ];

    pub const NONE: Unseen = Unseen(0);

    /// The place that a mapping of this name shows to be in use.
    pub fn of_mapping(name: &[u8]) -> Unseen {
        if name.starts_with(b"anon_inode:[io_uring]") {
            Unseen::IO_URING
        } else if name.starts_with(b"/[aio]") {
            Unseen::IO_SUBMIT
        } else {
            Unseen::NONE
        }
    }

    pub fn add(&mut self, others: Unseen) {
        self.0 |= others.0;
    }

    /// Whether all of these are in the set.
    pub const fn has(self, others: Unseen) -> bool {
        self.0 & others.0 == others.0
    }

    /// The set as bits, as `unread_places` of `include/heaptoll.h` has them.
    pub const fn bits(self) -> u64 {
        self.0
    }
}
