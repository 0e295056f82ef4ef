//! The tables of a trace, everything but its events: header, ending, samples, gaps, call stacks and extra tables.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::file_head;
use crate::file_kind::FileKind;
use crate::format::{CHUNK_HEAD, ChunkHead, TEXT_MAX, chunk};
use crate::frame::{Framer, StreamItem};
use crate::header::{Ending, Exit, Gap, Header, Sample, Sites};
use crate::{TraceError, sites, text};

/// Memory that all tables of a trace may take, bytes: what a hostile file can cost.
const MEMORY_MAX: usize = 256 << 20;
/// Warnings and gaps that are kept as text.
const MESSAGES_MAX: usize = 100;

/// All of a trace but its events.
#[derive(Debug, Default)]
pub struct Tables {
    /// The recorded process and its settings. The default when that chunk is damaged, with a warning.
    pub header: Header,
    /// How it ended; none when it was cut off.
    pub ending: Option<Ending>,
    /// When `exit` began; none where the program ended otherwise, or the trace is of an older version.
    pub exit: Option<Exit>,
    /// Call stacks; none when there are none.
    pub sites: Option<Sites>,
    /// Samples of the process, in order.
    pub samples: Vec<Sample>,
    /// Holes: those that the recorder marked, and what is damaged. At most 100 are kept.
    pub gaps: Vec<Gap>,
    /// Damage and omissions. At most 100 are kept.
    pub warnings: Vec<String>,
    name: String,
    extras: BTreeMap<String, Vec<u8>>,
    has_header: bool,
    memory: usize,
    more_warnings: u64,
    /// Whether call stacks were written again, with names.
    has_replaced_sites: bool,
    /// A text that is continued in the next chunk: kind, name, bytes.
    open: Option<(u8, String, Vec<u8>)>,
}

impl Tables {
    pub(crate) fn new(name: &str) -> Tables {
        Tables { name: name.to_string(), ..Tables::default() }
    }

    /// A table that was put into the trace under this name; none when there is none.
    pub fn extra<T: DeserializeOwned>(&self, name: &str) -> Option<Result<T, TraceError>> {
        let bytes = self.extras.get(name)?;
        Some(serde_json::from_slice(bytes).map_err(|source| TraceError::Table {
            name: self.name.clone(),
            table: name.to_string(),
            source,
        }))
    }

    /// Names of the extra tables.
    pub fn extras(&self) -> impl Iterator<Item = &str> {
        self.extras.keys().map(String::as_str)
    }

