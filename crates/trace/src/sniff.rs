//! Guesses what a file that is no trace is, so that the error helps.

use crate::file_kind::FileKind;
use crate::format::{FILE_MAGIC, GRAPH_MAGIC};

/// First bytes and names of files that users give by mistake.
const KNOWN: [(&[u8], &str); 16] = [
    (b"\x7fELF", "a program or library (ELF)"),
    (b"\x1f\x8b", "a file compressed by gzip"),
    (b"\x28\xb5\x2f\xfd", "a file compressed by zstd"),
    (b"\xfd7zXZ\0", "a file compressed by xz"),
    (b"BZh", "a file compressed by bzip2"),
    (b"PK\x03\x04", "a zip archive"),
    (b"PAR1", "a Parquet file"),
    (b"SQLite format 3\0", "an SQLite database, as `heaptoll run` keeps experiments"),
    (b"heaptrack", "a recording of heaptrack"),
    (b"%PDF", "a PDF"),
    (b"PERFILE2", "a recording of perf"),
    (b"# callgrind format", "a profile of callgrind"),
    (b"desc: ", "a profile of massif (Valgrind's --tool=dhat writes one that is read)"),
    (
        b"{\"head\":{\"callFrame\"",
        "a sampled heap profile of V8 (Node's package `pprof` writes a readable one)",
    ),
    (b"{\"snapshot\":", "a heap snapshot of V8, with objects but without calls"),
    (b"<!DOCTYPE html", "an HTML page"),
];

/// The kind of a file whose first bytes are those of a trace of another kind, to follow `it seems to be`.
pub(crate) fn other_kind(bytes: &[u8], wanted: FileKind) -> Option<&'static str> {
    if bytes.starts_with(&wanted.magic()) {
        return None;
    }
    if bytes.starts_with(&FILE_MAGIC) {
        return Some("a trace without pointers");
    }
    bytes
        .starts_with(&GRAPH_MAGIC)
        .then_some("a trace with pointers, which `heaptoll trace stat` and `heaptoll lab replay-graph` read")
}

/// What a file with these first bytes is that should be another tool's, to follow `it seems to be`.
pub fn seems(bytes: &[u8]) -> String {
    describe(bytes, FileKind::Trace)
}

/// As text, to follow `it seems to be`.
pub(crate) fn describe(bytes: &[u8], kind: FileKind) -> String {
    if bytes.is_empty() {
        return "an empty file".to_string();
    }
    let magic = kind.magic();
    if magic.starts_with(&bytes[..bytes.len().min(magic.len())]) {
        return "a trace that was cut off within its first bytes".to_string();
    }
    if let Some((_, name)) = KNOWN.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return (*name).to_string();
    }
    let start = &bytes[..bytes.len().min(512)];
    if start.iter().all(|byte| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~' | 0x80..)) {
        let json = start.trim_ascii_start().first().is_some_and(|byte| matches!(byte, b'{' | b'['));
        return if json { "JSON" } else { "text" }.to_string();
    }
    if start.iter().all(|&byte| byte == 0) {
        return "zeroes".to_string();
    }
    let bytes: Vec<String> = start.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("binary data that begin with {}", bytes.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_cut_in_its_first_bytes_is_no_trace_of_its_own_kind() {
        for (kind, other) in [(FileKind::Trace, FileKind::Graph), (FileKind::Graph, FileKind::Trace)] {
            let mut first = kind.magic().to_vec();
            first.extend([1, 0, 0, 0]);
            assert_eq!(other_kind(&first, kind), None);
            assert!(describe(&first, kind).contains("cut off within its first bytes"));
            assert!(other_kind(&first, other).is_some());
        }
    }
}
