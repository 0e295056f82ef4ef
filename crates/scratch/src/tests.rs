use std::os::unix::fs::{MetadataExt, symlink};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::*;

/// Set for a copy of this program that makes a folder there, prints its path, and waits to be killed.
const KEEPER: &str = "HEAPTOLL_TEST_KEEPS_A_FOLDER_IN";

fn place() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").mode() & 0o7777
}

#[test]
fn two_at_once_differ_and_each_goes_with_what_is_in_it() {
    let (above, secret) = (place(), place());
    let make = || Scratch::make_repeatable(above.path(), secret.path()).expect("made");
    let (one, other) = (make(), make());
    assert_ne!(one.path(), other.path());
    fs::write(one.path().join("x"), "y").expect("written");
    let path = one.path().to_path_buf();
    drop(one);
    assert!(!path.exists() && other.path().is_dir());
    assert_eq!(make().path(), path, "the first name is free again");
}

#[test]
fn a_repeatable_name_depends_on_a_secret_of_the_user() {
    let (above, secret) = (place(), [place(), place()]);
    let names: Vec<PathBuf> = [0, 0, 1]
        .map(|at| {
            Scratch::make_repeatable(above.path(), secret[at].path()).expect("made").path().to_path_buf()
        })
        .to_vec();
    assert!(names[0] == names[1] && names[0] != names[2], "{names:?}");
    assert_eq!(mode(&secret[0].path().join("scratch-name")), 0o600);
    // A secret that others know or gave is none.
    let known = secret[0].path().join("scratch-name");
    fs::set_permissions(&known, Permissions::from_mode(0o644)).expect("set");
    let other = Scratch::make_repeatable(above.path(), secret[0].path()).expect("made");
    assert_ne!(other.path(), names[0]);
}

/// The umask is the whole process's, so another one has it.
#[test]
fn a_folder_is_its_users_alone_whatever_the_umask() {
    if let Some(above) = std::env::var_os(KEEPER) {
        for umask in [0, 0o022, 0o777] {
            // SAFETY: umask takes a plain number and cannot fail.
            unsafe { libc::umask(umask) };
            assert_eq!(mode(Scratch::make_in(Path::new(&above)).expect("made").path()), 0o700, "{umask:o}");
        }
        return;
    }
    let above = place();
    let again = Command::new(std::env::current_exe().expect("own path"))
        .args(["--exact", "tests::a_folder_is_its_users_alone_whatever_the_umask"])
        .env(KEEPER, above.path())
        .output()
        .expect("runs");
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stdout));
}

#[test]
fn what_a_killed_run_left_is_removed_and_what_lives_is_not() {
    if let Some(above) = std::env::var_os(KEEPER) {
        let scratch = Scratch::make_in(Path::new(&above)).expect("made");
        fs::write(scratch.path().join("x"), "y").expect("written");
        loop {
            std::thread::sleep(Duration::from_secs(600));
        }
    }
    let above = place();
    let own = Scratch::make_in(above.path()).expect("made");
    let mut keeper = Command::new(std::env::current_exe().expect("own path"))
        .args(["--exact", "tests::what_a_killed_run_left_is_removed_and_what_lives_is_not"])
        .env(KEEPER, above.path())
        .stdout(Stdio::null())
        .spawn()
        .expect("runs");
    let theirs = wait_for(|| {
        let others = fs::read_dir(above.path()).expect("read").flatten().map(|entry| entry.path());
        others.into_iter().find(|path| path != own.path() && path.join("x").exists())
    });
    left::remove(above.path(), Duration::ZERO);
    assert!(theirs.is_dir() && own.path().is_dir(), "both live");
    keeper.kill().and_then(|()| keeper.wait()).expect("killed");
    remove_until_gone(above.path(), &theirs);
    assert!(own.path().is_dir());
}

fn wait_for<T>(mut probe: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "it never comes");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_folder_that_a_program_still_works_in_stays() {
    let above = place();
    let left = above.path().join(format!("{PREFIX}left"));
    fs::create_dir(&left).expect("made");
    let mut program = Command::new("sleep").arg("600").current_dir(&left).spawn().expect("runs");
    left::remove(above.path(), Duration::ZERO);
    assert!(left.is_dir());
    program.kill().and_then(|()| program.wait()).expect("killed");
    remove_until_gone(above.path(), &left);
}

/// A process that another test is just starting holds copies of all locks of this one until it becomes its program.
fn remove_until_gone(above: &Path, folder: &Path) {
    wait_for(|| {
        left::remove(above, Duration::ZERO);
        (!folder.exists()).then_some(())
    });
}

#[test]
fn a_fifo_a_link_and_folders_of_other_names_are_left_alone_and_not_waited_for() {
    let (above, elsewhere) = (place(), place());
    let at = |name: &str| above.path().join(name);
    let fifo = CString::new(at("heaptoll-scratch-evil").as_os_str().as_bytes()).expect("no NUL");
    // SAFETY: `fifo` is a C string that lives through the call.
    assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o666) }, 0);
    symlink(elsewhere.path(), at("heaptoll-scratch-link")).expect("linked");
    fs::write(elsewhere.path().join("kept"), "").expect("written");
    for name in ["heaptoll-build", "other", ".heaptoll-scratch-young"] {
        fs::create_dir(at(name)).expect("made");
    }
    left::remove(above.path(), Duration::from_secs(60));
    let mut names: Vec<_> =
        fs::read_dir(above.path()).expect("read").flatten().map(|e| e.file_name()).collect();
    names.sort();
    let all = [
        ".heaptoll-scratch-young",
        "heaptoll-build",
        "heaptoll-scratch-evil",
        "heaptoll-scratch-link",
        "other",
    ];
    assert_eq!(names, all);
    assert!(elsewhere.path().join("kept").exists());
}

#[test]
fn a_folder_of_another_user_is_left_alone() {
    if user::number() != 0 {
        eprintln!("not root: no folder can be given to another user, so that is not tested");
        return;
    }
    let above = place();
    let theirs = above.path().join(format!("{PREFIX}theirs"));
    fs::create_dir(&theirs).expect("made");
    std::os::unix::fs::chown(&theirs, Some(65534), None).expect("given");
    left::remove(above.path(), Duration::ZERO);
    assert!(theirs.is_dir());
}

/// Root may remove it anyway: for other users this shows something.
#[test]
fn a_folder_that_holds_one_without_permission_to_write_is_removed() {
    let above = tempfile::tempdir().expect("a folder");
    let scratch = Scratch::make_in(above.path()).expect("a scratch folder");
    let (path, inner) = (scratch.path().to_path_buf(), scratch.path().join("copy/read-only"));
    fs::create_dir_all(&inner).expect("folders");
    fs::write(inner.join("file"), "1").expect("a file");
    fs::set_permissions(&inner, Permissions::from_mode(0o555)).expect("the mode");
    drop(scratch);
    assert!(!path.exists());
}
