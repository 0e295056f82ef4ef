//! The settings: the environment variables `TITHE_*`, read once when the process starts.
//!
//! A wrong value or an unknown name is rejected and not guessed at: a measurement with a setting that was silently
//! ignored is worse than none. `docs/reference/tithe-settings.md` has the users' table, which a test writes of
//! [`VARIABLES`].

use core::ffi::c_int;

use heaptoll_runtime::Message;

use crate::class::UNIT;
use crate::guard_settings::{AtBound, GuardSettings};
use crate::log::Sink;
use crate::mode::{self, Mode};
use crate::rule::Rule;

mod excerpt;
mod variables;

use excerpt::Excerpt;

pub use variables::VARIABLES;

/// The user's settings, with defaults filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// `TITHE_MODE`.
    pub mode: Mode,
    /// `TITHE_POLICY`.
    pub rule: Rule,
    /// `TITHE_HEADROOM`, percent; its default depends on the mode.
    pub headroom: usize,
    /// The headroom is the default, not set by the user: the policy may raise it where collections are expensive.
    pub adaptive: bool,
    /// `TITHE_MIN_HEADROOM`, bytes; its default depends on the mode.
    pub min_headroom: usize,
    /// Mode `collect` with both headrooms by default: most bytes on top that the cost of a collection may demand.
    pub cost_headroom: usize,
    /// `TITHE_MAX_HEAP`, bytes; present with [`Rule::Fixed`].
    pub max_heap: Option<usize>,
    /// `TITHE_EVERY`: a collection each time this many bytes have been allocated, instead of a rule.
    pub every: Option<usize>,
    /// `TITHE_RECLAIM`: every `reclaim`-th of the collections that were due reclaims; the others only mark.
    pub reclaim: u64,
    /// `TITHE_HEAP`: bytes of units in use beyond which requests fail.
    pub heap: Option<usize>,
    /// `TITHE_SWEEP`: everything is swept before the program is resumed.
    pub eager: bool,
    /// `TITHE_GENERATIONS`: old blocks are read only where they were written, where the kernel records writes.
    pub generations: bool,
    /// `TITHE_PAUSE`: collections are incremental where they would stop the program for longer, ns.
    pub pause_ns: Option<u64>,
    /// `TITHE_CHECK=young`: a full marking follows each young or incremental collection, and the two are compared.
    pub check_young: bool,
    /// `TITHE_MARKERS`: threads that mark, 1 to 64; the collector chooses when there is none.
    pub markers: Option<usize>,
    /// `TITHE_LOG`, opened.
    pub log: Option<Sink>,
    /// `TITHE_WHY`: an address.
    pub why: Option<usize>,
    /// `TITHE_SIGNAL`: the signal that stops threads; the collector chooses when there is none.
    pub signal: Option<c_int>,
    /// `TITHE_PATIENCE`: how long a thread may take to stop, ms.
    pub patience_ms: u32,
    /// `TITHE_ABORT`: a wrong free or realloc ends the process.
    pub abort: bool,
    /// `TITHE_POISON`: reclaimed blocks are filled with 0xdf.
    pub poison: bool,
    /// How mode `guard` holds freed blocks.
    pub guard: GuardSettings,
}

/// How long a thread may take to stop, ms, by default.
pub const PATIENCE_MS: u32 = 2000;

/// The prefix of every variable.
const PREFIX: &[u8] = b"TITHE_";

impl Settings {
    /// The defaults.
    pub const fn new() -> Settings {
        Settings {
            mode: Mode::Hybrid,
            rule: Rule::Proportional,
            headroom: mode::HYBRID_HEADROOM,
            adaptive: true,
            min_headroom: mode::HYBRID_MIN_HEADROOM,
            cost_headroom: 0,
            max_heap: None,
            every: None,
            reclaim: 1,
            heap: None,
            eager: false,
            generations: false,
            pause_ns: None,
            check_young: false,
            markers: None,
            log: None,
            why: None,
            signal: None,
            patience_ms: PATIENCE_MS,
            abort: false,
            poison: false,
            guard: GuardSettings::new(),
        }
    }

