//! The names in an ELF file: its symbol tables, and the debug information which names the functions that were inlined
//! and which line of which file the code was. Both also from the file of debug information that a distribution keeps
//! apart under `/usr/lib/debug`, when it is installed.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::SystemTime;

use addr2line::Context;
use heaptoll_callsites::without_variant;
use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};

use super::file::{Bytes, is_newer, read, section};
use super::split::SplitDwarf;
use crate::demangled::demangled;

/// Where distributions keep debug information (GDB manual, "Debugging Information in Separate Files").
const DEBUG: &str = "/usr/lib/debug";

/// A page: addresses of objects are rounded to it.
const PAGE: u64 = 4096;

/// A function, and a line of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceLocation {
    /// Demangled; empty when unknown.
    pub function: String,
    /// `file:line`; empty when unknown.
    pub line: String,
}

/// What a file and its debug information contain about its code.
#[derive(Default)]
pub struct Binary {
    /// By first address.
    symbols: Vec<Symbol>,
    lines: Option<(Context<Bytes>, SplitDwarf)>,
}

struct Symbol {
    start: u64,
    end: u64,
    name: String,
}

/// What distinguishes a file from another and from itself before it was changed.
type Identity = (PathBuf, u64, u64, u64, i64, i64);

/// Binaries that a thread keeps: processes of one recording are mostly of the same files.
const KEPT: usize = 64;

thread_local! {
    /// The last used ones, the latest at the end.
    static CACHE: RefCell<Vec<(Identity, Rc<Binary>)>> = const { RefCell::new(Vec::new()) };
}

/// As [`Binary::load`], from the cache when this thread has loaded the file before; a binary without names when there
/// is none.
pub fn load(path: &Path, bytes: u64, loaded: SystemTime) -> Rc<Binary> {
    let Some(identity) = identity(path, bytes, loaded) else { return Rc::default() };
    CACHE.with_borrow_mut(|cache| {
        let known = cache.iter().position(|(kept, _)| *kept == identity);
        let entry = match known {
            Some(at) => cache.remove(at),
            None => (identity, Rc::new(Binary::load(path, bytes, loaded).unwrap_or_default())),
        };
        let binary = entry.1.clone();
        cache.push(entry);
        if cache.len() > KEPT {
            cache.remove(0);
        }
        binary
    })
}

/// The identity of a regular file; `None` for another kind, or when it was changed or put there after `loaded`.
fn identity(path: &Path, bytes: u64, loaded: SystemTime) -> Option<Identity> {
    let about = fs::metadata(path).ok()?;
    let whole = about.is_file() && !is_newer(&about, loaded);
    whole.then(|| (path.to_owned(), bytes, about.dev(), about.ino(), about.ctime(), about.ctime_nsec()))
}

impl Binary {
    /// The names in the file at `path`; `None` when it is not there, is not ELF, or is not the file that a process had
    /// loaded at `loaded`, taking up `bytes` of memory.
    fn load(path: &Path, bytes: u64, loaded: SystemTime) -> Option<Binary> {
        let data = read(path, Some(loaded))?;
        let file = object::File::parse(&*data).ok()?;
        let span = |(start, end): (u64, u64)| end.saturating_sub(start).checked_next_multiple_of(PAGE);
        let whole = whole(&file)?;
        // The loader lists the segments of an object with holes separately.
        let mut spans = std::iter::once(whole).chain(file.segments().map(ends)).filter_map(span);
        if !spans.any(|span| Some(span) == bytes.checked_next_multiple_of(PAGE)) {
            return None;
        }
        let apart = apart(&file, path);
        let apart = apart.as_ref().and_then(|(path, data)| Some((path, object::File::parse(&**data).ok()?)));
        let symbols = symbols([Some(&file), apart.as_ref().map(|(_, apart)| apart)].into_iter().flatten());
        let lines = match &apart {
            _ if file.section_by_name(".debug_info").is_some() => lines(&file, path),
            Some((path, apart)) => lines(apart, path),
            None => None,
        };
        Some(Binary { symbols, lines })
    }

    /// The functions at an address, innermost first: one, unless others were inlined there.
    pub fn locations(&self, address: u64) -> Vec<SourceLocation> {
        let mut locations =
            self.lines.as_ref().map_or_else(Vec::new, |(lines, split)| inlined(lines, split, address));
        if let [only] = &mut locations[..]
            && only.function.is_empty()
        {
            // The line may be of a function that was inlined, and the symbol its caller's.
            only.line.clear();
        }
        if locations.is_empty() {
            locations.push(SourceLocation::default());
        }
        if let Some(outer) = locations.last_mut()
            && outer.function.is_empty()
        {
            outer.function = self.symbol(address).unwrap_or_default();
        }
        locations
    }

    fn symbol(&self, address: u64) -> Option<String> {
        let after = self.symbols.partition_point(|symbol| symbol.start <= address);
        // Symbols can lie within others; the nearest one that reaches this far.
        let symbol = self.symbols[..after].iter().rev().take(16).find(|symbol| address < symbol.end)?;
        Some(demangled(without_variant(&symbol.name)))
    }
}

