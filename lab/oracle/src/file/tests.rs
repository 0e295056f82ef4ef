use heaptoll_oracle_file::{AllocationWord, FREE, NameWord, SiteWord};

use super::*;
use crate::recording::{Object, Site};
use crate::unreachable::RootPoints;

fn recording(object: &str) -> Recording {
    let made = |size, site, resized, last_use, freed| Object {
        size,
        site,
        resized,
        last_use,
        freed,
        unreachable: None,
    };
    Recording {
        objects: vec![
            made(24, 0, None, 1, Some(2)),
            made(40, 1, None, 3, Some(3)),
            made(80, 1, Some(40), 3, None),
        ],
        sites: vec![
            Site { object: object.into(), address: 0x1138 },
            Site { object: "/lib/libc.so.6".into(), address: 0x99 },
        ],
    }
}

fn written() -> (tempfile::TempDir, PathBuf, OracleFile) {
    let folder = tempfile::tempdir().expect("a folder");
    let object = folder.path().join("x y");
    std::fs::write(&object, "code").expect("an object file");
    let path = folder.path().join("p.oracle");
    let executable = "/bin/p q".into();
    let about = About { program: "p".into(), executable, status: 3, ..About::default() };
    let file = write(&path, &recording(&object.display().to_string()), about).expect("a file");
    (folder, path, file)
}

#[test]
fn a_file_is_read_as_it_was_written() {
    let (_folder, path, file) = written();
    let read = read(&path).expect("it is whole");
    assert_eq!(read, file);
    assert_eq!((read.allocations, read.about.program.as_str(), read.about.status), (3, "p", 3));
    let about = &read.about;
    assert_eq!((about.allocated_bytes, about.resized, about.never_freed, about.most_objects), (144, 1, 1, 2));
    let times: Vec<_> = read.objects.iter().map(|object| (object.last_use, object.freed)).collect();
    assert_eq!(times, [(1, Some(2)), (3, Some(3)), (3, None)]);
    assert_eq!(read.live(FreePoint::Free), about.live[1]);
    assert_eq!(about.live.map(|live| live.peak_bytes), [120, 120, 144]);
    assert!(read.require_same_code(&path).is_ok());
}

#[test]
fn the_layer_finds_words_schedule_sites_and_names_where_the_header_has_them() {
    let (_folder, path, _) = written();
    let content = std::fs::read(&path).expect("it is there");
    let head = content.first_chunk().expect("a header");
    let header = Header::of(head, content.len() as u64).expect("whole");
    let words = |section: Section, bytes: usize| -> Vec<Vec<u8>> {
        let from = section.start as usize;
        content[from..from + section.count as usize * bytes].chunks(bytes).map(<[u8]>::to_vec).collect()
    };
    let long = |word: &Vec<u8>| u64::from_le_bytes(word.as_slice().try_into().expect("8 bytes"));
    let allocations: Vec<u64> = words(header.words, 8).iter().map(long).collect();
    let first = AllocationWord { size: 24, site: 0, resized: false };
    let last = AllocationWord { size: 80, site: 1, resized: true };
    assert_eq!((AllocationWord::of(allocations[0]), AllocationWord::of(allocations[2])), (first, last));
    assert_eq!(allocations[3], 40, "the size of the object that the realloc ends");
    let schedule: Vec<u32> = words(header.schedule, 4)
        .iter()
        .map(|word| u32::from_le_bytes(word.as_slice().try_into().expect("4 bytes")))
        .collect();
    assert_eq!(schedule, [0, FREE, 0, 1]);
    let sites: Vec<SiteWord> = words(header.sites, 8).iter().map(|word| SiteWord::of(long(word))).collect();
    assert_eq!(sites[1], SiteWord { address: 0x99, object: Some(2) });
    let names: Vec<NameWord> = words(header.objects, 8).iter().map(|word| NameWord::of(long(word))).collect();
    let text = &content[header.text.start as usize..][..header.text.count as usize];
    let name = |at: usize| &text[names[at].start as usize..][..names[at].length as usize];
    assert_eq!([name(0), name(1), name(2)], [&b"p q"[..], b"x y", b"libc.so.6"]);
}

