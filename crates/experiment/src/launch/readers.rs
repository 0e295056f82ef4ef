//! The readers of a program's two outputs: digested and cut as they come, so that no program waits for space in a pipe.
//!
//! A process that survives the program may hold its pipes for ever. What a reader has is therefore kept where it can be
//! taken at any time, not only at the end.

use std::io::Read;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

/// How much of the head of standard output is kept, bytes; the rest is only digested.
pub(super) const KEPT_OUTPUT: usize = 16 * 1024;
/// How much of the tail of standard error is kept, bytes.
pub(super) const KEPT_ERROR: usize = 2 * 1024;
/// How long the outputs of a program with survivors may take: what the ended ones wrote is in the pipes already.
const BRIEFLY: Duration = Duration::from_millis(200);

/// Standard output so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Output {
    /// Bytes.
    pub bytes: u64,
    hash: Sha256,
    /// The first [`KEPT_OUTPUT`] bytes.
    pub head: Vec<u8>,
}

impl Output {
    /// SHA-256, hexadecimal.
    pub fn digest(self) -> String {
        self.hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// A thread that reads one output into a `T`.
pub(super) struct Reader<T> {
    thread: JoinHandle<()>,
    kept: Arc<Mutex<T>>,
}

impl<T: Clone + Default + Send + 'static> Reader<T> {
    fn start(
        source: Option<impl Read + Send + 'static>,
        lines: Option<SyncSender<String>>,
        take: fn(&mut T, &[u8]),
    ) -> std::io::Result<Reader<T>> {
        let kept = Arc::new(Mutex::new(T::default()));
        let filled = Arc::clone(&kept);
        let read = move || {
            let mut splitter = LineSplitter { lines, partial: Vec::new() };
            read_all(source, |bytes| {
                take(&mut filled.lock().unwrap_or_else(PoisonError::into_inner), bytes);
                splitter.take(bytes);
            });
        };
        Ok(Reader { thread: std::thread::Builder::new().spawn(read)?, kept })
    }

    /// All of it, once every writer has closed.
    ///
    /// # Errors
    /// The thread died.
    pub fn all(self) -> std::io::Result<T> {
        self.thread.join().map_err(|_| std::io::Error::other("a reader thread died"))?;
        Ok(std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// What has come within [`BRIEFLY`]. The thread stays for as long as a process holds the pipe.
    pub fn so_far(self) -> T {
        let until = Instant::now() + BRIEFLY;
        while !self.thread.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Digests standard output.
///
/// # Errors
/// No thread can be started.
pub(super) fn digest(
    source: Option<impl Read + Send + 'static>,
    lines: Option<SyncSender<String>>,
) -> std::io::Result<Reader<Output>> {
    Reader::start(source, lines, |output: &mut Output, bytes| {
        output.hash.update(bytes);
        output.bytes += bytes.len() as u64;
        let space = KEPT_OUTPUT - output.head.len();
        output.head.extend_from_slice(&bytes[..bytes.len().min(space)]);
    })
}

/// Keeps the tail of standard error.
///
/// # Errors
/// No thread can be started.
pub(super) fn tail(
    source: Option<impl Read + Send + 'static>,
    lines: Option<SyncSender<String>>,
) -> std::io::Result<Reader<Vec<u8>>> {
    Reader::start(source, lines, |kept: &mut Vec<u8>, bytes| {
        kept.extend_from_slice(bytes);
        if kept.len() > KEPT_ERROR {
            kept.drain(..kept.len() - KEPT_ERROR);
        }
    })
}

/// Splits what is read into lines for a consumer; a consumer that left is no error.
struct LineSplitter {
    lines: Option<SyncSender<String>>,
    partial: Vec<u8>,
}

impl LineSplitter {
    fn take(&mut self, bytes: &[u8]) {
        let Some(lines) = &self.lines else { return };
        for &byte in bytes {
            match byte {
                b'\n' => {
                    let line = String::from_utf8_lossy(&self.partial).into_owned();
                    self.partial.clear();
                    if lines.send(line).is_err() {
                        self.lines = None;
                        return;
                    }
                }
                // A server that writes one endless line must not fill heaptoll's memory.
                _ if self.partial.len() < KEPT_OUTPUT => self.partial.push(byte),
                _ => {}
            }
        }
    }
}

fn read_all(source: Option<impl Read>, mut take: impl FnMut(&[u8])) {
    let Some(mut source) = source else { return };
    let mut buffer = vec![0u8; 64 * 1024];
    loop {
        match source.read(&mut buffer) {
            Ok(0) => return,
            Ok(n) => take(&buffer[..n]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}
