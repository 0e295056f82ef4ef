//! Whether runs open what differs between two trees: where they do not, both builds are the same to them.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSegment};
use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use rustix::io::Errno;

/// The note of a linker's build ID before its 20 bytes.
const BUILD_ID: [u8; 16] = [4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, b'G', b'N', b'U', 0];
const BUILD_ID_BYTES: usize = 20;

/// What differs between two trees: files, and folders with other names in them.
pub struct Differing {
    paths: Vec<PathBuf>,
}

impl Differing {
    /// Compares two trees whose paths are equally long. That a file has its tree's path in it, and the build ID that is
    /// made of that, is no difference.
    ///
    /// # Errors
    /// A file cannot be read, or what differs is a link.
    pub fn between(base: &Path, new: &Path) -> io::Result<Differing> {
        let mut found = Differing { paths: Vec::new() };
        found.compare([base, new], Path::new(""))?;
        Ok(found)
    }

    fn compare(&mut self, trees: [&Path; 2], folder: &Path) -> io::Result<()> {
        let [of_base, of_new] = [names(&trees[0].join(folder))?, names(&trees[1].join(folder))?];
        if of_base != of_new {
            self.paths.extend(trees.map(|tree| tree.join(folder)).into_iter().filter(|path| path.is_dir()));
        }
        for name in of_base.union(&of_new) {
            let path = folder.join(name);
            let both = trees.map(|tree| tree.join(&path));
            let files = both.each_ref().map(|path| path.symlink_metadata().ok());
            if let [Some(base), Some(new)] = &files
                && !base.is_dir()
                && !new.is_dir()
                && are_alike(trees, &both, base, new)?
            {
                continue;
            }
            for (path, file) in both.into_iter().zip(&files) {
                match file {
                    // What is opened through a link is not seen.
                    Some(file) if file.is_symlink() => return Err(io::ErrorKind::Unsupported.into()),
                    Some(file) if !file.is_dir() => self.paths.push(path),
                    _ => {}
                }
            }
            if files.iter().flatten().any(fs::Metadata::is_dir) {
                self.compare(trees, &path)?;
            }
        }
        Ok(())
    }

    /// Begins to watch what differs.
    ///
    /// # Errors
    /// The system's: no more files may be watched.
    pub fn watch(&self) -> io::Result<Watch> {
        let notices = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        for path in &self.paths {
            // A folder is opened by who starts a program in it, and read by a program that looks for names.
            let when = if path.is_dir() { WatchFlags::ACCESS } else { WatchFlags::OPEN };
            inotify::add_watch(&notices, path, when)?;
        }
        Ok(Watch { notices, is_opened: false })
    }
}

/// Watches what differs.
pub struct Watch {
    notices: OwnedFd,
    is_opened: bool,
}

impl Watch {
    /// Whether nothing of it was opened until now, and all is known of it.
    pub fn is_unopened(&mut self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = Reader::new(&self.notices, &mut buffer);
        loop {
            match events.next() {
                // With a name it is a file of a watched folder, which is watched itself where it differs.
                Ok(event) => self.is_opened |= event.file_name().is_none(),
                Err(Errno::INTR) => {}
                Err(error) => {
                    self.is_opened |= error != Errno::AGAIN;
                    return !self.is_opened;
                }
            }
        }
    }
}

/// The names in a folder; none where there is no such folder.
fn names(folder: &Path) -> io::Result<BTreeSet<OsString>> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| Ok(entry?.file_name())).collect(),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(BTreeSet::new())
        }
        Err(error) => Err(error),
    }
}

