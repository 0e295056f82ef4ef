//! Profiles for the tests of all formats.

use heaptoll_profiles::{
    Builder, Counter, Frame, Life, Lives, Measure, Profile, Slice, SliceTrack, Subject, Tracks, Unit,
};

use crate::{Choice, Count, Format, Instant, write};

pub const CHOICE: Choice = Choice { instant: Instant::End, count: Count::AllocatedBytes };

const MEASURES: [Measure; 9] = [
    Measure::AllocatedObjects,
    Measure::AllocatedBytes,
    Measure::EndObjects,
    Measure::EndBytes,
    Measure::PeakObjects,
    Measure::PeakBytes,
    Measure::OwnPeakObjects,
    Measure::OwnPeakBytes,
    Measure::LifetimeNs,
];

fn frame(function: &str, file: &str, line: u32, offset: u64, inlined: bool) -> Frame {
    Frame { function: function.into(), file: file.into(), line, object: "/bin/prog".into(), offset, inlined }
}

/// `main` calls `parse` and `grow`, into both of which `xmalloc` is inlined; 3 µs long.
pub fn small() -> Profile {
    let mut builder = Builder::new(MEASURES.to_vec());
    builder.subject(Subject {
        command: vec!["/bin/prog".into(), "-x".into()],
        exe: "/bin/prog".into(),
        pid: 77,
        started_unix_s: 1_700_000_000,
        from_ns: 0,
        to_ns: 3_000_000,
        peak_ns: 1_000_000,
        sampled_bytes: None,
    });
    let in_parse = builder.frame(frame("xmalloc", "/src/x.c", 7, 0x120, true));
    let parse = builder.frame(frame("parse", "/src/parse.c", 12, 0x120, false));
    let main = builder.frame(frame("main", "/src/main.c", 3, 0x210, false));
    let in_grow = builder.frame(frame("xmalloc", "", 0, 0x180, true));
    let grow = builder.frame(frame("grow", "/src/grow.c", 30, 0x180, false));
    let first = builder.stack(&[in_parse, parse, main], &[2, 96, 1, 64, 2, 96, 2, 96, 3_000_000]);
    let second = builder.stack(&[in_grow, grow, main], &[1, 40, 0, 0, 1, 40, 1, 40, 500_000]);
    let third = builder.stack(&[main], &[1, 8, 0, 0, 0, 0, 1, 8, 1000]);
    let life = |stack, born, died, objects, bytes| Life { stack, born, died, objects, bytes };
    builder.lives(Lives {
        interval_ns: 1_000_000,
        lives: vec![
            life(first, 0, None, 1, 64),
            life(first, 0, Some(2), 1, 32),
            life(second, 1, Some(1), 1, 40),
            life(third, 2, Some(2), 1, 8),
        ],
    });
    builder.finish()
}

/// One stack with names that mean something to some format, the innermost of a stripped program.
pub fn hostile() -> Profile {
    let mut builder = Builder::new(MEASURES.to_vec());
    builder.subject(Subject { command: vec!["a\nb".into(), "c;d".into()], pid: 1, ..Subject::default() });
    let named =
        |name: &str| Frame { function: name.into(), file: "x\ny.c".into(), line: 1, ..Frame::default() };
    let lossy = String::from_utf8_lossy(b"\xc3\xa9 \xff").into_owned();
    let stripped = Frame { object: "/opt/new\nfolder/bin".into(), offset: 0x40, ..Frame::default() };
    let frames =
        [stripped, named(&lossy), named("<script>alert(1)</script>"), named("new\nline"), named("a;b")];
    let frames: Vec<u32> = frames.into_iter().map(|frame| builder.frame(frame)).collect();
    builder.stack(&frames, &[1, 7, 1, 7, 1, 7, 1, 7, 9]);
    builder.finish()
}

pub fn tracks() -> Tracks {
    Tracks {
        counters: vec![Counter {
            name: "live bytes".into(),
            unit: Unit::Bytes,
            points: vec![(0, 0), (1_000_000, 136), (3_000_000, 64)],
        }],
        slices: vec![SliceTrack {
            name: "snapshots".into(),
            slices: vec![Slice {
                name: "snapshot".into(),
                start_ns: 5,
                length_ns: 10,
                facts: vec![("live_bytes", 96)],
            }],
        }],
    }
}

pub fn bytes(format: Format, profile: &Profile, choice: Choice) -> Vec<u8> {
    let mut out = Vec::new();
    write(format, profile, &tracks(), choice, &mut out).expect("a vector takes all");
    out
}

pub fn text(format: Format, profile: &Profile, choice: Choice) -> String {
    String::from_utf8(bytes(format, profile, choice)).expect("UTF-8")
}
