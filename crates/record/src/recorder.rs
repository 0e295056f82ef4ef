//! The loop that empties the rings of all processes, notices who comes and goes, and knows when it is over.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use heaptoll_ring::{Arrival, Flags, Options, Shared};

use crate::child::{self, Child, Ended};
use crate::deaths::Deaths;
use crate::endings::Endings;
use crate::error::RecordError;
use crate::ignored::Ignored;
use crate::interrupt::Whose;
use crate::limits::LargeFiles;
use crate::output::{self, Destination};
use crate::proc;
use crate::recorded::{Progress, Recorded, Recording};
use crate::request::{Children, Request};
use crate::session::{self, Session};
use crate::strangers::{self, Strangers};
use crate::strays::Strays;

/// Words that one process may have out of its rings before the next one's turn.
const BUDGET: usize = 1 << 16;
/// Who comes and goes is looked at this often, ns; and the rings' clock ticks.
const TICK_NS: u64 = 1_000_000;
/// How long the loop rests without anything to do, by the number of rests there were before. In a burst after a long
/// silence the time is told no finer than the last of these.
const RESTS: [(u32, Duration); 3] = [
    (100, Duration::from_millis(1)),
    (200, Duration::from_millis(10)),
    (u32::MAX, Duration::from_millis(25)),
];
/// Words that may wait in the rings: a quarter of one. With fewer at a time the loop rests.
const ENOUGH: usize = 1 << 15;
/// Processes that outlive the first one are looked for this often, and spoken of after this time.
const LOOK_FOR_FOLLOWERS: Duration = Duration::from_millis(100);
const SPEAK_AFTER: Duration = Duration::from_secs(2);
const SPEAK_SOON: Duration = Duration::from_millis(500);
/// How long one look for traces' ends waits, within which an interrupt is noticed.
const LAST_NAMES: Duration = Duration::from_millis(25);
/// What is still to come when the recording is stopped is waited for this long.
const LAST_WORDS: Duration = Duration::from_millis(300);
/// Images that never registered are looked for this often, ns.
const LOOK_FOR_UNSEEN_NS: u64 = 5_000_000;

/// Records a program from its start to the end of the last process it started, unless the user stops it earlier.
///
/// # Errors
/// See [`RecordError`]. Once the program runs there are none: what goes wrong is told in [`Recorded`].
pub fn record(request: &Request, progress: &mut dyn Progress) -> Result<Recorded, RecordError> {
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
    teller: Teller<'a>,
    shared: Shared,
    child: Child,
    /// How the first process ended, once it has.
    ended: Option<(Ended, Instant)>,
    sessions: Vec<Session>,
    deaths: Deaths,
    strangers: Strangers,
    endings: Endings,
    ignored: Ignored,
    /// The first trace, until the first process arrives.
    first: Option<Destination>,
    recorded: Recorded,
    begun: Instant,
    rests: u32,
    tick_ns: u64,
    unseen_ns: u64,
    whose: Whose,
    followers: Followers,
    strays: Strays,
}

/// Tells the user of each trouble once: a full disk shows while a trace is written and again when it ends.
struct Teller<'a> {
    progress: &'a mut dyn Progress,
    told: HashSet<String>,
}

impl Teller<'_> {
    fn trouble(&mut self, words: &str) {
        if self.told.insert(words.to_string()) {
            self.progress.trouble(words);
        }
    }
}

/// Who outlives the first process.
#[derive(Default)]
struct Followers {
    next_look: Option<Instant>,
    pids: Vec<i32>,
    spoken_of: bool,
    /// Images whose processes did not have the rings at the last look, and when the next is.
    detached: HashSet<u32>,
    next_detached: Option<Instant>,
}

