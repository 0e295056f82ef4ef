//! The first bytes of a file: whether it is a trace, and of a version that can be read. All writers and readers of a file
//! begin here.

use std::io::{self, Read};

use crate::error::TraceError;
use crate::file_kind::FileKind;
use crate::format::{CHUNK_MAGIC, ChunkHead, FILE_HEAD, VERSION, u32_at};
use crate::frame::Framer;
use crate::sniff;

/// Bytes within which a chunk is searched for in a file without its first bytes.
const SEARCHED: usize = 64 << 10;

/// The bytes that a file of this kind begins with.
pub(crate) fn of(kind: FileKind) -> [u8; FILE_HEAD] {
    let mut head = [0; FILE_HEAD];
    head[..8].copy_from_slice(&kind.magic());
    head[8..12].copy_from_slice(&VERSION.to_le_bytes());
    let sum = crc32fast::hash(&head[..12]);
    head[12..].copy_from_slice(&sum.to_le_bytes());
    head
}

/// Reads the first bytes of the file called `name`. False when they are damaged; chunks follow nevertheless.
pub(crate) fn read<R: Read>(framer: &mut Framer<R>, name: &str, kind: FileKind) -> Result<bool, TraceError> {
    let error = |source: io::Error| match source.kind() {
        io::ErrorKind::IsADirectory => kind.refuse(name, "a folder".into()),
        _ => TraceError::system("read", name, source),
    };
    let state = framer.peek(FILE_HEAD).map_err(error)?;
    if state.len() >= FILE_HEAD && state[..8] == kind.magic() {
        let version = u32_at(state, 8);
        let whole = crc32fast::hash(&state[..12]) == u32_at(state, 12);
        if whole && version > VERSION {
            return Err(TraceError::Newer { name: name.to_string(), version, known: VERSION });
        }
        framer.consume(FILE_HEAD);
        return Ok(whole);
    }
    if let Some(content) = sniff::other_kind(state, kind) {
        return Err(kind.refuse(name, content.to_string()));
    }
    // A trace that lost its first bytes still has chunks.
    let state = framer.peek(SEARCHED).map_err(error)?;
    let mut positions = state.windows(CHUNK_MAGIC.len()).enumerate();
    let chunk =
        positions.any(|(at, window)| window == CHUNK_MAGIC && ChunkHead::parse(&state[at..]).is_some());
    if chunk {
        return Ok(false);
    }
    Err(kind.refuse(name, sniff::describe(state, kind)))
}
