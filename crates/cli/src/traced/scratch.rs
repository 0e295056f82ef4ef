//! A folder for what `{tmp}` stands for, of the same name in every run where that is possible: a name is data to the
//! program, and other data is another run.

use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A folder that goes when it is dropped.
pub struct Scratch {
    path: PathBuf,
}

/// As many runs side by side have names that are told apart by a digit only.
const NAMES: u32 = 1000;

impl Scratch {
    /// Makes it.
    ///
    /// # Errors
    /// The temporary folder cannot be written.
    pub fn make() -> Result<Scratch, Failure> {
        let above = std::env::temp_dir();
        for number in 0..NAMES {
            let path = above.join(format!("heaptoll-traced-{number:03}"));
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(Scratch { path }),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(Failure::Usage(format!(
                        "cannot make a scratch folder in {}: {error}; is it writable and not full?",
                        above.display()
                    )));
                }
            }
        }
        Err(Failure::Usage(format!(
            "{} holds {NAMES} folders heaptoll-traced-*: runs that were killed left them; remove them",
            above.display()
        )))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is seen by the next one.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_at_once_differ_and_both_go() {
        let make = || Scratch::make().unwrap_or_else(|failure| panic!("{failure}"));
        let (one, other) = (make(), make());
        assert_ne!(one.path(), other.path());
        std::fs::write(one.path().join("x"), "y").expect("writes");
        let path = one.path().to_path_buf();
        drop(one);
        assert!(!path.exists() && other.path().is_dir());
    }
}
