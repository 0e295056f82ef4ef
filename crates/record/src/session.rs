//! One process image while it is recorded: its rings, its table of blocks, its trace.

use std::path::{Path, PathBuf};

use heaptoll_alloc_ring::{Arrival, Losses, Shared, Tap};
use heaptoll_ledger::{Ledger, LivePeak};
use heaptoll_trace::{Ending, Gap, Header, Settings, TraceError, Writer};

use crate::child::ProgramExit;
use crate::event_consumer::EventConsumer;
use crate::ledger_sampler::LedgerSampler;
use crate::output::Destination;
use crate::proc;
use crate::recorded::Recording;
use crate::request::{Manager, Request};
use crate::watch::Watch;

/// Events are on the disk after this time at the latest, ns: if heaptoll is killed, no more is lost.
const FLUSH_NS: u64 = 1_000_000_000;

/// One process image.
pub struct Session {
    /// Its process number.
    pub pid: i32,
    /// Its number among all images of this recording.
    pub image: u32,
    /// The file it executes.
    pub exe: PathBuf,
    path: PathBuf,
    tap: Tap,
    consumer: EventConsumer<Destination>,
    watch: Watch,
    ledger_sampler: Option<LedgerSampler>,
    /// Whether it has begun to end: what its destructors have freed was live while it ran, and no snapshot is to show
    /// it otherwise.
    is_ending: bool,
    /// Whether its heap is glibc's.
    is_glibc: bool,
    /// When it began, on the clock of the rings, ns.
    begun_ns: u64,
    flushed_ns: u64,
    /// The disk's error, once there is one.
    trouble: Option<String>,
    /// Whether a gap of events that are in no ring is marked in the trace.
    gap_marked: bool,
}

impl Session {
    /// Begins the trace of a process that has arrived. `inherited`: its parent's heap, where it was forked.
    ///
    /// # Errors
    /// The trace's beginning cannot be written.
    pub fn begin(
        shared: &Shared,
        arrival: &Arrival,
        request: &Request,
        (path, destination): (PathBuf, Destination),
        inherited: &[(u64, u64)],
    ) -> Result<Session, TraceError> {
        let manager = request.manager.serving(&arrival.manager);
        let header = header(request, &manager, arrival.pid, arrival.parent_pid, &arrival.exe);
        let writer = Writer::new(destination, &header, &Settings::default())?;
        Ok(Session {
            pid: arrival.pid,
            image: arrival.image,
            exe: arrival.exe.clone(),
            path,
            tap: Tap::new(shared, arrival.index),
            consumer: EventConsumer::new(writer, request, arrival.started_ns, arrival.pid),
            watch: Watch::new(arrival.pid),
            ledger_sampler: request.options.ledger.then(|| {
                LedgerSampler::new(arrival, &manager, request.options.collect, shared.path(), inherited)
            }),
            is_ending: false,
            is_glibc: manager.name == "glibc",
            begun_ns: arrival.started_ns,
            flushed_ns: 0,
            trouble: None,
            gap_marked: false,
        })
    }

    /// Events recorded so far.
    pub fn events(&self) -> u64 {
        self.consumer.resolver().written().events()
    }

    /// Its trace.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Consumes up to about `budget` words of its rings; returns how many there were.
    pub fn drain(&mut self, budget: usize) -> usize {
        let words = self.tap.drain(budget, &mut self.consumer).words;
        self.consumer.keep_sites();
        words
    }

    /// Takes a snapshot if much more is live than in any. To be called after each turn: it costs next to nothing.
    pub fn sample_at_rise(&mut self, shared: &Shared, now_ns: u64) {
        let now_ns = now_ns.saturating_sub(self.begun_ns);
        let live_bytes = self.consumer.resolver().written().live_bytes();
        if let Some(ledger_sampler) = &mut self.ledger_sampler
            && !self.is_ending
            && !self.tap.is_ending()
            && ledger_sampler.rises(now_ns, live_bytes)
        {
            ledger_sampler.sample(shared, &mut self.tap, &mut self.consumer, now_ns);
        }
    }

    /// The ranges of its heap, for a process that was just forked from it.
    pub fn heap(&mut self, shared: &Shared, now_ns: u64) -> Vec<(u64, u64)> {
        self.drain(usize::MAX);
        self.sample_at_rise(shared, now_ns);
        self.ledger_sampler.as_ref().map(|sampler| sampler.heap().to_vec()).unwrap_or_default()
    }

