//! One operation of a replay in eight bytes, as the driver reads them: kind, slot and size, so that what a call needs
//! is one load away. What does not fit takes a second word.

use serde::{Deserialize, Serialize};

/// The operation of a word. The first seven are calls; the others are for the driver itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Code {
    /// `malloc` into a slot.
    Malloc = 0,
    /// `calloc` into a slot.
    Calloc = 1,
    /// `posix_memalign` into a slot; the second word is the size shifted by 6 bits, and the alignment's logarithm.
    Aligned = 2,
    /// `realloc` of a slot.
    Realloc = 3,
    /// `free` of a slot.
    Free = 4,
    /// Wait until the slot has come to a generation; the second word is its number.
    Wait = 5,
    /// Wait until it is this run's turn; the number of the run is the slot and size bits together.
    Turn = 6,
    /// This thread's run is over: the next one belongs to the thread in the slot bits. With [`LAST`] in the size bits
    /// this thread is over, too.
    Pass = 7,
    /// Start the thread in the slot bits.
    Start = 8,
    /// A place to sample the process, when this many of these have gone by.
    Mark = 9,
}

/// Bits of the code.
const CODE: u32 = 4;
/// Bits of the slot.
const SLOT: u32 = 32;
/// Where the size begins.
const SIZE_AT: u32 = CODE + SLOT;
/// Sizes from here on are in a second word.
pub const ESCAPE: u64 = (1 << (64 - SIZE_AT)) - 1;
/// In the size bits of a [`Code::Pass`]: the last word of its stream.
pub const LAST: u64 = 1;
/// Bits of an alignment's logarithm in the second word of [`Code::Aligned`].
const ALIGN: u32 = 6;
/// Largest size of an aligned request that fits, bytes. No machine has as many.
pub const LARGEST_ALIGNED: u64 = u64::MAX >> ALIGN;

/// One operation, whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// See [`Code::Malloc`].
    Malloc { slot: u32, size: u64 },
    /// See [`Code::Calloc`].
    Calloc { slot: u32, size: u64 },
    /// See [`Code::Aligned`].
    Aligned { slot: u32, size: u64, align_log2: u8 },
    /// See [`Code::Realloc`].
    Realloc { slot: u32, size: u64 },
    /// See [`Code::Free`].
    Free { slot: u32 },
    /// See [`Code::Wait`].
    Wait { slot: u32, generation: u64 },
    /// See [`Code::Turn`].
    Turn { run: u64 },
    /// See [`Code::Pass`].
    Pass { thread: u32, last: bool },
    /// See [`Code::Start`].
    Start { thread: u32 },
    /// See [`Code::Mark`].
    Mark,
}

/// The code of a word.
#[inline(always)]
pub const fn code(word: u64) -> u64 {
    word & ((1 << CODE) - 1)
}

/// The slot (or thread) of a word.
#[inline(always)]
pub const fn slot(word: u64) -> u32 {
    (word >> CODE) as u32
}

/// The size of a word, or [`ESCAPE`].
#[inline(always)]
pub const fn size(word: u64) -> u64 {
    word >> SIZE_AT
}

/// The number of the run in a [`Code::Turn`].
#[inline(always)]
pub const fn run(word: u64) -> u64 {
    word >> CODE
}

/// Size and logarithm of the alignment in the second word of a [`Code::Aligned`].
#[inline(always)]
pub const fn aligned(second: u64) -> (u64, u8) {
    (second >> ALIGN, (second & ((1 << ALIGN) - 1)) as u8)
}

/// A `Pass` made the last word of its stream.
pub const fn last(pass: u64) -> u64 {
    pass | LAST << SIZE_AT
}

const fn first(code: Code, slot: u32, size: u64) -> u64 {
    code as u64 | (slot as u64) << CODE | size << SIZE_AT
}