/// The functions that debug information knows at an address.
fn inlined(lines: &Context<Bytes>, split: &SplitDwarf, address: u64) -> Vec<SourceLocation> {
    let mut locations = Vec::new();
    let Some(Ok(mut frames)) = split.finish(lines.find_frames(address)) else { return locations };
    while let Ok(Some(frame)) = frames.next() {
        let function = frame.function.as_ref().and_then(|function| function.demangle().ok());
        let line = frame.location.and_then(|location| match (location.file, location.line) {
            (Some(file), Some(line)) => Some(format!("{file}:{line}")),
            (Some(file), None) => Some(file.to_owned()),
            _ => None,
        });
        let function = function.map(Cow::into_owned).unwrap_or_default();
        locations.push(SourceLocation { function, line: line.unwrap_or_default() });
    }
    locations
}

/// Where a segment begins, at a page, and ends.
fn ends(segment: object::Segment) -> (u64, u64) {
    (segment.address() & !(PAGE - 1), segment.address().saturating_add(segment.size()))
}

/// Where the first segment of a file begins, and the last one ends.
fn whole(file: &object::File) -> Option<(u64, u64)> {
    file.segments().map(ends).reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))
}

/// The address of a file's first segment in the file, and how much memory the file takes up, bytes; none where it is not
/// there, or not ELF.
pub fn extent(path: &Path) -> Option<(u64, u64)> {
    let data = read(path, None)?;
    let (start, end) = whole(&object::File::parse(&*data).ok()?)?;
    Some((start, end.saturating_sub(start).checked_next_multiple_of(PAGE)?))
}

/// Functions of symbol tables, sorted.
fn symbols<'a>(files: impl Iterator<Item = &'a object::File<'a>>) -> Vec<Symbol> {
    let mut symbols = Vec::new();
    for file in files {
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            let is_code = symbol.kind() == SymbolKind::Text && symbol.is_definition();
            if let (true, Ok(name)) = (is_code, symbol.name())
                && !name.is_empty()
            {
                let (start, size) = (symbol.address(), symbol.size());
                symbols.push(Symbol { start, end: start.saturating_add(size), name: name.to_owned() });
            }
        }
    }
    // Of several names of one function the first in the alphabet, so that it is always the same.
    symbols.sort_by(|a, b| (a.start, a.end, &b.name).cmp(&(b.start, b.end, &a.name)));
    symbols.dedup_by(|b, a| {
        (a.start, a.end) == (b.start, b.end) && {
            a.name.clone_from(&b.name);
            true
        }
    });
    // Assembly without sizes: until the next.
    for at in 0..symbols.len() {
        if symbols[at].end == symbols[at].start
            && let Some(next) = symbols[at..].iter().find(|next| next.start > symbols[at].start)
        {
            symbols[at].end = next.start;
        }
    }
    symbols
}

/// The file with the debug information of another, by its build ID or its link.
fn apart(file: &object::File, path: &Path) -> Option<(PathBuf, Vec<u8>)> {
    let id = file.build_id().ok().flatten();
    let by_id = id.and_then(|id| {
        let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let (folder, name) = hex.split_at_checked(2)?;
        Some(PathBuf::from(format!("{DEBUG}/.build-id/{folder}/{name}.debug")))
    });
    let link = file.gnu_debuglink().ok().flatten();
    let by_link = link.and_then(|(name, _)| {
        let name = std::str::from_utf8(name).ok()?;
        let folder = path.parent()?;
        let under = Path::new(DEBUG).join(folder.strip_prefix("/").unwrap_or(folder));
        Some([folder.join(name), folder.join(".debug").join(name), under.join(name)])
    });
    by_id.into_iter().chain(by_link.into_iter().flatten()).find_map(|candidate| {
        if candidate == path {
            return None;
        }
        let data = read(&candidate, None)?;
        let same = object::File::parse(&*data).ok()?.build_id().ok().flatten() == id;
        same.then_some((candidate, data))
    })
}