    /// Reads the process's environment. Must be called once, at start, while there is one thread: setenv in another one
    /// may move what is read. A program with more rights than its user (set-user-ID) gets the defaults, since
    /// `TITHE_LOG` would write files for them.
    ///
    /// # Errors
    /// The first wrong value.
    pub fn from_environment() -> Result<Settings, SettingError> {
        Settings::read(heaptoll_process::environment::entries())
    }

    /// Reads entries `NAME=value`. As for getenv, the first of several with one name counts, and one without `=` is
    /// ignored.
    ///
    /// # Errors
    /// The first wrong value.
    pub fn read<'a>(entries: impl IntoIterator<Item = &'a [u8]>) -> Result<Settings, SettingError> {
        let mut settings = Settings::new();
        let mut headroom = None;
        let mut min_headroom = None;
        let mut chosen = None;
        let mut refused = Refused::default();
        let mut generations = None;
        let mut seen = [false; VARIABLES.len()];
        for entry in entries {
            if !entry.starts_with(PREFIX) {
                continue;
            }
            let Some(equals) = entry.iter().position(|&byte| byte == b'=') else { continue };
            let (name, value) = (&entry[..equals], &entry[equals + 1..]);
            let Some(index) = VARIABLES.iter().position(|known| known.name.as_bytes() == name) else {
                return Err(SettingError::new(name, value, Fault::Unknown { nearest: nearest(name) }));
            };
            if core::mem::replace(&mut seen[index], true) {
                continue;
            }
            let known = VARIABLES[index].name;
            let allowed = VARIABLES[index].allowed;
            let wrong = SettingError::new(name, value, Fault::NotAllowed { allowed });
            let Ok(text) = core::str::from_utf8(value) else {
                // Only a file's name may be any bytes.
                if known != "TITHE_LOG" {
                    return Err(wrong);
                }
                settings.log = Some(open(name, value)?);
                continue;
            };
            match known {
                "TITHE_MODE" => settings.mode = mode(text).ok_or(wrong)?,
                "TITHE_POLICY" => chosen = Some(rule(text).ok_or(wrong)?),
                "TITHE_HEADROOM" => headroom = Some(number(text, 1, 10_000).ok_or(wrong)?),
                "TITHE_MIN_HEADROOM" => min_headroom = Some(size(text, 64 << 10).ok_or(wrong)?),
                "TITHE_MAX_HEAP" => settings.max_heap = Some(size(text, 256 << 10).ok_or(wrong)?),
                "TITHE_EVERY" => settings.every = Some(size(text, 1).ok_or(wrong)?),
                "TITHE_RECLAIM" => settings.reclaim = number(text, 1, 1 << 32).ok_or(wrong)? as u64,
                "TITHE_HEAP" => settings.heap = Some(size(text, UNIT).ok_or(wrong)?),
                "TITHE_SWEEP" => settings.eager = sweep(text).ok_or(wrong)?,
                "TITHE_GENERATIONS" => generations = Some(switch(text).ok_or(wrong)?),
                "TITHE_PAUSE" => settings.pause_ns = Some(pause(text).ok_or(wrong)?),
                "TITHE_CHECK" => settings.check_young = check(text).ok_or(wrong)?,
                "TITHE_MARKERS" => settings.markers = Some(number(text, 1, 64).ok_or(wrong)?),
                "TITHE_LOG" => settings.log = Some(open(name, value)?),
                "TITHE_WHY" => settings.why = Some(address(text).ok_or(wrong)?),
                "TITHE_SIGNAL" => settings.signal = Some(signal(text).ok_or(wrong)?),
                "TITHE_PATIENCE" => settings.patience_ms = number(text, 1, 600_000).ok_or(wrong)? as u32,
                "TITHE_ABORT" => settings.abort = switch(text).ok_or(wrong)?,
                "TITHE_POISON" => settings.poison = number(text, 0, 1).ok_or(wrong)? == 1,
                _ => set_guard(&mut settings.guard, known, text).ok_or(wrong)?,
            }
            refused.note(known, wrong);
        }
        // A heap with a hard limit and no policy set by the user collects when it is full.
        let full = if settings.heap.is_some() { Rule::Fixed } else { settings.rule };
        settings.rule = chosen.unwrap_or(full);
        if settings.rule == Rule::Fixed && settings.max_heap.or(settings.heap).is_none() {
            return Err(SettingError::new(b"TITHE_POLICY", b"fixed", Fault::NeedsMaximum));
        }
        // Otherwise a run without collections would be taken for a measurement of them.
        refused.check(&settings)?;
        settings.check_pause()?;
        let defaults = settings.mode.headroom();
        // Who sets when to collect, or how much a collection reclaims, gets collections that read and reclaim all.
        let by_default =
            settings.mode == Mode::Collect && settings.rule == Rule::Proportional && settings.every.is_none();
        let by_default = settings.check_young || by_default;
        settings.generations = generations.unwrap_or(by_default && settings.pause_ns.is_none());
        settings.headroom = headroom.unwrap_or(defaults.0);
        settings.adaptive = headroom.is_none();
        let by_cost = settings.mode == Mode::Collect && headroom.or(min_headroom).is_none();
        settings.cost_headroom = if by_cost { mode::COLLECT_COST_HEADROOM } else { 0 };
        settings.min_headroom = min_headroom.unwrap_or(defaults.1);
        Ok(settings)
    }

    /// Whether collections have to be whole.
    pub fn needs_whole(&self) -> bool {
        self.every.is_some() || self.heap.is_some() || self.reclaim > 1 || self.eager
    }

    /// Pauses are short only where nothing needs whole collections.
    fn check_pause(&self) -> Result<(), SettingError> {
        if self.pause_ns.is_some() && self.needs_whole() {
            return Err(SettingError::new(b"TITHE_PAUSE", b"set", Fault::NotIncremental));
        }
        Ok(())
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings::new()
    }
}

