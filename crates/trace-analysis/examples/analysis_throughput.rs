//! How fast traces are summed up, and in how much memory: `analysis_throughput make FILE [EVENTS]` writes a synthetic
//! trace, `analysis_throughput decode|stat|lifetimes|lifetimes-sites FILE` reads it and prints events per second and peak
//! resident set.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use heaptoll_trace::{Allocation, Ending, EventKind, Header, Reader, Settings, Sites, TraceFile, Writer};
use heaptoll_trace_analysis::feed::feed;
use heaptoll_trace_analysis::lifetimes::{By, Lifetimes};
use heaptoll_trace_analysis::stacks::CallSites;
use heaptoll_trace_analysis::stat::Stat;
use heaptoll_trace_analysis::subject::Subject;

/// Objects that live long, about.
const LONG_LIVED: usize = 200_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["make", file] => make(Path::new(file), 100_000_000),
        ["make", file, events] => make(Path::new(file), events.parse()?),
        [what, file] => read(what, Path::new(file)),
        _ => {
            Err("usage: analysis_throughput make FILE [EVENTS] | decode|stat|lifetimes|lifetimes-sites FILE"
                .into())
        }
    }
}

/// Numbers that look random and are the same every time (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

/// Most objects die within a few allocations, some live until one of many others replaces them, a few are resized.
fn make(path: &Path, events: u64) -> Result<(), Box<dyn Error>> {
    let header = Header { command: vec!["synthetic".into()], sites: true, ..Header::default() };
    let mut writer = Writer::new(TraceFile::create(path, true)?, &header, &Settings::default())?;
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let (mut young, mut old) = (Vec::new(), Vec::new());
    let begun = Instant::now();
    while writer.events() < events {
        if writer.events().is_multiple_of(1024) {
            writer.stamp(writer.events() * 30);
        }
        let site = 1 + dice.below(400).min(dice.below(400)) as u32;
        let size = [16, 24, 32, 40, 48, 64, 96, 128, 256, 1000, 4000, 70_000];
        let size = size[dice.below(12).min(dice.below(12)) as usize] + dice.below(8);
        let call = Allocation {
            kind: EventKind::Malloc,
            thread: dice.below(4) as u32,
            size,
            usable: (size + 23) & !15,
            align_log2: 0,
            site,
            latency_ns: 0,
        };
        let slot = writer.allocate(&call)?;
        match dice.below(16) {
            0 if old.len() >= LONG_LIVED => {
                let dead = dice.below(old.len() as u64) as usize;
                writer.free(
                    std::mem::replace(&mut old[dead], slot),
                    EventKind::Free,
                    dice.below(4) as u32,
                    0,
                )?;
            }
            0 => old.push(slot),
            1 => {
                let grown =
                    Allocation { kind: EventKind::Realloc, size: size * 2, usable: size * 2 + 8, ..call };
                writer.resize(slot, &grown, true)?;
                young.push(slot);
            }
            _ => young.push(slot),
        }
        while young.len() > 8 + dice.below(24) as usize {
            let dead = young.swap_remove(dice.below(young.len() as u64) as usize);
            writer.free(dead, EventKind::Free, call.thread, 0)?;
        }
    }
    let (events, end_ns) = (writer.events(), writer.events() * 30);
    writer.finish(&Ending { how: "exited with status 0".into(), time_ns: end_ns, ..Ending::default() })?;
    report("make", events, begun);
    println!("{:.2} bytes an event", std::fs::metadata(path)?.len() as f64 / events as f64);
    Ok(())
}

fn read(what: &str, path: &Path) -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    let reader = Reader::open(path)?;
    let mut events = 0;
    match what {
        "decode" => {
            feed(reader, |batch| events += batch.events.len() as u64)?;
        }
        "stat" => {
            let mut stat = Stat::new(false, true);
            feed(reader, |batch| stat.events(&batch.events))?;
            let figures = stat.figures(Subject::default(), &[], &mut CallSites::new(&Sites::default(), 3));
            events = figures.events;
            println!("{} objects, {} bytes at the peak", figures.objects, figures.peak.live_bytes);
        }
        "lifetimes" | "lifetimes-sites" => {
            let mut lifetimes = Lifetimes::new(if what == "lifetimes" { By::Size } else { By::Site });
            feed(reader, |batch| lifetimes.batch(batch))?;
            let figures = lifetimes.figures(Subject::default(), None);
            events = figures.events;
            println!("{} objects, {} never freed", figures.all.objects, figures.still_live.objects);
        }
        other => return Err(format!("unknown: {other}").into()),
    }
    report(what, events, begun);
    Ok(())
}

fn report(what: &str, events: u64, begun: Instant) {
    let seconds = begun.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or(" unknown").trim();
    println!(
        "{what}: {events} events in {seconds:.2} s, {:.1} M/s; peak RSS {peak}",
        events as f64 / seconds / 1e6
    );
}
