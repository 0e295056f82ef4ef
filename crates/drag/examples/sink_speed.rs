//! Speed of the drag sink: `cargo run --release -p heaptoll-drag --example sink_speed -- gawk ...` runs a program under
//! the tracer twice, with a sink that only counts and with this one, and prints the processor time of the decoding
//! thread.

use std::process::ExitCode;

use heaptoll_drag::{Clock, Drag, FigureOptions, ManagerInfo};
use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::launch::Invocation;
use heaptoll_experiment::places::Places;
use heaptoll_reftrace::{Event, Owner, Reference, Sink};
use heaptoll_reftrace_host::{Options, Traced, Tracer, trace};

/// Counts references.
#[derive(Default)]
struct Counter(u64);

impl Sink for Counter {
    fn references(&mut self, _owner: Owner, references: &[Reference]) {
        self.0 += references.len() as u64;
    }

    fn event(&mut self, _event: &Event<'_>) {}
}

fn thread_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `clock_gettime` writes one `timespec`, to `time`.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn run<S: Sink>(begin: impl FnMut() -> S) -> Result<(Traced<S>, f64), Box<dyn std::error::Error>> {
    let places = Places::find()?;
    let tracer = Tracer::find(&places)?;
    let mut begin = begin;
    let command = std::env::args_os().skip(1).collect();
    let invocation =
        Invocation { command, timeout: std::time::Duration::from_secs(3600), ..Invocation::default() };
    let options = Options { references: true, ..Options::default() };
    let before = thread_seconds();
    let interrupt = Interrupt::default();
    let traced = trace(&tracer, &places.launcher(), &invocation, &options, &interrupt, |_| begin())?;
    Ok((traced, thread_seconds() - before))
}

fn measure() -> Result<(), Box<dyn std::error::Error>> {
    let (counted, alone_s) = run(Counter::default)?;
    let (traced, with_s) = run(|| Drag::new(ManagerInfo::default()))?;
    let references: u64 = counted.images.iter().map(|image| image.sink.0).sum();
    let wall = |ns: u64| ns as f64 / 1e9;
    println!(
        "references {references}; counting only:  {alone_s:.2} s of the thread, {:.2} s wall; drag: {with_s:.2} s, {:.2} s wall",
        wall(counted.finished.usage.wall_ns),
        wall(traced.finished.usage.wall_ns)
    );
    let own = with_s - alone_s;
    println!("drag alone {own:.2} s, {:.1} M references/s", references as f64 / own / 1e6);
    println!("all of the thread {:.1} M references/s", references as f64 / with_s / 1e6);
    let options =
        FigureOptions { clock: Clock::Instructions, sites: false, depth: 12, pointers: false, frames: 3 };
    for image in traced.images {
        let figures = image.sink.figures(options);
        println!(
            "{:?}: {} objects, {} program references, {} in objects, {:?}",
            image.image.command.first(),
            figures.all.all.objects,
            figures.references.program,
            figures.references.program_in_objects,
            figures.all.space_instructions
        );
    }
    Ok(())
}

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
