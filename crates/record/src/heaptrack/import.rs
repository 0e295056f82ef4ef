//! From the lines of a recording to a trace.

use std::io::{self, Read};
use std::time::SystemTime;

use heaptoll_trace::{Ending, Gap, Output, Sample, Settings, Sites, TraceError, Writer};

use crate::heaptrack::budget::Budget;
use crate::heaptrack::error::HeaptrackError;
use crate::heaptrack::event::{Defect, Tally};
use crate::heaptrack::fields::Fields;
use crate::heaptrack::interpreted::Interpreted;
use crate::heaptrack::lines::{Line, Lines};
use crate::heaptrack::preamble::Preamble;
use crate::heaptrack::raw::Raw;
use crate::heaptrack::unpack::is_damage;

/// What is known of a recording besides its bytes.
#[derive(Debug, Clone)]
pub struct About {
    /// Its name in messages.
    pub name: String,
    /// When it was made: names are taken from files that are older. Of raw recordings alone.
    pub recorded_at: SystemTime,
    /// Memory that its tables and objects may take, bytes.
    pub memory_limit_bytes: u64,
    /// Version of heaptoll that imports it.
    pub heaptoll: String,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Events in the trace.
    pub events: u64,
    /// Call stacks in the trace.
    pub stacks: u64,
    /// Whether addresses of objects were there.
    pub is_raw: bool,
    /// What the format lacks, in words.
    pub lacks: Vec<String>,
    /// Why the recording has no end, in words.
    pub cut: Option<String>,
    /// What did not fit.
    pub tally: Tally,
}

/// Which of the two forms a recording has.
enum Form {
    Raw(Box<Raw>),
    Interpreted(Box<Interpreted>),
}

/// What an event needs.
struct Begun<'a, W> {
    writer: &'a mut Writer<W>,
    form: &'a mut Form,
    tally: &'a mut Tally,
    budget: &'a mut Budget,
}

struct Importer<'a, W, M> {
    about: &'a About,
    preamble: Preamble,
    form: Option<Form>,
    budget: Budget,
    /// Makes the output at the first event.
    make: Option<M>,
    writer: Option<Writer<W>>,
    time_ns: u64,
    peak_rss_kib: u64,
    tally: Tally,
}

/// Makes a trace of a recording, whose bytes are plain. `make` makes its output when the first event is read. What comes
/// after a cut is a gap in the trace.
///
/// # Errors
/// It is no recording of heaptrack or of another version, a line is not as it is written, it has no events, needs more
/// memory, or cannot be read; the trace cannot be written.
pub fn import<W: Output>(
    read: impl Read,
    about: &About,
    make: impl FnOnce() -> Result<W, TraceError>,
) -> Result<Summary, HeaptrackError> {
    let name = || about.name.clone();
    let mut lines = Lines::new(read);
    let first = match lines.next() {
        Ok(Line::Whole(line)) => Fields::of(line, false).filter(|(letter, _)| *letter == b'v'),
        Ok(_) => None,
        Err(source) => return Err(HeaptrackError::Read { name: name(), source }),
    };
    let (_, fields) = first.ok_or_else(|| HeaptrackError::NotHeaptrack { name: name() })?;
    let preamble =
        Preamble::new(fields).map_err(|version| HeaptrackError::OtherVersion { name: name(), version })?;
    let mut importer = Importer {
        about,
        preamble,
        form: None,
        budget: Budget::new(about.memory_limit_bytes),
        make: Some(make),
        writer: None,
        time_ns: 0,
        peak_rss_kib: 0,
        tally: Tally::default(),
    };
    let cut = loop {
        match lines.next() {
            Ok(Line::Whole(line)) => {
                let done = importer.line(line);
                done.map_err(|defect| failure(defect, about, lines.number()))?;
            }
            Ok(Line::End) => break None,
            Ok(Line::Cut) => break Some(format!("the recording is cut off in its line {}", lines.number())),
            Ok(Line::TooLong) => {
                return Err(failure(Defect::Line("it is longer than 1 MiB"), about, lines.number()));
            }
            Err(error) if is_damage(&error) => break Some(damage(&error, lines.number())),
            Err(source) => return Err(HeaptrackError::Read { name: name(), source }),
        }
    };
    let line = lines.number();
    importer.finish(cut).map_err(|defect| match defect {
        Some(defect) => failure(defect, about, line),
        None => HeaptrackError::Empty { name: name() },
    })
}

fn damage(error: &io::Error, line: u64) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            format!("the compressed recording is cut off after its line {}", line - 1)
        }
        _ => format!("the compressed recording is damaged after its line {} ({error})", line - 1),
    }
}

fn failure(defect: Defect, about: &About, line: u64) -> HeaptrackError {
    let name = about.name.clone();
    match defect {
        Defect::Line(what) => HeaptrackError::Malformed { name, line, what },
        Defect::Memory(_) => HeaptrackError::Memory { name, line, limit_bytes: about.memory_limit_bytes },
        Defect::Trace(error) => HeaptrackError::Trace(error),
    }
}

