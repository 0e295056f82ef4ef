//! What the driver costs on synthetic traces.
use heaptoll_replay::flatten::{Flattening, flatten};
use heaptoll_replay::job::*;
use heaptoll_replay::program::Order;
use heaptoll_replay::source::Calls;
use heaptoll_replay::start::*;
use heaptoll_trace::{Event, Kind};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let n: usize = args[1].parse().unwrap();
    let live_max: usize = args[2].parse().unwrap();
    let threads: u32 = args[3].parse().unwrap();
    let switch: u64 = args.get(4).map_or(50, |s| s.parse().unwrap());
    let e = Event {
        kind: Kind::Malloc,
        moved: false,
        align_log2: 0,
        thread: 0,
        slot: 0,
        site: 0,
        size: 0,
        usable: 0,
        time_ns: 0,
        latency_ns: 0,
    };
    let mut x = 88172645463325252u64;
    let mut r = move || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x
    };
    let (mut live, mut free, mut slots, mut thread) = (Vec::new(), Vec::new(), 0u32, 0);
    let events: Vec<Event> = (0..n)
        .map(|_| {
            if threads > 1 && r() % switch == 0 {
                thread = (r() % threads as u64) as u32;
            }
            if live.is_empty() || (r() % 2 == 0 && live.len() < live_max) {
                let slot = free.pop().unwrap_or_else(|| {
                    slots += 1;
                    slots - 1
                });
                live.push(slot);
                Event { slot, size: 16 + r() % 200, thread, ..e }
            } else {
                let at = if r() % 4 == 0 {
                    (r() % live.len() as u64) as usize
                } else {
                    live.len() - 1 - (r() % 16.min(live.len() as u64)) as usize
                };
                let slot = live.swap_remove(at);
                free.push(slot);
                Event { kind: Kind::Free, slot, thread, ..e }
            }
        })
        .collect();
    for order in [Order::Exact, Order::PerThread] {
        let begun = Instant::now();
        let p = flatten(
            vec![Box::new(Calls::new(&events))],
            &Flattening { order, mark_every: (n as u64 / 200).max(1), ..Default::default() },
        )
        .unwrap();
        println!(
            "{order:?} flattened in {:?}: {:?} slots {} gens {} bytes {}",
            begun.elapsed(),
            p.facts,
            p.index.slots,
            p.index.generations,
            p.bytes().unwrap()
        );
        let interrupt = AtomicBool::new(false);
        let home = std::env::var("HEAPTOLL_HOME").unwrap();
        let s = Starter {
            driver: std::env::var("DRIVER").unwrap().into(),
            interrupt: &interrupt,
            timeout: Duration::from_secs(600),
        };
        for name in ["null", "glibc", "mimalloc3", "jemalloc"] {
            let object = match name {
                "glibc" => None,
                "null" => Some(format!("{home}/lib/heaptoll/layers/libheaptoll_null.so").into()),
                m => Some(format!("{home}/lib/heaptoll/managers/{m}.so").into()),
            };
            let stack = Stack { name: name.into(), object, environment: vec![] };
            for pass in [Pass::Throughput, Pass::Throughput, Pass::Latency, Pass::Memory] {
                if name == "null" && pass != Pass::Throughput {
                    continue;
                }
                let touch = if pass == Pass::Memory { Touch::Write } else { Touch::None };
                let begun = Instant::now();
                match s
                    .run(
                        &stack,
                        &p,
                        &Job {
                            pass,
                            touch,
                            repetitions: 1,
                            checkpoints: 200,
                            null: name == "null",
                            index: p.index.clone(),
                        },
                        0,
                    )
                    .unwrap()
                {
                    Ended::Done(o, hw) => println!(
                        "{name} {pass:?} {:.2?} cpu/op {:.2} ns wall/op {:.2} waits {} waited {:.2} ns/op faults {} hw {hw:?} live {} rss {} heap {} cps {} {:?}",
                        begun.elapsed(),
                        o.cpu_ns as f64 / o.calls as f64,
                        o.wall_ns as f64 / o.calls as f64,
                        o.waits,
                        o.waited_ns as f64 / o.calls as f64,
                        o.minor_faults,
                        o.max_live_bytes,
                        o.peak_rss_bytes >> 10,
                        o.peak_heap_bytes >> 10,
                        o.checkpoints.len(),
                        o.latency
                    ),
                    other => println!("{name} {other:?}"),
                }
            }
        }
    }
}
