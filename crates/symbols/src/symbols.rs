//! Call stacks and their names.
//!
//! The layer numbers the stacks of its process and records each once, as return addresses; before the first stack that
//! leads through an object it records where that object lies and which file it is of, as the definition of site 0. That
//! comes from the process itself because a process may have unloaded an object, or ended, before `/proc` is read. Names
//! are looked up when the recording ends, in the files on disk, an object at a time.

mod binary;
mod file;
mod split;

use std::collections::HashMap;
use std::io::ErrorKind::NotFound;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use heaptoll_callsites::{CHANGED, NOT_HERE};
use heaptoll_trace::{Frame, Site, Sites, SitesSoFar};

use binary::SourceLocation;

/// What follows the frames of a stack that has more: `heaptoll_stacks::DEEPER` of the layer.
const DEEPER: u64 = 1;
/// What follows the frames of a stack whose walk could not go on: `heaptoll_stacks::LOST`.
const LOST: u64 = 2;
/// What follows the frames of a stack whose recursion was folded: `heaptoll_stacks::REPEATED`.
const REPEATED: u64 = 3;
/// The end of a path whose file is gone, as the kernel writes it.
const DELETED: &str = " (deleted)";
/// Words of an object before its path: start, end, difference, length of the path.
const OBJECT_WORDS: usize = 4;
/// Bytes of a path in a word.
const PATH_BYTES: usize = 7;

/// The functions at a return address of a file that was loaded then, innermost first: more than one where functions were
/// inlined. `bytes` is [`memory_bytes`] of the file.
pub fn functions_at(path: &Path, bytes: u64, address: u64, loaded: SystemTime) -> Vec<String> {
    let locations = binary::load(path, bytes, loaded).locations(address.wrapping_sub(1));
    locations.into_iter().map(|location| location.function).collect()
}

/// How much memory a file takes up, as it is on this machine; 0 where it is not there, or not ELF.
pub fn memory_bytes(path: &Path) -> u64 {
    binary::extent(path).map_or(0, |(_, bytes)| bytes)
}

/// The call stacks of one process.
#[derive(Debug)]
pub struct Symbols {
    /// Where paths without a leading slash begin.
    directory: PathBuf,
    objects: Vec<Object>,
    /// Sites by number, as indices of `codes`.
    sites: Vec<Vec<u32>>,
    codes: Vec<Code>,
    numbers: HashMap<Code, u32>,
    taken: Taken,
}

/// What [`Symbols::so_far`] has returned: the numbers of the first site and code that it has not, and of the objects
/// that codes were searched in.
#[derive(Debug, Default)]
struct Taken {
    sites: usize,
    codes: usize,
    objects: usize,
}

/// A file's code in memory.
#[derive(Debug)]
struct Object {
    path: PathBuf,
    start: u64,
    end: u64,
    /// Its addresses in memory less those in the file.
    difference: u64,
    /// When it was recorded.
    recorded_at: SystemTime,
}

/// Where a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Code {
    /// At an address of an object, in its file's address space.
    InObject { object: u32, address: u64 },
    /// At an address in memory that is in no recorded object.
    NoObject(u64),
    /// What the recorded stack lacks of the call stack: [`DEEPER`], [`LOST`] or [`REPEATED`].
    Cut(u64),
}

impl Symbols {
    /// For process `pid`, which lives or has just ended.
    pub fn new(pid: i32) -> Symbols {
        Symbols::in_folder(std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default())
    }

    /// For a process of which only a recording is left, made by another tool.
    pub fn elsewhere() -> Symbols {
        Symbols::in_folder(PathBuf::new())
    }

    /// For a process whose objects without a whole path lie in this folder.
    pub fn in_folder(directory: PathBuf) -> Symbols {
        Symbols {
            directory,
            objects: Vec::new(),
            sites: Vec::new(),
            codes: Vec::new(),
            numbers: HashMap::new(),
            taken: Taken::default(),
        }
    }

    /// A file whose code lay at these addresses, `difference` above those in the file. Names are taken from it when it was
    /// not changed after `recorded_at`, and takes up as much memory.
    pub fn object(&mut self, path: PathBuf, addresses: Range<u64>, difference: u64, recorded_at: SystemTime) {
        let Range { start, end } = addresses;
        if start < end {
            self.objects.push(Object { path, start, end, difference, recorded_at });
        }
    }

