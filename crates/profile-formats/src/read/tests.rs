//! What the writers write is read again; what other programs write is, too; damaged files are refused.

use std::io::Read;

use flate2::read::GzDecoder;
use heaptoll_profiles::{Frame, Measure, Profile};
use heaptoll_testing::damage::Dice;
use proptest::prelude::*;

use super::*;
use crate::testing::{CHOICE, bytes, hostile, small};
use crate::{Format, Mapped, write};

const LIMIT: u64 = 64 << 20;

fn no_names(_: &[Mapped], addresses: &[u64]) -> Vec<Vec<Frame>> {
    vec![Vec::new(); addresses.len()]
}

fn plain(format: Format, profile: &Profile) -> Vec<u8> {
    let packed = bytes(format, profile, CHOICE);
    if format != Format::Pprof {
        return packed;
    }
    let mut plain = Vec::new();
    GzDecoder::new(&packed[..]).read_to_end(&mut plain).expect("gzip");
    plain
}

/// Frames of a stack, and its values with what they are.
type FramesAndValues = (Vec<Frame>, Vec<(Measure, u64)>);

fn stacks(profile: &Profile) -> Vec<FramesAndValues> {
    let measured = profile.measures().to_vec();
    let stacks = profile.stacks().map(|stack| {
        let frames = profile.frames_of(stack.call).cloned().collect();
        (frames, measured.iter().copied().zip(stack.values.iter().copied()).collect())
    });
    stacks.collect()
}

#[test]
fn a_profile_of_pprof_is_read_as_it_was_written() {
    let plain = plain(Format::Pprof, &small());
    assert_eq!(kind(&plain), Some(Kind::Pprof));
    let found = read(Kind::Pprof, &plain, LIMIT, &mut no_names).expect("reads");
    assert!(found.remarks.is_empty(), "every byte was counted: {:?}", found.remarks);
    let four = [Measure::AllocatedObjects, Measure::AllocatedBytes, Measure::EndObjects, Measure::EndBytes];
    assert_eq!(found.profile.measures(), four);
    for ((frames, values), (written, all)) in stacks(&found.profile).iter().zip(stacks(&small())) {
        assert_eq!(*frames, written);
        assert_eq!(values[..], all[..4]);
    }
    let subject = &found.profile.subject;
    assert_eq!(
        (subject.exe.as_str(), subject.started_unix_s, subject.to_ns),
        ("/bin/prog", 1_700_000_000, 3_000_000)
    );
}

#[test]
fn a_profile_of_dhat_is_read_as_it_was_written() {
    let plain = plain(Format::Dhat, &small());
    assert_eq!(kind(&plain), Some(Kind::Dhat));
    let found = read(Kind::Dhat, &plain, LIMIT, &mut no_names).expect("reads").profile;
    for ((frames, values), (written, all)) in stacks(&found).iter().zip(stacks(&small())) {
        // DHAT's text has a line or an object, not both.
        let of_text = |frame: Frame| match frame.file.is_empty() {
            true => frame,
            false => Frame { object: String::new(), ..frame },
        };
        assert_eq!(*frames, written.into_iter().map(of_text).collect::<Vec<_>>());
        assert_eq!(*values, all);
    }
    let (found, written) = (&found.subject, small().subject);
    assert_eq!((&found.command, found.pid), (&written.command, written.pid));
    assert_eq!((found.to_ns, found.peak_ns), (written.to_ns, written.peak_ns));
}

#[test]
fn valgrinds_and_rusts_files_are_read() {
    let valgrind = r#"{"dhatFileVersion":2,"mode":"heap","verb":"Allocated","bklt":true,"bkacc":true
        ,"tu":"instrs","Mtu":"Minstr","tuth":500,"cmd":"./a b","pid":7,"te":900,"tg":400
        ,"pps":[{"tb":30,"tbk":3,"tl":99,"mb":20,"mbk":2,"gb":20,"gbk":2,"eb":10,"ebk":1,"rb":0,"wb":0,"acc":[],
        "fs":[1,2,3]}]
        ,"ftbl":["[root]","0x48397B5: malloc (in /usr/libexec/valgrind/vgpreload_dhat.so)","0x1091AC: f(int) (a.cc:7)",
        "0x1091D1: ??? (in /bin/a)"]}"#;
    let found = read(Kind::Dhat, valgrind.as_bytes(), LIMIT, &mut no_names).expect("reads");
    assert_eq!(found.remarks, ["its lifetimes are counted in `instrs` and left out"]);
    assert_eq!(found.profile.column(Measure::LifetimeNs), None);
    assert_eq!(found.profile.total(Measure::PeakBytes), 20);
    let frames = &stacks(&found.profile)[0].0;
    assert_eq!((frames[1].function.as_str(), frames[1].file.as_str(), frames[1].line), ("f(int)", "a.cc", 7));
    assert_eq!(frames[2].name(), "a+0x1091d2");
    let rust = r#"{"dhatFileVersion":2,"mode":"rust-heap","verb":"Allocated","bklt":true,"bkacc":false,"tu":"µs",
        "Mtu":"s","tuth":10,"cmd":"./a","pid":7,"te":5,"tg":4,"pps":[{"tb":8,"tbk":1,"tl":5,"mb":8,"mbk":1,"gb":8,
        "gbk":1,"eb":8,"ebk":1,"fs":[1]}],"ftbl":["[root]","0x55d0: a::main::h01 (src/main.rs:3:12)"]}"#;
    let found = read(Kind::Dhat, rust.as_bytes(), LIMIT, &mut no_names).expect("reads").profile;
    assert_eq!(found.total(Measure::LifetimeNs), 5000);
    let main = &found.frames()[0];
    assert_eq!((main.file.as_str(), main.line, main.offset), ("src/main.rs", 3, 0x55d1));
}

