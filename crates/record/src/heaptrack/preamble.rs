//! What a recording states before its events: versions, program, size of a page.

use heaptoll_trace::{Header, Imported};

use crate::heaptrack::fields::Fields;

/// The newest version of the format that is known.
const NEWEST: u64 = 3;
/// From this version of heaptrack on, addresses of code are those of calls and not of what follows them.
const CALLS_SINCE: u64 = 0x01_03_00;

/// What a recording states before its events.
#[derive(Debug, Default)]
pub struct Preamble {
    heaptrack: u64,
    /// Version of the file format.
    pub format: u64,
    exe: String,
    command: Vec<String>,
    /// Bytes of a page; 0 where unknown.
    pub page_bytes: u64,
    /// The program ran when recording began.
    attached: bool,
}

impl Preamble {
    /// From the first line; an error is the version of a format that is not known.
    pub fn new(mut fields: Fields<'_>) -> Result<Preamble, u64> {
        let heaptrack = fields.hex().unwrap_or(0);
        let format = fields.hex().unwrap_or(0);
        if !(1..=NEWEST).contains(&format) {
            return Err(format);
        }
        Ok(Preamble { heaptrack, format, ..Preamble::default() })
    }

    /// Whether texts follow their lengths.
    pub fn sized(&self) -> bool {
        self.format >= 3
    }

    /// Added to an address of code, it is that of the instruction after the call.
    pub fn after_call(&self) -> u64 {
        u64::from(self.heaptrack >= CALLS_SINCE)
    }

    /// A line; whether it belongs here.
    pub fn line(&mut self, letter: u8, mut fields: Fields<'_>) -> bool {
        match letter {
            b'x' => self.exe = lossy(fields.last_text().unwrap_or_default()),
            b'X' => self.command = lossy(fields.rest()).split(' ').map(str::to_owned).collect(),
            b'I' => self.page_bytes = fields.hex().unwrap_or(0),
            b'A' => self.attached = true,
            // Comments, and what its leak report leaves out.
            b'#' | b'S' => {}
            _ => return false,
        }
        true
    }

    /// Path of the executable.
    pub fn exe(&self) -> &str {
        &self.exe
    }

    /// The description of the trace. `recorder` is the version of heaptoll that writes it.
    pub fn header(&self, is_raw: bool, recorder: &str) -> Header {
        Header {
            command: self.command.clone(),
            exe: self.exe.clone(),
            recorder: recorder.to_owned(),
            sites: true,
            imported: Some(Imported { from: self.from(is_raw), lacks: self.lacks(is_raw) }),
            ..Header::default()
        }
    }

    fn from(&self, is_raw: bool) -> String {
        let [major, minor, patch] = [16, 8, 0].map(|shift| self.heaptrack >> shift & 0xff);
        let form = if is_raw { "raw" } else { "interpreted" };
        format!("heaptrack {major}.{minor}.{patch} (file format {}, {form})", self.format)
    }

    fn lacks(&self, is_raw: bool) -> Vec<String> {
        let mut lacks = vec![
            "threads: all calls belong to one thread",
            "resizes: a realloc is a free and a malloc, and makes a new object",
            "functions, alignments and usable sizes: all calls are malloc and free",
            "calls that failed, and free of null",
            "exact times: all events within 10 ms have one time",
            "callers beyond 64 frames, the manager, and how the program ended",
        ];
        if !is_raw {
            lacks.push(
                "the freed object among several of one size and call stack: the newest is assumed, so sums are exact \
                 and single lifetimes are not",
            );
            lacks.push("load addresses of files: code has its address in memory");
        }
        if self.attached {
            lacks.push("allocations before heaptrack was attached to the program");
        }
        lacks.into_iter().map(str::to_owned).collect()
    }
}

/// Text of the recorded program, where it is UTF-8.
pub fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}")
}
