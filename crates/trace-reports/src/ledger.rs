//! `heaptoll ledger`: where the memory of a program is.

use std::path::{Path, PathBuf};

use heaptoll_ledger::{EXTRA, Ledger, LedgerError, Snapshot, Term};
use heaptoll_report::document::{Document, Section};
use heaptoll_report::format::shell_command;
use heaptoll_trace::{Memory, Sites, Tables};
use heaptoll_trace_analysis::stacks::CallSites;

pub use figures::LedgerFigures;
pub(crate) use groups::line_name;
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_command::trace_source;
pub use heaptoll_ledger::LivePeak;
use peak::Peak;
pub use replays::ReplayRequest;
use replays::section::{Recorded, section};
use stays::Stays;

mod around;
mod coarse;
mod collector;
mod document;
mod facts;
mod figures;
mod groups;
mod headline;
mod holders;
mod mappers;
mod over_time;
mod peak;
mod picture;
mod pin_rows;
mod pins;
mod replays;
mod share;
mod site_rows;
mod static_data;
mod stays;
mod sum;
mod trace_parts;

schemars::labelled!(LedgerFigures, "heaptoll-ledger/1");

/// What is requested of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerRequest {
    /// Memory that the objects of the trace may take, bytes.
    pub memory_limit_bytes: u64,
    /// Where most was live in another run of the program. This run was to have a snapshot there.
    pub first_run: Option<LivePeak>,
}

/// What was found.
pub struct Findings {
    /// The figures, as in the JSON.
    pub figures: LedgerFigures,
    tables: Tables,
    detail: Detail,
}

/// What the document shows beyond the figures.
enum Detail {
    /// Of snapshots.
    Pages(Box<Ledger>),
    /// Of samples: whether snapshots were requested, too, and damage that reading the events found.
    Coarse { was_requested: bool, damage: Vec<String> },
}

/// Reads the ledger of a trace: of its snapshots, or of samples of the resident set where it has none.
///
/// # Errors
/// It is no trace, or cannot be read, or has nothing of where memory is; it needs more memory.
pub fn measure(trace: &Path, request: LedgerRequest) -> Result<Findings, Failure> {
    let refused = |error: LedgerError| Failure::Refused(Box::new(error));
    let tables = heaptoll_trace::tables(trace).map_err(trace_source::refused)?;
    let ledger = tables.extra::<Ledger>(EXTRA).transpose().map_err(|error| refused(error.into()))?;
    let was_requested = ledger.is_some();
    if let Some(ledger) = ledger.filter(|ledger| !ledger.snapshots.is_empty()) {
        return Ok(of_snapshots(ledger, tables, request.first_run));
    }
    let memory = Memory {
        limit_bytes: request.memory_limit_bytes,
        each_object_bytes: heaptoll_ledger::EACH_OBJECT as u64,
    };
    let (points, damage) = heaptoll_ledger::coarse(trace, memory).map_err(|error| {
        let no_sample = was_requested && matches!(error, LedgerError::NotRecorded);
        refused(if no_sample { LedgerError::NoSnapshot } else { error })
    })?;
    let figures = LedgerFigures::Coarse {
        program: trace_parts::program(&tables),
        manager: trace_parts::manager(&tables),
        points,
        replays: None,
    };
    Ok(Findings { figures, tables, detail: Detail::Coarse { was_requested, damage } })
}

/// What the snapshots of a trace show.
fn of_snapshots(mut ledger: Ledger, tables: Tables, first_run: Option<LivePeak>) -> Findings {
    if ledger.manager.is_empty() {
        ledger.manager = trace_parts::manager(&tables);
    }
    let most = Peak::of(&tables, &ledger);
    let figures = LedgerFigures::Pages {
        program: trace_parts::program(&tables),
        manager: ledger.manager.clone(),
        collector: ledger.collector,
        collected: ledger.collected,
        peak: ledger.peak(),
        most_live: ledger.fullest(),
        max_live_bytes: most.live_bytes,
        max_rss_bytes: most.rss_bytes,
        peak_is_known: most.is_known(&ledger),
        live_peak: ledger.live_peak,
        first_run,
        static_variables: ledger.static_variables.clone(),
        snapshots: ledger.snapshots.clone(),
        call_sites: pins::named_sites(&ledger, tables.sites.as_ref()),
        replays: None,
    };
    Findings { figures, tables, detail: Detail::Pages(Box::new(ledger)) }
}

