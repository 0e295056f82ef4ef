//! Reads the rings of all images of a program: finds new and ended images, and drains every ring in turn.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use heaptoll_reftrace::Sink;

use crate::image::{Image, TracedImage};
use crate::image_reader::ImageReader;
use crate::ring::Ring;

/// Blocks that are drained from one ring before the next ring's turn.
const BUDGET: u32 = 4;
/// Interval of scans for new images while rings have data.
const SCAN_INTERVAL: Duration = Duration::from_millis(5);
/// Interval of checks for exited processes.
const EXIT_CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Longest wait on the only ring, whose producer wakes this thread.
const SINGLE_RING_WAIT: Duration = Duration::from_millis(5);
/// Sleep where there is no ring, or several.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Which processes live; a trait so that tests can substitute their own.
pub trait Processes {
    /// When the process began, in any unit; `None` for one that has ended.
    fn started(&self, pid: i32) -> Option<u64>;
}

/// The processes that the system reports.
pub struct SystemProcesses;

impl Processes for SystemProcesses {
    fn started(&self, pid: i32) -> Option<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name before the bracket may contain anything, also spaces and brackets.
        let mut words = stat.rsplit_once(") ")?.1.split(' ');
        match words.next()? {
            "X" | "x" => None,
            // A first thread that has ended while others run shows as a zombie too.
            "Z" if std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, |tasks| tasks.count()) < 2 => {
                None
            }
            // State is the third field, the start the 22nd.
            _ => words.nth(18)?.parse().ok(),
        }
    }
}

/// The readers of all images of one run.
pub struct ProgramReader<S, B, L> {
    folder: PathBuf,
    begin: B,
    processes: L,
    /// Images whose rings are read, in the order in which they were found, with their index among all.
    readers: Vec<(usize, ImageReader<S>)>,
    /// Images that have ended.
    ended: Vec<(usize, TracedImage<S>)>,
    /// Number of images so far of each process number.
    numbers: HashMap<i32, u32>,
    attached: usize,
    scanned: Instant,
    checked: Instant,
    /// Rings that could not be read, and why.
    pub unread: Vec<String>,
    /// Why nothing is read any more.
    stopped: Option<String>,
}

impl<S: Sink, B: FnMut(&Image) -> S, L: Processes> ProgramReader<S, B, L> {
    /// Reads the rings in this folder.
    pub fn new(folder: &Path, begin: B, processes: L) -> ProgramReader<S, B, L> {
        ProgramReader {
            folder: folder.into(),
            begin,
            processes,
            readers: Vec::new(),
            ended: Vec::new(),
            numbers: HashMap::new(),
            attached: 0,
            scanned: Instant::now(),
            checked: Instant::now(),
            unread: Vec::new(),
            stopped: None,
        }
    }

    /// Drains some blocks of each ring; whether there were any.
    ///
    /// # Errors
    /// The folder of the rings cannot be read.
    pub fn poll(&mut self) -> io::Result<bool> {
        let mut any = false;
        for (_, reader) in &mut self.readers {
            any |= reader.drain(BUDGET) > 0;
        }
        if !any || self.scanned.elapsed() >= SCAN_INTERVAL {
            any |= self.scan()?;
        }
        if self.checked.elapsed() >= EXIT_CHECK_INTERVAL {
            self.end_exited()?;
        }
        Ok(any)
    }

    /// Waits until a ring may have data.
    pub fn wait(&self) {
        match self.readers.as_slice() {
            [(_, alone)] => alone.ring().wait(SINGLE_RING_WAIT),
            _ => std::thread::sleep(POLL_INTERVAL),
        }
    }

