//! What else the machine did while runs were measured: what the hypervisor and interrupts took, how busy other
//! processes were, how long a limit of CPU time held the runs up.
//!
//! It is the difference of two readings of the kernel's own counts, one before and one after: nothing is sampled
//! meanwhile, so measuring disturbs nothing. `/proc/stat` counts in hundredths of a second, therefore a short span is
//! not judged by itself, only its sum with others.

use std::fs::read_to_string;
use std::time::Instant;

use heaptoll_launcher::affinity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cpu_limit;

/// Steal from this share on makes a block a loaded one.
pub const STEAL: f64 = 0.01;
/// Other processes' work from this share of the processors on does, too.
pub const OTHER_WORK: f64 = 0.2;
/// A span shorter than this, in seconds, is twenty ticks of the clock or less.
const LEAST_S: f64 = 0.2;

/// What else the machine did during a span. Shares are of the span: 1 is all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Disturbance {
    /// Length of the span: of the whole block in lockstep.
    pub seconds: f64,
    /// Share of the used processors' time that the hypervisor gave to other guests.
    pub steal: f64,
    /// Share of it that hard and soft interrupts took.
    pub interrupts: f64,
    /// Share of all processors that ran other processes than heaptoll and what it started.
    pub other_work: f64,
    /// Seconds a second that a limit of CPU time (`cpu.max`) held back the control group, summed over processors.
    pub throttled: Option<f64>,
}

impl Disturbance {
    /// Whether it is too much for a quiet machine; `None` where the span is too short for the clock's ticks.
    pub fn is_loaded(&self) -> Option<bool> {
        (self.seconds >= LEAST_S).then(|| self.exceeds_thresholds())
    }

    fn exceeds_thresholds(&self) -> bool {
        self.steal >= STEAL
            || self.other_work >= OTHER_WORK
            || self.throttled.is_some_and(|share| share > 0.0)
    }
}

/// The blocks of a table together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Disturbed {
    /// The mean over all spans, each weighted by its length; `seconds` is their sum.
    pub mean: Disturbance,
    /// Blocks, or runs where one came after the other.
    pub blocks: u32,
    /// Those that are loaded, of the ones long enough to be judged; where none is, all or none of them by the mean.
    pub loaded: u32,
}

impl Disturbed {
    /// Of these spans; `None` where there is none.
    pub fn of(spans: &[Disturbance]) -> Option<Disturbed> {
        let seconds: f64 = spans.iter().map(|span| span.seconds).sum();
        if seconds <= 0.0 {
            return None;
        }
        let mean = |share: &dyn Fn(&Disturbance) -> f64| {
            spans.iter().map(|span| span.seconds * share(span)).sum::<f64>() / seconds
        };
        let known = spans.iter().all(|span| span.throttled.is_some());
        let mean = Disturbance {
            seconds,
            steal: mean(&|span| span.steal),
            interrupts: mean(&|span| span.interrupts),
            other_work: mean(&|span| span.other_work),
            throttled: known.then(|| mean(&|span| span.throttled.unwrap_or(0.0))),
        };
        let judged: Vec<bool> = spans.iter().filter_map(Disturbance::is_loaded).collect();
        let blocks = u32::try_from(spans.len()).unwrap_or(u32::MAX);
        let loaded = match judged.as_slice() {
            [] if mean.exceeds_thresholds() => blocks,
            judged => judged.iter().filter(|loaded| **loaded).count() as u32,
        };
        Some(Disturbed { mean, blocks, loaded })
    }
}

/// Seconds of one processor since the system began.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Processor {
    number: u32,
    work: f64,
    interrupts: f64,
    steal: f64,
}

/// A span that has begun.
#[derive(Debug)]
pub struct Since {
    begun: Instant,
    processors: Vec<Processor>,
    own_s: f64,
    throttled_s: Option<f64>,
}

