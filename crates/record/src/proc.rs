//! A process as `/proc` shows it while it lives.

use std::fs::{File, read_link, read_to_string};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use heaptoll_process::proc_files;

/// Its resident memory, KiB.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// `VmRSS`.
    pub rss_kib: u64,
    /// `RssAnon`.
    pub anon_kib: u64,
    /// `VmHWM`: the most that `VmRSS` has been.
    pub peak_kib: u64,
}

/// Reads its memory; `None` when the process is gone or a zombie.
pub fn memory(pid: i32) -> Option<Memory> {
    parse_memory(&read_to_string(format!("/proc/{pid}/status")).ok()?)
}

/// The resident set of a process, for a reading at every tick: its file stays open.
#[derive(Debug)]
pub struct ResidentSet(Option<File>);

impl ResidentSet {
    /// Of process `pid`.
    pub fn new(pid: i32) -> ResidentSet {
        ResidentSet(File::open(format!("/proc/{pid}/statm")).ok())
    }

    /// Bytes; 0 when the process is gone or a zombie.
    pub fn bytes(&self) -> u64 {
        let mut text = [0; 128];
        let length = self.0.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or(0);
        let words = std::str::from_utf8(&text[..length]).unwrap_or_default();
        let pages: u64 = words.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
        pages.saturating_mul(rustix::param::page_size() as u64)
    }
}

fn parse_memory(status: &str) -> Option<Memory> {
    let mut memory = Memory::default();
    let mut found = false;
    for line in status.lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        let field = match name {
            "VmRSS" => &mut memory.rss_kib,
            "RssAnon" => &mut memory.anon_kib,
            "VmHWM" => &mut memory.peak_kib,
            _ => continue,
        };
        *field = value.split_ascii_whitespace().next()?.parse().ok()?;
        found = true;
    }
    found.then_some(memory)
}

/// Adds up those of its anonymous mappings, the brk segment among them, that `holds` is true for; bytes.
///
/// The kernel gives `maps` a page at a time and lets the program run in between: a block that `mremap` moves upwards is
/// counted twice. So the file is read twice, and the smaller sum counts.
pub fn mappings_bytes(pid: i32, holds: impl Fn(&Range<u64>) -> bool) -> Option<u64> {
    let read = || Some(sum(&String::from_utf8_lossy(&maps(pid)?), &holds));
    Some(smaller_sum(read()?, read))
}

/// The smaller of two readings; the first when the process is gone at the second.
fn smaller_sum(first: u64, second: impl FnOnce() -> Option<u64>) -> u64 {
    second().map_or(first, |second| first.min(second))
}

/// Size of the mappings in `maps` for which `holds` is true, bytes.
fn sum(maps: &str, holds: impl Fn(&Range<u64>) -> bool) -> u64 {
    let held = maps.lines().filter_map(anonymous).filter(|range| holds(range));
    held.map(|range| range.end - range.start).sum()
}

/// Whether it has mapped a file, by the file's name, which must be unique; `None` when that cannot be known, or it is a
/// zombie.
pub fn maps_file(pid: i32, file: &Path) -> Option<bool> {
    let name = file.file_name()?.as_encoded_bytes();
    let maps = maps(pid)?;
    Some(maps.split(|&byte| byte == b'\n').any(|line| line.windows(name.len()).any(|part| part == name)))
}

/// The range of a line of `maps`, when it maps no file and is no stack of the kernel's making.
fn anonymous(line: &str) -> Option<Range<u64>> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let path = words.nth(4).unwrap_or_default();
    let own = path.is_empty() || path == "[heap]" || path.starts_with("[anon");
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    own.then_some(number(start)?..number(end)?)
}

/// The file that it executes.
pub fn exe(pid: i32) -> Option<PathBuf> {
    read_link(format!("/proc/{pid}/exe")).ok()
}

/// Whether its environment can be read and has no entry that begins with `beginning`.
///
/// In the middle of an `execve` the new image has neither arguments nor environment yet, as a program that was started
/// without any: only one that has its arguments has its environment, too.
pub fn lacks(pid: i32, beginning: &[u8]) -> bool {
    let has_begun = !command(pid).is_empty();
    has_begun
        && strings(pid, "environ")
            .is_some_and(|bytes| !bytes.split(|&byte| byte == 0).any(|entry| entry.starts_with(beginning)))
}

/// Its current folder.
pub fn directory(pid: i32) -> Option<PathBuf> {
    read_link(format!("/proc/{pid}/cwd")).ok()
}

