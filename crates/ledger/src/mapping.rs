//! The mappings of a process, as `/proc/PID/smaps` lists them.

use std::io;
use std::path::Path;

use heaptoll_process::proc_files;

use crate::error::LedgerError;

/// One mapping.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// Address after it.
    pub end: u64,
    /// Readable, writable or executable.
    pub accessible: bool,
    /// Writable.
    pub writable: bool,
    /// Executable.
    pub executable: bool,
    /// Writes to it are visible to other processes.
    pub shared: bool,
    /// Of its file.
    pub inode: u64,
    /// Path, name in brackets, or empty.
    pub name: String,
    /// Resident bytes.
    pub rss: u64,
    /// Bytes of pages, resident or not, that are not or no longer a file's.
    pub anonymous: u64,
    /// Bytes on a swap device.
    pub swap: u64,
}

impl Mapping {
    /// Bytes of address space.
    pub fn bytes(&self) -> u64 {
        self.end - self.start
    }

    /// Whether it is private memory without a file.
    pub fn is_anonymous(&self) -> bool {
        !self.shared && self.inode == 0 && !self.name.starts_with('/')
    }

    /// Whether it is a private mapping of a file: code, constants, static data, or a file that the program reads.
    pub fn is_private_file(&self) -> bool {
        !self.shared && (self.inode != 0 || self.name.starts_with('/'))
    }
}

/// Reads a file of `/proc/PID` whole.
///
/// # Errors
/// See [`LedgerError`]: `pid` is the one named in it.
pub fn read(path: &Path, pid: i32) -> Result<String, LedgerError> {
    std::fs::read(path).map(text).map_err(|source| failure(path, pid, source))
}

/// File names may contain any bytes; what is parsed is ASCII.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// What a failure to read a file of `/proc/PID` means.
pub fn failure(path: &Path, pid: i32, source: io::Error) -> LedgerError {
    let file = path.display().to_string();
    match source.raw_os_error() {
        Some(libc::ESRCH) => LedgerError::Ended { pid },
        // The folder of the process disappears with it; a kernel without the file still has the folder.
        Some(libc::ENOENT) if path.parent().is_none_or(|folder| !folder.exists()) => {
            LedgerError::Ended { pid }
        }
        Some(libc::EACCES | libc::EPERM) => LedgerError::Denied { file },
        _ => LedgerError::Read { file, source },
    }
}

/// Reads the mappings from `smaps`, in order of address. Empty: the process has ended and is a zombie.
///
/// # Errors
/// See [`LedgerError`].
pub fn mappings(folder: &Path, pid: i32) -> Result<Vec<Mapping>, LedgerError> {
    let path = folder.join("smaps");
    let bytes = proc_files::mappings(&path).map_err(|source| failure(&path, pid, source))?;
    parse(&text(bytes)).map_err(|line| LedgerError::Parse {
        file: path.display().to_string(),
        line: line.chars().take(200).collect(),
    })
}

/// The mappings in a text in the format of `smaps`, or the line that is malformed.
fn parse(text: &str) -> Result<Vec<Mapping>, String> {
    let mut all: Vec<Mapping> = Vec::new();
    for line in text.lines() {
        let mut fields = line.split_ascii_whitespace();
        let Some(first) = fields.next() else { continue };
        if let Some(key) = first.strip_suffix(':') {
            let Some(mapping) = all.last_mut() else { return Err(line.into()) };
            let figure = match key {
                "Rss" => &mut mapping.rss,
                "Anonymous" => &mut mapping.anonymous,
                "Swap" => &mut mapping.swap,
                _ => continue,
            };
            let kib: u64 = fields.next().and_then(|field| field.parse().ok()).ok_or(line)?;
            *figure = kib.saturating_mul(1024);
        } else {
            let mapping = head(line).ok_or(line)?;
            if all.last().is_some_and(|last| last.end > mapping.start) {
                // The file is read in parts; a mapping that grew in between may show twice.
                continue;
            }
            all.push(mapping);
        }
    }
    Ok(all)
}

/// `START-END PERM OFFSET DEVICE INODE   NAME`.
fn head(line: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let hexadecimal = |digits| u64::from_str_radix(digits, 16).ok();
    let (start, end) = (hexadecimal(start)?, hexadecimal(end)?);
    let access = fields.next()?.as_bytes();
    let (_offset, _device) = (fields.next()?, fields.next()?);
    let inode = fields.next()?.parse().ok()?;
    let name = fields.next().unwrap_or_default().trim_start().to_owned();
    (start < end && access.len() == 4).then(|| Mapping {
        start,
        end,
        accessible: access[..3] != *b"---",
        writable: access[1] == b'w',
        executable: access[2] == b'x',
        shared: access[3] == b's',
        inode,
        name,
        ..Mapping::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
55a5b8aef000-55a5b8af1000 r--p 00000000 fe:00 247278                     /usr/bin/a file (deleted)
Size:                  8 kB
Rss:                   8 kB
Anonymous:             4 kB
Swap:                  0 kB
VmFlags: rd mr mw me sd 
7f0000000000-7f0000100000 rw-p 00000000 00:00 0 
Rss:                 100 kB
Anonymous:           100 kB
Swap:                 12 kB
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
Rss:                   0 kB
";

    #[test]
    fn reads_heads_and_figures() {
        let all = parse(TEXT).expect("parses");
        assert_eq!(all.len(), 3);
        assert_eq!(all[0].name, "/usr/bin/a file (deleted)");
        assert_eq!((all[0].rss, all[0].anonymous, all[0].inode), (8 << 10, 4 << 10, 247_278));
        assert!(all[0].is_private_file() && !all[0].writable && !all[0].executable && all[0].accessible);
        assert_eq!((all[1].bytes(), all[1].rss, all[1].swap), (1 << 20, 100 << 10, 12 << 10));
        assert!(all[1].is_anonymous() && all[1].writable);
        assert!(all[2].name == "[vsyscall]" && all[2].executable);
    }

    #[test]
    fn refuses_what_no_kernel_writes() {
        assert_eq!(parse("Rss: 4 kB\n"), Err("Rss: 4 kB".into()));
        assert!(parse("7f00-7e00 rw-p 0 0:0 0 \n").is_err());
        assert!(parse("hello world\n").is_err());
        assert!(parse("7f00-7f01 rw-p 0 0:0 0 \nRss: many kB\n").is_err());
        assert_eq!(parse(""), Ok(Vec::new()));
    }

    #[test]
    fn a_mapping_that_shows_twice_counts_once() {
        let twice = "1000-3000 rw-p 0 0:0 0 \nRss: 4 kB\n1000-5000 rw-p 0 0:0 0 \n";
        assert_eq!(parse(twice).expect("parses").len(), 1);
    }

    #[test]
    fn reads_our_own() {
        // Allocated and written before the mappings are read: memory for the result may be mapped after them.
        let block = vec![1_u8; 1000];
        let here = block.as_ptr() as u64;
        let own = mappings(Path::new("/proc/self"), std::process::id() as i32).expect("ours");
        let heap = own.iter().find(|mapping| (mapping.start..mapping.end).contains(&here)).expect("mapped");
        assert!(heap.writable && heap.rss > 0);
        drop(block);
    }

    #[test]
    fn a_process_that_is_no_more_has_ended() {
        let gone = mappings(Path::new("/proc/999999999"), 999_999_999);
        assert!(matches!(gone, Err(LedgerError::Ended { .. })), "{gone:?}");
    }
}