#[test]
fn what_is_no_heap_profile_is_refused_with_its_reason() {
    let json = |text: &str| read(Kind::Dhat, text.as_bytes(), LIMIT, &mut no_names).expect_err("refused");
    assert!(matches!(json(r#"{"dhatFileVersion":1}"#), ReadError::OtherVersion { version: 1 }));
    assert!(matches!(json(r#"{"dhatFileVersion":2,"mode":"heap","#), ReadError::Malformed { .. }));
    let copies = r#"{"dhatFileVersion":2,"mode":"copy","pps":[],"ftbl":[]}"#;
    assert!(json(copies).to_string().contains("`copy`"));
    let outside =
        r#"{"dhatFileVersion":2,"mode":"heap","pps":[{"tb":1,"tbk":1,"fs":[9]}],"ftbl":["[root]"]}"#;
    assert!(matches!(json(outside), ReadError::Malformed { .. }));
    // `samples` in `count`: a profile of CPU time.
    let cpu = [0x0a, 4, 8, 1, 16, 2, 0x32, 0, 0x32, 7]
        .into_iter()
        .chain(*b"samples")
        .chain([0x32, 5])
        .chain(*b"count")
        .collect::<Vec<u8>>();
    assert_eq!(kind(&cpu), Some(Kind::Pprof));
    let error = read(Kind::Pprof, &cpu, LIMIT, &mut no_names).expect_err("refused").to_string();
    assert!(error.contains("samples (count)"), "{error}");
    for other in
        [&b"v 10400 3\n"[..], b"\x7fELF\x02", b"{\"a\":1}", b"\x89HTRACE\n\x01", b"", b"PAR1", b"# callgrind"]
    {
        assert_eq!(kind(other), None, "{other:?}");
    }
}

/// Few bytes that stand for much: every stack has every frame, and every frame a long name.
#[test]
fn memory_has_a_limit() {
    let name = "f".repeat(10_000);
    let frames: Vec<String> = (0..2000).map(|at| format!("\"0x{at:x}: {name} (a.c:1)\"")).collect();
    let numbers: Vec<String> = (1..2000).map(|at| at.to_string()).collect();
    let points: Vec<String> = (1..2000)
        .map(|first| format!("{{\"tb\":1,\"tbk\":1,\"fs\":[{first},{}]}}", numbers.join(",")))
        .collect();
    let text = format!(
        "{{\"dhatFileVersion\":2,\"mode\":\"heap\",\"pps\":[{}],\"ftbl\":[\"[root]\",{}]}}",
        points.join(","),
        frames.join(",")
    );
    assert!(
        matches!(read(Kind::Dhat, text.as_bytes(), 1 << 20, &mut no_names), Err(ReadError::Memory { .. })),
        "the text alone"
    );
    let limit = 10 * text.len() as u64 + (20 << 20);
    assert!(matches!(read(Kind::Dhat, text.as_bytes(), limit, &mut no_names), Err(ReadError::Memory { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn damaged_and_cut_files_are_read_or_refused(seed: u64, cut in 0_usize..2000) {
        for (of, format) in [(Kind::Pprof, Format::Pprof), (Kind::Dhat, Format::Dhat)] {
            for profile in [small(), hostile()] {
                let whole = plain(format, &profile);
                let damaged = heaptoll_testing::damage::bytes(&mut Dice::new(seed), &whole);
                for bytes in [&damaged[..], &whole[..cut.min(whole.len())]] {
                    kind(bytes);
                    if let Ok(found) = read(of, bytes, LIMIT, &mut no_names) {
                        // What was read can be written.
                        write(format, &found.profile, &Default::default(), CHOICE, &mut std::io::sink())?;
                    }
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        for of in [Kind::Pprof, Kind::Dhat, Kind::HeapText] {
            let _ = read(of, &bytes, LIMIT, &mut no_names);
        }
    }
}
