//! The lines of such a profile: what may stand in front, call stacks with what was counted of them, and what follows.
//!
//! jemalloc prints a summary of leaks in front, on request; `jeprof --raw` and `pprof --raw` put the names of
//! functions there, between `--- symbol` and `---`. Go's text has names after each call stack, and no files.

use std::collections::HashMap;

use heaptoll_profiles::Frame;

use super::mapped::{self, Mapped};
use super::values::{Header, Values, Writer};
use crate::bounded::ReadError;

const MAPPINGS: &str = "MAPPED_LIBRARIES:";
/// What follows the call stacks in Go's.
const GO_END: &str = "# runtime.MemStats";
const NAMES: &str = "--- symbol";
const NAMES_END: &str = "---";

/// A call stack with what was counted of it.
pub struct Sampled {
    pub addresses: Vec<u64>,
    /// Its frames, innermost first, where the file has them.
    pub frames: Vec<Frame>,
    pub values: Values,
}

/// A whole profile.
pub struct Parsed {
    pub header: Header,
    /// What the first line states of all call stacks, where it does.
    pub total: Option<Values>,
    pub samples: Vec<Sampled>,
    /// The files that lay in memory.
    pub mapped: Vec<Mapped>,
    /// Functions by address, innermost first where some are inlined.
    pub names: HashMap<u64, Vec<String>>,
}

/// Whether these first bytes are those of such a profile.
pub fn is_heap_text(first: &[u8]) -> bool {
    let text = String::from_utf8_lossy(first);
    let is_head = |line: &str| Header::parse(line).is_some() || line.starts_with("heap profile: ");
    !first.contains(&0)
        && text.lines().enumerate().any(|(at, line)| is_head(line) || at == 0 && line.trim() == NAMES)
}

/// Reads all lines.
///
/// # Errors
/// It is of no heap, has a line that is none of such a profile, or ends before its end.
pub fn parse(text: &str) -> Result<Parsed, ReadError> {
    let mut lines = (1..).zip(text.lines().map(str::trim));
    let mut names = HashMap::new();
    let mut in_names = false;
    let (header, total) = loop {
        let Some((_, line)) = lines.next() else { return Err(malformed("it has no head".to_owned())) };
        in_names = line == NAMES || in_names && line != NAMES_END;
        if in_names {
            names.extend(name(line));
        } else if let Some(header) = Header::parse(line) {
            break (header, Values::total(line));
        } else if line.starts_with("heap profile: ") {
            return Err(ReadError::NoHeap { counted: format!("`{line}`") });
        }
    };
    let mut samples = Vec::new();
    let whole = match header.writer {
        Writer::Jemalloc => of_threads(&mut lines, &mut samples),
        Writer::Gperftools | Writer::Go => of_stacks(&mut lines, &mut samples),
    };
    whole.map_err(|line| match line {
        Some((number, line)) => {
            let start: String = line.chars().take(60).collect();
            malformed(format!("line {number}, `{start}`, does not belong to it"))
        }
        None => malformed(format!(
            "it ends before `{}`",
            if header.writer == Writer::Go { GO_END } else { MAPPINGS }
        )),
    })?;
    let mapped =
        if header.writer == Writer::Go { vec![] } else { mapped::files(lines.map(|(_, line)| line)) };
    Ok(Parsed { header, total, samples, mapped, names })
}

fn malformed(what: String) -> ReadError {
    ReadError::Malformed { format: "jemalloc, gperftools or Go", what }
}

/// `0x401010 inner--outer`: an address, and its functions.
fn name(line: &str) -> Option<(u64, Vec<String>)> {
    let (address, names) = line.split_once(' ')?;
    let address = u64::from_str_radix(address.strip_prefix("0x")?, 16).ok()?;
    Some((address, names.split("--").map(str::to_owned).collect()))
}

/// The line that is none of a profile, with its number; none where the profile ends too soon.
type Wrong<'a> = Option<(usize, &'a str)>;

/// jemalloc's: a call stack, then its sums by thread. Those before the first stack are of the whole profile.
fn of_threads<'a>(
    lines: &mut impl Iterator<Item = (usize, &'a str)>,
    samples: &mut Vec<Sampled>,
) -> Result<(), Wrong<'a>> {
    let mut open: Option<Vec<u64>> = None;
    for (number, line) in lines {
        let wrong = || Some((number, line));
        match line.split_once('@') {
            _ if line.is_empty() => {}
            _ if line == MAPPINGS => return Ok(()),
            Some(("", stack)) => open = Some(addresses(stack).ok_or_else(wrong)?),
            _ => {
                let (thread, values) = line.split_once(':').ok_or_else(wrong)?;
                let values = Values::parse(values).ok_or_else(wrong)?;
                if let Some(addresses) = open.take_if(|_| thread == "t*") {
                    samples.push(Sampled { addresses, frames: vec![], values });
                }
            }
        }
    }
    Err(None)
}

/// gperftools' and Go's: sums and call stack on one line. Go names its frames on lines of their own.
fn of_stacks<'a>(
    lines: &mut impl Iterator<Item = (usize, &'a str)>,
    samples: &mut Vec<Sampled>,
) -> Result<(), Wrong<'a>> {
    for (number, line) in lines {
        let wrong = || Some((number, line));
        match (line.strip_prefix('#'), line.split_once('@')) {
            _ if line.is_empty() => {}
            _ if line == MAPPINGS || line == GO_END => return Ok(()),
            (Some(named), _) => {
                if let Some(sample) = samples.last_mut() {
                    sample.frames.extend(go_frame(named));
                }
            }
            (None, Some((values, stack))) => {
                let values = Values::parse(values).ok_or_else(wrong)?;
                samples.push(Sampled {
                    addresses: addresses(stack).ok_or_else(wrong)?,
                    frames: vec![],
                    values,
                });
            }
            (None, None) => return Err(wrong()),
        }
    }
    Err(None)
}

/// `0x47a2b5 main.leak+0x15 /tmp/x.go:10`, between tabs.
fn go_frame(line: &str) -> Option<Frame> {
    let mut fields = line.split('\t').filter(|field| !field.is_empty());
    let offset = u64::from_str_radix(fields.next()?.trim().strip_prefix("0x")?, 16).ok()?;
    let function = fields.next()?.trim();
    let (file, line) = fields.next().and_then(|place| place.trim().rsplit_once(':')).unwrap_or_default();
    Some(Frame {
        function: function.rsplit_once("+0x").map_or(function, |(function, _)| function).to_owned(),
        file: file.to_owned(),
        line: line.parse().unwrap_or(0),
        offset,
        ..Frame::default()
    })
}

/// Addresses in hexadecimal.
fn addresses(text: &str) -> Option<Vec<u64>> {
    let words = text.split_whitespace();
    words.map(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()).collect()
}
