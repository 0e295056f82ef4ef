//! Results that a study wrote, read again: the same page can be made of them, and nothing is measured.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use thiserror::Error;
use xz4rust::XzReader;

use crate::results::Results;
use heaptoll_command::labelled::{self, Unreadable};

/// Results that cannot be read.
#[derive(Debug, Error)]
#[error("cannot show {path}: {why} (`heaptoll lab study --json` writes such files)")]
pub struct StoredError {
    path: String,
    why: Why,
}

#[derive(Debug, Error)]
enum Why {
    #[error(transparent)]
    File(#[from] std::io::Error),
    #[error(transparent)]
    Text(#[from] Unreadable),
}

/// The file's text; a name that ends in `.xz` is decompressed.
///
/// # Errors
/// The file cannot be read, or is cut.
pub fn text(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut text = String::new();
    match path.extension().is_some_and(|ending| ending == "xz") {
        true => XzReader::new(file).read_to_string(&mut text)?,
        false => file.read_to_string(&mut text)?,
    };
    Ok(text)
}

/// Reads the results that a study wrote, as they are or compressed by `xz` (`.json.xz`).
///
/// # Errors
/// The file cannot be read, is something else, or of a version of heaptoll whose format is another.
pub fn results(path: &Path) -> Result<Results, StoredError> {
    let error = |why| StoredError { path: path.display().to_string(), why };
    let text = text(path).map_err(|why| error(why.into()))?;
    labelled::read(&text).map_err(|why| error(why.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_a_later_version_are_refused_with_the_version_they_need() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("o.json");
        let later = r#"{"schema": "heaptoll-study/2", "heaptoll": "999.1.0", "papers": []}"#;
        std::fs::write(&path, later).expect("writes");
        let error = results(&path).expect_err("it is refused").to_string();
        for word in ["o.json", "heaptoll-study/2", "heaptoll-study/1", "heaptoll 999.1.0"] {
            assert!(error.contains(word), "{error}");
        }
        assert!(results(&folder.path().join("none.json")).is_err());
    }

    #[test]
    fn a_compressed_file_that_is_cut_is_refused_and_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let kept =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results/study-mimalloc-2026-11-27.json.xz");
        let whole = std::fs::read(kept).expect("the kept run");
        for length in [0, 5, whole.len() / 2, whole.len() - 1] {
            let path = folder.path().join("cut.json.xz");
            std::fs::write(&path, &whole[..length]).expect("writes");
            let error = results(&path).expect_err("it is refused").to_string();
            assert!(error.contains("cut.json.xz"), "{length} bytes: {error}");
        }
        assert!(results(Path::new(kept)).is_ok());
    }
}
