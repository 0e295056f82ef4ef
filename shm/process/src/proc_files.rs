//! What `/proc` gives of another process's memory: whole or not at all.
//!
//! The kernel gives nothing more once the process has ended. Of what it gave in several reads, the rest may be missing;
//! and `std::fs::read` reads 32 bytes at first.

extern crate std;

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::vec;
use std::vec::Vec;

/// Bytes of the first read; few processes have more arguments or environment.
const FIRST_BYTES: usize = 1 << 17;
/// What the auxiliary vector ends with: `AT_NULL`, and a value.
const END_OF_VECTOR: [u8; 16] = [0; 16];

/// Its file `cmdline` or `environ`, strings that each end with NUL; `None` when it is gone or ends in between.
pub fn strings(path: &Path) -> Option<Vec<u8>> {
    until(File::open(path).ok()?, b"\0")
}

/// Its file `auxv`; `None` as above.
pub fn auxiliary(path: &Path) -> Option<Vec<u8>> {
    until(File::open(path).ok()?, &END_OF_VECTOR)
}

/// Its file `maps` or `smaps`; empty when it ends in between, as when it is a zombie.
///
/// # Errors
/// The system's.
pub fn mappings(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let bytes = all(&file)?;
    // A list that is cut ends with a whole line. The list of a process that still has a first mapping was not cut.
    let lives = file.read_at(&mut [0], 0)? > 0;
    Ok(if lives { bytes } else { Vec::new() })
}

/// Reads what has to end with `end` or be empty.
fn until(file: impl Read, end: &[u8]) -> Option<Vec<u8>> {
    all(file).ok().filter(|bytes| bytes.is_empty() || bytes.ends_with(end))
}

fn all(mut file: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; FIRST_BYTES];
    let mut length = 0;
    loop {
        match file.read(&mut bytes[length..])? {
            0 => break,
            read => length += read,
        }
        if length == bytes.len() {
            bytes.resize(2 * length, 0);
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::format;
    use std::path::PathBuf;
    use std::process::{Command, Stdio};

    use super::*;

    /// What `/proc` gives of a process that ends after `reads` reads.
    struct Ending<'a> {
        bytes: &'a [u8],
        reads: usize,
    }

    impl Read for Ending<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            match self.reads.checked_sub(1) {
                Some(left) => self.reads = left,
                None => return Ok(0),
            }
            self.bytes.read(into)
        }
    }

    /// Before, a recorded program's command was cut after 32 bytes when it ended between two reads.
    #[test]
    fn what_a_process_holds_is_whole_or_missing_when_it_ends_while_it_is_read() {
        let short = [&[b'a'; 40][..], b"\0-x\0"].concat();
        let long = [&vec![b'a'; FIRST_BYTES + 100][..], b"\0"].concat();
        let vector = [&[7; 48][..], &END_OF_VECTOR].concat();
        for (bytes, end) in [(&short, &b"\0"[..]), (&long, b"\0"), (&vector, &END_OF_VECTOR)] {
            assert_eq!(until(Ending { bytes, reads: 9 }, end).as_ref(), Some(bytes));
            assert_eq!(until(Ending { bytes, reads: 0 }, end), Some(Vec::new()));
        }
        assert_eq!(until(Ending { bytes: &short, reads: 1 }, b"\0"), Some(short));
        assert_eq!(until(Ending { bytes: &long, reads: 1 }, b"\0"), None);
        assert_eq!(until(Ending { bytes: &vector[..48], reads: 1 }, &END_OF_VECTOR), None);
    }

    #[test]
    fn the_living_are_read_whole_and_the_ended_not() {
        let of = |pid: u32, file: &str| PathBuf::from(format!("/proc/{pid}/{file}"));
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("cat runs");
        let pid = child.id();
        // In the middle of an execve it has no arguments yet.
        while strings(&of(pid, "cmdline")).expect("it lives").is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(strings(&of(pid, "cmdline")).expect("it lives"), b"cat\0");
        assert!(auxiliary(&of(pid, "auxv")).expect("it lives").len() > END_OF_VECTOR.len());
        let maps = mappings(&of(pid, "maps")).expect("it lives");
        assert!(maps.ends_with(b"\n") && maps.windows(7).any(|part| part == b"[stack]"));
        drop(child.stdin.take());
        while mappings(&of(pid, "maps")).is_ok_and(|maps| !maps.is_empty()) {
            std::thread::yield_now();
        }
        assert_eq!(mappings(&of(pid, "smaps")).ok(), Some(Vec::new()), "a zombie has no mappings");
        child.wait().expect("waits");
        assert!(mappings(&of(pid, "maps")).is_err() && strings(&of(pid, "environ")).is_none());
    }
}