    /// Samples the process from outside, and checks its trace. `now_ns` is the rings' clock. Returns a message for the
    /// user when the disk has reported a new error.
    pub fn poll(&mut self, shared: &Shared, now_ns: u64) -> Option<String> {
        let now_ns = now_ns.saturating_sub(self.begun_ns);
        let written = self.consumer.resolver().written();
        let (events, live_bytes) = (written.events(), written.live_bytes());
        self.watch.poll(now_ns, (events, live_bytes), self.consumer.resolver().live());
        if let Some(ledger_sampler) = &mut self.ledger_sampler
            && !self.is_ending
            && !self.tap.is_ending()
            && ledger_sampler.is_due(now_ns, events, live_bytes)
        {
            ledger_sampler.sample(shared, &mut self.tap, &mut self.consumer, now_ns);
        }
        self.sample_where_it_waits(shared, now_ns);
        self.mark_gap();
        if now_ns >= self.flushed_ns + FLUSH_NS {
            self.flushed_ns = now_ns;
            self.consumer.write_sites();
            // The writer keeps the error: `trouble` returns it below.
            let _ = self.consumer.resolver_mut().writer().flush();
        }
        let writer = self.consumer.resolver().written();
        // A disk may have space again before this is checked: what was lost until then is lost.
        let error = writer.trouble().filter(|_| self.trouble.is_none())?.to_string();
        self.trouble = Some(error.clone());
        Some(error)
    }

    /// Takes the snapshot of a process that waits for it: at its stop, or the last one when it begins to end.
    fn sample_where_it_waits(&mut self, shared: &Shared, now_ns: u64) {
        let (is_stopped, ends) = (self.tap.is_stopped(), self.tap.is_ending());
        if !is_stopped && !ends {
            return;
        }
        self.tap.drain(usize::MAX, &mut self.consumer);
        let live_bytes = self.consumer.resolver().written().live_bytes();
        if let Some(ledger_sampler) = &mut self.ledger_sampler
            && !self.is_ending
            && (is_stopped || ledger_sampler.misses(live_bytes))
        {
            ledger_sampler.sample(shared, &mut self.tap, &mut self.consumer, now_ns);
        }
        self.is_ending |= ends;
        self.tap.go_on();
    }

    /// Marks, once, that events are missing, where that is known first.
    fn mark_gap(&mut self) {
        if self.gap_marked {
            return;
        }
        if let Some(why) = describe_losses(self.tap.losses()) {
            self.consumer.resolver_mut().writer().gap(&Gap { why, events: None });
            self.gap_marked = true;
        }
    }

    /// Requests that the process stop recording.
    pub fn dismiss(&self) {
        self.tap.dismiss();
    }

    /// Consumes everything that the dead process, or the image that is gone, has left; the closure that it returns
    /// finishes the trace. `how` it ended as text; `ended` is what the system reports of the first process.
    pub fn end(
        mut self,
        how: String,
        ended: Option<ProgramExit>,
        now_ns: u64,
    ) -> impl FnOnce() -> Recording + Send + 'static {
        self.tap.end(&mut self.consumer);
        self.mark_gap();
        let lost = describe_losses(self.tap.losses());
        let (consumer, watch) = (self.consumer, self.watch);
        let live_peak = LivePeak { image: self.image, ..consumer.peak() };
        let sampler = self.ledger_sampler;
        let brk = if self.is_glibc { consumer.resolver().brk().bytes() } else { 0 };
        let last = Last {
            brk_bytes: Some(brk).filter(|bytes| *bytes > 0),
            pid: self.pid,
            exe: self.exe,
            path: self.path,
            trouble: self.trouble.or(lost).or(sampler.as_ref().and_then(LedgerSampler::trouble)),
            time_ns: now_ns.saturating_sub(self.begun_ns),
            how,
            ended,
        };
        move || last.write(consumer, &watch, sampler.map(|sampler| sampler.finish(live_peak)).as_ref())
    }
}

/// What is in no ring, as text.
fn describe_losses(losses: Losses) -> Option<String> {
    if losses.threads > 0 {
        let threads = if losses.threads == 1 {
            "1 thread was".into()
        } else {
            format!("{} threads were", losses.threads)
        };
        return Some(format!(
            "{threads} not recorded, because memory for their rings was missing; set XDG_RUNTIME_DIR to a folder \
             with more space"
        ));
    }
    if losses.unread {
        return Some(
            "events in its rings were lost, because memory for their pages was missing; set XDG_RUNTIME_DIR to a \
             folder with more space"
                .into(),
        );
    }
    if losses.stopped {
        return Some("the process stopped recording its calls before it ended".into());
    }
    (losses.damaged > 0).then(|| {
        format!(
            "{} words of its rings were overwritten, perhaps by a stray pointer of the program",
            losses.damaged
        )
    })
}