impl Findings {
    /// Replays the trace that this was found of under other managers, and adds what each of them holds of the program.
    ///
    /// # Errors
    /// It is no file, or cannot be replayed; a manager is unknown; Ctrl-C before all was replayed.
    pub fn replay(
        &mut self,
        trace: &Path,
        request: &ReplayRequest,
        context: &Context,
    ) -> Result<(), Failure> {
        let (snapshots, kept) = match &mut self.figures {
            LedgerFigures::Pages { snapshots, replays, .. } => (snapshots.as_slice(), replays),
            LedgerFigures::Coarse { replays, .. } => (&[][..], replays),
        };
        *kept = Some(replays::replay(trace, (&self.tables.header.manager, snapshots), request, context)?);
        Ok(())
    }

    /// Whether nothing of the trace is damaged or missing.
    pub fn is_whole(&self) -> bool {
        let is_read = match &self.detail {
            Detail::Coarse { damage, .. } => damage.is_empty(),
            Detail::Pages(_) => true,
        };
        is_read && self.tables.warnings.is_empty() && self.tables.gaps.is_empty()
    }

    /// Whether the trace was replayed and a manager failed.
    pub fn has_failed_replay(&self) -> bool {
        let (LedgerFigures::Pages { replays, .. } | LedgerFigures::Coarse { replays, .. }) = &self.figures;
        replays.iter().flat_map(|replays| &replays.managers).any(|manager| manager.failed.is_some())
    }

    /// The section on other managers, where the trace was replayed.
    fn replays(&self) -> Option<Section> {
        let (manager, replays, snapshots) = match &self.figures {
            LedgerFigures::Pages { manager, replays, snapshots, .. } => {
                (manager, replays, snapshots.as_slice())
            }
            LedgerFigures::Coarse { manager, replays, .. } => (manager, replays, &[][..]),
        };
        let none = Sites::default();
        let sites = self.tables.sites.as_ref().unwrap_or(&none);
        Some(section(replays.as_ref()?, &Recorded { manager, snapshots, sites }))
    }

    /// The document of a ledger that has snapshots.
    fn of_snapshots(&self, ledger: &Ledger, program: &str, first_run: Option<LivePeak>) -> Document {
        let mut document = document::document(ledger, program, &Peak::of(&self.tables, ledger));
        let none = Sites::default();
        let sites = self.tables.sites.as_ref().unwrap_or(&none);
        let mut call_sites = CallSites::new(sites, heaptoll_callsites::FRAMES);
        // A row's name depends on all call stacks in it.
        for site in ledger.snapshots.iter().flat_map(Snapshot::sites) {
            call_sites.row(site);
        }
        let Some(top) = ledger.peak().and_then(|peak| ledger.snapshots.get(peak)) else { return document };
        // What is most of the resident set leads: of the one that stays where the program goes on with it.
        let stays = Stays::of(ledger).filter(|stays| stays.leads);
        let first = match &stays {
            Some(stays) => stays.is_pinned().then_some(Term::External),
            None => groups::largest(top),
        };
        let (mut leading, mut following, mut sections) = (Vec::new(), Vec::new(), Vec::new());
        for (term, kind) in kinds(ledger, top, sites, &mut call_sites) {
            let Some((sentence, section)) = kind else { continue };
            let leads = first == Some(term);
            if leads { &mut leading } else { &mut following }.extend(sentence);
            let at = if leads { 0 } else { sections.len() };
            sections.splice(at..at, section);
        }
        leading.extend(stays.map(|stays| stays.sentence(&ledger.manager)));
        if let Some(first) = document.sections.first_mut() {
            first.text.splice(1..1, following);
            first.text.splice(0..0, leading);
            first
                .text
                .extend(first_run.zip(ledger.live_peak).map(|(first, second)| peak::compared(first, second)));
        }
        document.sections.splice(1..1, sections);
        document
    }

