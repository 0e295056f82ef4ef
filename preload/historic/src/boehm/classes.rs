//! Size classes: from the words of a request to the size of the objects that serve it.

use heaptoll_runtime::WORD;

/// The largest object that shares a chunk with others, bytes: half a chunk, as in both versions.
pub const LARGEST_SMALL: usize = 2048;
/// The same in words.
pub const MOST_WORDS: usize = LARGEST_SMALL / WORD;
/// As many classes as any version has, and more.
pub const MOST_CLASSES: usize = 32;
/// Free lists: one for each class, and from [`MOST_CLASSES`] on those of pointer-free objects, which lie in chunks of
/// their own. A list's number stands in for a class wherever a size is looked up.
pub const LISTS: usize = 2 * MOST_CLASSES;

/// The classes of a version.
#[derive(Debug)]
pub struct Classes {
    of_words: [u8; MOST_WORDS + 1],
    bytes: [u16; LISTS],
    /// 2^32 divided by the size, rounded up: a division is a multiplication.
    reciprocals: [u64; LISTS],
    count: usize,
}

impl Classes {
    /// The classes of a map from words to words, as [`Classes::map`] fills it: `map[n]` is at least `n` and does not
    /// fall.
    pub const fn new(map: [u16; MOST_WORDS + 1]) -> Classes {
        let mut classes =
            Classes { of_words: [0; MOST_WORDS + 1], bytes: [0; LISTS], reciprocals: [0; LISTS], count: 0 };
        let mut words = 0;
        while words <= MOST_WORDS {
            let bytes = map[words] * WORD as u16;
            if classes.count == 0 || bytes != classes.bytes[classes.count - 1] {
                classes.bytes[classes.count] = bytes;
                classes.reciprocals[classes.count] = (1u64 << 32).div_ceil(bytes as u64);
                classes.bytes[MOST_CLASSES + classes.count] = bytes;
                classes.reciprocals[MOST_CLASSES + classes.count] = classes.reciprocals[classes.count];
                classes.count += 1;
            }
            classes.of_words[words] = classes.count as u8 - 1;
            words += 1;
        }
        classes
    }

    /// How many there are.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// The numbers of all free lists, those of pointer-free objects too.
    pub fn lists(&self) -> impl Iterator<Item = usize> + use<> {
        (0..self.count).chain(MOST_CLASSES..MOST_CLASSES + self.count)
    }

    /// The class for a request of so many words, at most [`MOST_WORDS`].
    #[inline(always)]
    pub const fn of(&self, words: usize) -> usize {
        self.of_words[words] as usize
    }

    /// The size of a class's objects, bytes.
    #[inline(always)]
    pub const fn bytes(&self, class: usize) -> usize {
        self.bytes[class] as usize
    }

    /// Which object of its chunk lies at so many bytes, less than a chunk, after the first.
    #[inline(always)]
    pub const fn which(&self, class: usize, displacement: usize) -> usize {
        ((displacement as u64 * self.reciprocals[class]) >> 32) as usize
    }
}
