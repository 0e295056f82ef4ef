//! Follows all images of a program: notices who comes and goes, empties every ring in turn.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use heaptoll_reference::Sink;

use crate::hearing::Hearing;
use crate::image::{Image, TracedImage};
use crate::ring::Ring;

/// Blocks that one image may have out of its ring before the next one's turn.
const BUDGET: u32 = 4;
/// How often is looked for new images while there is much to hear,
const LOOK: Duration = Duration::from_millis(5);
/// and how often for those that have ended.
const DEATHS: Duration = Duration::from_millis(20);
/// How long is waited for a single image, whose ring wakes us; and where there are none or several.
const ALONE: Duration = Duration::from_millis(5);
const OTHERWISE: Duration = Duration::from_millis(1);

/// Whether processes live; a struct of its own so that tests can say so themselves.
pub trait Life {
    /// When the process began, in whatever unit; `None` for one that has ended.
    fn started(&self, pid: i32) -> Option<u64>;
}

/// As the system says.
pub struct System;

impl Life for System {
    fn started(&self, pid: i32) -> Option<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name before may hold anything, spaces and brackets too.
        let mut words = stat.rsplit_once(") ")?.1.split(' ');
        match words.next()? {
            "X" | "x" => None,
            // A first thread that has ended, with others that go on, shows as a zombie too.
            "Z" if std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, |tasks| tasks.count()) < 2 => {
                None
            }
            // State is the third field, the start the 22nd.
            _ => words.nth(18)?.parse().ok(),
        }
    }
}

/// All images of one run.
pub struct Follower<S, B, L> {
    folder: PathBuf,
    begin: B,
    life: L,
    /// Those that are heard, in the order in which they were noticed, with their place among all.
    hearings: Vec<(usize, Hearing<S>)>,
    /// Those that have ended.
    ended: Vec<(usize, TracedImage<S>)>,
    /// Images so far of each process number.
    numbers: HashMap<i32, u32>,
    noticed: usize,
    looked: Instant,
    checked: Instant,
    /// Rings that could not be read, and why.
    pub unread: Vec<String>,
    /// Why nothing is heard any more.
    stopped: Option<String>,
}

impl<S: Sink, B: FnMut(&Image) -> S, L: Life> Follower<S, B, L> {
    /// Of rings in this folder.
    pub fn new(folder: &Path, begin: B, life: L) -> Follower<S, B, L> {
        Follower {
            folder: folder.into(),
            begin,
            life,
            hearings: Vec::new(),
            ended: Vec::new(),
            numbers: HashMap::new(),
            noticed: 0,
            looked: Instant::now(),
            checked: Instant::now(),
            unread: Vec::new(),
            stopped: None,
        }
    }

    /// Takes what there is, of each image a little; gives whether there was anything.
    ///
    /// # Errors
    /// The folder of the rings cannot be read.
    pub fn turn(&mut self) -> io::Result<bool> {
        let mut any = false;
        for (_, hearing) in &mut self.hearings {
            any |= hearing.drain(BUDGET) > 0;
        }
        if !any || self.looked.elapsed() >= LOOK {
            any |= self.look()?;
        }
        if self.checked.elapsed() >= DEATHS {
            self.bury()?;
        }
        Ok(any)
    }

    /// Rests until something may have come.
    pub fn rest(&self) {
        match self.hearings.as_slice() {
            [(_, alone)] => alone.ring().wait(ALONE),
            _ => std::thread::sleep(OTHERWISE),
        }
    }

