//! The loop that drains the rings of all processes, notices which processes start and end, and decides when the
//! recording is over.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use heaptoll_alloc_ring::{Arrival, Flags, Options, Shared};

use crate::child::{self, Child, ProgramExit};
use crate::error::RecordError;
use crate::exits::ExitWatcher;
use crate::finisher::Finisher;
use crate::ignored::IgnoredProcesses;
use crate::interrupt::InterruptPolicy;
use crate::left_out::describe_left_out;
use crate::limits::LargeFiles;
use crate::orphans::Orphans;
use crate::output::{self, Destination};
use crate::recorded::{Progress, Recording, RecordingOutcome};
use crate::request::{Children, Request};
use crate::session::{self, Session};
use crate::trouble_reporter::TroubleReporter;
use crate::uninstrumented::UninstrumentedPrograms;
use crate::unverified::UnverifiedImages;

/// Words that are consumed of one process before the next one's turn.
const BUDGET: usize = 1 << 16;
/// Starts and ends of processes are polled, and the rings' clock is advanced, this often, ns.
const TICK_NS: u64 = 1_000_000;
/// How long the loop rests when there is little to do, by the number of rests in a row without an event. The rings'
/// clock does not advance during a rest, so times at the start of a burst after a long silence are no finer than the
/// longest.
const RESTS: [(u32, Duration); 3] = [
    (100, Duration::from_millis(1)),
    (200, Duration::from_millis(10)),
    (u32::MAX, Duration::from_millis(25)),
];
/// Binary logarithms of the words of a ring and of its blocks where snapshots are taken: a thread is this far ahead of the
/// recorder at most, so that a peak is not over before it is seen.
const SHORT_RINGS: (u32, u32) = (13, 10);
/// The loop rests after a turn that found less than this part of a ring of every process.
const PART_OF_RING: usize = 4;
/// How long one poll for finished traces waits, within which an interrupt is noticed.
const LAST_TRACES: Duration = Duration::from_millis(25);
/// Events that are still under way when the recording is stopped are awaited this long.
const LAST_EVENTS: Duration = Duration::from_millis(300);
/// Images that never registered are polled this often, ns.
const UNREGISTERED_POLL_NS: u64 = 5_000_000;

/// Records a program from its start to the end of the last process it started, unless the user stops it earlier.
///
/// # Errors
/// See [`RecordError`]. Once the program runs there are none: what goes wrong is reported in [`RecordingOutcome`].
pub fn record(request: &Request, progress: &mut dyn Progress) -> Result<RecordingOutcome, RecordError> {
    if request.command.is_empty() {
        return Err(RecordError::NoCommand);
    }
    std::fs::File::open(&request.layer)
        .map_err(|source| RecordError::Layer { path: request.layer.clone(), source })?;
    let destination = output::make_first(&request.output, request.force)?;
    let made = matches!(destination, Destination::File(_));
    Recorder::start(request, destination, progress).map(Recorder::run).inspect_err(|_| {
        // Nothing ran: an empty file would be taken for a trace.
        if made {
            let _ = std::fs::remove_file(&request.output);
        }
    })
}

struct Recorder<'a> {
    request: &'a Request,
    trouble_reporter: TroubleReporter<'a>,
    shared: Shared,
    child: Child,
    /// How the first process ended, once it has.
    ended: Option<(ProgramExit, Instant)>,
    sessions: Vec<Session>,
    exit_watcher: ExitWatcher,
    uninstrumented: UninstrumentedPrograms,
    finisher: Finisher,
    ignored: IgnoredProcesses,
    /// The first trace, until the first process arrives.
    first: Option<Destination>,
    recorded: RecordingOutcome,
    /// Words of one process after which the loop does not rest.
    enough: usize,
    begun: Instant,
    rests: u32,
    tick_ns: u64,
    unregistered_ns: u64,
    interrupt_policy: InterruptPolicy,
    orphans: Orphans,
    unverified: UnverifiedImages,
}