    /// A file that a process listed among its mappings, from its first byte on (`/proc/PID/maps`). The list has no memory
    /// that begins as zeroes, so how much it takes up is what the file on this machine states.
    pub fn mapped(&mut self, path: PathBuf, addresses: Range<u64>, recorded_at: SystemTime) {
        let listed = addresses.end.saturating_sub(addresses.start);
        let (first, bytes) = binary::extent(&path).unwrap_or((0, listed));
        let end = addresses.start.saturating_add(bytes.max(listed));
        self.object(path, addresses.start..end, addresses.start.wrapping_sub(first), recorded_at);
    }

    /// A definition by the layer: a stack's return addresses, innermost first, or, as site 0, an object.
    pub fn define(&mut self, site: u32, words: &[u64]) {
        if site == 0 {
            self.define_object(words, SystemTime::now());
            return;
        }
        let codes = words.iter().map(|&word| self.code_index(word)).collect();
        let index = site as usize;
        // A site's number has 24 bits in the layer; a larger one is not a site's.
        if index < 1 << 24 {
            if self.sites.len() <= index {
                self.sites.resize_with(index + 1, Vec::new);
            }
            self.sites[index] = codes;
            self.taken.sites = self.taken.sites.min(index);
        }
    }

    /// A definition of an object that was recorded then.
    pub fn define_object(&mut self, words: &[u64], recorded_at: SystemTime) {
        self.objects.extend(Object::new(words, &self.directory, recorded_at));
    }

    fn code_index(&mut self, word: u64) -> u32 {
        let code = match word {
            DEEPER | LOST | REPEATED => Code::Cut(word),
            _ => self.code(word),
        };
        *self.numbers.entry(code).or_insert_with(|| {
            self.codes.push(code);
            self.codes.len() as u32 - 1
        })
    }

    /// The newest object that an address lay in.
    fn code(&self, address: u64) -> Code {
        // The byte before a return address is the call's. After it another function can begin, or another object.
        let call = address.wrapping_sub(1);
        let object = self.objects.iter().rposition(|object| (object.start..object.end).contains(&call));
        match object {
            Some(at) => Code::InObject {
                object: at as u32,
                address: address.wrapping_sub(self.objects[at].difference),
            },
            None => Code::NoObject(address),
        }
    }

    /// Searches addresses that were in no object once more: another thread may have recorded the object, and its ring may
    /// have been read later.
    fn search_again(&mut self) {
        if self.taken.objects == self.objects.len() {
            return;
        }
        self.taken.objects = self.objects.len();
        for at in 0..self.codes.len() {
            if let Code::NoObject(address) = self.codes[at]
                && let found @ Code::InObject { .. } = self.code(address)
            {
                self.codes[at] = found;
                self.taken.codes = self.taken.codes.min(at);
            }
        }
    }

    /// The stacks that were defined since the last call, as addresses without names; none when there are none.
    pub fn so_far(&mut self) -> Option<SitesSoFar> {
        if self.taken.sites == self.sites.len() {
            return None;
        }
        self.search_again();
        let (first_site, first_frame) = (self.taken.sites, self.taken.codes);
        let frames = self.codes[first_frame..].iter().map(|code| self.unnamed(*code)).collect();
        let site = |codes: &Vec<u32>| Site { frames: self.whole(codes).to_vec() };
        let sites = self.sites[first_site..].iter().map(site).collect();
        self.taken.sites = self.sites.len();
        self.taken.codes = self.codes.len();
        Some(SitesSoFar { first_site, first_frame, sites: Sites { sites, frames } })
    }

    fn unnamed(&self, code: Code) -> Frame {
        match code {
            Code::InObject { object, address: offset } => {
                let object = self.objects[object as usize].path.to_string_lossy().into_owned();
                Frame { object, offset, ..Frame::default() }
            }
            Code::NoObject(offset) => Frame { offset, ..Frame::default() },
            Code::Cut(why) => {
                let function = match why {
                    DEEPER => "[deeper frames]",
                    LOST => "[unknown callers]",
                    _ => "[repeated callers]",
                };
                Frame { function: function.to_owned(), ..Frame::default() }
            }
        }
    }