impl Since {
    /// From here on; `None` where the kernel does not show what its processors do.
    pub fn now() -> Option<Since> {
        let throttled_s = cpu_limit::throttled_s();
        Some(Since { processors: processors()?, own_s: own_s(), throttled_s, begun: Instant::now() })
    }

    /// What has disturbed since. All that heaptoll started has ended by now and been waited for: only then is its time
    /// known as heaptoll's. Steal and interrupts are those of `processor`, or of all that may be used.
    pub fn disturbance(&self, processor: Option<u32>) -> Option<Disturbance> {
        let seconds = self.begun.elapsed().as_secs_f64();
        let now = Since::now()?;
        let throttled = now.throttled_s.zip(self.throttled_s).map(|(now, then)| share(now - then, seconds));
        let usable = affinity::allowed().ok()?;
        let spent = spent(&self.processors, &now.processors);
        let usable: Vec<Processor> = spent.into_iter().filter(|one| usable.contains(&one.number)).collect();
        let used = usable.iter().filter(|one| processor.is_none_or(|number| one.number == number));
        Some(Disturbance { throttled, ..shares(&usable, used, now.own_s - self.own_s, seconds)? })
    }
}

/// A share of a span; clocks that differ in their ticks make none negative.
fn share(part_s: f64, seconds: f64) -> f64 {
    part_s.max(0.0) / seconds.max(1e-9)
}

/// What each processor spent between two readings. One that came or went meanwhile is left out.
fn spent(then: &[Processor], now: &[Processor]) -> Vec<Processor> {
    let pairs = now.iter().filter_map(|now| Some((now, then.iter().find(|then| then.number == now.number)?)));
    pairs
        .map(|(now, then)| Processor {
            number: now.number,
            work: now.work - then.work,
            interrupts: now.interrupts - then.interrupts,
            steal: now.steal - then.steal,
        })
        .collect()
}

/// The shares of a span of `seconds` of which `own_s` were heaptoll's work.
fn shares<'a>(
    usable: &[Processor],
    used: impl Iterator<Item = &'a Processor>,
    own_s: f64,
    seconds: f64,
) -> Option<Disturbance> {
    let used: Vec<&Processor> = used.collect();
    if used.is_empty() {
        return None;
    }
    let sum = |part: fn(&Processor) -> f64| used.iter().map(|one| part(one)).sum::<f64>();
    let work: f64 = usable.iter().map(|one| one.work).sum();
    let (of_used, of_usable) = (seconds * used.len() as f64, seconds * usable.len() as f64);
    Some(Disturbance {
        seconds,
        steal: share(sum(|one| one.steal), of_used),
        interrupts: share(sum(|one| one.interrupts), of_used),
        other_work: share(work - own_s, of_usable).min(1.0),
        throttled: None,
    })
}

fn processors() -> Option<Vec<Processor>> {
    let ticks = rustix::param::clock_ticks_per_second();
    let read = parse(&read_to_string("/proc/stat").ok()?, ticks as f64);
    (ticks > 0 && !read.is_empty()).then_some(read)
}

/// The lines `cpuN` of `/proc/stat`; the one of all processors together has no number.
fn parse(stat: &str, ticks_per_s: f64) -> Vec<Processor> {
    let line = |line: &str| {
        let (number, counts) = line.strip_prefix("cpu")?.split_once(' ')?;
        let counts: Vec<u64> = counts.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
        // user, nice, system, idle, iowait, irq, softirq, steal; guests' time is in user's.
        let seconds = |fields: &[usize]| {
            fields.iter().filter_map(|at| counts.get(*at)).map(|count| *count as f64).sum::<f64>()
                / ticks_per_s
        };
        Some(Processor {
            number: number.parse().ok()?,
            work: seconds(&[0, 1, 2]),
            interrupts: seconds(&[5, 6]),
            steal: seconds(&[7]),
        })
    };
    stat.lines().filter_map(line).collect()
}

