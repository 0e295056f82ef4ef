//! Memory left for the sinks: sampled before it runs out, since a failed allocation ends heaptoll.

use std::fs::read_to_string;

/// Recording ends when less is left than this, bytes, or than half of heaptoll's resident memory (a growing table
/// exists twice while it is copied).
const RESERVE: u64 = 64 << 20;

/// Memory of this process and available to it, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Memory {
    resident: u64,
    available: u64,
}

impl Memory {
    fn is_short(self) -> bool {
        self.available < RESERVE.max(self.resident / 2)
    }
}

/// A message that memory runs out, if it does.
pub fn shortage() -> Option<String> {
    let memory = sample()?;
    memory.is_short().then(|| {
        format!(
            "memory runs out: heaptoll has {} MiB, and {} MiB are left for it",
            memory.resident >> 20,
            memory.available >> 20
        )
    })
}

fn sample() -> Option<Memory> {
    // Pages: total size, resident.
    let statm = read_to_string("/proc/self/statm").ok()?;
    let mut pages = statm.split(' ').map(|word| word.trim().parse::<u64>().unwrap_or(0));
    let (size, resident) = (pages.next()? * page_bytes(), pages.next()? * page_bytes());
    let mut available = field(&read_to_string("/proc/meminfo").ok()?, "MemAvailable:").unwrap_or(u64::MAX);
    // `ulimit -v`.
    let limit = address_space();
    if limit != u64::MAX {
        available = available.min(limit.saturating_sub(size));
    }
    if let Some((used, most)) = group() {
        available = available.min(most.saturating_sub(used));
    }
    Some(Memory { resident, available })
}

fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

fn address_space() -> u64 {
    rustix::process::getrlimit(rustix::process::Resource::As).current.unwrap_or(u64::MAX)
}

/// A field of `/proc/meminfo`, bytes.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line[name.len()..].trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}

/// Used and largest bytes of the control group, where it has a limit. Version 2 only; inactive file cache counts as
/// available.
fn group() -> Option<(u64, u64)> {
    let own = read_to_string("/proc/self/cgroup").ok()?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let read = |name: &str| read_to_string(format!("/sys/fs/cgroup{path}/{name}")).ok();
    let most = read("memory.max")?.trim().parse::<u64>().ok()?;
    let used = read("memory.current")?.trim().parse::<u64>().ok()?;
    let cache = read("memory.stat").and_then(|stat| {
        stat.lines().find_map(|line| line.strip_prefix("inactive_file ")?.trim().parse::<u64>().ok())
    });
    Some((used.saturating_sub(cache.unwrap_or(0)), most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_suffices_until_a_growing_table_would_not_fit() {
        let mib = |resident: u64, available: u64| {
            Memory { resident: resident << 20, available: available << 20 }.is_short()
        };
        assert!(!mib(10, 100) && mib(10, 63));
        assert!(!mib(1000, 501) && mib(1000, 499));
    }

    #[test]
    fn the_system_is_read() {
        let memory = sample().expect("this is Linux");
        assert!(memory.resident > 1 << 20 && memory.available > 0, "{memory:?}");
        assert_eq!(field("MemTotal: 9 kB\nMemAvailable:    16 kB\n", "MemAvailable:"), Some(16 << 10));
    }
}