/// The facts of a process image that has ended.
struct Last {
    /// The brk segment as computed from the blocks.
    brk_bytes: Option<u64>,
    pid: i32,
    exe: PathBuf,
    path: PathBuf,
    trouble: Option<String>,
    time_ns: u64,
    how: String,
    ended: Option<ProgramExit>,
}

impl Last {
    fn write(
        self,
        mut consumer: EventConsumer<Destination>,
        watch: &Watch,
        ledger: Option<&Ledger>,
    ) -> Recording {
        let mut trouble = self.trouble;
        if let Err(error) = consumer.resolver_mut().writer().flush() {
            trouble.get_or_insert(error.to_string());
        }
        let mut ending = Ending {
            how: self.how.clone(),
            status: self.ended.and_then(|ended| ended.status.code()),
            time_ns: self.time_ns,
            peak_rss_kib: watch.peak_rss_kib(),
            cpu_s: self.ended.map(|ended| ended.cpu_s),
            peak_heap_bytes: watch.peak_heap_bytes().max(self.brk_bytes),
            ..Ending::default()
        };
        let unseen_frees = consumer.resolver().unseen_frees();
        let consumer = consumer.finish();
        ending.threads = consumer.threads;
        let mut writer = consumer.writer;
        for sample in watch.samples() {
            writer.sample(sample);
        }
        if let Some(sites) = &consumer.sites {
            writer.sites(sites);
        }
        if let Some(ledger) = ledger {
            writer.extra(heaptoll_ledger::EXTRA, ledger);
        }
        if let Some(defect) = &consumer.defect {
            writer.gap(&Gap { why: defect.to_string(), events: None });
        }
        if let Some(defect) = consumer.defect {
            trouble.get_or_insert(defect.to_string());
        }
        if let Err(error) = writer.flush() {
            trouble.get_or_insert(error.to_string());
        }
        // A disk may have had space again before anything looked.
        if let Some(error) = writer.loss() {
            trouble.get_or_insert(error.to_string());
        }
        // Not the writer's `lost`: the writer no longer counts a gap that is marked already.
        let (events, lost) = (writer.written(), writer.events() - writer.written());
        if let Err(error) = writer.finish(&ending) {
            trouble.get_or_insert(error.to_string());
        }
        Recording {
            bytes: size(&self.path),
            path: self.path,
            pid: self.pid,
            exe: self.exe,
            how: self.how,
            events,
            snapshots: ledger.map_or(0, |ledger| ledger.snapshots.len()),
            lost,
            unseen_frees,
            trouble,
        }
    }
}

/// The trace of a process that never recorded anything.
pub fn write_empty(
    request: &Request,
    pid: i32,
    destination: Destination,
    ended: Option<&ProgramExit>,
    how: &str,
) -> Recording {
    let manager = request.manager.serving(Path::new(""));
    let header = header(request, &manager, pid, std::process::id() as i32, Path::new(""));
    let ending = Ending {
        how: how.to_string(),
        status: ended.and_then(|ended| ended.status.code()),
        cpu_s: ended.map(|ended| ended.cpu_s),
        ..Ending::default()
    };
    let written =
        Writer::new(destination, &header, &Settings::default()).and_then(|writer| writer.finish(&ending));
    Recording {
        bytes: size(&request.output),
        path: request.output.clone(),
        pid,
        exe: PathBuf::new(),
        how: how.to_string(),
        events: 0,
        snapshots: 0,
        lost: 0,
        unseen_frees: 0,
        trouble: written.err().map(|error| error.to_string()),
    }
}

fn size(path: &Path) -> u64 {
    path.metadata().map_or(0, |file| file.len())
}

fn header(request: &Request, manager: &Manager, pid: i32, parent_pid: i32, exe: &Path) -> Header {
    // It may have ended by now.
    let otherwise = || match exe.to_str() {
        Some(exe) if parent_pid != std::process::id() as i32 => vec![exe.to_string()],
        _ => request.command.iter().map(|argument| argument.to_string_lossy().into_owned()).collect(),
    };
    let started = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let command = proc::command(pid);
    Header {
        command: if command.is_empty() { otherwise() } else { command },
        exe: exe.display().to_string(),
        directory: proc::directory(pid).map_or_else(String::new, |folder| folder.display().to_string()),
        pid,
        parent_pid,
        started_unix_s: started.as_secs(),
        manager: manager.name.clone(),
        manager_version: manager.version.clone(),
        collector: manager.collector,
        recorder: env!("CARGO_PKG_VERSION").into(),
        sites: request.options.sites,
        latency: request.options.latency,
        event_time: request.options.event_time,
        machine: request.machine.clone(),
        graph: None,
        imported: None,
    }
}
