//! What a program used, as the kernel reports it of every process that ended, and as words of the launcher's message.

use crate::COUNTERS;

/// What the program and all its descendants used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Wall time from exec to the end of the first process, ns.
    pub wall_ns: u64,
    /// User CPU, µs.
    pub user_us: u64,
    /// System CPU, µs.
    pub system_us: u64,
    /// Peak resident memory of the largest process, KiB.
    pub peak_rss_kib: u64,
    /// Minor page faults.
    pub minor_faults: u64,
    /// Major page faults.
    pub major_faults: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Blocks of 512 bytes read from the disk.
    pub disk_read_blocks: u64,
    /// Processes killed after the first one had ended.
    pub killed_orphans: u32,
    /// Processes that could not be killed (another user's, set-user-ID) and still run. They hold the program's pipes.
    pub survivors: u32,
    /// Instructions, cycles, LLC misses, dTLB misses; `None` where not counted.
    pub counters: [Option<u64>; COUNTERS],
}

impl Usage {
    /// Adds what an ended process used.
    pub fn add(&mut self, ended: &libc::rusage) {
        let micros = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
        self.user_us += micros(ended.ru_utime);
        self.system_us += micros(ended.ru_stime);
        self.peak_rss_kib = self.peak_rss_kib.max(ended.ru_maxrss as u64);
        self.minor_faults += ended.ru_minflt as u64;
        self.major_faults += ended.ru_majflt as u64;
        self.voluntary_switches += ended.ru_nvcsw as u64;
        self.involuntary_switches += ended.ru_nivcsw as u64;
        self.disk_read_blocks += ended.ru_inblock as u64;
    }

    /// Reads the words that its text has.
    pub(crate) fn of_words<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<Usage> {
        let mut next = || words.next()?.parse::<u64>().ok();
        let mut usage = Usage {
            wall_ns: next()?,
            user_us: next()?,
            system_us: next()?,
            peak_rss_kib: next()?,
            minor_faults: next()?,
            major_faults: next()?,
            voluntary_switches: next()?,
            involuntary_switches: next()?,
            disk_read_blocks: next()?,
            killed_orphans: u32::try_from(next()?).ok()?,
            survivors: u32::try_from(next()?).ok()?,
            counters: [None; COUNTERS],
        };
        for counter in &mut usage.counters {
            *counter = match words.next()? {
                "-" => None,
                value => Some(value.parse().ok()?),
            };
        }
        Some(usage)
    }
}

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} {} {} {} {} {} {} {} {} {} {}",
            self.wall_ns,
            self.user_us,
            self.system_us,
            self.peak_rss_kib,
            self.minor_faults,
            self.major_faults,
            self.voluntary_switches,
            self.involuntary_switches,
            self.disk_read_blocks,
            self.killed_orphans,
            self.survivors
        )?;
        self.counters.iter().try_for_each(|counter| match counter {
            Some(value) => write!(f, " {value}"),
            None => write!(f, " -"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_survives_its_words() {
        let usage = Usage {
            wall_ns: 1,
            user_us: 2,
            system_us: 3,
            peak_rss_kib: 4,
            minor_faults: 5,
            major_faults: 6,
            voluntary_switches: 7,
            involuntary_switches: 8,
            disk_read_blocks: 9,
            killed_orphans: 10,
            survivors: 11,
            counters: [Some(u64::MAX), None, Some(0), None],
        };
        let text = usage.to_string();
        assert_eq!(Usage::of_words(text.split(' ')), Some(usage));
        assert_eq!(Usage::of_words(text.split(' ').skip(1)), None);
    }
}