impl<W: Output, M: FnOnce() -> Result<W, TraceError>> Importer<'_, W, M> {
    fn line(&mut self, line: &[u8]) -> Result<(), Defect> {
        if line.is_empty() || line.starts_with(b"#") {
            return Ok(());
        }
        let (letter, mut fields) =
            Fields::of(line, self.preamble.sized()).ok_or(Defect::Line("it does not begin with a letter"))?;
        if self.preamble.line(letter, fields) {
            return Ok(());
        }
        let (preamble, budget) = (&self.preamble, &mut self.budget);
        // The executable's path is in raw recordings alone.
        let is_raw = letter == b'm' || !preamble.exe().is_empty();
        let form = self.form.get_or_insert_with(|| match is_raw {
            true => Form::Raw(Box::new(Raw::new(preamble.after_call(), self.about.recorded_at))),
            false => Form::Interpreted(Box::default()),
        });
        let is_table = match form {
            Form::Raw(raw) => raw.table(letter, fields, preamble.exe(), budget)?,
            Form::Interpreted(interpreted) => interpreted.table(letter, fields, budget)?,
        };
        match letter {
            _ if is_table => Ok(()),
            b'+' => self.allocate(fields),
            b'-' => self.free(fields),
            b'c' => {
                let ms = fields.hex().ok_or(Defect::Line("a time without a number"))?;
                // The writer's times are below 2^62 ns.
                self.time_ns = self.time_ns.max(ms.saturating_mul(1_000_000).min(1 << 61));
                let time_ns = self.time_ns;
                self.begun()?.writer.stamp(time_ns);
                Ok(())
            }
            b'R' => self.resident(fields),
            _ => Err(Defect::Line("it begins with a letter that has no meaning")),
        }
    }

    fn is_raw(&self) -> bool {
        matches!(self.form, Some(Form::Raw(_)))
    }

    /// What an event needs; the trace begins here.
    fn begun(&mut self) -> Result<Begun<'_, W>, Defect> {
        if let Some(make) = self.make.take() {
            let header = self.preamble.header(self.is_raw(), &self.about.heaptoll);
            self.writer = Some(Writer::new(make()?, &header, &Settings::default())?);
        }
        let (Some(writer), Some(form)) = (self.writer.as_mut(), self.form.as_mut()) else {
            return Err(Defect::Line("an event before the trace could begin"));
        };
        Ok(Begun { writer, form, tally: &mut self.tally, budget: &mut self.budget })
    }

    fn allocate(&mut self, fields: Fields<'_>) -> Result<(), Defect> {
        let Begun { writer, form, tally, budget } = self.begun()?;
        match form {
            Form::Raw(raw) => raw.allocate(fields, writer, tally, budget),
            Form::Interpreted(interpreted) => interpreted.allocate(fields, writer, budget),
        }
    }

    fn free(&mut self, fields: Fields<'_>) -> Result<(), Defect> {
        let Begun { writer, form, tally, .. } = self.begun()?;
        match form {
            Form::Raw(raw) => raw.free(fields, writer, tally),
            Form::Interpreted(interpreted) => interpreted.free(fields, writer, tally),
        }
    }

    fn resident(&mut self, mut fields: Fields<'_>) -> Result<(), Defect> {
        let pages = fields.hex().ok_or(Defect::Line("a resident set without a number"))?;
        let rss_kib = pages.saturating_mul(self.preamble.page_bytes) / 1024;
        self.peak_rss_kib = self.peak_rss_kib.max(rss_kib);
        let sample = Sample { time_ns: self.time_ns, rss_kib, ..Sample::default() };
        if rss_kib > 0 {
            self.begun()?.writer.sample(&sample);
        }
        Ok(())
    }

    /// The end; none is the error of a recording without events.
    fn finish(mut self, cut: Option<String>) -> Result<Summary, Option<Defect>> {
        let mut writer = self.writer.take().ok_or(None)?;
        let after_call = self.preamble.after_call();
        let is_raw = self.is_raw();
        let sites = match self.form {
            Some(Form::Raw(raw)) => raw.sites(),
            Some(Form::Interpreted(interpreted)) => {
                let sites = interpreted.sites(after_call, &mut self.budget);
                sites.map_err(|exceeded| Some(exceeded.into()))?
            }
            None => Sites::default(),
        };
        writer.sites(&sites);
        if let Some(why) = &cut {
            writer.gap(&Gap { why: why.clone(), events: None });
        }
        let ending = Ending {
            how: match cut {
                Some(_) => "recording cut off".to_owned(),
                None => "ended; heaptrack does not record how".to_owned(),
            },
            time_ns: self.time_ns,
            peak_rss_kib: (self.peak_rss_kib > 0).then_some(self.peak_rss_kib),
            ..Ending::default()
        };
        let events = writer.events();
        writer.flush().map_err(|error| Some(error.into()))?;
        writer.finish(&ending).map_err(|error| Some(error.into()))?;
        let header = self.preamble.header(is_raw, "");
        Ok(Summary {
            events,
            stacks: (sites.sites.len() as u64).saturating_sub(1),
            is_raw,
            lacks: header.imported.map_or_else(Vec::new, |imported| imported.lacks),
            cut,
            tally: self.tally,
        })
    }
}
