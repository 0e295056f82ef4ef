//! The licences of the peers, `NAME.LICENSE` next to each object: an installation that is passed on contains compiled
//! copies of other people's work, whose licences require that the notices go along.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::install::put_in_place;
use crate::peer::Peer;
use crate::source::Source;

/// snmalloc's crate carries the sources without upstream's licence file; this is that file.
const SNMALLOC: &str = include_str!("../shim/snmalloc.LICENSE");

/// The licence files of a peer, inside its crate.
fn files(peer: Peer) -> &'static [&'static str] {
    match peer {
        Peer::Mimalloc3 => &["c_src/mimalloc/v3/LICENSE"],
        Peer::Mimalloc2 => &["c_src/mimalloc/v2/LICENSE"],
        Peer::Snmalloc => &[],
        Peer::Rpmalloc => &["rpmalloc/LICENSE"],
        Peer::Jemalloc | Peer::JemallocProf => &["jemalloc/COPYING"],
        Peer::Tcmalloc => &["c_src/tcmalloc/LICENSE", "c_src/abseil-cpp/LICENSE"],
    }
}

/// Where the licence of a peer goes.
pub fn path(out: &Path, peer: Peer) -> PathBuf {
    out.join(format!("{}.LICENSE", peer.name()))
}

/// Writes the licence of a peer into `out`, unless it is there.
///
/// # Errors
/// [`Error::Layout`] when the crate does not carry it where it used to, [`Error::File`] when it cannot be written.
pub fn put(out: &Path, peer: Peer, source: &Source) -> Result<(), Error> {
    let text = text(peer, source)?;
    let target = path(out, peer);
    if std::fs::read_to_string(&target).is_ok_and(|there| there == text) {
        return Ok(());
    }
    put_in_place(text.as_bytes(), &target)
}

/// One file as it is; several, each under its path.
fn text(peer: Peer, source: &Source) -> Result<String, Error> {
    match files(peer) {
        [] => Ok(SNMALLOC.to_string()),
        [only] => source.read(only).map(|(_, text)| text),
        several => {
            let part = |inside: &&str| source.read(inside).map(|(_, text)| format!("{inside}:\n\n{text}\n"));
            several.iter().map(part).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_files_are_labelled_and_a_missing_one_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let source =
            Source { name: "libtcmalloc-sys", version: "1".to_string(), dir: dir.path().to_path_buf() };
        let mut expected = String::new();
        for inside in files(Peer::Tcmalloc) {
            assert!(put(dir.path(), Peer::Tcmalloc, &source).unwrap_err().to_string().contains(inside));
            let file = dir.path().join(inside);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "Terms").unwrap();
            expected.push_str(&format!("{inside}:\n\nTerms\n"));
        }
        put(dir.path(), Peer::Tcmalloc, &source).unwrap();
        assert_eq!(std::fs::read_to_string(path(dir.path(), Peer::Tcmalloc)).unwrap(), expected);
    }
}