    /// All of them, with names.
    pub fn finish(mut self) -> Sites {
        self.search_again();
        let mut frames = Frames::default();
        let mut named: Vec<Vec<u32>> = vec![Vec::new(); self.codes.len()];
        for (number, object) in self.objects.iter().enumerate() {
            let mut binary = None;
            for (names, code) in named.iter_mut().zip(&self.codes) {
                match *code {
                    Code::InObject { object: of, address } if of as usize == number => {
                        let (binary, shown) = binary.get_or_insert_with(|| {
                            let bytes = object.end - object.start;
                            (binary::load(&object.path, bytes, object.recorded_at), object.shown())
                        });
                        *names = frames.of(shown, address, binary.locations(address.wrapping_sub(1)));
                    }
                    _ => {}
                }
            }
        }
        for (names, code) in named.iter_mut().zip(&self.codes) {
            match *code {
                Code::InObject { .. } => {}
                Code::NoObject(_) | Code::Cut(_) => names.push(frames.number(self.unnamed(*code))),
            }
        }
        let site = |codes: &Vec<u32>| Site {
            frames: self.whole(codes).iter().flat_map(|&code| named[code as usize].iter().copied()).collect(),
        };
        let mut sites: Vec<Site> = self.sites.iter().map(site).collect();
        if sites.is_empty() {
            sites.push(Site::default());
        }
        Sites { sites, frames: frames.frames }
    }

    /// A stack without the mark that its walk was lost, where that was its end: what the dynamic linker does before the
    /// program begins, constructors of libraries included, is called by code of its own that has no table.
    fn whole<'a>(&self, codes: &'a [u32]) -> &'a [u32] {
        let is = |code: &u32, mark| self.codes[*code as usize] == Code::Cut(mark);
        if let [rest @ .., mark] = codes
            && is(mark, LOST)
            && let Some(last) = rest.iter().rfind(|code| !is(code, REPEATED))
            && let Code::InObject { object, .. } = self.codes[*last as usize]
            && let Some(name) = self.objects[object as usize].path.file_name()
            && name.as_encoded_bytes().starts_with(b"ld-linux")
        {
            return rest;
        }
        codes
    }
}

impl Object {
    fn new(words: &[u64], directory: &Path, recorded_at: SystemTime) -> Option<Object> {
        let (head, path) = words.split_at_checked(OBJECT_WORDS)?;
        let bytes = path.iter().flat_map(|word| word.to_le_bytes().into_iter().take(PATH_BYTES));
        let path: Vec<u8> = bytes.take(usize::try_from(head[3]).ok()?).collect();
        let path = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(&path);
        (head[0] < head[1]).then(|| Object {
            path: directory.join(path),
            start: head[0],
            end: head[1],
            difference: head[2],
            recorded_at,
        })
    }

    /// Its path, with the reason why the file has no names where it is not the one that was loaded.
    fn shown(&self) -> String {
        let path = self.path.to_string_lossy();
        let why = match std::fs::metadata(&self.path) {
            Ok(about) if file::is_newer(&about, self.recorded_at) => CHANGED,
            Err(error) if error.kind() == NotFound && self.path.is_absolute() && !path.ends_with(DELETED) => {
                NOT_HERE
            }
            _ => "",
        };
        format!("{path}{why}")
    }
}

/// Frames, each once.
#[derive(Default)]
struct Frames {
    frames: Vec<Frame>,
    numbers: HashMap<Frame, u32>,
}

impl Frames {
    fn number(&mut self, frame: Frame) -> u32 {
        let frames = &mut self.frames;
        *self.numbers.entry(frame).or_insert_with_key(|frame| {
            frames.push(frame.clone());
            frames.len() as u32 - 1
        })
    }

