//! Places in which the program may keep its only pointer to a block and which no collection can read, as far as a collection
//! notices that they are in use.

/// A set of such places; the member `unread_places` of a slot has its bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UnreadPlaces(u64);

impl UnreadPlaces {
    pub const NONE: UnreadPlaces = UnreadPlaces(0);
    /// Requests that io_uring has taken from its ring: the kernel alone has their user data.
    pub const IO_URING: UnreadPlaces = UnreadPlaces(1 << 0);
    /// The same of requests of `io_submit`.
    pub const IO_SUBMIT: UnreadPlaces = UnreadPlaces(1 << 1);
    /// More values of queued signals wait than are recorded.
    pub const SIGNALS: UnreadPlaces = UnreadPlaces(1 << 2);
    /// Epoll's data and timers, in files of `/proc` that are closed to the process.
    pub const CLOSED: UnreadPlaces = UnreadPlaces(1 << 3);

    /// All, with the names that logs have, and what reports have.
    const NAMES: [(UnreadPlaces, &str, &str); 4] = [
        (UnreadPlaces::IO_URING, "io_uring", "requests that io_uring has taken"),
        (UnreadPlaces::IO_SUBMIT, "io_submit", "requests that io_submit has taken"),
        (UnreadPlaces::SIGNALS, "sigqueue", "values of more than 256 queued signals"),
        (UnreadPlaces::CLOSED, "closed", "epoll's data and timers, which /proc does not show to this user"),
    ];

    /// The place that a mapping of this name shows to be in use.
    pub fn of_mapping(name: &[u8]) -> UnreadPlaces {
        if name.starts_with(b"anon_inode:[io_uring]") {
            UnreadPlaces::IO_URING
        } else if name.starts_with(b"/[aio]") {
            UnreadPlaces::IO_SUBMIT
        } else {
            UnreadPlaces::NONE
        }
    }

    /// Those of a slot, which any process may have written: unknown bits are dropped.
    pub fn of_bits(bits: u64) -> UnreadPlaces {
        let known = UnreadPlaces::NAMES.iter().fold(0, |all, (place, ..)| all | place.0);
        UnreadPlaces(bits & known)
    }

    pub const fn bits(self) -> u64 {
        self.0
    }

    pub fn add(&mut self, others: UnreadPlaces) {
        self.0 |= others.0;
    }

    /// Those that are not among the others.
    #[must_use]
    pub const fn without(self, others: UnreadPlaces) -> UnreadPlaces {
        UnreadPlaces(self.0 & !others.0)
    }

    /// The names that logs have.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.each().map(|(_, name, _)| name)
    }

    /// What reports have.
    pub fn texts(self) -> impl Iterator<Item = &'static str> {
        self.each().map(|(.., text)| text)
    }

    fn each(self) -> impl Iterator<Item = (UnreadPlaces, &'static str, &'static str)> {
        UnreadPlaces::NAMES.into_iter().filter(move |(place, ..)| self.0 & place.0 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_from_the_names_of_mappings_and_from_bits() {
        let of = UnreadPlaces::of_mapping;
        assert_eq!(of(b"anon_inode:[io_uring]"), UnreadPlaces::IO_URING);
        assert_eq!(of(b"/[aio] (deleted)"), UnreadPlaces::IO_SUBMIT);
        assert_eq!(of(b"/tmp/x[aio]"), UnreadPlaces::NONE);
        let mut all = UnreadPlaces::of_bits(u64::MAX);
        assert_eq!((all.bits(), all.names().count(), all.texts().count()), (15, 4, 4));
        all = all.without(UnreadPlaces::IO_SUBMIT);
        assert!(all.names().eq(["io_uring", "sigqueue", "closed"]));
        all.add(UnreadPlaces::IO_SUBMIT);
        assert_eq!(all, UnreadPlaces::of_bits(15));
    }
}
