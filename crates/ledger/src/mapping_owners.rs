//! Owners of mappings that are not the heap's.

use std::path::Path;

use crate::heap_ranges::{follows_image, is_loaded};
use crate::line::{Amount, Term};
use crate::mapping::{self, Mapping};

/// Tasks whose stacks are read: more would take too long.
const MOST_TASKS: usize = 4096;

/// Finds the owner of each mapping.
#[derive(Debug, Default)]
pub struct MappingOwners {
    /// Path of the recorder's shared file.
    rings: Option<String>,
    /// Addresses within stacks seen so far.
    stacks: Vec<u64>,
}

impl MappingOwners {
    /// `rings`: the recorder's shared file.
    pub fn new(rings: Option<&Path>) -> MappingOwners {
        MappingOwners { rings: rings.map(|path| path.display().to_string()), stacks: Vec::new() }
    }

    /// Finds the stacks of the process's threads by the stack pointers of those that wait in the kernel. A thread that
    /// runs keeps the stack found before, if any. Returns how many threads there are.
    pub fn find_stacks(&mut self, folder: &Path, mappings: &[Mapping]) -> u64 {
        let tasks = std::fs::read_dir(folder.join("task")).into_iter().flatten().flatten();
        let mut threads = 0;
        for task in tasks.take(MOST_TASKS) {
            threads += 1;
            let text = std::fs::read_to_string(task.path().join("syscall")).unwrap_or_default();
            self.stacks.extend(stack_pointer(&text));
        }
        self.stacks.sort_unstable();
        // One for each mapping is enough; what is no longer mapped is forgotten.
        let home = |address: u64| {
            let at = mappings.partition_point(|mapping| mapping.end <= address);
            mappings.get(at).filter(|mapping| mapping.start <= address).map(|mapping| mapping.start)
        };
        self.stacks.dedup_by_key(|address| home(*address));
        self.stacks.retain(|&address| home(address).is_some());
        threads
    }

    /// Whether the recorder's file, if there is one, is mapped.
    pub fn is_recorded(&self, mappings: &[Mapping]) -> bool {
        self.rings.as_deref().is_none_or(|rings| mappings.iter().any(|mapping| is(rings, &mapping.name)))
    }

    /// The terms of a mapping, and how many of its resident and swapped bytes each has. `number` is its index in
    /// `mappings`.
    pub fn terms(&self, mappings: &[Mapping], number: usize, rest: Amount) -> [(Term, Amount); 2] {
        let mapping = &mappings[number];
        let term = self.term(mappings, number);
        if term != Term::Code || !is_loaded(mappings, number) {
            return [(term, rest), (term, Amount::default())];
        }
        // Pages of a file that were written before they were made constant (relocated data) are no longer the file's.
        let written =
            Amount { resident: mapping.anonymous.min(rest.resident), swapped: rest.swapped, absent: 0 };
        let code = Amount { resident: rest.resident - written.resident, swapped: 0, absent: rest.absent };
        [(Term::Code, code), (Term::StaticData, written)]
    }

    /// Whether variables of files lie in a mapping.
    pub fn is_static(&self, mappings: &[Mapping], number: usize) -> bool {
        matches!(self.term(mappings, number), Term::StaticData | Term::Code)
    }

    fn term(&self, mappings: &[Mapping], number: usize) -> Term {
        let mapping = &mappings[number];
        let name = mapping.name.as_str();
        if self.rings.as_deref().is_some_and(|rings| is(rings, name)) {
            return Term::Recorder;
        }
        match name {
            "[stack]" => return Term::Stacks,
            "[vdso]" | "[vvar]" | "[vvar_vclock]" | "[vsyscall]" | "[uprobes]" | "[sigpage]" => {
                return Term::Kernel;
            }
            // Where the kernel keeps names, the tables of our collectors and layers have names.
            "[anon:heaptoll roots]" => return Term::Metadata,
            _ if name.starts_with("[anon:heaptoll") || name.starts_with("[anon_shmem:heaptoll") => {
                return Term::Recorder;
            }
            _ => {}
        }
        if mapping.shared {
            return Term::Shared;
        }
        if mapping.is_private_file() {
            let is_data = mapping.writable && is_loaded(mappings, number);
            return if is_data { Term::StaticData } else { Term::Code };
        }
        let at = self.stacks.partition_point(|&address| address < mapping.start);
        if self.stacks.get(at).is_some_and(|&address| address < mapping.end) {
            return Term::Stacks;
        }
        if follows_image(mappings, number) { Term::StaticData } else { Term::OtherAnonymous }
    }
}

