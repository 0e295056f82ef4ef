//! What the driver of a ledger hands over at each mark: its live blocks. The tool reads them from a socket, samples the
//! process, and lets it go on with a byte.
//!
//! All integers are little-endian. First comes the process's number; then, for each mark, a record a block and one that
//! ends them.

use std::io::{self, Read, Write};

/// Bytes of a record.
pub const RECORD: usize = 32;

/// A live block in the driver's table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LiveBlock {
    /// Its slot in the program; [`END`] ends the blocks of a mark.
    pub slot: u32,
    /// Its address. At the end: bytes that the driver itself has made resident since the first mark.
    pub address: u64,
    /// Bytes requested.
    pub requested: u64,
    /// Bytes usable.
    pub usable: u64,
}

/// The slot of the record that ends the blocks of a mark.
pub const END: u32 = u32::MAX;

impl LiveBlock {
    /// As it is sent.
    pub fn to_bytes(self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        let words = [u64::from(self.slot), self.address, self.requested, self.usable];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// As it was sent.
    pub fn from_bytes(bytes: &[u8; RECORD]) -> LiveBlock {
        let word = |at: usize| {
            bytes[at * 8..at * 8 + 8].iter().rev().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte))
        };
        LiveBlock { slot: word(0) as u32, address: word(1), requested: word(2), usable: word(3) }
    }
}

/// Reads the process's number.
///
/// # Errors
/// The driver is gone.
pub fn read_pid(from: &mut impl Read) -> io::Result<i32> {
    let mut bytes = [0; 4];
    from.read_exact(&mut bytes)?;
    Ok(i32::from_le_bytes(bytes))
}

/// Reads the live blocks of the next mark into `blocks`, and returns what the driver has made resident itself, bytes.
/// `None` when there is no further mark.
///
/// # Errors
/// The driver is gone in the middle of it.
pub fn read_mark(from: &mut impl Read, blocks: &mut Vec<LiveBlock>) -> io::Result<Option<u64>> {
    blocks.clear();
    let mut bytes = [0; RECORD];
    loop {
        match from.read_exact(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && blocks.is_empty() => {
                return Ok(None);
            }
            read => read?,
        }
        let block = LiveBlock::from_bytes(&bytes);
        if block.slot == END {
            return Ok(Some(block.address));
        }
        blocks.push(block);
    }
}

/// Lets the driver go on.
///
/// # Errors
/// It is gone.
pub fn let_go(to: &mut impl Write) -> io::Result<()> {
    to.write_all(&[1])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_sent_is_read(
            marks in prop::collection::vec(
                prop::collection::vec((0..END, any::<u64>(), any::<u64>(), any::<u64>()), 0..20), 0..5),
        ) {
            let mut bytes = 77_i32.to_le_bytes().to_vec();
            let block = |(slot, address, requested, usable)| LiveBlock { slot, address, requested, usable };
            for (at, mark) in marks.iter().enumerate() {
                mark.iter().for_each(|one| bytes.extend(block(*one).to_bytes()));
                bytes.extend(LiveBlock { slot: END, address: at as u64, ..LiveBlock::default() }.to_bytes());
            }
            let mut from = bytes.as_slice();
            prop_assert_eq!(read_pid(&mut from).expect("it is there"), 77);
            let mut found = Vec::new();
            for (at, mark) in marks.iter().enumerate() {
                prop_assert_eq!(read_mark(&mut from, &mut found).expect("whole"), Some(at as u64));
                prop_assert_eq!(&found, &mark.iter().map(|one| block(*one)).collect::<Vec<_>>());
            }
            prop_assert_eq!(read_mark(&mut from, &mut found).expect("the end"), None);
        }
    }

    #[test]
    fn a_driver_that_is_gone_in_the_middle_is_an_error() {
        let bytes = LiveBlock { slot: 3, ..LiveBlock::default() }.to_bytes();
        assert!(read_mark(&mut &bytes[..], &mut Vec::new()).is_err());
    }
}