/// Processor seconds of heaptoll and of all that it has run and waited for.
fn own_s() -> f64 {
    [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN]
        .into_iter()
        .map(|target| {
            // SAFETY: all zeroes is a valid rusage; getrusage fills this live local.
            let usage = unsafe {
                let mut usage: libc::rusage = std::mem::zeroed();
                libc::getrusage(target, &mut usage);
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

    fn idle(seconds: f64) -> Disturbance {
        Disturbance { seconds, steal: 0.009, interrupts: 0.5, other_work: 0.19, throttled: Some(0.0) }
    }

    #[test]
    fn steal_other_work_and_a_limit_each_make_a_block_loaded() {
        assert_eq!(idle(1.0).is_loaded(), Some(false));
        for loaded in [
            Disturbance { steal: 0.01, ..idle(1.0) },
            Disturbance { other_work: 0.2, ..idle(1.0) },
            Disturbance { throttled: Some(0.001), ..idle(1.0) },
        ] {
            assert_eq!(loaded.is_loaded(), Some(true), "{loaded:?}");
            assert_eq!(Disturbance { seconds: 0.1, ..loaded }.is_loaded(), None);
        }
    }

    #[test]
    fn blocks_count_by_their_length_and_short_ones_are_judged_together() {
        let busy = |seconds| Disturbance { other_work: 0.5, ..idle(seconds) };
        let all = Disturbed::of(&[idle(3.0), busy(1.0)]).expect("spans");
        assert_eq!((all.blocks, all.loaded, all.mean.seconds), (2, 1, 4.0));
        assert!((all.mean.other_work - (3.0 * 0.19 + 0.5) / 4.0).abs() < 1e-12, "{all:?}");
        assert_eq!(Disturbed::of(&[idle(0.05), busy(0.05)]).expect("spans").loaded, 2);
        assert_eq!(Disturbed::of(&[idle(0.05), idle(0.05)]).expect("spans").loaded, 0);
        assert_eq!(Disturbed::of(&[]), None);
        let unknown = Disturbance { throttled: None, ..idle(1.0) };
        assert_eq!(Disturbed::of(&[idle(1.0), unknown]).expect("spans").mean.throttled, None);
    }

    #[test]
    fn shares_are_those_of_the_block_s_processor_and_other_work_that_of_all() {
        let then =
            parse("cpu  9 9 9 9\ncpu0 100 0 0 50 0 0 0 0 0 0\ncpu1 100 0 100 50 0 10 10 40\nintr 1", 100.0);
        let now = parse("cpu  9 9 9 9\ncpu0 200 0 0 150 0 0 0 0 0 0\ncpu1 150 20 130 50 0 20 14 46\n", 100.0);
        assert_eq!((then.len(), then[1].number, then[1].work), (2, 1, 2.0));
        let all = spent(&then, &now);
        // 2 s, in which the processors worked 1 s each; .5 s of it were heaptoll's.
        let of_block =
            shares(&all, all.iter().filter(|one| one.number == 1), 0.5, 2.0).expect("there is one");
        assert_eq!((of_block.steal, of_block.interrupts, of_block.other_work), (0.03, 0.07, 0.375));
        let of_all = shares(&all, all.iter(), 5.0, 2.0).expect("there are two");
        assert_eq!((of_all.steal, of_all.interrupts, of_all.other_work), (0.015, 0.035, 0.0));
        assert_eq!(shares(&all, std::iter::empty(), 0.0, 2.0), None);
        assert_eq!(spent(&then[..1], &now).len(), 1, "a processor that came meanwhile");
    }

    #[test]
    fn this_machine_s_processors_can_be_read() {
        let since = Since::now().expect("/proc/stat is there");
        let found = since.disturbance(None).expect("it is read again");
        assert!(found.seconds > 0.0 && (0.0..=1.0).contains(&found.other_work), "{found:?}");
        assert_eq!(since.disturbance(Some(u32::MAX)), None, "no such processor");
    }
}