/// An invalid variable. The process should end with its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingError {
    variable: Excerpt<30>,
    value: Excerpt<62>,
    fault: Fault,
}

/// The fault of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    NotAllowed { allowed: &'static str },
    Unknown { nearest: Option<&'static str> },
    NeedsMaximum,
    NeverCollects,
    NotIncremental,
    NotInGuard,
    Needs { other: &'static str },
    NotOpened { error: c_int },
}

impl SettingError {
    fn new(variable: &[u8], value: &[u8], fault: Fault) -> SettingError {
        SettingError { variable: Excerpt::of(variable), value: Excerpt::of(value), fault }
    }

    /// The variable's name; cut when it is much longer than any known one.
    pub fn variable(&self) -> &[u8] {
        self.variable.bytes()
    }

    /// Its value, or the beginning of it.
    pub fn value(&self) -> &[u8] {
        self.value.bytes()
    }

    /// A line for the user: the variable, its value, what is allowed.
    pub fn message(&self) -> Message {
        let line =
            self.value.show(self.variable.show(Message::new().text("tithe: ")).text(" is `")).text("`");
        match self.fault {
            Fault::NotAllowed { allowed } => line.text("; allowed: ").text(allowed),
            Fault::Unknown { nearest: Some(name) } => {
                line.text(", but there is no such variable; did you mean ").text(name).text("?")
            }
            Fault::Unknown { nearest: None } => {
                let mut line = line.text(", but there is no such variable; known:");
                for variable in &VARIABLES {
                    line = line.text(" ").text(variable.name);
                }
                line
            }
            Fault::NeedsMaximum => {
                line.text(", which needs TITHE_HEAP or TITHE_MAX_HEAP: ").text(allowed("TITHE_MAX_HEAP"))
            }
            Fault::NeverCollects => line
                .text(", but nothing is ever collected: TITHE_MODE is explicit; allowed: leave it out"),
            Fault::NotIncremental => line.text(
                ", but collections are not incremental with TITHE_EVERY, TITHE_RECLAIM, TITHE_HEAP or TITHE_SWEEP=eager",
            ),
            Fault::NotInGuard => line.text(
                ", but TITHE_MODE is guard, whose collections are whole and whose blocks are clear; allowed: leave it out",
            ),
            Fault::Needs { other } => line.text(", which needs ").text(other).text("; allowed: leave it out"),
            Fault::NotOpened { error } => {
                let line = line.text("; allowed: ").text(allowed("TITHE_LOG")).text("; this one: ");
                match reason(error) {
                    Some(reason) => line.text(reason),
                    None => line.text("error ").number(error as u64),
                }
            }
        }
    }
}

/// Variables that a mode refuses, the last of them that was set.
#[derive(Default)]
struct Refused {
    by_explicit: Option<SettingError>,
    by_guard: Option<SettingError>,
    /// Without mode `guard`, and in it without the setting that they need.
    without_guard: Option<SettingError>,
    without_bound: Option<SettingError>,
    without_clear: Option<SettingError>,
}

impl Refused {
    fn note(&mut self, known: &str, wrong: SettingError) {
        if matches!(known, "TITHE_EVERY" | "TITHE_RECLAIM" | "TITHE_SWEEP" | "TITHE_PAUSE") {
            self.by_explicit = Some(SettingError { fault: Fault::NeverCollects, ..wrong });
        }
        // What the mode does anyway may be asked for.
        let is_so = matches!((known, wrong.value()), ("TITHE_GENERATIONS", b"off") | ("TITHE_POISON", b"0"));
        if !is_so && matches!(known, "TITHE_GENERATIONS" | "TITHE_PAUSE" | "TITHE_CHECK" | "TITHE_POISON") {
            self.by_guard = Some(SettingError { fault: Fault::NotInGuard, ..wrong });
        }
        let needs = |other| Some(SettingError { fault: Fault::Needs { other }, ..wrong });
        match known {
            "TITHE_AT_BOUND" => self.without_bound = needs("TITHE_WAITING"),
            "TITHE_FAULT" => self.without_clear = needs("TITHE_CLEAR=on"),
            "TITHE_WAITING" | "TITHE_CLEAR" | "TITHE_REPORT" => {}
            _ => return,
        }
        self.without_guard = needs("TITHE_MODE=guard");
    }

    fn check(self, settings: &Settings) -> Result<(), SettingError> {
        let GuardSettings { waiting, fault, clear, .. } = settings.guard;
        let refused = match settings.mode {
            Mode::Explicit => self.by_explicit.or(self.without_guard),
            Mode::Guard => self
                .by_guard
                .or(self.without_bound.filter(|_| waiting.is_none()))
                .or(self.without_clear.filter(|_| fault && !clear)),
            Mode::Hybrid | Mode::Collect => self.without_guard,
        };
        refused.map_or(Ok(()), Err)
    }
}

fn open(name: &[u8], value: &[u8]) -> Result<Sink, SettingError> {
    Sink::open(value).map_err(|error| SettingError::new(name, value, Fault::NotOpened { error }))
}

fn mode(text: &str) -> Option<Mode> {
    [Mode::Hybrid, Mode::Collect, Mode::Explicit, Mode::Guard].into_iter().find(|mode| mode.as_str() == text)
}

fn rule(text: &str) -> Option<Rule> {
    match text {
        "proportional" => Some(Rule::Proportional),
        "fixed" => Some(Rule::Fixed),
        "zorn1992" => Some(Rule::Zorn1992),
        "membalancer" => Some(Rule::MemBalancer),
        _ => None,
    }
}

/// Whether to sweep eagerly.
fn sweep(text: &str) -> Option<bool> {
    match text {
        "lazy" => Some(false),
        "eager" => Some(true),
        _ => None,
    }
}

/// Sets what a variable of mode `guard` means; the caller passes no other.
fn set_guard(guard: &mut GuardSettings, known: &str, text: &str) -> Option<()> {
    match known {
        "TITHE_WAITING" => guard.waiting = Some(size(text, 1 << 20)?),
        "TITHE_AT_BOUND" => guard.at_bound = at_bound(text)?,
        "TITHE_CLEAR" => guard.clear = switch(text)?,
        "TITHE_FAULT" => guard.fault = switch(text)?,
        _ => guard.to_stderr = report(text)?,
    }
    Some(())
}

fn at_bound(text: &str) -> Option<AtBound> {
    [AtBound::Collect, AtBound::Warn, AtBound::Release].into_iter().find(|known| known.as_str() == text)
}

/// Whether late writes are reported to standard error too.
fn report(text: &str) -> Option<bool> {
    matches!(text, "log" | "stderr").then_some(text == "stderr")
}

/// Whether young collections are checked.
fn check(text: &str) -> Option<bool> {
    (text == "young").then_some(true)
}

/// A number of plain digits within bounds.
fn number(text: &str, least: usize, most: usize) -> Option<usize> {
    // A sign is not a digit, though the parser would take one.
    let number = text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())??;
    (least..=most).contains(&number).then_some(number)
}

