//! Scratch folders: made for one run, gone with it, and removed by the next where it was killed.
//!
//! Every folder that heaptoll makes for a time is made here. Its mode is 0700 whatever the umask, its name cannot be
//! guessed, and it is locked (`flock`) as long as its owner lives: the kernel releases the lock however that process
//! ends. A folder gets its name only when it is locked, so one that has its name and no lock has no owner any more.

mod executable;
mod left;
mod user;

pub use executable::write_executable;

use std::ffi::CString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// What the names of all scratch folders begin with. Long enough that no other program names a folder so.
pub const PREFIX: &str = "heaptoll-scratch-";
/// What they begin with until they are locked.
const UNLOCKED: &str = ".heaptoll-scratch-";
/// Random characters of a name, of 62 sorts.
const RANDOM: usize = 16;

/// A folder that goes, with all that is in it, when this is dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// Locked, not read.
    _lock: Option<File>,
}

impl Scratch {
    /// Makes one in `$TMPDIR`, or `/tmp`.
    ///
    /// # Errors
    /// The system's: no folder can be made there.
    pub fn make() -> io::Result<Scratch> {
        Scratch::make_in(&std::env::temp_dir())
    }

    /// Makes one in `above`, where the first of a process removes what killed runs of this user have left.
    ///
    /// # Errors
    /// As [`Scratch::make`].
    pub fn make_in(above: &Path) -> io::Result<Scratch> {
        left::remove_once(above);
        unlocked(above)?.settle(&[])
    }

    /// Makes one in `above` whose name is, where that is possible, the same in every run: a name is data to a program,
    /// and other data is another run. It is made of a secret that lies in `secret`, so that no other user can guess it,
    /// and a number: as many runs side by side differ in their digits only.
    ///
    /// # Errors
    /// As [`Scratch::make`].
    pub fn make_repeatable(above: &Path, secret: &Path) -> io::Result<Scratch> {
        const SIDE_BY_SIDE: u32 = 100;
        left::remove_once(above);
        let names: Vec<String> = match user::secret(secret, RANDOM - 2) {
            Ok(secret) => (0..SIDE_BY_SIDE).map(|number| format!("{PREFIX}{secret}{number:02}")).collect(),
            // A name that differs is better than no run.
            Err(_) => Vec::new(),
        };
        unlocked(above)?.settle(&names)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the folder the first of `names` that is free, or a random one.
    fn settle(mut self, names: &[String]) -> io::Result<Scratch> {
        let above = self.path.parent().unwrap_or(Path::new("/")).to_path_buf();
        for name in names {
            match rename(&self.path, &above.join(name)) {
                Ok(()) => {
                    self.path = above.join(name);
                    return Ok(self);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(_) => break,
            }
        }
        let old = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let path = above.join(old.trim_start_matches('.'));
        fs::rename(&self.path, &path)?;
        self.path = path;
        Ok(self)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed does no harm.
        remove(&self.path);
    }
}

/// Whether a path lies in a scratch folder, by its name.
pub fn is_inside(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str().as_encoded_bytes().starts_with(PREFIX.as_bytes()))
}

/// Removes a folder with all that is in it. A folder in it that its owner may not write to, as a copied one may be, is
/// made writable first.
pub fn remove(folder: &Path) {
    if fs::remove_dir_all(folder).is_ok() {
        return;
    }
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        let _ = fs::set_permissions(&next, Permissions::from_mode(0o700));
        let entries = fs::read_dir(next).into_iter().flatten().flatten();
        folders.extend(
            entries.filter(|one| one.file_type().is_ok_and(|kind| kind.is_dir())).map(|one| one.path()),
        );
    }
    let _ = fs::remove_dir_all(folder);
}

/// Removes what killed runs of this user have left in `above`, at the first call of this process.
pub fn remove_left(above: &Path) {
    left::remove_once(above);
}

/// A locked folder without its name.
fn unlocked(above: &Path) -> io::Result<Scratch> {
    let mode = Permissions::from_mode(0o700);
    let made = tempfile::Builder::new()
        .prefix(UNLOCKED)
        .rand_bytes(RANDOM)
        .permissions(mode.clone())
        .tempdir_in(above)?;
    // A umask may take bits away from its owner.
    fs::set_permissions(made.path(), mode)?;
    // Where there are no locks the folder is not known to be dead, and is never removed by others.
    let lock = open_folder(made.path()).ok().filter(|file| file.try_lock().is_ok());
    Ok(Scratch { path: made.keep(), _lock: lock })
}

/// Opens a folder, whatever stands there: neither a link is followed nor a FIFO waited for.
fn open_folder(path: &Path) -> io::Result<File> {
    let how = libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
    OpenOptions::new().read(true).custom_flags(how).open(path)
}

/// Renames unless the new name is there.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let [from, to] = [from, to].map(|path| CString::new(path.as_os_str().as_bytes()));
    let (from, to) = (from?, to?);
    let here = libc::AT_FDCWD;
    // SAFETY: `from` and `to` are C strings that live through the call.
    let done = unsafe { libc::renameat2(here, from.as_ptr(), here, to.as_ptr(), libc::RENAME_NOREPLACE) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests;
