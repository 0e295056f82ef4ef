//! DHAT's JSON, file version 2, which Valgrind's `dh_view.html` shows: for each stack what was allocated, what was alive
//! at the program's maximum (t-gmax) and at the end (t-end), the stack's own maximum, and lifetimes.
//!
//! Times are microseconds: the viewer's numbers are exact up to 2^53 only, and lifetimes are sums.

mod read;

use std::io::{self, Write};

use heaptoll_profiles::{Frame, Measure, Profile};
use serde::Serialize;

pub use read::{is_dhat, read};

/// Objects that live less long on average are marked by the viewer, us. Events of a trace without a time of their own
/// have that of their batch, about a millisecond.
const SHORT_LIVED_US: u64 = 1000;
/// The frame that the viewer requires to be the first.
const ROOT: &str = "[root]";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    dhat_file_version: u32,
    mode: &'a str,
    verb: &'a str,
    /// Whether there are lifetimes and maxima.
    bklt: bool,
    /// Whether there are accesses.
    bkacc: bool,
    tu: &'a str,
    #[serde(rename = "Mtu")]
    mtu: &'a str,
    tuth: u64,
    cmd: String,
    pid: i32,
    te: u64,
    tg: u64,
}

/// A program point: a stack.
#[derive(Serialize)]
struct Point {
    tb: u64,
    tbk: u64,
    tl: u64,
    mb: u64,
    mbk: u64,
    gb: u64,
    gbk: u64,
    eb: u64,
    ebk: u64,
    /// Innermost first.
    fs: Vec<u32>,
}

pub fn write(profile: &Profile, out: &mut dyn Write) -> io::Result<()> {
    let subject = &profile.subject;
    let head = Head {
        dhat_file_version: 2,
        mode: "heap",
        verb: "Allocated",
        bklt: true,
        bkacc: false,
        tu: "µs",
        mtu: "s",
        tuth: SHORT_LIVED_US,
        cmd: subject.command.join(" "),
        pid: subject.pid,
        te: subject.to_ns.saturating_sub(subject.from_ns) / 1000,
        tg: subject.peak_ns.saturating_sub(subject.from_ns) / 1000,
    };
    let head = serde_json::to_string(&head)?;
    out.write_all(head.trim_end_matches('}').as_bytes())?;
    out.write_all(b",\n\"pps\":[")?;
    for (at, stack) in profile.stacks().enumerate() {
        let value = |measure| profile.column(measure).map_or(0, |column| stack.values[column]);
        let point = Point {
            tb: value(Measure::AllocatedBytes),
            tbk: value(Measure::AllocatedObjects),
            tl: value(Measure::LifetimeNs) / 1000,
            mb: value(Measure::OwnPeakBytes),
            mbk: value(Measure::OwnPeakObjects),
            gb: value(Measure::PeakBytes),
            gbk: value(Measure::PeakObjects),
            eb: value(Measure::EndBytes),
            ebk: value(Measure::EndObjects),
            fs: profile.path(stack.call).map(|call| profile.calls()[call as usize].frame + 1).collect(),
        };
        out.write_all(if at > 0 { b",\n" } else { b"\n" })?;
        serde_json::to_writer(&mut *out, &point)?;
    }
    write!(out, "],\n\"ftbl\":[\"{ROOT}\"")?;
    for frame in profile.frames() {
        out.write_all(b",\n")?;
        serde_json::to_writer(&mut *out, &shown(frame))?;
    }
    out.write_all(b"]}\n")
}

/// As Valgrind writes a frame: `0x1234: f (file.c:12)` or `0x1234: f (in /usr/bin/prog)`.
fn shown(frame: &Frame) -> String {
    let place = match (frame.file.as_str(), frame.object.as_str(), frame.line) {
        ("", "", _) => String::new(),
        ("", object, _) => format!(" (in {object})"),
        (file, _, 0) => format!(" ({file})"),
        (file, _, line) => format!(" ({file}:{line})"),
    };
    format!("{:#x}: {}{place}", frame.call_address(), frame.name())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::Format;
    use crate::testing::{CHOICE, hostile, small, text};

    fn read(profile: &Profile) -> Value {
        serde_json::from_str(&text(Format::Dhat, profile, CHOICE)).expect("JSON")
    }

    #[test]
    fn it_has_the_fields_that_the_viewer_checks_and_the_profiles_sums() {
        let file = read(&small());
        // What `dh_view.js` requires before it shows anything.
        for field in [
            "dhatFileVersion",
            "mode",
            "verb",
            "bklt",
            "bkacc",
            "tu",
            "Mtu",
            "cmd",
            "pid",
            "te",
            "tg",
            "tuth",
        ] {
            assert!(!file[field].is_null(), "{field}");
        }
        assert_eq!((&file["te"], &file["tg"], &file["pid"]), (&3000.into(), &1000.into(), &77.into()));
        assert_eq!(file["cmd"], "/bin/prog -x");
        let frames = file["ftbl"].as_array().expect("frames");
        assert_eq!((&frames[0], &frames[1]), (&ROOT.into(), &"0x11f: xmalloc (/src/x.c:7)".into()));
        assert_eq!(frames[4], "0x17f: xmalloc (in /bin/prog)");
        let points = file["pps"].as_array().expect("points");
        assert_eq!(points[0]["fs"], Value::from(vec![1, 2, 3]), "innermost first");
        for (field, measure) in [
            ("tb", Measure::AllocatedBytes),
            ("tbk", Measure::AllocatedObjects),
            ("mb", Measure::OwnPeakBytes),
            ("mbk", Measure::OwnPeakObjects),
            ("gb", Measure::PeakBytes),
            ("gbk", Measure::PeakObjects),
            ("eb", Measure::EndBytes),
            ("ebk", Measure::EndObjects),
        ] {
            let sum: u64 = points.iter().map(|point| point[field].as_u64().expect(field)).sum();
            assert_eq!(sum, small().total(measure), "{field}");
        }
        assert_eq!(points[0]["tl"], 3000);
    }

    #[test]
    fn hostile_names_stay_text() {
        let file = read(&hostile());
        assert_eq!(file["ftbl"].as_array().map(Vec::len), Some(6));
        assert_eq!(file["ftbl"][3], "0x0: <script>alert(1)</script> (x\ny.c:1)");
        assert_eq!(file["cmd"], "a\nb c;d");
    }
}
