//! What the processes of a proof run leave: binding reports and counts, in files that they and heaptoll share.
//!
//! The files belong to heaptoll's user, mode 0600. A program that root started may go on as another user: when it
//! executes something as that user, a report and a statistics page of that user's own are put next to root's, where
//! layers find them (`heaptoll_stats_page::shared`). Such files count for images of that user only: other processes of
//! the user may have written them.

use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Seek};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use heaptoll_scratch::Scratch;
use heaptoll_stats_page::{PageError, SlotRecord, StatsPage, VARIABLE, shared};

use crate::binding::{self, Report};
use crate::process::own_user;
use crate::tree::Run;

/// The variable that names the report to layers.
const REPORT: &str = "HEAPTOLL_PREFLIGHT_REPORT";
/// Writers that a statistics page has slots for: a build system's thousands of processes, at 512 bytes each.
const SLOTS: u32 = 8192;
/// Bytes of a report that are read: thousands of processes with hundreds of objects each.
const MOST: u64 = 256 << 20;

/// The files of one proof run; they go when this is dropped.
#[derive(Debug)]
pub struct Evidence {
    scratch: Scratch,
    /// In `scratch`: other users that find that one cannot list it, nor guess this name.
    inner: PathBuf,
    /// By user, this one's included.
    files: Mutex<BTreeMap<u32, Files>>,
}

/// Files of one user's.
#[derive(Debug)]
struct Files {
    report: File,
    page: StatsPage,
}

/// What was left.
#[derive(Debug, Default)]
pub struct Left {
    /// Reports, this user's own first.
    pub reports: Vec<Report>,
    /// Slots of images that the file's user may report on.
    pub slots: Vec<SlotRecord>,
    /// Writers that found no slot.
    pub left_out: u32,
}

impl Evidence {
    /// Makes the files of this user.
    ///
    /// # Errors
    /// The system's.
    pub fn make() -> io::Result<Evidence> {
        let scratch = Scratch::make()?;
        let mode = Permissions::from_mode(0o700);
        let inner = tempfile::Builder::new()
            .prefix("")
            .rand_bytes(16)
            .permissions(mode.clone())
            .tempdir_in(scratch.path())?
            .keep();
        // A umask may take bits away from its owner.
        fs::set_permissions(&inner, mode)?;
        let own = Files::make(&inner, None)?;
        Ok(Evidence { scratch, inner, files: Mutex::new(BTreeMap::from([(own_user(), own)])) })
    }

    /// The folder of all its files.
    pub fn folder(&self) -> &Path {
        self.scratch.path()
    }

    /// The variables that name the files to layers.
    pub fn environment(&self) -> [(OsString, OsString); 2] {
        [(VARIABLE.into(), stats(&self.inner).into()), (REPORT.into(), report(&self.inner).into())]
    }

    /// Whether a variable is one of these.
    pub fn names(name: &OsString) -> bool {
        name == VARIABLE || name == REPORT
    }

    /// An image of this user is about to run: it gets files of its own. Where it cannot have them, because heaptoll is
    /// not root, it stays silent, and is named as one that may not write its report.
    pub fn admit(&self, user: u32) {
        if own_user() != 0 {
            return;
        }
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if files.contains_key(&user) {
            return;
        }
        if let Ok(made) =
            Files::make(&self.inner, Some(user)).and_then(|made| self.open_ways().map(|()| made))
        {
            files.insert(user, made);
        }
    }

    /// Lets other users through the folders, which they still cannot list.
    fn open_ways(&self) -> io::Result<()> {
        let mode = Permissions::from_mode(0o711);
        fs::set_permissions(&self.inner, mode.clone())?;
        fs::set_permissions(self.scratch.path(), mode)
    }