/// Its program and arguments; empty when it is gone.
pub fn command(pid: i32) -> Vec<String> {
    let bytes = strings(pid, "cmdline").unwrap_or_default();
    let Some(bytes) = bytes.strip_suffix(b"\0") else { return Vec::new() };
    bytes.split(|&byte| byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// Its file `cmdline` or `environ`; `None` when it is gone or ends in between.
pub fn strings(pid: i32, file: &str) -> Option<Vec<u8>> {
    proc_files::strings(Path::new(&format!("/proc/{pid}/{file}")))
}

/// Its list of mappings; `None` when it is gone, ends in between, or is a zombie.
fn maps(pid: i32) -> Option<Vec<u8>> {
    proc_files::mappings(Path::new(&format!("/proc/{pid}/maps"))).ok().filter(|maps| !maps.is_empty())
}

/// Its children, whichever of its threads started them.
pub fn children(pid: i32) -> Vec<i32> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let mut found = Vec::new();
    for task in tasks.flatten() {
        let text = read_to_string(task.path().join("children")).unwrap_or_default();
        found.extend(text.split_ascii_whitespace().filter_map(|word| word.parse::<i32>().ok()));
    }
    found
}

/// Whether this file has a loader, which would preload the layer; `None` when it cannot be read or is no ELF file.
pub fn has_loader(exe: &Path) -> Option<bool> {
    heaptoll_elf::has_loader(exe).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_can_be_seen() {
        let pid = std::process::id() as i32;
        let memory = memory(pid).expect("it lives");
        assert!(
            memory.rss_kib > 500 && memory.peak_kib >= memory.rss_kib && memory.anon_kib < memory.rss_kib
        );
        assert_eq!(exe(pid), std::env::current_exe().ok());
        assert_eq!(directory(pid), std::env::current_dir().ok());
        assert_eq!(command(pid), std::env::args().collect::<Vec<_>>());
        let here = Box::new(0u64);
        let address = &raw const *here as u64;
        let bytes = mappings_bytes(pid, |range| range.contains(&address)).expect("it lives");
        assert!((4096..1 << 40).contains(&bytes) && bytes.is_multiple_of(4096), "{bytes}");
        assert_eq!(mappings_bytes(pid, |_| false), Some(0));
    }

    #[test]
    fn mapped_files_are_found_by_name() {
        let own = std::env::current_exe().expect("a name");
        assert_eq!(maps_file(std::process::id() as i32, &own), Some(true));
        assert_eq!(maps_file(std::process::id() as i32, Path::new("/no/such.rings")), Some(false));
        assert_eq!(maps_file(0, &own), None);
    }

    #[test]
    fn children_are_found_and_the_dead_have_no_memory() {
        let mut child = std::process::Command::new("sleep").arg("10").spawn().expect("sleep runs");
        let pid = child.id() as i32;
        assert!(children(std::process::id() as i32).contains(&pid));
        child.kill().expect("kills");
        while memory(pid).is_some() {
            std::thread::yield_now();
        }
        assert_eq!(mappings_bytes(pid, |_| true), None, "a zombie has no mappings");
        child.wait().expect("waits");
        assert_eq!((memory(pid), exe(pid)), (None, None));
    }

    #[test]
    fn a_block_that_moves_while_maps_is_read_counts_once() {
        assert_eq!(smaller_sum(12 << 20, || Some(10 << 20)), 10 << 20);
        assert_eq!(smaller_sum(10 << 20, || Some(12 << 20)), 10 << 20);
        assert_eq!(smaller_sum(12 << 20, || None), 12 << 20, "gone in between");
    }

    #[test]
    fn mappings_of_files_are_distinguished_from_memory() {
        let line = |path: &str| format!("7f00000000-7f00002000 rw-p 00000000 00:00 0 {path}");
        assert_eq!(anonymous(&line("")), Some(0x7f_0000_0000..0x7f_0000_2000));
        assert_eq!(anonymous(&line("         [heap]")), anonymous(&line("")));
        assert_eq!(anonymous(&line("[anon:arena]")), anonymous(&line("")));
        assert_eq!(anonymous(&line("/lib/libc.so.6")), None);
        assert_eq!(anonymous(&line("[stack]")), None);
        assert_eq!(anonymous("nonsense"), None);
    }

    #[test]
    fn a_dynamic_program_has_a_loader() {
        assert_eq!(has_loader(std::path::Path::new("/bin/sh")), Some(true));
        assert_eq!(has_loader(std::path::Path::new("/etc/passwd")), None);
        assert_eq!(has_loader(std::path::Path::new("/no/such/file")), None);
    }
}
