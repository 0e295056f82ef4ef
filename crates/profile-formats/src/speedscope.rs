//! speedscope's JSON: a table of frames, and for each figure a profile of samples with weights.
//!
//! <https://www.speedscope.app/file-format-schema.json> is the schema.

use std::io::{self, Write};

use heaptoll_profiles::{Frame, Profile, Unit};
use serde::Serialize;

use crate::format::{Choice, four};

#[derive(Serialize)]
struct SharedFrame<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    file: &'a str,
    #[serde(skip_serializing_if = "is_unknown")]
    line: u32,
}

fn is_unknown(line: &u32) -> bool {
    *line == 0
}

pub fn write(profile: &Profile, choice: Choice, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(
        b"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"heaptoll\",",
    )?;
    field("name", profile.subject.program(), out)?;
    let shown: Vec<_> =
        four(choice.instant).into_iter().filter(|measure| profile.column(*measure).is_some()).collect();
    let active = shown.iter().position(|measure| *measure == choice.count.measure(choice.instant));
    write!(out, ",\"activeProfileIndex\":{},\"shared\":{{\"frames\":[", active.unwrap_or(0))?;
    for (at, frame) in profile.frames().iter().enumerate() {
        comma(at, out)?;
        shared(frame, out)?;
    }
    out.write_all(b"]},\"profiles\":[")?;
    for (at, measure) in shown.into_iter().enumerate() {
        comma(at, out)?;
        let unit = if measure.unit() == Unit::Bytes { "bytes" } else { "none" };
        let total = profile.total(measure);
        out.write_all(b"{\"type\":\"sampled\",")?;
        field("name", measure.title(), out)?;
        write!(out, ",\"unit\":\"{unit}\",\"startValue\":0,\"endValue\":{total},")?;
        samples(profile, profile.column(measure).unwrap_or(0), out)?;
    }
    out.write_all(b"]}\n")
}

fn samples(profile: &Profile, column: usize, out: &mut dyn Write) -> io::Result<()> {
    let with_value = || profile.stacks().filter(|stack| stack.values[column] > 0);
    out.write_all(b"\"samples\":[")?;
    for (at, stack) in with_value().enumerate() {
        comma(at, out)?;
        let mut path: Vec<u32> =
            profile.path(stack.call).map(|call| profile.calls()[call as usize].frame).collect();
        path.reverse();
        serde_json::to_writer(&mut *out, &path)?;
    }
    out.write_all(b"],\"weights\":[")?;
    for (at, stack) in with_value().enumerate() {
        comma(at, out)?;
        write!(out, "{}", stack.values[column])?;
    }
    out.write_all(b"]}")
}

fn shared(frame: &Frame, out: &mut dyn Write) -> io::Result<()> {
    let shared = SharedFrame { name: &frame.name(), file: &frame.file, line: frame.line };
    Ok(serde_json::to_writer(out, &shared)?)
}

fn field(name: &str, text: &str, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "\"{name}\":")?;
    Ok(serde_json::to_writer(out, text)?)
}

fn comma(at: usize, out: &mut dyn Write) -> io::Result<()> {
    if at > 0 { out.write_all(b",") } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use heaptoll_profiles::Measure;
    use serde_json::Value;

    use crate::testing::{CHOICE, hostile, small, text};
    use crate::{Choice, Count, Format, Instant};

    fn read(text: &str) -> Value {
        serde_json::from_str(text).expect("JSON")
    }

    #[test]
    fn it_has_the_members_that_the_schema_requires_and_the_profiles_sums() {
        let choice = Choice { count: Count::LiveBytes, instant: Instant::Peak };
        let file = read(&text(Format::Speedscope, &small(), choice));
        assert_eq!(file["$schema"], "https://www.speedscope.app/file-format-schema.json");
        assert_eq!(file["activeProfileIndex"], 3);
        let frames = file["shared"]["frames"].as_array().expect("frames");
        assert_eq!(frames[0]["name"], "xmalloc");
        assert_eq!((&frames[0]["file"], &frames[0]["line"]), (&"/src/x.c".into(), &7.into()));
        assert!(frames[3].get("line").is_none(), "unknown");
        let profiles = file["profiles"].as_array().expect("profiles");
        let measures =
            [Measure::AllocatedObjects, Measure::AllocatedBytes, Measure::PeakObjects, Measure::PeakBytes];
        assert_eq!(profiles.len(), measures.len());
        for (profile, measure) in profiles.iter().zip(measures) {
            let unit = if measure.name().ends_with("bytes") { "bytes" } else { "none" };
            assert_eq!((&profile["type"], &profile["unit"]), (&"sampled".into(), &unit.into()));
            let weights = profile["weights"].as_array().expect("weights");
            let samples = profile["samples"].as_array().expect("samples");
            assert_eq!(weights.len(), samples.len());
            assert!(
                samples
                    .iter()
                    .flat_map(|s| s.as_array().expect("frames"))
                    .all(|frame| { (frame.as_u64().expect("a number") as usize) < frames.len() })
            );
            let sum: u64 = weights.iter().filter_map(Value::as_u64).sum();
            assert_eq!(sum, small().total(measure));
            assert_eq!(profile["endValue"], sum);
        }
        let outermost_first = &profiles[1]["samples"][0];
        let names: Vec<&str> = outermost_first
            .as_array()
            .expect("frames")
            .iter()
            .map(|frame| frames[frame.as_u64().expect("number") as usize]["name"].as_str().expect("text"))
            .collect();
        assert_eq!(names, ["main", "parse", "xmalloc"]);
    }

    #[test]
    fn hostile_names_stay_text() {
        let file = read(&text(Format::Speedscope, &hostile(), CHOICE));
        let names: Vec<&str> = file["shared"]["frames"]
            .as_array()
            .expect("frames")
            .iter()
            .filter_map(|frame| frame["name"].as_str())
            .collect();
        assert!(names.contains(&"a;b") && names.contains(&"new\nline"), "{names:?}");
    }
}