/// Whether two files that are no folders are the same to a program.
fn are_alike(
    trees: [&Path; 2],
    paths: &[PathBuf; 2],
    base: &fs::Metadata,
    new: &fs::Metadata,
) -> io::Result<bool> {
    if base.mode() != new.mode() || base.len() != new.len() {
        return Ok(false);
    }
    if base.is_symlink() {
        let [base, new] = [fs::read_link(&paths[0])?, fs::read_link(&paths[1])?];
        return Ok(in_tree(base.into_os_string().into_vec(), trees) == new.as_os_str().as_bytes());
    }
    if !base.is_file() {
        return Ok(true);
    }
    let [base, new] = [fs::read(&paths[0])?, fs::read(&paths[1])?];
    let [base, new] = [without_id(in_tree(base, trees)), without_id(new)];
    Ok(base == new || loaded(&base).is_some_and(|base| Some(base) == loaded(&new)))
}

/// What is loaded of a program: linkers order the names of debug information by hashes of the path.
fn loaded(file: &[u8]) -> Option<Vec<&[u8]>> {
    let file = object::File::parse(file).ok()?;
    let found: Option<Vec<&[u8]>> = file.segments().map(|segment| segment.data().ok()).collect();
    found.filter(|segments| !segments.is_empty())
}

/// What a file of the first tree would hold in the second.
fn in_tree(mut bytes: Vec<u8>, trees: [&Path; 2]) -> Vec<u8> {
    let [first, second] = trees.map(|tree| tree.as_os_str().as_bytes());
    for at in places(&bytes, first) {
        bytes[at..at + first.len()].copy_from_slice(second);
    }
    bytes
}

fn without_id(mut bytes: Vec<u8>) -> Vec<u8> {
    for at in places(&bytes, &BUILD_ID) {
        bytes.iter_mut().skip(at + BUILD_ID.len()).take(BUILD_ID_BYTES).for_each(|byte| *byte = 0);
    }
    bytes
}

fn places(bytes: &[u8], part: &[u8]) -> Vec<usize> {
    let found = bytes.windows(part.len()).enumerate();
    found.filter(|(_, window)| *window == part).map(|(at, _)| at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_but_for_the_trees_own_path_is_watched_until_it_is_opened() {
        let scratch = tempfile::tempdir().expect("a folder");
        let trees = ["old", "new"].map(|name| scratch.path().join(name));
        for tree in &trees {
            let mut program = tree.as_os_str().as_bytes().to_vec();
            program.extend(BUILD_ID);
            program.extend([tree.as_os_str().as_bytes()[tree.as_os_str().len() - 1]; BUILD_ID_BYTES]);
            program.extend(b"the same");
            fs::create_dir_all(tree.join("doc")).expect("a folder");
            fs::write(tree.join("program"), program).expect("writes");
            fs::write(tree.join("doc/table"), "1").expect("writes");
            std::os::unix::fs::symlink(tree.join("program"), tree.join("link")).expect("a link");
        }
        let between = || Differing::between(&trees[0], &trees[1]).expect("is read");
        assert!(between().paths.is_empty(), "{:?}", between().paths);
        fs::write(trees[1].join("doc/table"), "2").expect("writes");
        fs::write(trees[1].join("doc/more"), "").expect("writes");
        let mut watch = between().watch().expect("is watched");
        for tree in &trees {
            fs::read(tree.join("link")).expect("is read");
        }
        assert!(watch.is_unopened());
        fs::read(trees[0].join("doc/table")).expect("is read");
        assert!(!watch.is_unopened() && !watch.is_unopened(), "it stays known");
        let mut watch = between().watch().expect("is watched");
        fs::read_dir(trees[1].join("doc")).expect("is read").for_each(drop);
        assert!(!watch.is_unopened(), "other names in a folder");
        fs::create_dir(trees[1].join("new")).expect("a folder");
        fs::write(trees[1].join("new/file"), "").expect("writes");
        let mut watch = between().watch().expect("is watched");
        fs::read(trees[1].join("new/file")).expect("is read");
        assert!(!watch.is_unopened(), "a file in a folder of one tree");
        std::os::unix::fs::symlink("doc", trees[0].join("other")).expect("a link");
        assert!(Differing::between(&trees[0], &trees[1]).is_err(), "a link of one tree");
    }
}
