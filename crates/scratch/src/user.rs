//! The user that runs heaptoll, and a secret that only this user's runs can read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// The file that holds the secret.
const FILE: &str = "scratch-name";

/// This process's effective user.
pub fn number() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The secret in `folder`, of `length` letters and digits; made at the first call.
///
/// # Errors
/// The system's: it can be neither read nor made. `InvalidData`: the file is not this user's alone.
pub fn secret(folder: &Path, length: usize) -> io::Result<String> {
    let path = folder.join(FILE);
    match read(&path, length) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        known => return known,
    }
    fs::create_dir_all(folder)?;
    // Its random name is the secret: what makes names for temporary files is as good a source as any.
    let made = tempfile::Builder::new().prefix("").rand_bytes(length).tempfile_in(folder)?;
    let secret = made.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    fs::write(made.path(), &secret)?;
    match made.persist_noclobber(&path) {
        Ok(_) => Ok(secret),
        // Another run was first.
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => read(&path, length),
        Err(error) => Err(error.error),
    }
}

fn read(path: &Path, length: usize) -> io::Result<String> {
    let how = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
    let file: File = OpenOptions::new().read(true).custom_flags(how).open(path)?;
    let about = file.metadata()?;
    let mut text = String::new();
    file.take(length as u64 + 1).read_to_string(&mut text)?;
    let is_private = about.is_file() && about.uid() == number() && about.mode() & 0o077 == 0;
    let is_whole = text.len() == length && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_private && is_whole { Ok(text) } else { Err(io::ErrorKind::InvalidData.into()) }
}