    /// The document that shows it. `command` repeats it.
    pub fn document(&self, command: &str) -> Document {
        let mut document = match (&self.figures, &self.detail) {
            (LedgerFigures::Pages { program, first_run, .. }, Detail::Pages(ledger)) => {
                self.of_snapshots(ledger, program, *first_run)
            }
            (
                LedgerFigures::Coarse { program, manager, points, .. },
                Detail::Coarse { was_requested, damage },
            ) => {
                let mut document = coarse::document(points, manager, program, *was_requested);
                // Reading the events finds damage that the tables do not show.
                let hidden = damage.iter().filter(|text| !self.tables.warnings.contains(text));
                document.warnings.extend(hidden.cloned());
                document
            }
            _ => Document::default(),
        };
        // After what is of the recorded run at its worst.
        let at = document.sections.len().min(3);
        document.sections.splice(at..at, self.replays());
        let ledger = match &self.detail {
            Detail::Pages(ledger) => Some(&**ledger),
            Detail::Coarse { .. } => None,
        };
        trace_parts::finish(&mut document, &self.tables, ledger, command);
        document
    }
}

/// A sentence that names whose memory of one kind is, and a section of it.
type Kind = (Option<String>, Option<Section>);

/// The kinds of memory whose owners a snapshot shows.
fn kinds(
    ledger: &Ledger,
    top: &Snapshot,
    sites: &Sites,
    call_sites: &mut CallSites,
) -> [(Term, Option<Kind>); 7] {
    let both = |(sentence, section)| (Some(sentence), Some(section));
    let holders = holders::shown(top, call_sites).map(|shown| (shown.sentence, Some(shown.section)));
    let pins = pins::shown(ledger, sites, call_sites).map(|shown| (shown.sentence, Some(shown.section)));
    let mut mapped = |term| (term, mappers::shown(top, term, call_sites).map(both));
    [
        (Term::Live, holders),
        (Term::External, pins),
        mapped(Term::OtherAnonymous),
        mapped(Term::Shared),
        mapped(Term::Code),
        (Term::StaticData, static_data::shown(ledger, top).map(both)),
        (Term::Stacks, share::stacks(top).map(|sentence| (Some(sentence), None))),
    ]
}

/// Looks at a trace and at the traces of processes that its process started. Returns the one with the largest resident
/// set, and how many there are.
pub fn largest(first: &Path) -> (PathBuf, usize) {
    let peak = |path: &Path| -> Option<u64> {
        let ledger = heaptoll_trace::tables(path).ok()?.extra::<Ledger>(EXTRA)?.ok()?;
        ledger.peak().map(|peak| ledger.snapshots[peak].rss_bytes)
    };
    let mut best = (peak(first), first.to_owned());
    let others = heaptoll_record::others(first);
    let images = others.len() + 1;
    for path in others {
        let rss = peak(&path);
        if rss > best.0 {
            best = (rss, path);
        }
    }
    (best.1, images)
}

/// Where most was live in the run of a trace.
pub fn live_peak(trace: &Path) -> Option<LivePeak> {
    heaptoll_trace::tables(trace).ok()?.extra::<Ledger>(EXTRA)?.ok()?.live_peak
}

/// A process image by its trace, for the user.
pub fn process(trace: &Path) -> String {
    heaptoll_trace::tables(trace).map_or_else(
        |_| trace.display().to_string(),
        |tables| format!("{} (process {})", trace_parts::program(&tables), tables.header.pid),
    )
}

/// The command that shows the ledger of a trace.
pub fn command(trace: &Path) -> String {
    shell_command(&["heaptoll", "ledger", &trace.display().to_string()])
}
