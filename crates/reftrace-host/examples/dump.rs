//! Prints what the tracer records of a program, for work on the tracer.
//! `V=1` prints events, `VV=1` calls too, `REFS=1` requests references; `PRE` is preloaded.

use heaptoll_experiment::{interrupt::Interrupt, launch::Invocation, places::Places};
use heaptoll_reftrace::{Owner, Reference, Sink, event::Event};
use heaptoll_reftrace_host::*;
struct Counter {
    events: u64,
    references: u64,
}
impl Sink for Counter {
    fn references(&mut self, _: Owner, references: &[Reference]) {
        self.references += references.len() as u64;
    }
    fn event(&mut self, e: &Event<'_>) {
        self.events += 1;
        if std::env::var_os("V").is_some() {
            match e {
                Event::Enter { .. } | Event::Leave { .. } if std::env::var_os("VV").is_none() => {}
                Event::Text { what, word, bytes } => {
                    println!("  {what:?} {word:#x} {}", String::from_utf8_lossy(bytes))
                }
                e => println!("  {e:?}"),
            }
        }
    }
}
fn main() {
    let places = Places::find().expect("heaptoll is staged: run `make build`");
    let t = Tracer::find(&places).unwrap();
    let refs = std::env::var_os("REFS").is_some();
    let preload = std::env::var("PRE").ok().map(|p| vec![p.into()]).unwrap_or_default();
    let inv = Invocation { command: std::env::args_os().skip(1).collect(), preload, ..Default::default() };
    let i = Interrupt::default();
    let begun = std::time::Instant::now();
    let r =
        trace(&t, &places.launcher(), &inv, &Options { references: refs, ..Default::default() }, &i, |im| {
            println!("{im:?}");
            Counter { events: 0, references: 0 }
        })
        .unwrap();
    println!(
        "{:?} wall {:?} cpu {} us {:?} {:?}",
        r.finished.ended,
        begun.elapsed(),
        r.finished.usage.user_us + r.finished.usage.system_us,
        r.warnings,
        r.stopped
    );
    print!("{}", r.finished.error_tail);
    for im in &r.images {
        println!(
            "{} {}.{} {:?} totals {:?} events {} refs {} calls {:?} damage {:?} refused {:?} warn {:?} {:?}",
            im.image.name(),
            im.image.pid,
            im.image.number,
            im.ending,
            im.totals,
            im.sink.events,
            im.sink.references,
            im.calls,
            im.damage,
            im.refused,
            im.warnings,
            im.routine_objects
        );
    }
}