impl<'a> Recorder<'a> {
    fn start(
        request: &'a Request,
        first: Destination,
        progress: &'a mut dyn Progress,
    ) -> Result<Recorder<'a>, RecordError> {
        let flags = Flags {
            sites: request.options.sites,
            latency: request.options.latency,
            event_time: request.options.event_time,
            ledger: request.options.ledger,
        };
        let large_files = LargeFiles::allow();
        let mut options = Options { flags, stop: request.options.stop, ..Options::default() };
        if flags.ledger {
            (options.ring_log2, options.block_log2) = SHORT_RINGS;
        }
        let shared = Shared::create(&options)?;
        drop(large_files);
        let exit_watcher = ExitWatcher::new()
            .map_err(|source| RecordError::System { what: "watch for ends of processes", source })?;
        let begun = Instant::now();
        let child = child::start(request, (child::RECORD, shared.path()))?;
        progress.started(child.pid);
        Ok(Recorder {
            request,
            trouble_reporter: TroubleReporter::new(progress),
            shared,
            child,
            ended: None,
            sessions: Vec::new(),
            exit_watcher,
            uninstrumented: UninstrumentedPrograms::default(),
            finisher: Finisher::default(),
            ignored: IgnoredProcesses::default(),
            first: Some(first),
            recorded: RecordingOutcome::default(),
            enough: (1 << options.ring_log2) / PART_OF_RING,
            begun,
            rests: 0,
            tick_ns: 0,
            unregistered_ns: 0,
            interrupt_policy: InterruptPolicy::default(),
            orphans: Orphans::default(),
            unverified: UnverifiedImages::default(),
        })
    }

    /// The clock of the rings.
    fn now_ns(&self) -> u64 {
        self.shared.now_ns()
    }

    fn run(mut self) -> RecordingOutcome {
        loop {
            let words = self.drain();
            let now_ns = self.now_ns();
            self.sessions.iter_mut().for_each(|session| session.sample_at_rise(&self.shared, now_ns));
            if now_ns >= self.tick_ns + TICK_NS {
                self.tick_ns = now_ns;
                if self.tick(now_ns) {
                    break;
                }
            }
            self.rest(words);
        }
        self.recorded.wall = self.begun.elapsed();
        self.collect_all();
        self.report_unregistered(true);
        let left_out = describe_left_out(&mut self.shared, self.unverified.are_corrupted());
        self.recorded.warnings.extend(self.uninstrumented.into_warnings(&self.request.command));
        self.recorded.warnings.extend(left_out);
        self.recorded
    }

    /// One turn for every process; returns the largest number of words of one process.
    fn drain(&mut self) -> usize {
        let most = self.sessions.iter_mut().map(|session| session.drain(BUDGET)).max().unwrap_or(0);
        most.max(self.ignored.drain())
    }

    /// Lets the program run while there is little to do. Rings are polled again long before they are full; a thread
    /// whose ring is half full wakes the recorder.
    fn rest(&mut self, words: usize) {
        if words >= self.enough {
            self.rests = 0;
            return;
        }
        self.rests = if words > 0 { 0 } else { self.rests.saturating_add(1) };
        let rest = RESTS.iter().find(|(before, _)| self.rests <= *before);
        self.shared.wait(rest.map_or(RESTS[0].1, |(_, rest)| *rest));
    }

    /// Everything that is not urgent. True when the recording is over.
    fn tick(&mut self, now_ns: u64) -> bool {
        self.shared.tick();
        // In this order: a process that has ended by now has arrived before.
        let dead = self.exit_watcher.poll();
        let interrupts = self.request.interrupt.count();
        let ended = if self.ended.is_none() { self.child.ended() } else { None };
        self.attach_arrivals();
        for session in &mut self.sessions {
            if let Some(message) = session.poll(&self.shared, now_ns) {
                self.trouble_reporter.trouble(&message);
            }
        }
        for (image, status) in dead {
            self.on_exit(image, status, now_ns);
        }
        if let Some(ended) = ended {
            self.interrupt_policy.program_ended(interrupts, ended.was_signalled());
            self.first_ended(ended, now_ns);
        }
        let pids = self.sessions.iter().map(|session| (session.pid, session.exe.as_path()));
        self.uninstrumented.poll(now_ns, pids);
        if now_ns >= self.unregistered_ns {
            self.unregistered_ns = now_ns + UNREGISTERED_POLL_NS;
            self.report_unregistered(false);
        }
        self.leave_detached(now_ns);
        self.report_orphans();
        self.collect(Duration::ZERO);
        if self.is_stopped() {
            self.stop();
            return true;
        }
        self.ended.is_some() && self.sessions.is_empty() && !self.more_may_come()
    }

    /// Reports images that the layer was not loaded into; `all`: also of those that still run.
    fn report_unregistered(&mut self, all: bool) {
        if all {
            // A process that arrives now is no longer recorded, but the layer was loaded into it.
            self.shared.arrivals();
        }
        let unregistered = self.shared.unregistered(all);
        if self.request.options.children == Children::Files {
            unregistered.iter().for_each(|unregistered| self.uninstrumented.unregistered(&unregistered.path));
        }
    }

    /// Begins a session for every process image that has arrived.
    fn attach_arrivals(&mut self) {
        for arrival in self.shared.arrivals() {
            // It executes another file: the previous image is gone. Processes whose number is not known are different ones.
            let is_same = |session: &Session| arrival.pid > 0 && session.pid == arrival.pid;
            if let Some(at) = self.sessions.iter().position(is_same) {
                self.finish(at, "replaced itself by exec", None, arrival.started_ns);
            }
            self.begin(&arrival);
        }
    }

    fn begin(&mut self, arrival: &Arrival) {
        // The recorder maps the rings, too: its own process number would keep the recording waiting for ever.
        if arrival.pid == std::process::id() as i32 {
            self.unverified.found_corruption();
            return;
        }
        let first = self.first.take_if(|_| arrival.pid == self.child.pid);
        if first.is_none() && self.request.options.children == Children::Ignore {
            self.ignore(arrival);
            return;
        }
        let is_first = first.is_some();
        if !arrival.was_there && !self.unverified.admits() {
            self.ignore(arrival);
            return;
        }
        let made = match first {
            Some(first) => Ok((self.request.output.clone(), first)),
            None => output::make_next(&self.request.output, arrival.pid),
        };
        let path = made.as_ref().map_or_else(|_| PathBuf::new(), |(path, _)| path.clone());
        let inherited = self.inherited(arrival);
        match made.and_then(|place| Session::begin(&self.shared, arrival, self.request, place, &inherited)) {
            Ok(session) => {
                if !is_first {
                    self.trouble_reporter.progress.follows(arrival.pid, &path);
                }
                if !arrival.was_there {
                    self.unverified.begins(path);
                }
                self.exit_watcher.watch(arrival.pid, arrival.image);
                self.sessions.push(session);
            }
            Err(error) => {
                self.ignore(arrival);
                self.trouble_reporter.trouble(&error.to_string());
                self.recorded.recordings.push(Recording {
                    path,
                    pid: arrival.pid,
                    exe: arrival.exe.clone(),
                    how: "not recorded".into(),
                    events: 0,
                    snapshots: 0,
                    bytes: 0,
                    lost: 0,
                    unseen_frees: 0,
                    trouble: Some(error.to_string()),
                });
            }
        }
    }

    /// The ranges of its parent's heap, if it was forked.
    fn inherited(&mut self, arrival: &Arrival) -> Vec<(u64, u64)> {
        let now_ns = self.now_ns();
        let mut forked = self.sessions.iter_mut().filter(|_| arrival.forked && arrival.parent_pid > 0);
        let parent = forked.find(|session| session.pid == arrival.parent_pid);
        parent.map(|parent| parent.heap(&self.shared, now_ns)).unwrap_or_default()
    }

    fn ignore(&mut self, arrival: &Arrival) {
        self.ignored.add(&self.shared, arrival);
        self.exit_watcher.watch(arrival.pid, arrival.image);
    }

    /// Ends the session of a process that has exited. That of the first one is ended when it has been waited for.
    fn on_exit(&mut self, image: u32, status: Option<ExitStatus>, now_ns: u64) {
        self.ignored.remove(image);
        let found = |session: &Session| session.image == image && session.pid != self.child.pid;
        if let Some(at) = self.sessions.iter().position(found) {
            let signal = status.and_then(|status| status.signal());
            let how = signal.map_or_else(|| "ended".into(), |signal| format!("killed by signal {signal}"));
            self.finish(at, &how, None, now_ns);
        }
    }

    fn first_ended(&mut self, ended: ProgramExit, now_ns: u64) {
        self.ended = Some((ended, Instant::now()));
        self.recorded.status = Some(ended.code());
        if let Some(at) = self.sessions.iter().position(|session| session.pid == self.child.pid) {
            self.finish(at, &ended.text(), Some(&ended), now_ns);
        }
        if let Some(first) = self.first.take() {
            self.write_empty(first, &ended.text(), Some(&ended));
        }
    }

    fn write_empty(&mut self, first: Destination, how: &str, ended: Option<&ProgramExit>) {
        let recording = session::write_empty(self.request, self.child.pid, first, ended, how);
        if let Some(trouble) = &recording.trouble {
            self.trouble_reporter.trouble(trouble);
        }
        self.recorded.recordings.insert(0, recording);
    }

    fn finish(&mut self, at: usize, how: &str, ended: Option<&ProgramExit>, now_ns: u64) {
        let session = self.sessions.swap_remove(at);
        self.exit_watcher.forget(session.image);
        let is_first = session.path() == self.request.output;
        let how = match self.uninstrumented.became(session.pid) {
            Some(exe) => {
                format!("replaced itself by exec of {}, which was not recorded; {how}", exe.display())
            }
            None => how.to_string(),
        };
        self.finisher.push(is_first, session.end(how, ended.copied(), now_ns));
    }

    /// Waits for the ends of all traces: names of call stacks may take minutes, so one more interrupt ends that, too.
    fn collect_all(&mut self) {
        let interrupts = self.request.interrupt.count();
        while self.finisher.waiting() > 0 && self.request.interrupt.count() <= interrupts {
            self.collect(LAST_TRACES);
        }
        self.collect(Duration::ZERO);
        let left = self.finisher.waiting();
        if left > 0 {
            self.recorded.status = None;
            self.recorded
                .warnings
                .push(format!("{left} traces have no end: the recording stopped while they were written"));
        }
    }

    /// Collects the traces that have been finished.
    fn collect(&mut self, longest: Duration) {
        for (is_first, recording) in self.finisher.collect(longest) {
            if let Some(trouble) = &recording.trouble {
                self.trouble_reporter.trouble(trouble);
            }
            self.unverified.ends(&recording.path, recording.events);
            let place = if is_first { 0 } else { self.recorded.recordings.len() };
            self.recorded.recordings.insert(place, recording);
        }
    }

    /// Whether, with the first process ended and no other being recorded, a descendant of it may still record
    /// something: then it has inherited the name of our rings.
    fn more_may_come(&mut self) -> bool {
        if self.request.options.children == Children::Ignore {
            return false;
        }
        self.orphans.remain(self.shared.path())
    }

    /// Once the first process has ended, no longer waits for processes that do not have the rings: they have executed
    /// another file, or never were recorded and the program has overwritten the list with their numbers.
    fn leave_detached(&mut self, now_ns: u64) {
        if self.ended.is_none() {
            return;
        }
        let recorded = self.sessions.iter().map(|session| (session.pid, session.image));
        for image in self.orphans.poll_detached(recorded, self.shared.path()) {
            let Some(at) = self.sessions.iter().position(|session| session.image == image) else { continue };
            if self.sessions[at].events() == 0 {
                self.unverified.found_corruption();
            }
            self.finish(at, "became an unrecorded program", None, now_ns);
        }
    }

    /// Reports once which processes the recording waits for.
    fn report_orphans(&mut self) {
        let Some((_, when)) = self.ended else { return };
        let interrupted = self.request.interrupt.count() > 0;
        let recorded = self.sessions.iter().map(|session| session.pid);
        if let Some(pids) = self.orphans.report(recorded, when.elapsed(), interrupted) {
            self.trouble_reporter.progress.waits_for(&pids);
        }
    }

    /// Does what the user requests. True when the recording is to stop.
    fn is_stopped(&mut self) -> bool {
        let interrupt = &self.request.interrupt;
        if let Some(signal) = interrupt.take_signal()
            && self.ended.is_none()
        {
            self.child.signal(signal);
        }
        let since_end = self.ended.map_or(Duration::ZERO, |(_, when)| when.elapsed());
        self.interrupt_policy.stop(interrupt.count(), since_end)
    }

    /// Stops recording the processes that still run, and ends their traces with what they have recorded until now.
    fn stop(&mut self) {
        self.attach_arrivals();
        for session in &self.sessions {
            session.dismiss();
        }
        let begun = Instant::now();
        while begun.elapsed() < LAST_EVENTS && self.drain() > 0 {
            self.shared.tick();
        }
        let now_ns = self.now_ns();
        while !self.sessions.is_empty() {
            self.finish(0, "recorder stopped", None, now_ns);
        }
        if let Some(first) = self.first.take() {
            self.write_empty(first, "recorder stopped", None);
        }
    }
}