/// The debug information of a file, with what it shares with others in a file of its own (`dwz`).
fn lines(file: &object::File, path: &Path) -> Option<(Context<Bytes>, SplitDwarf)> {
    let load = |file: &object::File, id: gimli::SectionId| Ok::<_, gimli::Error>(section(file, id.name()));
    let mut dwarf = gimli::Dwarf::load(|id| load(file, id)).ok()?;
    if let Ok(Some((name, _))) = file.gnu_debugaltlink()
        && let Ok(name) = std::str::from_utf8(name)
        && let Some(data) = path.parent().and_then(|folder| read(&folder.join(name), None))
        && let Ok(shared) = object::File::parse(&*data)
    {
        dwarf.load_sup(|id| load(&shared, id)).ok()?;
    }
    Some((Context::from_dwarf(dwarf).ok()?, SplitDwarf::of(path)))
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::*;

    #[test]
    fn this_program_is_found_in_its_file() {
        let path = std::env::current_exe().unwrap();
        let data = fs::read(&path).unwrap();
        let file = object::File::parse(&*data).unwrap();
        let binary = Binary::load(&path, ends_of(&file), SystemTime::now()).unwrap();
        let symbol = binary.symbols.iter().find(|symbol| symbol.name.contains("6Binary9locations")).unwrap();
        let locations = binary.locations(symbol.start + 1);
        let outer = locations.last().unwrap();
        assert!(outer.function.contains("::locations"), "{locations:?}");
        assert!(outer.line.contains("binary.rs:"), "{locations:?}");
        // One that takes up more memory is another file; and one that is newer.
        assert!(Binary::load(&path, ends_of(&file) + (1 << 20), SystemTime::now()).is_none());
        assert!(Binary::load(&path, ends_of(&file), SystemTime::UNIX_EPOCH).is_none());
        assert_eq!(Binary::default().locations(5), [SourceLocation::default()]);
    }

    fn ends_of(file: &object::File) -> u64 {
        file.segments().map(|segment| segment.address() + segment.size()).max().unwrap()
    }

    #[test]
    fn a_file_is_loaded_once_and_again_when_it_has_changed() {
        let own = std::env::current_exe().unwrap();
        let data = fs::read(&own).unwrap();
        let bytes = ends_of(&object::File::parse(&*data).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        fs::write(&path, &data).unwrap();
        let later = SystemTime::now() + Duration::from_secs(9);
        let first = load(&path, bytes, later);
        assert!(!first.symbols.is_empty() && Rc::ptr_eq(&first, &load(&path, bytes, later)));
        assert!(load(&path, bytes, SystemTime::UNIX_EPOCH).symbols.is_empty(), "it is newer than that");
        fs::write(&path, "#!/bin/sh\n").unwrap();
        assert!(load(&path, bytes, later).symbols.is_empty());
    }

    #[test]
    fn what_is_no_elf_file_has_no_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        fs::write(&path, "#!/bin/sh\n").unwrap();
        for path in [&*path, folder.path(), &*folder.path().join("none"), Path::new("/dev/zero")] {
            assert!(Binary::load(path, 4096, SystemTime::now() + Duration::from_secs(9)).is_none());
        }
    }

    const CODE: &str = "#include <stdlib.h>\n\
        static inline __attribute__((always_inline)) char *inlined(int n) {\n\
        return malloc(n); }\n\
        __attribute__((noinline)) char *outer(int n) {\n\
        return inlined(n + 1) + 1; }\n\
        int main(int n, char **v) { return outer(n) == *v; }\n";

    /// Before, the line of an inlined function was shown as its caller's where `.dwo` files were not read.
    #[test]
    fn a_line_is_shown_with_its_own_function_or_not_at_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("x.c"), CODE).expect("writes");
        let cc = |arguments: &[&str]| {
            let built = Command::new("cc").current_dir(folder.path()).args(["-O2"]).args(arguments).status();
            assert!(built.is_ok_and(|status| status.success()), "{arguments:?}");
        };
        let locations = |program: &str| {
            let program = path(program);
            let data = std::fs::read(&program).expect("reads");
            let file = object::File::parse(&*data).expect("ELF");
            let symbol = object::Object::symbols(&file)
                .find(|symbol| object::ObjectSymbol::name(symbol) == Ok("outer"))
                .map(|symbol| (object::ObjectSymbol::address(&symbol), object::ObjectSymbol::size(&symbol)));
            let (start, size) = symbol.expect("a symbol");
            let (_, bytes) = extent(&program).expect("segments");
            let binary = load(&program, bytes, SystemTime::now() + Duration::from_secs(9));
            (start..start + size).map(|address| binary.locations(address)).collect::<Vec<_>>()
        };
        let has = |all: &[Vec<SourceLocation>]| {
            let is =
                |one: &SourceLocation, function, line| one.function == function && one.line.ends_with(line);
            all.iter().any(|at| matches!(&at[..], [inner, outer] if is(inner, "inlined", "x.c:3") && is(outer, "outer", "x.c:5")))
        };
        let has_none = |all: &[Vec<SourceLocation>]| {
            all.iter().all(|at| matches!(&at[..], [one] if one.function == "outer" && one.line.is_empty()))
        };
        cc(&["-g", "-o", "plain", "x.c"]);
        cc(&["-g", "-gsplit-dwarf", "-c", "x.c"]);
        cc(&["-o", "split", "x.o"]);
        assert!(has(&locations("plain")) && has(&locations("split")));
        if Command::new("dwp")
            .current_dir(folder.path())
            .args(["-e", "split", "-o", "packed.dwp"])
            .status()
            .is_ok_and(|status| status.success())
        {
            std::fs::copy(path("split"), path("packed")).expect("copies");
        }
        // Another compilation's, and none.
        std::fs::write(path("x.c"), CODE.replace("n + 1", "n + 2")).expect("writes");
        cc(&["-g", "-gsplit-dwarf", "-c", "x.c"]);
        std::fs::copy(path("split"), path("stale")).expect("copies");
        assert!(has_none(&locations("stale")));
        std::fs::remove_file(path("x.dwo")).expect("removes");
        std::fs::copy(path("split"), path("alone")).expect("copies");
        assert!(has_none(&locations("alone")));
        assert!(!path("packed").exists() || has(&locations("packed")));
    }
}
