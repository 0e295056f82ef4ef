//! Whether the machine has other work than what is measured: times are then longer, and intervals wider.

use std::time::Instant;

use heaptoll_lab::experiment::Machine;

/// Shorter spans are not judged: the system counts in hundredths of a second.
const LEAST_S: f64 = 2.0;
/// The share of the processors that others may use before it is worth a word.
const SHARE: f64 = 0.2;

/// What to say of the load averages that an experiment begins with.
pub fn at_the_beginning(machine: &Machine) -> Option<String> {
    let (load, cores) = (machine.load[0], f64::from(machine.cores));
    (load > cores).then(|| {
        format!(
            "the machine has other work: a load average of {load:.1} on {} cores. Times are longer and intervals wider \
             than on a quiet machine; memory and counts are right",
            machine.cores
        )
    })
}

/// The processors' work since some instant.
pub struct Work {
    begun: Instant,
    busy_s: f64,
    own_s: f64,
}

impl Work {
    /// From here on.
    pub fn begin() -> Option<Work> {
        Some(Work { begun: Instant::now(), busy_s: busy_s()?, own_s: own_s() })
    }

    /// What to say of what others have done since.
    pub fn of_others(&self, cores: u32) -> Option<String> {
        let seconds = self.begun.elapsed().as_secs_f64();
        if seconds < LEAST_S {
            return None;
        }
        sentence((busy_s()? - self.busy_s) - (own_s() - self.own_s), seconds, f64::from(cores))
    }
}

fn sentence(others_s: f64, seconds: f64, cores: f64) -> Option<String> {
    let used = others_s / seconds;
    (used > SHARE * cores).then(|| {
        format!(
            "other work took {used:.1} of {cores:.0} processors while this was measured: times are longer and intervals \
             wider than on a quiet machine"
        )
    })
}

/// Seconds that all processors have worked since the system began, those taken by other guests included.
fn busy_s() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let words: Vec<u64> = text
        .lines()
        .next()?
        .strip_prefix("cpu ")?
        .split_ascii_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    // user, nice, system, idle, iowait, irq, softirq, steal; guests' time is in user's.
    let busy: u64 = [0, 1, 2, 5, 6, 7].iter().filter_map(|at| words.get(*at)).sum();
    // SAFETY: sysconf reads nothing of ours.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    (ticks > 0).then(|| busy as f64 / ticks as f64)
}

/// Processor seconds of heaptoll and of all that it has run and waited for.
fn own_s() -> f64 {
    [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN]
        .into_iter()
        .map(|who| {
            // SAFETY: all zeroes is a valid rusage, which the call fills.
            let usage = unsafe {
                let mut usage: libc::rusage = std::mem::zeroed();
                libc::getrusage(who, &mut usage);
                usage
            };
            let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
            seconds(usage.ru_utime) + seconds(usage.ru_stime)
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_is_warned_of_and_a_quiet_one_is_not() {
        let machine = |load| Machine { cores: 2, load: [load, 0.0, 0.0], ..Machine::default() };
        let busy = at_the_beginning(&machine(3503.0)).expect("a warning");
        assert!(busy.contains("3503.0 on 2 cores"), "{busy}");
        assert_eq!(at_the_beginning(&machine(1.9)), None);
        assert!(sentence(16.0, 10.0, 2.0).expect("a warning").contains("1.6 of 2 processors"));
        assert_eq!(sentence(3.0, 10.0, 2.0), None);
        assert_eq!(sentence(-1.0, 10.0, 2.0), None);
    }

    #[test]
    fn the_processors_work_can_be_read() {
        let work = Work::begin().expect("/proc/stat is there");
        assert!(work.busy_s > 0.0 && work.own_s >= 0.0);
        assert_eq!(work.of_others(1), None, "too short a span");
    }
}