/// Whether a mapping of this name is of this file.
fn is(path: &str, name: &str) -> bool {
    name == path || name.strip_suffix(" (deleted)") == Some(path)
}

/// The stack pointer in `/proc/PID/task/TID/syscall`: the last but one word, if the thread is in the kernel.
fn stack_pointer(text: &str) -> Option<u64> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let word = words.len().checked_sub(2).map(|at| words[at])?;
    u64::from_str_radix(word.strip_prefix("0x")?, 16).ok().filter(|&address| address != 0)
}

/// Identifies images of one process: where the stack of the current one begins (`/proc/PID/stat`, field 28). `None`
/// where the kernel does not report it.
pub fn image(folder: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(folder.join("stat")).ok()?;
    // The name in brackets may hold anything; the first field after it is the third.
    let start: u64 = text.rsplit_once(") ")?.1.split_ascii_whitespace().nth(25)?.parse().ok()?;
    (start != 0).then_some(start)
}

/// `VmRSS` and `VmHWM` in `/proc/PID/status`, bytes.
pub fn resident(folder: &Path, pid: i32) -> Result<(u64, u64), crate::error::LedgerError> {
    let text = mapping::read(&folder.join("status"), pid)?;
    let kib = |name: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().next()?.parse().ok()
    };
    // A process that has ended has no such line until its parent has waited for it.
    let rss = kib("VmRSS:").ok_or(crate::error::LedgerError::Ended { pid })?.saturating_mul(1024);
    Ok((rss, kib("VmHWM:").map_or(rss, |kib| kib.saturating_mul(1024))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(start: u64, end: u64, access: &str, name: &str) -> Mapping {
        Mapping {
            start,
            end,
            accessible: access != "---p",
            writable: access.contains('w'),
            executable: access.contains('x'),
            shared: access.ends_with('s'),
            inode: u64::from(name.starts_with('/')),
            name: name.into(),
            ..Mapping::default()
        }
    }

    #[test]
    fn stack_pointers_of_waiting_threads_are_read() {
        let line = "202 0x7f00 0x80 0x0 0x0 0x0 0xffffffff 0x7ffd8a6b4d10 0x7f0a1b2c3d4e\n";
        assert_eq!(stack_pointer(line), Some(0x7ffd_8a6b_4d10));
        assert_eq!(stack_pointer("running\n"), None);
        assert_eq!(stack_pointer("-1 0x7ffd8a6b4d10 0x7f0a1b2c3d4e\n"), Some(0x7ffd_8a6b_4d10));
        assert_eq!(stack_pointer(""), None);
    }

    #[test]
    fn each_mapping_has_its_term() {
        let mappings = [
            mapping(0x1000, 0x2000, "r-xp", "/bin/x"),
            mapping(0x2000, 0x3000, "rw-p", "/bin/x"),
            mapping(0x3000, 0x4000, "rw-p", ""),
            mapping(0x5000, 0x6000, "rw-p", ""),
            mapping(0x7000, 0x8000, "rw-p", ""),
            mapping(0x9000, 0xa000, "rw-s", "/dev/shm/rings (deleted)"),
            mapping(0xa000, 0xb000, "rw-s", "/dev/zero"),
            mapping(0xc000, 0xd000, "rw-p", "[stack]"),
            mapping(0xd000, 0xe000, "r-xp", "[vdso]"),
            mapping(0xe000, 0xf000, "rw-p", "[anon:heaptoll roots]"),
            mapping(0xf000, 0x10000, "rw-p", "[anon:heaptoll live]"),
        ];
        let mut mapping_owners = MappingOwners::new(Some(Path::new("/dev/shm/rings")));
        mapping_owners.stacks = vec![0x7ff0];
        let terms: Vec<Term> =
            (0..mappings.len()).map(|number| mapping_owners.term(&mappings, number)).collect();
        let expected = [
            Term::Code,
            Term::StaticData,
            Term::StaticData,
            Term::OtherAnonymous,
            Term::Stacks,
            Term::Recorder,
            Term::Shared,
            Term::Stacks,
            Term::Kernel,
            Term::Metadata,
            Term::Recorder,
        ];
        assert_eq!(terms, expected);
    }

    #[test]
    fn relocated_constants_are_static_data() {
        let code = mapping(0x0, 0x1000, "r-xp", "/bin/x");
        let mut mappings = [code, mapping(0x1000, 0x9000, "r--p", "/bin/x")];
        mappings[1].anonymous = 0x2000;
        let rest = Amount { resident: 0x5000, swapped: 0x1000, absent: 0x2000 };
        let terms = MappingOwners::new(None).terms(&mappings, 1, rest);
        assert_eq!(terms[0], (Term::Code, Amount { resident: 0x3000, swapped: 0, absent: 0x2000 }));
        assert_eq!(terms[1], (Term::StaticData, Amount { resident: 0x2000, swapped: 0x1000, absent: 0 }));
    }

    /// Such a file, and the program's own memory behind it, was static data without a caller.
    #[test]
    fn a_writable_mapping_of_a_data_file_and_the_memory_after_it_are_not_static_data() {
        let of = |access: &[&str], name: &str| -> Vec<Mapping> {
            let start = |at: usize| 0x1000 * (at as u64 + 1);
            access
                .iter()
                .enumerate()
                .map(|(at, access)| mapping(start(at), start(at + 1), access, name))
                .collect()
        };
        let after = |mut all: Vec<Mapping>, access: &str, name: &str| {
            let end = all.last().map_or(0x1000, |last| last.end);
            all.push(mapping(end, end + 0x1000, access, name));
            all
        };
        let last = |mappings: &[Mapping]| MappingOwners::new(None).term(mappings, mappings.len() - 1);
        let library = of(&["r--p", "r-xp", "r--p", "---p", "rw-p"], "/lib/l.so");
        let zeroed = after(library.clone(), "rw-p", "");
        // A compiler's large data lies behind zeroed data.
        let large = after(zeroed.clone(), "rw-p", "/lib/l.so");
        for mappings in [&library, &zeroed, &large, &after(large.clone(), "rw-p", "")] {
            assert_eq!(last(mappings), Term::StaticData, "{mappings:?}");
        }
        for before in [vec![], library, zeroed] {
            let mut file = after(before, "rw-p", "/data/table");
            let number = file.len() - 1;
            file[number].anonymous = 0x800;
            let written = Amount { resident: 0x1000, ..Amount::default() };
            let [whole, none] = MappingOwners::new(None).terms(&file, number, written);
            assert_eq!((whole, none.1), ((Term::Code, written), Amount::default()), "{file:?}");
            assert_eq!(last(&after(file, "rw-p", "")), Term::OtherAnonymous);
        }
    }

    #[test]
    fn an_image_is_the_same_until_it_is_replaced() {
        let folder = Path::new("/proc/self");
        assert!(image(folder).is_some());
        assert_eq!(image(folder), image(folder));
        assert_eq!(image(Path::new("/proc/999999999")), None);
        let rings = MappingOwners::new(Some(Path::new("/dev/shm/rings")));
        assert!(!rings.is_recorded(&[mapping(0x1000, 0x2000, "rw-s", "/dev/shm/other")]));
        assert!(rings.is_recorded(&[mapping(0x1000, 0x2000, "rw-s", "/dev/shm/rings (deleted)")]));
        assert!(MappingOwners::new(None).is_recorded(&[]));
    }

    #[test]
    fn our_own_stack_is_found() {
        let folder = Path::new("/proc/self");
        let mappings = mapping::mappings(folder, 0).expect("ours");
        let mut mapping_owners = MappingOwners::new(None);
        let (send, receive) = std::sync::mpsc::channel::<()>();
        let (send_address, addresses) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let local = 0_u8;
            let _ = send_address.send(&raw const local as u64);
            let _ = receive.recv();
        });
        let address = addresses.recv().expect("sent");
        // It soon waits in the kernel.
        let found = (0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            let mappings = mapping::mappings(folder, 0).expect("ours");
            mapping_owners.find_stacks(folder, &mappings);
            let home = mappings.iter().position(|mapping| (mapping.start..mapping.end).contains(&address));
            mapping_owners.term(&mappings, home.expect("mapped")) == Term::Stacks
        });
        drop(send);
        thread.join().expect("ends");
        assert!(found && !mappings.is_empty());
    }
}