    /// Finds new images; whether there were any.
    fn scan(&mut self) -> io::Result<bool> {
        self.scanned = Instant::now();
        let mut found: Vec<(i32, u32, PathBuf)> = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let numbers =
                name.split_once('.').and_then(|(pid, k)| Some((pid.parse().ok()?, k.parse().ok()?)));
            let Some((pid, number)) = numbers else { continue };
            if self.readers.iter().any(|(_, reader)| reader.path == path) {
                continue;
            }
            found.push((pid, number, path));
        }
        found.sort_unstable();
        let mut rings = Vec::new();
        for (pid, _, path) in found {
            match Ring::open(&path) {
                Ok(Some(ring)) => rings.push((ring, path)),
                // Not finished yet; or never, if its process died as it made it.
                Ok(None) if self.processes.started(pid).is_none() => remove(&path),
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    self.unread.push(format!("process {pid} could not be recorded: {error}"));
                    remove(&path);
                }
            }
        }
        let any = !rings.is_empty();
        // Process numbers wrap around: a parent's may be higher than its child's.
        while !rings.is_empty() {
            let is_new = |pid: i32| rings.iter().any(|(ring, _): &(Ring, PathBuf)| ring.pid == pid);
            let next = rings.iter().position(|(ring, _)| ring.parent == ring.pid || !is_new(ring.parent));
            let (ring, path) = rings.remove(next.unwrap_or(0));
            self.attach(ring, path);
        }
        Ok(any)
    }

    fn attach(&mut self, ring: Ring, path: PathBuf) {
        // The earlier image of the process is over.
        if let Some(at) = self.readers.iter().position(|(_, reader)| reader.image.pid == ring.pid) {
            let (place, reader) = self.readers.remove(at);
            remove(&reader.path);
            self.ended.push((place, reader.end(true)));
        }
        let number = self.numbers.entry(ring.pid).or_default();
        let image =
            Image { pid: ring.pid, parent: ring.parent, number: *number, command: ring.command.clone() };
        *number += 1;
        let (sink, started) = ((self.begin)(&image), self.processes.started(image.pid));
        let mut reader = ImageReader::new(ring, path, image, started, sink);
        if let Some(why) = &self.stopped {
            reader.stop(why);
        }
        self.readers.push((self.attached, reader));
        self.attached += 1;
    }

    /// Ends the images of processes that have exited.
    fn end_exited(&mut self) -> io::Result<()> {
        self.checked = Instant::now();
        let processes = &self.processes;
        let is_dead = |reader: &ImageReader<S>| {
            reader.started.is_none() || processes.started(reader.image.pid) != reader.started
        };
        let dead: Vec<PathBuf> = self
            .readers
            .iter()
            .filter(|(_, reader)| is_dead(reader))
            .map(|(_, reader)| reader.path.clone())
            .collect();
        if dead.is_empty() {
            return Ok(());
        }
        // The process may have continued as another image, which is then attached before the process ends as well.
        self.scan()?;
        for path in dead {
            if let Some(at) = self.readers.iter().position(|(_, reader)| reader.path == path) {
                let (place, reader) = self.readers.remove(at);
                remove(&path);
                self.ended.push((place, reader.end(false)));
            }
        }
        Ok(())
    }

    /// Instructions of all images so far, and the number of images.
    pub fn so_far(&self) -> (u64, usize) {
        let ended = self.ended.iter().map(|(_, image)| image.instructions());
        let received = self.readers.iter().map(|(_, reader)| reader.instructions());
        (ended.chain(received).fold(0, u64::saturating_add), self.attached)
    }

    /// Why a sink takes no more, if one does not.
    pub fn full(&self) -> Option<String> {
        self.readers.iter().find_map(|(_, reader)| reader.full())
    }

    /// Stops reading from all processes.
    pub fn stop(&mut self, why: &str) {
        self.stopped = Some(why.into());
        for (_, reader) in &mut self.readers {
            reader.stop(why);
        }
    }

    /// All images, after the program is over: the rest of each ring is read.
    ///
    /// # Errors
    /// The folder of the rings cannot be read.
    pub fn finish(mut self) -> io::Result<(Vec<TracedImage<S>>, Vec<String>)> {
        self.scan()?;
        for (place, reader) in std::mem::take(&mut self.readers) {
            let lives =
                reader.started.is_some() && self.processes.started(reader.image.pid) == reader.started;
            let image = match lives {
                true => reader.leave("heaptoll could not end the process, which runs on"),
                false => reader.end(false),
            };
            self.ended.push((place, image));
        }
        self.ended.sort_by_key(|(place, _)| *place);
        Ok((self.ended.into_iter().map(|(_, image)| image).collect(), self.unread))
    }
}

/// Removes the ring of an ended image, which frees its memory.
fn remove(path: &Path) {
    // The folder is removed at the end with all its content.
    let _ = std::fs::remove_file(path);
}

#[cfg(test)]
mod tests;