/// Milliseconds, as ns.
fn pause(text: &str) -> Option<u64> {
    number(text.strip_suffix("ms").unwrap_or(text), 1, 60_000).map(|ms| ms as u64 * 1_000_000)
}

/// Bytes, with a suffix or without, from `least` to 64 TiB.
fn size(text: &str, least: usize) -> Option<usize> {
    let most = 64 << 40;
    let (digits, shift) = match text.as_bytes().last()?.to_ascii_uppercase() {
        b'K' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        b'G' => (&text[..text.len() - 1], 30),
        b'T' => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    let bytes = number(digits, 0, most >> shift)? << shift;
    (least..=most).contains(&bytes).then_some(bytes)
}

fn switch(text: &str) -> Option<bool> {
    match text {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

fn address(text: &str) -> Option<usize> {
    let digits =
        text.strip_prefix("0x").filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    usize::from_str_radix(digits, 16).ok().filter(|&address| address != 0)
}

fn signal(text: &str) -> Option<c_int> {
    let signal = match text.strip_prefix("rtmax") {
        Some("") => libc::SIGRTMAX(),
        Some(below) => libc::SIGRTMAX() - number(below.strip_prefix('-')?, 0, 30)? as c_int,
        None => number(text, 1, 64)? as c_int,
    };
    let refused =
        [libc::SIGILL, libc::SIGBUS, libc::SIGFPE, libc::SIGKILL, libc::SIGSEGV, libc::SIGSTOP, 32, 33];
    (!refused.contains(&signal)).then_some(signal)
}

/// What a variable allows; callers pass only names in the table.
fn allowed(variable: &str) -> &'static str {
    VARIABLES.iter().find(|known| known.name == variable).map_or("", |known| known.allowed)
}

/// The meaning of an error of open; strerror may allocate.
fn reason(error: c_int) -> Option<&'static str> {
    Some(match error {
        libc::ENOENT => "no such file or directory",
        libc::EACCES | libc::EPERM => "permission denied",
        libc::EISDIR => "it is a directory",
        libc::ENOTDIR => "a part of its path is not a directory",
        libc::EROFS => "the file system is read-only",
        libc::ENOSPC | libc::EDQUOT => "no space left",
        libc::EMFILE | libc::ENFILE => "too many files are open",
        libc::ENAMETOOLONG => "its name is too long",
        libc::ELOOP => "too many symbolic links",
        libc::EBADF => "standard error is closed",
        libc::ENXIO => "a pipe without a reader",
        _ => return None,
    })
}

/// The known variable closest to a name: a typing error or two away, ignoring case.
fn nearest(name: &[u8]) -> Option<&'static str> {
    let tail = &name[PREFIX.len()..];
    let (distance, known) = VARIABLES
        .iter()
        .map(|known| (distance(tail, &known.name.as_bytes()[PREFIX.len()..]), known.name))
        .min_by_key(|&(distance, _)| distance)?;
    (distance <= 2 + tail.len().min(known.len()) / 4).then_some(known)
}

/// Levenshtein's distance of two names, ignoring case. Of long ones only the beginning counts.
fn distance(one: &[u8], other: &[u8]) -> usize {
    const LONGEST: usize = 32;
    let other = &other[..other.len().min(LONGEST)];
    let mut row = [0; LONGEST + 1];
    for (column, cell) in row.iter_mut().enumerate() {
        *cell = column;
    }
    for (line, &byte) in one.iter().take(2 * LONGEST).enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, letter) in other.iter().enumerate() {
            let changed = diagonal + usize::from(!byte.eq_ignore_ascii_case(letter));
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests;