    /// Notices new images; gives whether there were any.
    fn look(&mut self) -> io::Result<bool> {
        self.looked = Instant::now();
        let mut found: Vec<(i32, u32, PathBuf)> = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let numbers =
                name.split_once('.').and_then(|(pid, k)| Some((pid.parse().ok()?, k.parse().ok()?)));
            let Some((pid, number)) = numbers else { continue };
            if self.hearings.iter().any(|(_, hearing)| hearing.path == path) {
                continue;
            }
            found.push((pid, number, path));
        }
        found.sort_unstable();
        let mut rings = Vec::new();
        for (pid, _, path) in found {
            match Ring::open(&path) {
                Ok(Some(ring)) => rings.push((ring, path)),
                // Not yet: or never, of a process that died as it made it.
                Ok(None) if self.life.started(pid).is_none() => remove(&path),
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    self.unread.push(format!("process {pid} was not heard: {error}"));
                    remove(&path);
                }
            }
        }
        let any = !rings.is_empty();
        // Numbers of processes wrap around: a parent's may be higher than its child's.
        while !rings.is_empty() {
            let is_new = |pid: i32| rings.iter().any(|(ring, _): &(Ring, PathBuf)| ring.pid == pid);
            let next = rings.iter().position(|(ring, _)| ring.parent == ring.pid || !is_new(ring.parent));
            let (ring, path) = rings.remove(next.unwrap_or(0));
            self.notice(ring, path);
        }
        Ok(any)
    }

    fn notice(&mut self, ring: Ring, path: PathBuf) {
        // What the process was before is over.
        if let Some(at) = self.hearings.iter().position(|(_, hearing)| hearing.image.pid == ring.pid) {
            let (place, hearing) = self.hearings.remove(at);
            remove(&hearing.path);
            self.ended.push((place, hearing.end(true)));
        }
        let number = self.numbers.entry(ring.pid).or_default();
        let image =
            Image { pid: ring.pid, parent: ring.parent, number: *number, command: ring.command.clone() };
        *number += 1;
        let (sink, started) = ((self.begin)(&image), self.life.started(image.pid));
        let mut hearing = Hearing::new(ring, path, image, started, sink);
        if let Some(why) = &self.stopped {
            hearing.stop(why);
        }
        self.hearings.push((self.noticed, hearing));
        self.noticed += 1;
    }

    /// Ends what has ended.
    fn bury(&mut self) -> io::Result<()> {
        self.checked = Instant::now();
        let life = &self.life;
        let is_dead = |hearing: &Hearing<S>| {
            hearing.started.is_none() || life.started(hearing.image.pid) != hearing.started
        };
        let dead: Vec<PathBuf> = self
            .hearings
            .iter()
            .filter(|(_, hearing)| is_dead(hearing))
            .map(|(_, hearing)| hearing.path.clone())
            .collect();
        if dead.is_empty() {
            return Ok(());
        }
        // It may have gone on as another image, which is then noticed before it is over as well.
        self.look()?;
        for path in dead {
            if let Some(at) = self.hearings.iter().position(|(_, hearing)| hearing.path == path) {
                let (place, hearing) = self.hearings.remove(at);
                remove(&path);
                self.ended.push((place, hearing.end(false)));
            }
        }
        Ok(())
    }

    /// Instructions of all images so far, and how many images there were.
    pub fn so_far(&self) -> (u64, usize) {
        let ended = self.ended.iter().map(|(_, image)| image.instructions());
        let heard = self.hearings.iter().map(|(_, hearing)| hearing.instructions());
        (ended.chain(heard).fold(0, u64::saturating_add), self.noticed)
    }

    /// Why a sink wants to hear no more, if one does.
    pub fn full(&self) -> Option<String> {
        self.hearings.iter().find_map(|(_, hearing)| hearing.full())
    }

    /// Hears no more of anybody.
    pub fn stop(&mut self, why: &str) {
        self.stopped = Some(why.into());
        for (_, hearing) in &mut self.hearings {
            hearing.stop(why);
        }
    }

    /// Every image, when the program is over: what is left in the rings is heard.
    ///
    /// # Errors
    /// The folder of the rings cannot be read.
    pub fn finish(mut self) -> io::Result<(Vec<TracedImage<S>>, Vec<String>)> {
        self.look()?;
        for (place, hearing) in std::mem::take(&mut self.hearings) {
            let lives = hearing.started.is_some() && self.life.started(hearing.image.pid) == hearing.started;
            let image = match lives {
                true => hearing.leave("heaptoll could not end the process, which runs on"),
                false => hearing.end(false),
            };
            self.ended.push((place, image));
        }
        self.ended.sort_by_key(|(place, _)| *place);
        Ok((self.ended.into_iter().map(|(_, image)| image).collect(), self.unread))
    }
}

/// A ring that is over gives its memory back.
fn remove(path: &Path) {
    // The folder goes in the end, whatever is in it.
    let _ = std::fs::remove_file(path);
}

#[cfg(test)]
mod tests;
