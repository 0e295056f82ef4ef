//! The name of a file that keeps what came through a pipe for the runs of one command. The file goes with that command; its
//! name, which experiments store, is the digest of what was in it.

use std::path::Path;

use crate::experiment::ProgramInfo;

/// What the name begins with; the SHA-256 follows.
const PREFIX: &str = "standard-input-";

/// The name of the file of this SHA-256.
pub fn name(sha256: &str) -> String {
    format!("{PREFIX}{sha256}")
}

/// The SHA-256 of what such a file keeps; none where this is another file.
pub fn sha256(path: &str) -> Option<&str> {
    let (folder, name) = path.rsplit_once('/')?;
    name.strip_prefix(PREFIX).filter(|_| heaptoll_scratch::is_inside(Path::new(folder)))
}

/// Whether one of these programs reads such a file, so that its experiment cannot go on in another command.
pub fn is_read_by(programs: &[ProgramInfo]) -> bool {
    programs.iter().filter_map(|program| program.stdin.as_deref()).any(|path| sha256(path).is_some())
}

/// A program's standard input in words: its file, or the digest of what was piped.
pub fn shown(path: &str) -> String {
    sha256(path).map_or_else(|| path.to_owned(), |digest| format!("a pipe (SHA-256 {digest})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn piped_input_is_shown_by_its_digest_and_a_file_by_its_path() {
        let kept = format!("/tmp/{}ab12/{}", heaptoll_scratch::PREFIX, name("0f"));
        assert_eq!(shown(&kept), "a pipe (SHA-256 0f)");
        assert!(is_read_by(&[ProgramInfo { stdin: Some(kept), ..ProgramInfo::default() }]));
        assert!(!is_read_by(&[ProgramInfo::default()]));
        for other in ["/data/standard-input-0f", "standard-input-0f", "/data/big.json"] {
            assert_eq!((sha256(other), shown(other)), (None, other.to_owned()));
        }
    }
}