impl Operation {
    /// Appends the words of this operation.
    #[inline]
    pub fn write(self, words: &mut Vec<u64>) {
        let mut sized = |code, slot, size: u64| {
            if size < ESCAPE {
                words.push(first(code, slot, size));
            } else {
                words.extend([first(code, slot, ESCAPE), size]);
            }
        };
        match self {
            Operation::Malloc { slot, size } => sized(Code::Malloc, slot, size),
            Operation::Calloc { slot, size } => sized(Code::Calloc, slot, size),
            Operation::Realloc { slot, size } => sized(Code::Realloc, slot, size),
            Operation::Aligned { slot, size, align_log2 } => {
                let second = size.min(LARGEST_ALIGNED) << ALIGN | u64::from(align_log2.min(63));
                words.extend([first(Code::Aligned, slot, 0), second]);
            }
            Operation::Free { slot } => words.push(first(Code::Free, slot, 0)),
            Operation::Wait { slot, generation } => {
                words.extend([first(Code::Wait, slot, 0), generation]);
            }
            Operation::Turn { run } => words.push(Code::Turn as u64 | run << CODE),
            Operation::Pass { thread, last } => {
                words.push(first(Code::Pass, thread, if last { LAST } else { 0 }))
            }
            Operation::Start { thread } => words.push(first(Code::Start, thread, 0)),
            Operation::Mark => words.push(first(Code::Mark, 0, 0)),
        }
    }

    /// Reads the operation at the beginning of `words`, and how many words it took. `None` at the end, and where the
    /// words are not ours.
    pub fn read(words: &[u64]) -> Option<(Operation, usize)> {
        let word = *words.first()?;
        let slot = slot(word);
        let second = || words.get(1).copied();
        let sized = || match size(word) {
            ESCAPE => second().map(|size| (size, 2)),
            size => Some((size, 1)),
        };
        Some(match code(word) {
            0 => sized().map(|(size, took)| (Operation::Malloc { slot, size }, took))?,
            1 => sized().map(|(size, took)| (Operation::Calloc { slot, size }, took))?,
            2 => {
                let (size, align_log2) = aligned(second()?);
                (Operation::Aligned { slot, size, align_log2 }, 2)
            }
            3 => sized().map(|(size, took)| (Operation::Realloc { slot, size }, took))?,
            4 => (Operation::Free { slot }, 1),
            5 => (Operation::Wait { slot, generation: second()? }, 2),
            6 => (Operation::Turn { run: run(word) }, 1),
            7 => (Operation::Pass { thread: slot, last: size(word) == LAST }, 1),
            8 => (Operation::Start { thread: slot }, 1),
            9 => (Operation::Mark, 1),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn operation() -> impl Strategy<Value = Operation> {
        let size = || prop_oneof![0..ESCAPE + 2, any::<u64>()];
        prop_oneof![
            (any::<u32>(), size()).prop_map(|(slot, size)| Operation::Malloc { slot, size }),
            (any::<u32>(), size()).prop_map(|(slot, size)| Operation::Calloc { slot, size }),
            (any::<u32>(), 0..=LARGEST_ALIGNED, 0u8..64)
                .prop_map(|(slot, size, align_log2)| Operation::Aligned { slot, size, align_log2 }),
            (any::<u32>(), size()).prop_map(|(slot, size)| Operation::Realloc { slot, size }),
            any::<u32>().prop_map(|slot| Operation::Free { slot }),
            (any::<u32>(), any::<u64>()).prop_map(|(slot, generation)| Operation::Wait { slot, generation }),
            (0u64..1 << 60).prop_map(|run| Operation::Turn { run }),
            (any::<u32>(), any::<bool>()).prop_map(|(thread, last)| Operation::Pass { thread, last }),
            any::<u32>().prop_map(|thread| Operation::Start { thread }),
            Just(Operation::Mark),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(operations in proptest::collection::vec(operation(), 0..200)) {
            let mut words = Vec::new();
            for operation in &operations {
                operation.write(&mut words);
            }
            let mut rest = words.as_slice();
            let mut back = Vec::new();
            while let Some((operation, took)) = Operation::read(rest) {
                back.push(operation);
                rest = &rest[took..];
            }
            prop_assert!(rest.is_empty());
            prop_assert_eq!(back, operations);
        }
    }

    #[test]
    fn common_calls_take_one_word() {
        let mut words = Vec::new();
        Operation::Malloc { slot: u32::MAX, size: ESCAPE - 1 }.write(&mut words);
        Operation::Free { slot: 7 }.write(&mut words);
        assert_eq!(words.len(), 2);
    }
}