    /// The frames of one address in an object: more than one when functions were inlined there.
    fn of(&mut self, object: &str, offset: u64, locations: Vec<SourceLocation>) -> Vec<u32> {
        let frame =
            |SourceLocation { function, line }| Frame { object: object.to_owned(), offset, function, line };
        locations.into_iter().map(|location| self.number(frame(location))).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// An object as the layer records it.
    fn object(start: u64, end: u64, difference: u64, path: &str) -> Vec<u64> {
        let mut words = vec![start, end, difference, path.len() as u64];
        words.extend(
            path.as_bytes()
                .chunks(PATH_BYTES)
                .map(|part| part.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))),
        );
        words
    }

    fn frames(sites: &Sites, site: usize) -> Vec<(String, u64, String)> {
        let frames = sites.sites[site].frames.iter().map(|&frame| &sites.frames[frame as usize]);
        frames.map(|frame| (frame.object.clone(), frame.offset, frame.function.clone())).collect()
    }

    #[test]
    fn an_address_is_of_the_object_that_lay_there_last() {
        let mut symbols = Symbols::new(std::process::id() as i32);
        symbols.define(0, &object(0x1000, 0x3000, 0x1000, "/nowhere/first.so"));
        symbols.define(1, &[0x1500, 0x9000, DEEPER]);
        symbols.define(0, &object(0x1000, 0x2000, 0x0800, "second.so"));
        symbols.define(3, &[0x1500, 0x2001, LOST]);
        let sites = symbols.finish();
        assert_eq!(sites.sites.len(), 4);
        let second = std::env::current_dir().unwrap().join("second.so").to_str().unwrap().to_owned();
        let first = "/nowhere/first.so".to_owned();
        let none = String::new;
        let cut = |what: &str| (none(), 0, what.to_owned());
        let gone = |path: &str| format!("{path} (not here)");
        let known = (gone(&first), 0x500, none());
        assert_eq!(frames(&sites, 1), [known, (none(), 0x9000, none()), cut("[deeper frames]")]);
        // 0x2001 is the return address of a call at 0x2000, where the second object has ended.
        let newest = (gone(&second), 0xd00, none());
        assert_eq!(frames(&sites, 3), [newest, (gone(&first), 0x1001, none()), cut("[unknown callers]")]);
        assert!(sites.sites[0].frames.is_empty() && sites.sites[2].frames.is_empty());
    }

    #[test]
    fn the_dynamic_linkers_first_function_is_an_end() {
        let mut symbols = Symbols::new(0);
        symbols.define(0, &object(0x1000, 0x3000, 0x1000, "/nowhere/ld-linux-x86-64.so.2"));
        symbols.define(0, &object(0x5000, 0x6000, 0x5000, "/nowhere/other.so"));
        symbols.define(1, &[0x5500, 0x1500, LOST]);
        symbols.define(2, &[0x1500, 0x5500, LOST]);
        symbols.define(3, &[0x1500, DEEPER]);
        symbols.define(4, &[0x5500, 0x1500, REPEATED, LOST]);
        let sites = symbols.finish();
        assert_eq!([1, 2, 3, 4].map(|site| frames(&sites, site).len()), [2, 3, 2, 3]);
        assert_eq!(frames(&sites, 4)[2].2, "[repeated callers]");
    }

    #[test]
    fn an_object_recorded_late_is_still_found() {
        let mut symbols = Symbols::new(std::process::id() as i32);
        symbols.define(1, &[0x1500]);
        symbols.define(0, &object(0x1000, 0x3000, 0x1000, "/nowhere/late.so"));
        assert_eq!(
            frames(&symbols.finish(), 1),
            [("/nowhere/late.so (not here)".to_owned(), 0x500, String::new())]
        );
    }

    /// Before, nothing told such a file from one without symbols.
    #[test]
    fn a_file_that_is_not_the_one_that_was_loaded_shows_why_it_has_no_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("changed.so").to_str().expect("UTF-8").to_owned();
        std::fs::write(&path, "other").expect("written");
        let mut symbols = Symbols::elsewhere();
        let words = |start, path: &str| object(start, start + 0x1000, start, path);
        symbols.define_object(&words(0x1000, &path), SystemTime::UNIX_EPOCH);
        symbols.define_object(&words(0x2000, &path), SystemTime::now() + Duration::from_secs(9));
        symbols.define_object(&words(0x3000, "/nowhere/gone.so"), SystemTime::now());
        symbols.define_object(&words(0x4000, "/memfd:code (deleted)"), SystemTime::now());
        symbols.define_object(&words(0x5000, "linux-vdso.so.1"), SystemTime::now());
        symbols.define(1, &[0x1500, 0x2500, 0x3500, 0x4500, 0x5500]);
        let shown: Vec<String> =
            frames(&symbols.finish(), 1).into_iter().map(|(object, ..)| object).collect();
        let changed = format!("{path} (changed)");
        assert_eq!(
            shown,
            [&changed, &path, "/nowhere/gone.so (not here)", "/memfd:code (deleted)", "linux-vdso.so.1"]
        );
    }

    #[test]
    fn stacks_so_far_continue_each_other_and_come_again_when_their_object_is_known() {
        let mut symbols = Symbols::new(-1);
        assert_eq!(symbols.so_far(), None);
        symbols.define(0, &object(0x1000, 0x3000, 0x1000, "/nowhere/first.so"));
        symbols.define(1, &[0x1500, 0x9000]);
        let first = symbols.so_far().expect("stacks");
        assert_eq!((first.first_site, first.first_frame), (0, 0));
        assert_eq!(frames(&first.sites, 1)[0], ("/nowhere/first.so".to_owned(), 0x500, String::new()));
        assert_eq!(symbols.so_far(), None);
        // Other threads' rings: an earlier number, and the object of an address that is written already.
        symbols.define(3, &[0x1500]);
        symbols.define(2, &[0x1600]);
        symbols.define(0, &object(0x9000, 0xa000, 0x9000, "/nowhere/late.so"));
        symbols.define(4, &[0x8fff]);
        let more = symbols.so_far().expect("stacks");
        assert_eq!((more.first_site, more.sites.sites.len()), (2, 3));
        assert_eq!((more.first_frame, more.sites.frames.len()), (2, 2));
        symbols.define(2, &[0x9001]);
        symbols.define(0, &object(0x8000, 0x9000, 0x8000, "/nowhere/later.so"));
        let again = symbols.so_far().expect("stacks");
        assert_eq!((again.first_site, again.first_frame), (2, 1), "address 0x9000 lies in later.so");
    }

    #[test]
    fn words_that_no_layer_records_do_no_harm() {
        let mut symbols = Symbols::new(-1);
        for words in [&[][..], &[1], &[5, 4, 0, 0], &[0, 9, 0, u64::MAX], &[0, 9, 0, 3, u64::MAX]] {
            symbols.define(0, words);
        }
        symbols.define(u32::MAX, &[1, 2, 3]);
        symbols.define(2, &[0, u64::MAX]);
        let sites = symbols.finish();
        assert_eq!(sites.sites.len(), 3);
        assert_eq!(sites.sites[2].frames.len(), 2);
    }

    #[test]
    fn this_program_is_found_by_its_own_mappings() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let path = std::env::current_exe().unwrap();
        let own: Vec<Range<u64>> = maps
            .lines()
            .filter(|line| line.ends_with(path.to_str().unwrap()))
            .map(|line| {
                let (start, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
                u64::from_str_radix(start, 16).unwrap()..u64::from_str_radix(end, 16).unwrap()
            })
            .collect();
        let mut symbols = Symbols::elsewhere();
        symbols.mapped(path, own[0].start..own[own.len() - 1].end, SystemTime::now());
        symbols.mapped("/nowhere/x.so".into(), 0x1000..0x2000, SystemTime::now());
        let address = this_program_is_found_by_its_own_mappings as fn() as usize as u64;
        symbols.define(1, &[address + 1]);
        symbols.define(2, &[0x1800]);
        let sites = symbols.finish();
        let found = frames(&sites, 1);
        assert!(found.iter().any(|frame| frame.2.contains("this_program_is_found")), "{found:?}");
        assert_eq!(frames(&sites, 2), [("/nowhere/x.so (not here)".to_owned(), 0x800, String::new())]);
    }

    #[test]
    fn no_definition_gives_the_empty_site_alone() {
        assert_eq!(Symbols::new(0).finish().sites, [Site::default()]);
    }
}
