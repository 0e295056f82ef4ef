//! DHAT's JSON as Valgrind and the Rust crate write it.

use heaptoll_callsites as callsites;
use heaptoll_profiles::{Frame, Measure, Subject, inlined};
use serde::Deserialize;

use crate::bounded::{Bounded, ReadError, ReadProfile, without_nul};

/// Bytes in memory of a byte of text: a frame's text of 3 bytes is a string of 24.
const EACH_BYTE: u64 = 10;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    dhat_file_version: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    mode: String,
    /// Whether there are lifetimes and maxima.
    #[serde(default)]
    bklt: bool,
    /// The unit of times.
    #[serde(default)]
    tu: String,
    #[serde(default)]
    cmd: String,
    #[serde(default)]
    pid: i32,
    #[serde(default)]
    te: u64,
    #[serde(default)]
    tg: u64,
    pps: Vec<Point>,
    ftbl: Vec<String>,
}

#[derive(Deserialize)]
struct Point {
    tb: u64,
    tbk: u64,
    #[serde(default)]
    tl: u64,
    #[serde(default)]
    mb: u64,
    #[serde(default)]
    mbk: u64,
    #[serde(default)]
    gb: u64,
    #[serde(default)]
    gbk: u64,
    #[serde(default)]
    eb: u64,
    #[serde(default)]
    ebk: u64,
    fs: Vec<u32>,
}

/// Whether these first bytes are those of such a file.
pub fn is_dhat(first: &[u8]) -> bool {
    const MEMBER: &[u8] = b"\"dhatFileVersion\"";
    first.trim_ascii_start().starts_with(b"{") && first.windows(MEMBER.len()).any(|part| part == MEMBER)
}

pub fn read(bytes: &[u8], limit_bytes: u64) -> Result<ReadProfile, ReadError> {
    let needs_bytes = (bytes.len() as u64).saturating_mul(EACH_BYTE);
    if needs_bytes > limit_bytes {
        return Err(ReadError::Memory { limit_bytes });
    }
    let Version { dhat_file_version: version } = serde_json::from_slice(bytes).map_err(malformed)?;
    if version != 2 {
        return Err(ReadError::OtherVersion { version });
    }
    let file: File = serde_json::from_slice(bytes).map_err(malformed)?;
    if file.mode != "heap" && file.mode != "rust-heap" {
        return Err(ReadError::NoHeap { counted: format!("in DHAT's mode `{}`", file.mode) });
    }
    let ns = ns_of(&file.tu);
    let measures = measures(file.bklt, ns.is_some());
    let mut profile = Bounded::new(measures.clone(), limit_bytes - needs_bytes);
    let in_ns = |time: u64| time.saturating_mul(ns.unwrap_or(0));
    profile.subject(Subject {
        command: file.cmd.split(' ').filter(|word| !word.is_empty()).map(without_nul).collect(),
        pid: file.pid,
        to_ns: in_ns(file.te),
        peak_ns: in_ns(file.tg),
        ..Subject::default()
    });
    let mut frames = Frames {
        frames: file.ftbl.iter().map(|text| frame(text)).collect(),
        known: vec![[None; 2]; file.ftbl.len()],
    };
    for point in &file.pps {
        let stack = frames.stack(point, &mut profile)?;
        let values: Vec<u64> =
            measures.iter().map(|measure| value(point, *measure, ns.unwrap_or(0))).collect();
        profile.stack(stack.into_iter(), &values)?;
    }
    Ok(profile.finish(remarks(&file, ns)))
}

fn malformed(error: serde_json::Error) -> ReadError {
    ReadError::Malformed { format: "DHAT", what: error.to_string() }
}

/// Nanoseconds of a unit of time; none where it is none of time, as Valgrind's instructions.
fn ns_of(unit: &str) -> Option<u64> {
    match unit {
        "ns" => Some(1),
        "µs" | "us" | "μs" => Some(1000),
        "ms" => Some(1_000_000),
        "s" => Some(1_000_000_000),
        _ => None,
    }
}

