//! The columns of a chunk of events as bytes: a directory behind the head, then each column, compressed where that pays.

use zstd::bulk::{Compressor, Decompressor};

use crate::column::{ColumnReader, ColumnWriter, SLACK};
use crate::format::{COLUMN_HEAD, PLAIN, ZSTD, u32_at};
use crate::malformed::Malformed;

/// A column shorter than this is not worth compressing.
const WORTH: usize = 48;

/// Columns that hold something.
pub(crate) fn filled(columns: &[ColumnWriter]) -> u16 {
    columns.iter().filter(|column| !column.written().is_empty()).count() as u16
}

/// Appends the directory and the columns to the head in `payload`; empties the columns. Returns their bytes before
/// compression. Without a compressor (no memory for it, or not requested) columns are kept plain.
pub(crate) fn pack(
    columns: &mut [ColumnWriter],
    compressor: &mut Option<Compressor<'static>>,
    payload: &mut Vec<u8>,
) -> usize {
    let total: usize = columns.iter().map(|column| column.written().len()).sum();
    let mut entry = payload.len();
    let directory = entry + usize::from(filled(columns)) * COLUMN_HEAD;
    payload.reserve(directory - entry + total + zstd::zstd_safe::compress_bound(total) / 2);
    payload.resize(directory, 0);
    for (which, column) in columns.iter_mut().enumerate() {
        let plain = column.written();
        if plain.is_empty() {
            continue;
        }
        let start = payload.len();
        let compressor = compressor.as_mut().filter(|_| plain.len() >= WORTH);
        let encoding = if compressor.is_some_and(|compressor| squeeze(compressor, plain, payload)) {
            ZSTD
        } else {
            payload.truncate(start);
            payload.extend_from_slice(plain);
            PLAIN
        };
        let stored = payload.len() - start;
        let row = &mut payload[entry..entry + COLUMN_HEAD];
        row[0] = which as u8;
        row[1] = encoding;
        row[4..8].copy_from_slice(&(plain.len() as u32).to_le_bytes());
        row[8..12].copy_from_slice(&(stored as u32).to_le_bytes());
        entry += COLUMN_HEAD;
        column.clear();
    }
    total
}

/// Appends `plain` compressed; false when that is not shorter.
fn squeeze(compressor: &mut Compressor<'_>, plain: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    out.resize(start + zstd::zstd_safe::compress_bound(plain.len()), 0);
    match compressor.compress_to_buffer(plain, &mut out[start..]) {
        Ok(length) if length < plain.len() => {
            out.truncate(start + length);
            true
        }
        _ => false,
    }
}

/// A column unpacked.
#[derive(Debug, Default)]
pub(crate) struct Column {
    /// Its bytes and [`SLACK`] zeroes.
    bytes: Vec<u8>,
    length: usize,
    /// The next byte.
    pub(crate) at: usize,
}

impl Column {
    /// Whether there is none in the chunk.
    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Its bytes, unpacked.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Whether all of it was read.
    pub(crate) fn is_used_up(&self) -> bool {
        self.at == self.length
    }

    /// Reads on.
    pub(crate) fn reader(&self) -> ColumnReader<'_> {
        ColumnReader { bytes: &self.bytes, at: self.at }
    }
}

/// What a chunk's head states of its columns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape<'a> {
    /// Bytes of the head.
    pub(crate) head: usize,
    /// Events in the chunk.
    pub(crate) events: u32,
    /// Columns in the directory.
    pub(crate) columns: u16,
    /// By column: the largest number of bytes an event may have in it.
    pub(crate) widths: &'a [usize],
}

/// Unpacks the columns of a chunk.
pub(crate) fn unpack(
    payload: &[u8],
    shape: Shape<'_>,
    columns: &mut [Column],
    decompressor: &mut Option<Decompressor<'static>>,
) -> Result<(), Malformed> {
    for column in columns.iter_mut() {
        column.bytes.clear();
        column.bytes.resize(SLACK, 0);
        column.length = 0;
        column.at = 0;
    }
    let mut data = shape.head + usize::from(shape.columns) * COLUMN_HEAD;
    if payload.len() < data {
        return Err(Malformed("its list of columns is too short"));
    }
    let mut there = [false; 256];
    for row in payload[shape.head..data].chunks_exact(COLUMN_HEAD) {
        let (length, stored) = (u32_at(row, 4) as usize, u32_at(row, 8) as usize);
        let bytes = payload.get(data..data + stored).ok_or(Malformed("a column is too short"))?;
        data += stored;
        // Columns of later versions are skipped.
        let Some(column) = columns.get_mut(row[0] as usize) else { continue };
        if length > shape.events as usize * shape.widths[row[0] as usize] {
            return Err(Malformed("a column is longer than its events can fill"));
        }
        // Unpacked repeatedly, a few bytes could keep a reader busy for minutes.
        if std::mem::replace(&mut there[row[0] as usize], true) {
            return Err(Malformed("a column is there twice"));
        }
        column.bytes.clear();
        match row[1] {
            PLAIN if stored == length => column.bytes.extend_from_slice(bytes),
            ZSTD => {
                column.bytes.reserve(length + SLACK);
                column.bytes.resize(length, 0);
                let unpacked = decompressor
                    .as_mut()
                    .and_then(|unpack| unpack.decompress_to_buffer(bytes, &mut column.bytes[..]).ok());
                if unpacked != Some(length) {
                    column.bytes.clear();
                    return Err(Malformed("a column cannot be unpacked"));
                }
            }
            _ => return Err(Malformed("a column is packed in an unknown way")),
        }
        column.bytes.resize(length + SLACK, 0);
        column.length = length;
    }
    Ok(())
}