impl<'a> Recorder<'a> {
    fn start(
        request: &'a Request,
        first: Destination,
        progress: &'a mut dyn Progress,
    ) -> Result<Recorder<'a>, RecordError> {
        let flags = Flags {
            sites: request.sites,
            latency: request.latency,
            event_time: request.event_time,
            ledger: request.ledger,
        };
        let large_files = LargeFiles::allow();
        let shared = Shared::create(&Options { flags, ..Options::default() })?;
        drop(large_files);
        let deaths = Deaths::new()
            .map_err(|source| RecordError::System { what: "watch for ends of processes", source })?;
        let begun = Instant::now();
        let child = child::start(request, shared.path())?;
        progress.started(child.pid);
        Ok(Recorder {
            request,
            teller: Teller { progress, told: HashSet::new() },
            shared,
            child,
            ended: None,
            sessions: Vec::new(),
            deaths,
            strangers: Strangers::default(),
            endings: Endings::default(),
            ignored: Ignored::default(),
            first: Some(first),
            recorded: Recorded::default(),
            begun,
            rests: 0,
            tick_ns: 0,
            unseen_ns: 0,
            whose: Whose::default(),
            followers: Followers::default(),
            strays: Strays::default(),
        })
    }

    /// The clock of the rings.
    fn now_ns(&self) -> u64 {
        self.shared.now_ns()
    }

    fn run(mut self) -> Recorded {
        loop {
            let words = self.drain();
            let now_ns = self.now_ns();
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
        self.look_for_unseen(true);
        let left_out = left_out(&mut self.shared, self.strays.are_wild());
        self.recorded.warnings.extend(self.strangers.into_warnings());
        self.recorded.warnings.extend(left_out);
        self.recorded
    }

    /// One turn for everybody; gives the most words that one had.
    fn drain(&mut self) -> usize {
        let most = self.sessions.iter_mut().map(|session| session.drain(BUDGET)).max().unwrap_or(0);
        most.max(self.ignored.drain())
    }

    /// Lets the program run while there is little to do. Long before a ring is full it is looked at again; whoever finds
    /// his ring half full rings.
    fn rest(&mut self, words: usize) {
        if words >= ENOUGH {
            self.rests = 0;
            return;
        }
        self.rests = if words > 0 { 0 } else { self.rests.saturating_add(1) };
        let rest = RESTS.iter().find(|(before, _)| self.rests <= *before);
        self.shared.wait(rest.map_or(RESTS[0].1, |(_, rest)| *rest));
    }

    /// Everything that is not urgent. True when it is over.
    fn tick(&mut self, now_ns: u64) -> bool {
        self.shared.tick();
        // In this order: whoever is dead now has arrived before.
        let dead = self.deaths.look();
        let asked = self.request.interrupt.asked();
        let ended = if self.ended.is_none() { self.child.ended() } else { None };
        self.welcome();
        for session in &mut self.sessions {
            if let Some(words) = session.look(&self.shared, now_ns) {
                self.teller.trouble(&words);
            }
        }
        for image in dead {
            self.bury(image, now_ns);
        }
        if let Some(ended) = ended {
            self.whose.program_ended(asked, ended.was_signalled());
            self.first_ended(ended, now_ns);
        }
        let pids = self.sessions.iter().map(|session| (session.pid, session.exe.as_path()));
        self.strangers.look(now_ns, pids);
        if now_ns >= self.unseen_ns {
            self.unseen_ns = now_ns + LOOK_FOR_UNSEEN_NS;
            self.look_for_unseen(false);
        }
        self.leave_detached(now_ns);
        self.speak_of_followers();
        self.collect(Duration::ZERO);
        if self.is_stopped() {
            self.stop();
            return true;
        }
        self.ended.is_some() && self.sessions.is_empty() && !self.more_may_come()
    }

    /// Takes note of images that the layer was not loaded into; `all`: also of those that still run.
    fn look_for_unseen(&mut self, all: bool) {
        if all {
            // Whoever comes now is not recorded any more, but the layer was loaded into it.
            self.shared.arrivals();
        }
        let unseen = self.shared.unregistered(all);
        if self.request.children == Children::Files {
            unseen.iter().for_each(|unseen| self.strangers.unseen(&unseen.path));
        }
    }

    /// Begins a session for every process image that has arrived.
    fn welcome(&mut self) {
        for arrival in self.shared.arrivals() {
            // It executes another file: what was there is no more.
            if let Some(at) = self.sessions.iter().position(|session| session.pid == arrival.pid) {
                self.finish(at, "replaced itself by exec", None, arrival.started_ns);
            }
            self.begin(&arrival);
        }
    }

    fn begin(&mut self, arrival: &Arrival) {
        // The rings are ours, too: nobody would end this wait.
        if arrival.pid == std::process::id() as i32 {
            self.strays.found_wild();
            return;
        }
        let first = self.first.take_if(|_| arrival.pid == self.child.pid);
        if first.is_none() && self.request.children == Children::Ignore {
            self.ignore(arrival);
            return;
        }
        let is_first = first.is_some();
        if !arrival.was_there && !self.strays.admits() {
            self.ignore(arrival);
            return;
        }
        let made = match first {
            Some(first) => Ok((self.request.output.clone(), first)),
            None => output::make_next(&self.request.output, arrival.pid),
        };
        let path = made.as_ref().map_or_else(|_| PathBuf::new(), |(path, _)| path.clone());
        match made.and_then(|place| Session::begin(&self.shared, arrival, self.request, place)) {
            Ok(session) => {
                if !is_first {
                    self.teller.progress.follows(arrival.pid, &path);
                }
                if !arrival.was_there {
                    self.strays.begins(path);
                }
                self.deaths.watch(arrival.pid, arrival.image);
                self.sessions.push(session);
            }
            Err(error) => {
                self.ignore(arrival);
                self.teller.trouble(&error.to_string());
                self.recorded.recordings.push(Recording {
                    path,
                    pid: arrival.pid,
                    exe: arrival.exe.clone(),
                    how: "not recorded".into(),
                    events: 0,
                    bytes: 0,
                    lost: 0,
                    trouble: Some(error.to_string()),
                });
            }
        }
    }

    fn ignore(&mut self, arrival: &Arrival) {
        self.ignored.add(&self.shared, arrival);
        self.deaths.watch(arrival.pid, arrival.image);
    }

    /// Ends the session of a dead process. That of the first one is ended when it has been waited for.
    fn bury(&mut self, image: u32, now_ns: u64) {
        self.ignored.remove(image);
        let found = |session: &Session| session.image == image && session.pid != self.child.pid;
        if let Some(at) = self.sessions.iter().position(found) {
            self.finish(at, "ended", None, now_ns);
        }
    }

    fn first_ended(&mut self, ended: Ended, now_ns: u64) {
        self.ended = Some((ended, Instant::now()));
        self.recorded.status = Some(ended.code());
        if let Some(at) = self.sessions.iter().position(|session| session.pid == self.child.pid) {
            self.finish(at, &ended.words(), Some(&ended), now_ns);
        }
        if let Some(first) = self.first.take() {
            self.write_empty(first, &ended.words(), Some(&ended));
        }
    }

    fn write_empty(&mut self, first: Destination, how: &str, ended: Option<&Ended>) {
        let recording = session::write_empty(self.request, self.child.pid, first, ended, how);
        if let Some(trouble) = &recording.trouble {
            self.teller.trouble(trouble);
        }
        self.recorded.recordings.insert(0, recording);
    }

    fn finish(&mut self, at: usize, how: &str, ended: Option<&Ended>, now_ns: u64) {
        let session = self.sessions.swap_remove(at);
        self.deaths.forget(session.image);
        let is_first = session.path() == self.request.output;
        let how = match self.strangers.became(session.pid) {
            Some(exe) => {
                format!("replaced itself by exec of {}, which was not recorded; {how}", exe.display())
            }
            None => how.to_string(),
        };
        self.endings.push(is_first, session.end(how, ended.copied(), now_ns));
    }

    /// Waits for the ends of all traces: names of call stacks may take minutes, so one more interrupt ends that, too.
    fn collect_all(&mut self) {
        let asked = self.request.interrupt.asked();
        while self.endings.waiting() > 0 && self.request.interrupt.asked() <= asked {
            self.collect(LAST_NAMES);
        }
        self.collect(Duration::ZERO);
        let left = self.endings.waiting();
        if left > 0 {
            self.recorded.status = None;
            self.recorded
                .warnings
                .push(format!("{left} traces have no end: the recording was stopped while it was written"));
        }
    }

    /// Keeps those whose traces have been ended.
    fn collect(&mut self, longest: Duration) {
        for (is_first, recording) in self.endings.collect(longest) {
            if let Some(trouble) = &recording.trouble {
                self.teller.trouble(trouble);
            }
            self.strays.ends(&recording.path, recording.events);
            let place = if is_first { 0 } else { self.recorded.recordings.len() };
            self.recorded.recordings.insert(place, recording);
        }
    }

    /// Whether, with the first process ended and no other being recorded, one that was started by it may still tell
    /// something: then it has inherited the name of our rings.
    fn more_may_come(&mut self) -> bool {
        if self.request.children == Children::Ignore {
            return false;
        }
        let now = Instant::now();
        if self.followers.next_look.is_none_or(|next| now >= next) {
            self.followers.next_look = Some(now + LOOK_FOR_FOLLOWERS);
            self.followers.pids = strangers::followers(self.shared.path());
        }
        !self.followers.pids.is_empty()
    }

    /// Waits no longer, once the first process has ended, for processes that have not the rings: they have become others,
    /// or never were recorded and the program has written their numbers into the list. In the middle of an exec a
    /// process has none yet: twice is believed.
    fn leave_detached(&mut self, now_ns: u64) {
        let now = Instant::now();
        if self.ended.is_none() || self.followers.next_detached.is_some_and(|next| now < next) {
            return;
        }
        self.followers.next_detached = Some(now + LOOK_FOR_FOLLOWERS);
        let rings = self.shared.path();
        let without = |session: &&Session| proc::maps_file(session.pid, rings) == Some(false);
        let detached: HashSet<u32> =
            self.sessions.iter().filter(without).map(|session| session.image).collect();
        let before = std::mem::take(&mut self.followers.detached);
        for image in detached.intersection(&before) {
            let Some(at) = self.sessions.iter().position(|session| session.image == *image) else { continue };
            if self.sessions[at].events() == 0 {
                self.strays.found_wild();
            }
            self.finish(at, "became a program that is not recorded", None, now_ns);
        }
        self.followers.detached = detached;
    }

    /// Says once who is waited for.
    fn speak_of_followers(&mut self) {
        let Some((_, when)) = self.ended else { return };
        // Who has interrupted the program wants to know soon who is left.
        let after = if self.request.interrupt.asked() > 0 { SPEAK_SOON } else { SPEAK_AFTER };
        if self.followers.spoken_of || when.elapsed() < after {
            return;
        }
        let recorded = self.sessions.iter().map(|session| session.pid);
        let mut pids: Vec<i32> = recorded.chain(self.followers.pids.iter().copied()).collect();
        pids.sort_unstable();
        pids.dedup();
        // There may be nobody: traces that end take their time, too.
        if !pids.is_empty() {
            self.followers.spoken_of = true;
            self.teller.progress.waits_for(&pids);
        }
    }

    /// Does what the user asks for. True when the recording is to stop.
    fn is_stopped(&mut self) -> bool {
        let interrupt = &self.request.interrupt;
        if let Some(signal) = interrupt.take_signal()
            && self.ended.is_none()
        {
            self.child.signal(signal);
        }
        let since_end = self.ended.map_or(Duration::ZERO, |(_, when)| when.elapsed());
        self.whose.stop(interrupt.asked(), since_end)
    }

    /// Leaves everybody alone who still runs, and ends their traces with what they have told until now.
    fn stop(&mut self) {
        self.welcome();
        for session in &self.sessions {
            session.dismiss();
        }
        let begun = Instant::now();
        while begun.elapsed() < LAST_WORDS && self.drain() > 0 {
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

/// What found no room in the rings' file, in words.
fn left_out(shared: &mut Shared, wild: bool) -> Vec<String> {
    let left_out = shared.left_out();
    let damaged = (left_out.damaged || wild).then(|| {
        "the program wrote over the recording's list of processes or its counters, as by a wild pointer: what is in no \
         trace is not known"
            .to_string()
    });
    let counted = [
        (left_out.processes, "processes were not recorded: more ran at once than there is memory for"),
        (left_out.threads, "threads were not recorded: more ran at once than there is memory for"),
        (
            left_out.execs,
            "programs may have been started without being recorded: more than could be followed",
        ),
        (
            left_out.events,
            "calls of signal handlers were not recorded: they interrupted the telling of another call",
        ),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} {what}"));
    damaged.into_iter().chain(counted).collect()
}