    /// Reports of this user's own processes, so far.
    pub fn own_reports(&self) -> Vec<Report> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.get(&own_user()).and_then(|own| own.reports(own_user()).ok()).unwrap_or_default()
    }

    /// Whether a process has called so far.
    pub fn has_calls(&self) -> bool {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let called = |slots: Vec<SlotRecord>| slots.iter().any(|slot| slot.malloc_calls > 0);
        files.values().any(|files| files.page.read().is_ok_and(called))
    }

    /// When the file of reports was last written to, if there is a whole report in it. Lines of layers come before: a
    /// process that was stopped between these and its report would be refused as one that never reported.
    pub fn reported(&self) -> Option<std::time::SystemTime> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let written = |(&user, files): (&u32, &Files)| {
            let whole = files.reports(user).is_ok_and(|reports| !reports.is_empty());
            files.report.metadata().ok().filter(|_| whole).and_then(|about| about.modified().ok())
        };
        files.iter().filter_map(written).max()
    }

    /// Everything that was left by the processes of `run`.
    ///
    /// # Errors
    /// The system's; or a page was overwritten.
    pub fn left(&self, run: &Run) -> Result<Left, PageError> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = Left::default();
        let own = own_user();
        for (&user, files) in files
            .iter()
            .filter(|(user, _)| **user == own)
            .chain(files.iter().filter(|(user, _)| **user != own))
        {
            let speaks = |pid: i32, time_ns: u64| {
                user == own || run.image_at(pid, time_ns).is_some_and(|image| run.images[image].user == user)
            };
            let read = files.reports(user).map_err(|error| PageError::Io(report(&self.inner), error))?;
            left.reports.extend(read.into_iter().filter(|report| speaks(report.pid, report.time_ns)));
            let slots = match files.page.read() {
                Ok(slots) => slots,
                // Another user's is that user's to spoil.
                Err(_) if user != own => continue,
                Err(error) => return Err(error),
            };
            left.slots.extend(slots.into_iter().filter(|slot| speaks(slot.pid, slot.claimed_ns)));
            left.left_out = left.left_out.saturating_add(files.page.left_out().unwrap_or(0));
        }
        Ok(left)
    }
}

impl Files {
    /// Makes them in `folder`, to belong to `user` instead of this one.
    fn make(folder: &Path, user: Option<u32>) -> io::Result<Files> {
        let of_user = |path: PathBuf| match user {
            None => Ok(path),
            Some(user) => named_for(&path, user),
        };
        let (stats, report) = (of_user(stats(folder))?, of_user(report(folder))?);
        let page = StatsPage::create(&stats, SLOTS).map_err(|error| io::Error::other(error.to_string()))?;
        let report = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&report)?;
        if let Some(user) = user {
            fchown(page.file(), Some(user), None)?;
            fchown(&report, Some(user), None)?;
        }
        Ok(Files { report, page })
    }

    fn reports(&self, user: u32) -> io::Result<Vec<Report>> {
        let mut file = &self.report;
        file.rewind()?;
        let mut bytes = Vec::new();
        file.take(MOST).read_to_end(&mut bytes)?;
        let mut reports = binding::parse(&bytes);
        reports.iter_mut().for_each(|report| report.user = user);
        Ok(reports)
    }
}

fn stats(folder: &Path) -> PathBuf {
    folder.join("stats")
}

fn report(folder: &Path) -> PathBuf {
    folder.join("report")
}

