//! Memory that is left for what sinks keep: it is looked at before it runs out, for then it is too late.

use std::fs::read_to_string;

/// Where hearing ends: less than this is left, bytes, or less than half of what heaptoll has already (a table that
/// grows is there twice for a moment).
const RESERVE: u64 = 64 << 20;

/// What this process has and may have, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Room {
    has: u64,
    left: u64,
}

impl Room {
    fn is_short(self) -> bool {
        self.left < RESERVE.max(self.has / 2)
    }
}

/// Says that memory runs out, if it does.
pub fn shortage() -> Option<String> {
    let room = look()?;
    room.is_short().then(|| {
        format!(
            "memory runs out: heaptoll has {} MiB, and {} MiB are left for it",
            room.has >> 20,
            room.left >> 20
        )
    })
}

fn look() -> Option<Room> {
    // Pages: total size, resident.
    let statm = read_to_string("/proc/self/statm").ok()?;
    let mut pages = statm.split(' ').map(|word| word.trim().parse::<u64>().unwrap_or(0));
    let (size, resident) = (pages.next()? * page_bytes(), pages.next()? * page_bytes());
    let mut left = field(&read_to_string("/proc/meminfo").ok()?, "MemAvailable:").unwrap_or(u64::MAX);
    // `ulimit -v`.
    let limit = address_space();
    if limit != u64::MAX {
        left = left.min(limit.saturating_sub(size));
    }
    if let Some((used, most)) = group() {
        left = left.min(most.saturating_sub(used));
    }
    Some(Room { has: resident, left })
}

fn page_bytes() -> u64 {
    // SAFETY: no preconditions.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

fn address_space() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: fills the struct.
    match unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) } {
        0 if limit.rlim_cur != libc::RLIM_INFINITY => limit.rlim_cur,
        _ => u64::MAX,
    }
}

/// A field of `/proc/meminfo`, bytes.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line[name.len()..].trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}

/// Used and most of the control group, bytes, where it has a limit. Version 2 only; what a cache holds can be had.
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
    fn there_is_room_until_a_growing_table_would_not_fit() {
        let mib = |has: u64, left: u64| Room { has: has << 20, left: left << 20 }.is_short();
        assert!(!mib(10, 100) && mib(10, 63));
        assert!(!mib(1000, 501) && mib(1000, 499));
    }

    #[test]
    fn the_system_is_read() {
        let room = look().expect("this is Linux");
        assert!(room.has > 1 << 20 && room.left > 0, "{room:?}");
        assert_eq!(field("MemTotal: 9 kB\nMemAvailable:    16 kB\n", "MemAvailable:"), Some(16 << 10));
    }
}
