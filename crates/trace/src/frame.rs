//! Chunks out of a stream of bytes, through damage: what is no whole chunk is skipped up to the next whole one.

use std::io::{self, Read};

use crate::format::{CHUNK_HEAD, CHUNK_MAGIC, ChunkHead};

/// Bytes requested of the source at once.
const STEP: usize = 256 << 10;

/// Bytes that may be checksummed for chunks that then turn out to be damaged, in addition to eight times those of the
/// stream so far. Damage costs a chunk's length once; only a file made for it has heads of long chunks one after the
/// other.
const PATIENCE: u64 = 4 << 30;

/// The next item of the stream.
#[derive(Debug)]
pub(crate) enum StreamItem {
    /// A whole chunk: its payload is [`Framer::payload`].
    Chunk(ChunkHead),
    /// Bytes that belong to no whole chunk, and what they seem to have been.
    Damage { bytes: u64, what: String },
    /// The end of the stream.
    End,
}

/// A stream cut into chunks. Keeps no more than the largest chunk.
pub(crate) struct Framer<R> {
    read: R,
    bytes: Vec<u8>,
    /// The next byte, and the end of what has been read.
    start: usize,
    end: usize,
    ended: bool,
    /// Position of `start` in the stream.
    offset: u64,
    /// Length of the chunk found last: skipped when the next is requested.
    found: usize,
    /// Bytes that were checksummed in vain, and how many may be.
    wasted: u64,
    patience: u64,
}

impl<R: Read> Framer<R> {
    pub(crate) fn new(read: R, offset: u64) -> Framer<R> {
        Framer {
            read,
            bytes: Vec::new(),
            start: 0,
            end: 0,
            ended: false,
            offset,
            found: 0,
            wasted: 0,
            patience: PATIENCE,
        }
    }

    /// Position of the next byte.
    pub(crate) fn offset(&self) -> u64 {
        self.offset + self.found as u64
    }

