//! The beginning of the file: what is in it, and where.

/// The first bytes; the last one is the version.
pub const MAGIC: [u8; 8] = *b"HTORACL1";
/// The first bytes of a file that has points of unreachability.
pub const MAGIC_UNREACHABLE: [u8; 8] = *b"HTORACL2";
/// Bytes of the header, without what [`Unreachable`] takes.
pub const HEADER_BYTES: usize = 8 + 32 + 8 * (2 + 2 * SECTIONS);
/// Bytes of [`Unreachable`], which follows the header where it is there.
pub const UNREACHABLE_BYTES: usize = 8 * 3;
/// Bytes of a schedule's word.
const SCHEDULE_ENTRY: u64 = 4;

const SECTIONS: usize = 7;
/// Bytes of an entry, by section.
const ENTRY: [u64; SECTIONS] = [8, 4, 8, 8, 1, 1, 4];

/// A part of the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Section {
    /// Its first byte.
    pub start: u64,
    /// Entries in it.
    pub count: u64,
}

/// The schedule by which objects are freed where they cannot be reached any more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unreachable {
    /// Slots that it uses.
    pub slots: u64,
    /// Frees and slots.
    pub schedule: Section,
}

impl Unreachable {
    /// As it is stored.
    pub fn bytes(&self) -> [u8; UNREACHABLE_BYTES] {
        let mut bytes = [0; UNREACHABLE_BYTES];
        let words = [self.slots, self.schedule.start, self.schedule.count];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// From what is stored in a file of `length` bytes.
    ///
    /// # Errors
    /// [`HeaderError::Cut`].
    pub fn of(bytes: &[u8; UNREACHABLE_BYTES], length: u64) -> Result<Unreachable, HeaderError> {
        let schedule = Section { start: word_at(bytes, 8), count: word_at(bytes, 16) };
        let follows = schedule.start >= (HEADER_BYTES + UNREACHABLE_BYTES) as u64;
        if follows && schedule.ends_within(SCHEDULE_ENTRY, length) {
            Ok(Unreachable { slots: word_at(bytes, 0), schedule })
        } else {
            Err(HeaderError::Cut)
        }
    }
}

impl Section {
    /// Whether its entries, of so many bytes, lie in a file of `length` bytes.
    fn ends_within(self, entry: u64, length: u64) -> bool {
        let bytes = self.count.checked_mul(entry);
        bytes.and_then(|bytes| self.start.checked_add(bytes)).is_some_and(|end| end <= length)
    }
}

fn word_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// The header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Header {
    /// Whether [`Unreachable`] follows it.
    pub has_unreachable: bool,
    /// SHA-256 of all that follows the header.
    pub digest: [u8; 32],
    /// Allocations in the sequence.
    pub allocations: u64,
    /// Slots that `schedule` uses.
    pub slots: u64,
    /// Allocations and sizes.
    pub words: Section,
    /// Frees and slots.
    pub schedule: Section,
    /// Sites.
    pub sites: Section,
    /// Object files.
    pub objects: Section,
    /// Names.
    pub text: Section,
    /// JSON about the recording.
    pub about: Section,
    /// When the program frees objects.
    pub frees: Section,
}

/// Why bytes are no header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderError {
    /// The first bytes are others: no such file, or one of another version.
    Magic,
    /// A section does not lie within the file: it is cut.
    Cut,
}

impl Header {
    fn sections(&self) -> [Section; SECTIONS] {
        [self.words, self.schedule, self.sites, self.objects, self.text, self.about, self.frees]
    }

    /// As it is stored.
    pub fn bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(if self.has_unreachable { &MAGIC_UNREACHABLE } else { &MAGIC });
        bytes[8..40].copy_from_slice(&self.digest);
        let sections = self.sections().into_iter().flat_map(|section| [section.start, section.count]);
        let words = [self.allocations, self.slots].into_iter().chain(sections);
        for (place, word) in bytes[40..].chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// From what is stored in a file of `length` bytes.
    ///
    /// # Errors
    /// [`HeaderError`].
    pub fn of(bytes: &[u8; HEADER_BYTES], length: u64) -> Result<Header, HeaderError> {
        let has_unreachable = bytes[..8] == MAGIC_UNREACHABLE;
        if !has_unreachable && bytes[..8] != MAGIC {
            return Err(HeaderError::Magic);
        }
        let word = |at: usize| word_at(bytes, 40 + 8 * at);
        let section = |at: usize| Section { start: word(2 + 2 * at), count: word(3 + 2 * at) };
        let mut digest = [0; 32];
        digest.copy_from_slice(&bytes[8..40]);
        let header = Header {
            has_unreachable,
            digest,
            allocations: word(0),
            slots: word(1),
            words: section(0),
            schedule: section(1),
            sites: section(2),
            objects: section(3),
            text: section(4),
            about: section(5),
            frees: section(6),
        };
        let lies_within = |(section, entry): (Section, u64)| section.ends_within(entry, length);
        if header.sections().into_iter().zip(ENTRY).all(lies_within) {
            Ok(header)
        } else {
            Err(HeaderError::Cut)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        let section = |start, count| Section { start, count };
        Header {
            has_unreachable: false,
            digest: [7; 32],
            allocations: 3,
            slots: 2,
            words: section(200, 4),
            schedule: section(232, 5),
            sites: section(252, 1),
            objects: section(260, 1),
            text: section(268, 9),
            about: section(277, 2),
            frees: section(279, 3),
        }
    }

    #[test]
    fn a_header_is_read_as_it_was_written() {
        assert_eq!(Header::of(&header().bytes(), 291), Ok(header()));
    }

    #[test]
    fn a_section_that_ends_after_the_file_is_an_error() {
        assert_eq!(Header::of(&header().bytes(), 290), Err(HeaderError::Cut));
        let wraps = Header { schedule: Section { start: u64::MAX, count: u64::MAX / 2 }, ..header() };
        assert_eq!(Header::of(&wraps.bytes(), 291), Err(HeaderError::Cut));
    }

    #[test]
    fn another_file_is_an_error() {
        let mut bytes = header().bytes();
        bytes[7] = b'3';
        assert_eq!(Header::of(&bytes, 291), Err(HeaderError::Magic));
    }

    #[test]
    fn a_header_states_whether_a_schedule_of_unreachability_follows() {
        let with = Header { has_unreachable: true, ..header() };
        assert_eq!(Header::of(&with.bytes(), 291), Ok(with));
        let unreachable = Unreachable { slots: 9, schedule: Section { start: 300, count: 5 } };
        assert_eq!(Unreachable::of(&unreachable.bytes(), 320), Ok(unreachable));
        assert_eq!(Unreachable::of(&unreachable.bytes(), 319), Err(HeaderError::Cut));
        let before = Unreachable { schedule: Section { start: 40, count: 5 }, ..unreachable };
        assert_eq!(Unreachable::of(&before.bytes(), 320), Err(HeaderError::Cut));
    }
}
