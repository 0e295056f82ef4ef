use std::io::{Read, Write, pipe};
use std::os::unix::net::UnixStream;

use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::places::Places;

use super::*;
use heaptoll_command::context::Silent;
use heaptoll_command::own_input::OwnInput;

/// What a run reads that opens the path.
fn read(kept: &Kept) -> Option<String> {
    let path = kept.path.as_ref()?;
    let [first, second] = [(); 2].map(|()| std::fs::read_to_string(path).expect("each run can read it"));
    assert_eq!(first, second);
    Some(first)
}

fn kept_of(from: impl Into<std::os::fd::OwnedFd>) -> Result<Kept, Failure> {
    kept_by(from, &Interrupt::default(), 1 << 20)
}

/// Keeps without patience.
fn kept_by(
    from: impl Into<std::os::fd::OwnedFd>,
    interrupt: &Interrupt,
    most_bytes: u64,
) -> Result<Kept, Failure> {
    let places = Places::at(Path::new("/nonexistent"));
    let context = Context { places: &places, interrupt, own_input: &OwnInput::default(), messages: &Silent };
    let keeper = Keeper { most_bytes, patience: std::time::Duration::ZERO, ..Keeper::new(&context) };
    kept(File::from(from.into()), &keeper)
}

fn piped(text: &str) -> Result<Kept, Failure> {
    let (reader, mut writer) = pipe().expect("a pipe");
    writer.write_all(text.as_bytes()).expect("it fits");
    drop(writer);
    kept_of(reader)
}

#[test]
fn what_is_piped_is_kept_under_its_digest_and_goes_with_the_command() {
    let found = piped("abc").expect("kept");
    assert_eq!(read(&found).as_deref(), Some("abc"));
    let path = found.path.clone().expect("a file");
    let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(heaptoll_experiment::kept_input::sha256(&path.display().to_string()), Some(digest));
    drop(found);
    assert!(!path.exists());
    // As `< /dev/null`: nothing has to be kept.
    assert!(piped("").expect("ended").path.is_none());
}

#[test]
fn a_socket_is_read_as_a_pipe() {
    let (ours, mut theirs) = UnixStream::pair().expect("sockets");
    theirs.write_all(b"abc").expect("it fits");
    drop(theirs);
    assert_eq!(read(&kept_of(ours).expect("kept")).as_deref(), Some("abc"));
}

#[test]
fn a_file_is_read_from_where_it_stands_which_stays_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("in put");
    std::fs::write(&path, "a\nbc").expect("written");
    let open = || File::open(&path).expect("it is there");
    assert_eq!(kept_of(open()).expect("reopened").path, Some(path.clone()));
    let mut file = open();
    file.read_exact(&mut [0; 2]).expect("a line");
    let found = kept_of(file.try_clone().expect("another")).expect("kept");
    assert_eq!(read(&found).as_deref(), Some("bc"));
    let mut rest = String::new();
    file.read_to_string(&mut rest).expect("reads");
    assert_eq!(rest, "bc", "who shares the descriptor, as a loop of a shell, still has it");
    // As a shell's here document.
    let nameless = open();
    std::fs::remove_file(&path).expect("removed");
    assert_eq!(read(&kept_of(nameless).expect("kept")).as_deref(), Some("a\nbc"));
}

#[test]
fn a_device_is_opened_by_each_run_and_the_null_device_is_nothing() {
    let of = |path: &str| kept_of(File::open(path).expect("a device")).expect("nothing is read").path;
    assert_eq!(of("/dev/null"), None);
    assert_eq!(of("/dev/zero"), Some("/dev/zero".into()));
}

#[test]
fn a_pipe_that_nothing_writes_to_is_not_waited_for_for_ever() {
    let (reader, mut writer) = pipe().expect("a pipe");
    let refused = |reader| kept_of(reader).expect_err("it does not end").to_string();
    let again = reader.try_clone().expect("another");
    for words in ["was silent", "0 B so far", "`< /dev/null`", "`< FILE`"] {
        assert!(refused(again.try_clone().expect("another")).contains(words), "{words}");
    }
    writer.write_all(b"abc").expect("it fits");
    assert!(refused(reader).contains("3 B so far"));
    let interrupt = Interrupt::default();
    interrupt.set();
    assert!(matches!(kept_by(again, &interrupt, 9), Err(Failure::Interrupted)));
}

#[test]
fn more_than_is_kept_and_what_cannot_be_read_is_refused_with_what_to_type() {
    let (reader, mut writer) = pipe().expect("a pipe");
    writer.write_all(b"abc").expect("it fits");
    drop(writer);
    let again = reader.try_clone().expect("another");
    let refused = kept_by(reader, &Interrupt::default(), 2).expect_err("too much").to_string();
    assert!(refused.contains("more than 2 B") && refused.contains("`< FILE`"), "{refused}");
    drop(again);
    let folder = File::open("/").expect("a folder");
    let refused = kept_of(folder).expect_err("a folder").to_string();
    assert!(refused.contains("cannot read standard input") && refused.contains("`< FILE`"), "{refused}");
}

#[test]
fn what_was_read_once_is_there_for_every_request_of_a_command() {
    let own_input = OwnInput::default();
    own_input.path(|| piped("abc")).expect("kept");
    let places = Places::at(Path::new("/nonexistent"));
    let interrupt = Interrupt::default();
    let context =
        Context { places: &places, interrupt: &interrupt, own_input: &own_input, messages: &Silent };
    let own = || StandardInput::file_or_own(None).path(&context).expect("kept");
    let [one, other] = [own(), own()];
    assert!(one.as_ref().is_some_and(|path| path.is_file()) && one == other);
    assert_eq!(StandardInput::Nothing.path(&context).expect("nothing"), None);
}