#[test]
fn a_damaged_cut_or_other_file_is_refused() {
    let (folder, path, _) = written();
    let whole = std::fs::read(&path).expect("it is there");
    let refusal = |content: &[u8]| {
        std::fs::write(&path, content).expect("a file");
        read(&path).expect_err("it is refused")
    };
    for at in [60, HEADER_BYTES + 1, whole.len() - 1] {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        let refusal = refusal(&damaged);
        assert!(matches!(refusal, OracleFileError::Damaged(_)), "{at}: {refusal}");
    }
    for length in [HEADER_BYTES, whole.len() - 1] {
        assert!(matches!(refusal(&whole[..length]), OracleFileError::Damaged(_)), "{length}");
    }
    assert!(matches!(refusal(b"#!/bin/sh\n"), OracleFileError::Another(_)));
    assert!(matches!(refusal(&[0; 4096]), OracleFileError::Another(_)));
    assert!(matches!(read(&folder.path().join("none")), Err(OracleFileError::System { .. })));
}

#[test]
fn code_that_has_changed_is_refused_by_name() {
    let (folder, path, file) = written();
    std::fs::write(folder.path().join("x y"), "another build").expect("an object file");
    let refusal = file.require_same_code(&path).expect_err("it changed").to_string();
    assert!(refusal.contains("x y: its content has changed"), "{refusal}");
    std::fs::remove_file(folder.path().join("x y")).expect("it was there");
    let refusal = file.require_same_code(&path).expect_err("it is gone").to_string();
    assert!(refusal.contains("it no longer exists"), "{refusal}");
}

/// A file with points of unreachability: the first object's at its last use, the second's never, the third's after its own.
fn with_unreachable() -> (tempfile::TempDir, PathBuf, OracleFile) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("p.oracle");
    let mut recording = recording("");
    recording.objects.push(Object { last_use: 4, ..recording.objects[0] });
    let unreachable = vec![Some(1), None, Some(3), None];
    let points = RootPoints { at: vec![1, 3], unreachable, ..RootPoints::default() };
    let unreachable = Some(recording.set_unreachable(&points));
    let file = write(&path, &recording, About { unreachable, ..About::default() }).expect("a file");
    (folder, path, file)
}

#[test]
fn points_of_unreachability_are_read_as_they_were_written_and_are_not_needed() {
    let (_folder, path, file) = with_unreachable();
    let found = read(&path).expect("it is whole");
    assert_eq!(found, file);
    let points: Vec<_> = found.objects.iter().map(|object| (object.last_use, object.unreachable)).collect();
    assert_eq!(points, [(1, Some(1)), (3, None), (3, Some(3)), (4, None)]);
    let figures = found.about.unreachable.expect("recorded");
    assert_eq!((figures.root_points, figures.live), (2, found.live(FreePoint::Unreachable)));
    let (_folder, path, _) = written();
    assert_eq!(read(&path).expect("a file without them").about.unreachable, None);
}

#[test]
fn damaged_points_of_unreachability_are_refused() {
    let (_folder, path, _) = with_unreachable();
    let whole = std::fs::read(&path).expect("it is there");
    let refuse = |content: &[u8]| {
        std::fs::write(&path, content).expect("a file");
        let refusal = read(&path).expect_err("it is refused");
        assert!(matches!(refusal, OracleFileError::Damaged(_)), "{refusal}");
    };
    for at in [7, HEADER_BYTES, HEADER_BYTES + 8, HEADER_BYTES + 16, whole.len() - 1] {
        let mut damaged = whole.clone();
        damaged[at] ^= if at == 7 { b'1' ^ b'2' } else { 1 };
        refuse(&damaged);
    }
    // A digest that fits, and the second object freed before its last use.
    let mut damaged = whole.clone();
    let words: Vec<u8> = [0, FREE, 0, FREE, 0, 1].into_iter().flat_map(u32::to_le_bytes).collect();
    let schedule = whole.len() - words.len();
    damaged[schedule..].copy_from_slice(&words);
    let digest: [u8; 32] = Sha256::digest(&damaged[HEADER_BYTES..]).into();
    damaged[8..40].copy_from_slice(&digest);
    refuse(&damaged);
}