    /// Sentences on what makes the figures of the trace incomplete: damage, holes, and a program that did not come to its
    /// end. For a trace that was read to the end.
    pub fn incomplete(&self) -> Vec<String> {
        let mut all = self.warnings.clone();
        all.extend(self.gaps.iter().map(|gap| match gap.events {
            Some(events) => format!("{events} events are missing: {}", gap.why),
            None => format!("events are missing: {}", gap.why),
        }));
        if let Some(ending) = self.ending.as_ref().filter(|ending| ending.is_early()) {
            all.push(format!("the program was {}: the trace covers its run until then", ending.how));
        }
        all
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn warn(&mut self, warning: String) {
        if self.warnings.len() < MESSAGES_MAX {
            self.warnings.push(warning);
        } else {
            self.more_warnings += 1;
        }
    }

    pub(crate) fn miss(&mut self, why: String, events: Option<u64>) {
        if self.gaps.len() < MESSAGES_MAX {
            self.gaps.push(Gap { why, events });
        }
    }

    /// Warns of damage.
    pub(crate) fn damage(&mut self, bytes: u64, what: &str) {
        self.warn(format!("{what}: {bytes} bytes are left out"));
    }

    /// Reads the first bytes of a file; warns where they are damaged.
    pub(crate) fn begin<R: Read>(
        &mut self,
        framer: &mut Framer<R>,
        kind: FileKind,
    ) -> Result<(), TraceError> {
        if !file_head::read(framer, &self.name, kind)? {
            self.warn("the first bytes of the file are damaged".to_string());
        }
        Ok(())
    }

    /// Whether the chunk of this sequence number is the next, after those that are missing; warns of them. `next` is the
    /// number expected, if any, and becomes that of the chunk after this.
    pub(crate) fn follows(&mut self, next: &mut Option<u64>, sequence: u64) -> bool {
        let expected = next.unwrap_or(0);
        if next.is_some() && sequence < expected {
            self.warn(format!("chunk {sequence} is there twice or out of order: left out"));
            return false;
        }
        if sequence > expected {
            self.warn(format!("chunks {expected} to {} are missing", sequence - 1));
        }
        *next = Some(sequence.saturating_add(1));
        true
    }

    /// Takes a chunk that is not one of events.
    pub(crate) fn take(&mut self, head: &ChunkHead, payload: &[u8]) {
        if !matches!(head.kind, chunk::HEADER | chunk::SAMPLES..=chunk::EXIT) {
            // A chunk of a later version.
            return;
        }
        let Some(part) = text::parse(payload) else {
            return self.warn(format!("chunk {} cannot be unpacked: left out", head.sequence));
        };
        let mut bytes = match self.open.take() {
            Some((kind, name, bytes)) if kind == head.kind && name == part.name => bytes,
            Some((_, name, _)) => {
                self.warn(format!("a part of the table `{name}` is missing: left out"));
                Vec::new()
            }
            None => Vec::new(),
        };
        if self.memory + bytes.len() > MEMORY_MAX {
            return self.too_large(head);
        }
        bytes.extend_from_slice(&part.bytes);
        if part.continues {
            self.open = Some((head.kind, part.name, bytes));
        } else if self.put(head, part.name, bytes).is_none() {
            self.warn(format!("chunk {} has the wrong contents: left out", head.sequence));
        }
    }

    fn too_large(&mut self, head: &ChunkHead) {
        self.warn(format!(
            "the tables are larger than {} MiB: chunk {} is left out",
            MEMORY_MAX >> 20,
            head.sequence
        ));
    }

    /// `None` when the text does not match its kind.
    fn put(&mut self, head: &ChunkHead, name: String, bytes: Vec<u8>) -> Option<()> {
        // Parsed data take some 30 times their text at most (an empty frame is two bytes).
        if head.kind != chunk::EXTRA && bytes.len() > 16 * TEXT_MAX {
            return None;
        }
        let mut cost = bytes.len();
        match head.kind {
            chunk::HEADER => {
                self.header = serde_json::from_slice(&bytes).ok()?;
                self.has_header = true;
            }
            chunk::SAMPLES => {
                let mut samples: Vec<Sample> = serde_json::from_slice(&bytes).ok()?;
                cost = samples.len() * size_of::<Sample>();
                if self.memory + cost <= MEMORY_MAX {
                    self.samples.append(&mut samples);
                }
            }
            chunk::GAP => {
                let gap: Gap = serde_json::from_slice(&bytes).ok()?;
                // No warning: nothing is wrong with the file.
                if self.gaps.len() < MESSAGES_MAX {
                    self.gaps.push(gap);
                }
            }
            chunk::SITES => {
                let part: sites::Part = serde_json::from_slice(&bytes).ok()?;
                let table = self.sites.get_or_insert_default();
                cost = sites::cost(table, &part);
                if self.memory.saturating_add(cost) <= MEMORY_MAX {
                    let replaced = sites::replaced(table, &part);
                    sites::insert(table, part)?;
                    self.has_replaced_sites |= replaced > 0;
                    self.memory -= replaced.min(self.memory);
                }
            }
            chunk::EXTRA => {
                if self.memory + cost <= MEMORY_MAX {
                    self.extras.insert(name, bytes);
                }
            }
            chunk::EXIT => {
                self.exit.get_or_insert(serde_json::from_slice(&bytes).ok()?);
            }
            _ => self.ending = Some(serde_json::from_slice(&bytes).ok()?),
        }
        if self.memory.saturating_add(cost) > MEMORY_MAX {
            self.too_large(head);
        } else {
            self.memory += cost;
        }
        Some(())
    }

    /// At the end of the file: warns of what is missing.
    pub(crate) fn close(&mut self) {
        if let Some((_, name, _)) = self.open.take() {
            self.warn(format!("the table `{name}` is cut off: left out"));
        }
        if let Some(sites) = &mut self.sites {
            sites::check(sites);
            if self.has_replaced_sites {
                sites::compact(sites);
            }
        }
        if !self.has_header {
            self.warn("the chunk with the header, which describes the recording, is missing".to_string());
        }
        if self.ending.is_none() {
            self.warn("the trace has no ending: the recording was cut off, or the file was".to_string());
        }
        if self.more_warnings > 0 {
            self.warnings.push(format!("and {} more of the kind", self.more_warnings));
            self.more_warnings = 0;
        }
    }
}

/// Everything but the events: of a large file, little is read.
///
/// # Errors
/// The file cannot be opened or read, is no trace or a newer one. Damage is a warning.
pub fn tables(path: &Path) -> Result<Tables, TraceError> {
    let name = path.display().to_string();
    let open = |source| TraceError::system("open", &name, source);
    let read = |source| TraceError::system("read", &name, source);
    let mut file = File::open(path).map_err(open)?;
    let mut framer = Framer::new(&file, 0);
    let mut tables = Tables::new(&name);
    tables.begin(&mut framer, FileKind::Trace)?;
    let mut offset = framer.offset();
    drop(framer);
    // From head to head, as long as each is whole and leads to the next.
    let length = file.metadata().map_err(read)?.len();
    while let Some(head) = head_at(&file, offset).map_err(read)? {
        let end = offset + (CHUNK_HEAD + head.length as usize) as u64;
        if head.kind == chunk::EVENTS {
            if end != length && head_at(&file, end).map_err(read)?.is_none() {
                break;
            }
        } else {
            let mut payload = vec![0; head.length as usize];
            match file.read_exact_at(&mut payload, offset + CHUNK_HEAD as u64) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(read(error)),
            }
            if crc32fast::hash(&payload) != head.payload_sum {
                break;
            }
            tables.take(&head, &payload);
        }
        offset = end;
    }
    // The rest is empty or damaged.
    file.seek(SeekFrom::Start(offset)).map_err(read)?;
    let mut framer = Framer::new(&file, offset);
    loop {
        match framer.next().map_err(read)? {
            StreamItem::Chunk(head) if head.kind != chunk::EVENTS => tables.take(&head, framer.payload()),
            StreamItem::Chunk(_) => {}
            StreamItem::Damage { bytes, what } => tables.damage(bytes, &what),
            StreamItem::End => break,
        }
    }
    tables.close();
    Ok(tables)
}

fn head_at(file: &File, offset: u64) -> io::Result<Option<ChunkHead>> {
    let mut bytes = [0; CHUNK_HEAD];
    match file.read_exact_at(&mut bytes, offset) {
        Ok(()) => Ok(ChunkHead::parse(&bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}