    /// At least `count` bytes, if there are as many; never many more than requested.
    pub(crate) fn peek(&mut self, count: usize) -> io::Result<&[u8]> {
        while self.end - self.start < count && !self.ended {
            if self.start > 0 && self.bytes.len() - self.start < count.max(STEP) {
                self.bytes.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            }
            // Grows with what has come, not with what a damaged length promises.
            if self.bytes.len() - self.end < STEP {
                self.bytes.resize(self.end + STEP, 0);
            }
            match self.read.read(&mut self.bytes[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(&self.bytes[self.start..self.end])
    }

    pub(crate) fn consume(&mut self, count: usize) {
        debug_assert!(count <= self.end - self.start);
        self.start += count;
        self.offset += count as u64;
    }

    /// The payload of the chunk found last.
    pub(crate) fn payload(&self) -> &[u8] {
        &self.bytes[self.start + CHUNK_HEAD..self.start + self.found]
    }

    /// The next chunk, or the damage before it.
    pub(crate) fn next(&mut self) -> io::Result<StreamItem> {
        let found = std::mem::take(&mut self.found);
        self.consume(found);
        let what = match self.whole()? {
            Ok(head) => return Ok(StreamItem::Chunk(head)),
            Err(what) if what.is_empty() => return Ok(StreamItem::End),
            Err(what) => what,
        };
        let mut skipped = 0;
        // At least one byte is skipped each time, and the next whole chunk ends it.
        loop {
            let seen = self.peek(STEP)?;
            if seen.is_empty() {
                return Ok(StreamItem::Damage { bytes: skipped, what });
            }
            let from = usize::from(skipped == 0);
            let candidate = find(&seen[from.min(seen.len())..]).map(|at| at + from);
            // The magic may lie across the end of what is buffered.
            let pass = match candidate {
                Some(at) => at,
                None if self.ended => self.end - self.start,
                None => (self.end - self.start).saturating_sub(CHUNK_MAGIC.len() - 1).max(from),
            };
            self.consume(pass);
            skipped += pass as u64;
            if candidate.is_some() {
                if self.whole()?.is_ok() {
                    self.found = 0;
                    return Ok(StreamItem::Damage { bytes: skipped, what });
                }
                self.consume(1);
                skipped += 1;
            }
        }
    }

    /// The whole chunk that begins here; otherwise what is wrong as text, empty at the end of the stream.
    fn whole(&mut self) -> io::Result<Result<ChunkHead, String>> {
        let seen = self.peek(CHUNK_HEAD)?;
        if seen.is_empty() {
            return Ok(Err(String::new()));
        }
        if seen.len() < CHUNK_HEAD {
            return Ok(Err("it is cut off".to_string()));
        }
        let Some(head) = ChunkHead::parse(seen) else {
            return Ok(Err("the head of a chunk is damaged".to_string()));
        };
        let length = CHUNK_HEAD + head.length as usize;
        if self.wasted > self.patience.saturating_add(self.offset.saturating_mul(8)) {
            return Ok(Err("too much is damaged to search all of it".to_string()));
        }
        let seen = self.peek(length)?;
        if seen.len() < length {
            return Ok(Err(format!("chunk {} is cut off", head.sequence)));
        }
        if crc32fast::hash(&seen[CHUNK_HEAD..length]) != head.payload_sum {
            self.wasted += length as u64;
            return Ok(Err(format!("chunk {} is damaged", head.sequence)));
        }
        self.found = length;
        Ok(Ok(head))
    }
}

fn find(bytes: &[u8]) -> Option<usize> {
    bytes.windows(CHUNK_MAGIC.len()).position(|window| window == CHUNK_MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(sequence: u64, payload: &[u8]) -> Vec<u8> {
        let mut bytes = ChunkHead::of(1, sequence, payload).bytes().to_vec();
        bytes.extend_from_slice(payload);
        bytes
    }

    /// Returns a byte at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = self.0.len().min(into.len()).min(1);
            into[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn all(bytes: &[u8]) -> (Vec<u64>, u64) {
        let mut framer = Framer::new(Slow(bytes), 0);
        let mut chunks = Vec::new();
        let mut lost = 0;
        loop {
            match framer.next().unwrap() {
                StreamItem::Chunk(head) => {
                    assert_eq!(crc32fast::hash(framer.payload()), head.payload_sum);
                    chunks.push(head.sequence);
                }
                StreamItem::Damage { bytes, .. } => lost += bytes,
                StreamItem::End => return (chunks, lost),
            }
        }
    }

    #[test]
    fn chunks_before_and_after_damage_are_found() {
        let parts: Vec<Vec<u8>> = (0..4).map(|n| chunk(n, &vec![n as u8; 40 * n as usize])).collect();
        let whole = parts.concat();
        assert_eq!(all(&whole), (vec![0, 1, 2, 3], 0));
        let second = parts[0].len()..parts[0].len() + parts[1].len();
        for at in second.clone() {
            let mut hit = whole.clone();
            hit[at] ^= 0x10;
            assert_eq!(all(&hit), (vec![0, 2, 3], second.len() as u64), "byte {at}");
        }
        for cut in 0..whole.len() {
            let (chunks, lost) = all(&whole[..cut]);
            let kept: usize = parts[..chunks.len()].iter().map(Vec::len).sum();
            assert_eq!(kept + lost as usize, cut);
        }
        let mut inserted = whole.clone();
        inserted.splice(second.start + 40..second.start + 40, CHUNK_MAGIC);
        assert_eq!(all(&inserted).0, [0, 2, 3]);
    }

    #[test]
    fn heads_of_long_chunks_one_after_the_other_take_no_time() {
        let mut lie = ChunkHead::of(2, 1, &[]);
        lie.length = 1 << 20;
        lie.payload_sum ^= 1;
        let mut bytes = lie.bytes().repeat(2000);
        bytes.resize(bytes.len() + (1 << 20), 0);
        bytes.extend_from_slice(&chunk(2, b"whole"));
        let mut framer = Framer::new(&bytes[..], 0);
        framer.patience = 10 << 20;
        while !matches!(framer.next().unwrap(), StreamItem::End) {}
        assert!(framer.wasted <= 20 << 20, "{} bytes were summed up in vain", framer.wasted);
    }
}
