//! Files that are compressed by gzip or zstd, as heaptrack and writers of profiles leave them, as plain bytes.

use std::io::{self, BufReader, Cursor, Read};

use flate2::read::MultiGzDecoder;

/// The largest window that zstd may keep, as its power of two: what its own tool allows, 128 MiB.
const WINDOW_LOG: u32 = 27;

/// The bytes of a file, and how they were compressed.
pub struct Unpacked<'a> {
    /// The plain bytes. An error that is none of the system's is damage of the compressed file.
    pub read: Box<dyn Read + Send + 'a>,
    /// `gzip` or `zstd`; none where the file is plain.
    pub compression: Option<&'static str>,
}

/// Reads through gzip and zstd, which the first bytes show. Nothing is unpacked yet.
///
/// # Errors
/// The system's; zstd cannot begin.
pub fn unpack<'a>(mut read: impl Read + Send + 'a) -> io::Result<Unpacked<'a>> {
    let mut first = Vec::new();
    read.by_ref().take(4).read_to_end(&mut first)?;
    let compression = match first.as_slice() {
        [0x1f, 0x8b, ..] => Some("gzip"),
        [0x28, 0xb5, 0x2f, 0xfd] => Some("zstd"),
        _ => None,
    };
    let all = Cursor::new(first).chain(read);
    let read: Box<dyn Read + Send + 'a> = match compression {
        Some("gzip") => Box::new(MultiGzDecoder::new(BufReader::new(all))),
        Some(_) => {
            let mut decoder = zstd::stream::Decoder::new(all)?;
            decoder.window_log_max(WINDOW_LOG)?;
            Box::new(decoder)
        }
        None => Box::new(all),
    };
    Ok(Unpacked { read, compression })
}

/// Whether an error of [`Unpacked::read`] means that the compressed file is cut off or damaged, and not that the system
/// refuses.
pub fn is_damage(error: &io::Error) -> bool {
    error.raw_os_error().is_none()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn plain(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        unpack(bytes)?.read.read_to_end(&mut all)?;
        Ok(all)
    }

    #[test]
    fn both_compressions_and_plain_files_are_read() {
        let text = b"v 10400 3\n".repeat(100);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&text).expect("a vector takes all");
        let gzip = gzip.finish().expect("ends");
        let zstd = zstd::bulk::compress(&text, 1).expect("compresses");
        for (bytes, compression) in [(&gzip, Some("gzip")), (&zstd, Some("zstd")), (&text, None)] {
            assert_eq!(plain(bytes).expect("reads"), text);
            assert_eq!(unpack(&bytes[..]).expect("begins").compression, compression);
        }
        for bytes in [&gzip, &zstd] {
            let error = plain(&bytes[..bytes.len() - 9]).expect_err("cut off");
            assert!(is_damage(&error), "{error}");
        }
        assert_eq!(plain(b"v").expect("shorter than any magic"), b"v");
    }
}