/// The name of a user's own file, as layers derive it.
fn named_for(path: &Path, user: u32) -> io::Result<PathBuf> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut bytes = [0; shared::MOST];
    let named = shared::of_user(&path, user, &mut bytes).ok_or(io::ErrorKind::InvalidFilename)?;
    Ok(PathBuf::from(std::ffi::OsStr::from_bytes(named.to_bytes())))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use crate::tree::{Ending, Image};

    use super::*;

    const OTHER_USER: u32 = 65534;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("it is there").mode() & 0o7777
    }

    fn named(path: &Path) -> PathBuf {
        named_for(path, OTHER_USER).expect("it fits")
    }

    /// Whether user `OTHER_USER`, knowing the name, can open a file for writing.
    fn other_user_can_write(path: &Path) -> bool {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", ": >> \"$1\"", "sh"])
            .arg(path)
            .uid(OTHER_USER)
            .gid(OTHER_USER)
            .stderr(Stdio::null());
        shell.status().expect("sh runs").success()
    }

    /// A run of two processes: 7 is an image of this user, 8 one of `OTHER_USER`.
    fn run() -> Run {
        let image = |pid, user| Image {
            anonymous_bytes: 0,
            pid,
            exe: PathBuf::from("/bin/x"),
            user,
            loader: true,
            secure: false,
            preload: None,
            cpu_ns: 0,
        };
        Run {
            stack_was_full: false,
            peak_bytes: 0,
            resident_bytes: 0,
            ending: Ending::Exited(0),
            pid: 7,
            stderr: String::new(),
            images: vec![image(7, own_user()), image(8, OTHER_USER)],
            changes: vec![(7, 0, 0), (8, 0, 1)],
            traced: true,
            together_bytes: 0,
            watched: None,
            elapsed: Duration::ZERO,
        }
    }

    /// Before, a process that had called malloc while its report was being made was stopped, and refused.
    #[test]
    fn lines_of_layers_are_no_report() {
        let evidence = Evidence::make().expect("made");
        let write = |text: &str| {
            let mut file = OpenOptions::new().append(true).open(report(&evidence.inner)).expect("opens");
            std::io::Write::write_all(&mut file, text.as_bytes()).expect("writes");
        };
        write("forward\t7\t/layer.so\t/lib/libc.so.6\n");
        write("report\t1\t7\tstart\t5\t/bin/x\n");
        assert_eq!(evidence.reported(), None);
        write("end\n");
        assert!(evidence.reported().is_some());
    }

    #[test]
    fn the_files_are_their_users_alone() {
        let evidence = Evidence::make().expect("made");
        for folder in [evidence.scratch.path(), &evidence.inner] {
            assert_eq!(mode(folder), 0o700);
        }
        for file in [stats(&evidence.inner), report(&evidence.inner)] {
            assert_eq!(mode(&file), 0o600);
        }
    }

    #[test]
    fn another_user_writes_to_its_own_files_and_to_no_others() {
        if own_user() != 0 {
            eprintln!("not root: nothing can be given to another user, so that is not tested");
            return;
        }
        let evidence = Evidence::make().expect("made");
        let (stats, report) = (stats(&evidence.inner), report(&evidence.inner));
        evidence.admit(OTHER_USER);
        assert_eq!((mode(evidence.scratch.path()), mode(&evidence.inner)), (0o711, 0o711));
        for file in [&stats, &report] {
            assert!(!other_user_can_write(file), "{}", file.display());
            assert!(other_user_can_write(&named(file)), "{}", file.display());
            assert_eq!((mode(file), mode(&named(file))), (0o600, 0o600));
        }
    }

    #[test]
    fn another_users_reports_count_for_its_own_images_only() {
        if own_user() != 0 {
            eprintln!("not root: nothing can be given to another user, so that is not tested");
            return;
        }
        let evidence = Evidence::make().expect("made");
        evidence.admit(OTHER_USER);
        let report_of = |pid: i32| format!("report\t1\t{pid}\tstart\t5\t/bin/x\nend\n");
        fs::write(report(&evidence.inner), report_of(7)).expect("written");
        fs::write(named(&report(&evidence.inner)), report_of(7) + &report_of(8) + &report_of(9))
            .expect("written");
        let accepted = |evidence: &Evidence| -> Vec<(u32, i32)> {
            let left = evidence.left(&run()).expect("read");
            left.reports.iter().map(|report| (report.user, report.pid)).collect()
        };
        assert_eq!(accepted(&evidence), [(0, 7), (OTHER_USER, 8)]);
        assert!(evidence.own_reports().iter().all(|report| report.user == 0));
        // Its own files it may spoil.
        File::options()
            .write(true)
            .open(named(&stats(&evidence.inner)))
            .and_then(|f| f.set_len(0))
            .expect("cut");
        fs::write(named(&report(&evidence.inner)), "").expect("emptied");
        assert_eq!(accepted(&evidence), [(0, 7)]);
    }
}
