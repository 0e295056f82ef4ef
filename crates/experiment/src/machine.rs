//! The machine an experiment runs on, read from the kernel and the C library.

use std::fs::read_to_string;

use crate::experiment::Machine;

/// The running C library's version, e.g. `2.36`.
pub fn libc_version() -> String {
    // SAFETY: gnu_get_libc_version returns a static NUL-terminated string.
    unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) }.to_string_lossy().into_owned()
}

fn first_value(text: &str, key: &str) -> Option<String> {
    text.lines()
        .find(|line| line.starts_with(key))
        .and_then(|line| line.split_once([':', '=']))
        .map(|(_, value)| value.trim().trim_matches('"').to_string())
}

fn trimmed(path: &str) -> Option<String> {
    read_to_string(path).ok().map(|text| text.trim().to_string())
}

/// The bracketed word of `always [madvise] never`.
fn chosen(text: &str) -> Option<String> {
    Some(text.split_once('[')?.1.split_once(']')?.0.to_string())
}

/// The system's transparent-huge-page setting: `always`, `madvise`, `never` or `unknown`.
pub fn thp() -> String {
    trimmed("/sys/kernel/mm/transparent_hugepage/enabled")
        .and_then(|text| chosen(&text))
        .unwrap_or("unknown".into())
}

/// Load averages over 1, 5 and 15 minutes.
pub fn load() -> [f64; 3] {
    let text = read_to_string("/proc/loadavg").unwrap_or_default();
    let mut words = text.split_ascii_whitespace().map(|word| word.parse().unwrap_or(0.0));
    std::array::from_fn(|_| words.next().unwrap_or(0.0))
}

/// Why hardware counters are missing, in words; `None` where they work.
fn no_hardware_counters() -> Option<String> {
    let error = heaptoll_launcher::counters::probe().err()?;
    Some(match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            format!("the kernel forbids them ({error}); see /proc/sys/kernel/perf_event_paranoid")
        }
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) => {
            "this machine offers none (usual for a virtual machine)".into()
        }
        _ => format!("perf_event_open: {error}"),
    })
}

/// Reads everything.
pub fn read() -> Machine {
    let cpu = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let memory = read_to_string("/proc/meminfo").unwrap_or_default();
    let release = read_to_string("/etc/os-release").unwrap_or_default();
    let unknown = || "unknown".to_string();
    Machine {
        cpu: first_value(&cpu, "model name").unwrap_or_else(unknown),
        cores: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
        memory_kib: first_value(&memory, "MemTotal")
            .and_then(|value| value.split_ascii_whitespace().next()?.parse().ok())
            .unwrap_or(0),
        kernel: trimmed("/proc/sys/kernel/osrelease").unwrap_or_else(unknown),
        distribution: first_value(&release, "PRETTY_NAME").unwrap_or_else(unknown),
        libc: libc_version(),
        thp: thp(),
        governor: trimmed("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").unwrap_or_else(unknown),
        aslr: trimmed("/proc/sys/kernel/randomize_va_space").unwrap_or_else(unknown),
        load: load(),
        no_hardware_counters: no_hardware_counters(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_can_be_read() {
        let machine = read();
        assert!(machine.memory_kib > 100_000, "{machine:?}");
        assert!(machine.cores >= 1);
        assert!(machine.libc.starts_with("2."));
    }

    #[test]
    fn the_chosen_word_stands_in_brackets() {
        assert_eq!(chosen("always [madvise] never").as_deref(), Some("madvise"));
        assert_eq!(chosen("nonsense"), None);
    }
}