fn measures(has_lives: bool, has_times: bool) -> Vec<Measure> {
    let mut measures = vec![Measure::AllocatedObjects, Measure::AllocatedBytes];
    if has_lives {
        measures.extend([
            Measure::EndObjects,
            Measure::EndBytes,
            Measure::PeakObjects,
            Measure::PeakBytes,
            Measure::OwnPeakObjects,
            Measure::OwnPeakBytes,
        ]);
        measures.extend(has_times.then_some(Measure::LifetimeNs));
    }
    measures
}

fn value(point: &Point, measure: Measure, ns: u64) -> u64 {
    match measure {
        Measure::AllocatedObjects => point.tbk,
        Measure::AllocatedBytes => point.tb,
        Measure::EndObjects => point.ebk,
        Measure::EndBytes => point.eb,
        Measure::PeakObjects => point.gbk,
        Measure::PeakBytes => point.gb,
        Measure::OwnPeakObjects => point.mbk,
        Measure::OwnPeakBytes => point.mb,
        Measure::LifetimeNs => point.tl.saturating_mul(ns),
        // DHAT has no others: `measures` lists what is read.
        _ => 0,
    }
}

/// The table of frames.
struct Frames {
    frames: Vec<Frame>,
    /// By number: that of the profile's frame, as a function of its own and as an inlined one.
    known: Vec<[Option<u32>; 2]>,
}

impl Frames {
    /// The frames of a point, innermost first. Number 0 is the viewer's root.
    fn stack(&mut self, point: &Point, profile: &mut Bounded) -> Result<Vec<u32>, ReadError> {
        let numbers: Vec<usize> =
            point.fs.iter().map(|&number| number as usize).filter(|at| *at > 0).collect();
        if numbers.iter().any(|&number| number >= self.frames.len()) {
            let what = "a call stack has a frame that is not in the table".into();
            return Err(ReadError::Malformed { format: "DHAT", what });
        }
        // A frame without an address is at a place of its own.
        let place = |at: usize, offset: u64| (offset, if offset == 0 { at } else { 0 });
        let placed =
            numbers.iter().enumerate().map(|(at, &number)| (place(at, self.frames[number].offset), number));
        let inlined = inlined(&placed.collect::<Vec<_>>());
        let mut stack = Vec::with_capacity(numbers.len());
        for (number, inlined) in numbers.into_iter().zip(inlined) {
            let known = self.known[number][usize::from(inlined)];
            let frame = match known {
                Some(frame) => frame,
                None => profile.frame(Frame { inlined, ..self.frames[number].clone() })?,
            };
            self.known[number][usize::from(inlined)] = Some(frame);
            stack.push(frame);
        }
        Ok(stack)
    }
}

/// `0x1234: f (file.c:12)`, `0x1234: f (in /usr/bin/prog)`, and with a column as the Rust crate writes it.
fn frame(text: &str) -> Frame {
    let address = text.split_once(": ").and_then(|(address, rest)| {
        let address = u64::from_str_radix(address.strip_prefix("0x")?, 16).ok()?;
        Some((address, rest))
    });
    // Addresses are those of calls; a frame's are those after them.
    let (offset, rest) = address.map_or((0, text), |(address, rest)| match address {
        0 => (0, rest),
        address => (address.wrapping_add(1), rest),
    });
    let mut whole = callsites::Frame::parse(rest, offset).whole();
    let column =
        whole.file.rsplit_once(':').and_then(|(file, line)| Some((file.to_owned(), line.parse().ok()?)));
    if let Some((file, line)) = column {
        (whole.file, whole.line) = (file, Some(line));
    }
    Frame {
        function: without_nul(&whole.function),
        file: without_nul(&whole.file),
        line: whole.line.and_then(|line| u32::try_from(line).ok()).unwrap_or(0),
        object: without_nul(&whole.object),
        offset,
        inlined: false,
    }
}

fn remarks(file: &File, ns: Option<u64>) -> Vec<String> {
    let mut remarks = Vec::new();
    if !file.bklt {
        remarks.push("it has neither lifetimes nor what was alive".to_owned());
    } else if ns.is_none() {
        remarks.push(format!("its lifetimes are counted in `{}` and left out", file.tu));
    }
    remarks
}
