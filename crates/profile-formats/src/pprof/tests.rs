//! Profiles are decoded and compared with what they were made of.

use std::io::Read;

use flate2::read::GzDecoder;
use prost::Message;

use super::schema;
use crate::testing::{CHOICE, bytes, hostile, small};
use crate::{Choice, Format, Instant};
use heaptoll_profiles::{Frame, Measure, Profile};

fn decoded(profile: &Profile, choice: Choice) -> schema::Profile {
    let mut plain = Vec::new();
    GzDecoder::new(&bytes(Format::Pprof, profile, choice)[..]).read_to_end(&mut plain).expect("gzip");
    schema::Profile::decode(&plain[..]).expect("a message")
}

/// The functions of a sample, innermost first, with lines.
fn names(read: &schema::Profile, sample: usize) -> Vec<Vec<(&str, i64)>> {
    let text = |index: i64| read.string_table[index as usize].as_str();
    let function = |id: u64| read.function.iter().find(|function| function.id == id).expect("a function");
    let location = |id: u64| read.location.iter().find(|location| location.id == id).expect("a location");
    let lines = |id| location(id).line.iter().map(|line| (text(function(line.function_id).name), line.line));
    read.sample[sample].location_id.iter().map(|&id| lines(id).collect()).collect()
}

#[test]
fn samples_have_the_types_of_gos_heap_profiles_and_the_profiles_sums() {
    for instant in [Instant::End, Instant::Peak] {
        let read = decoded(&small(), Choice { instant, ..CHOICE });
        let text = |index: i64| read.string_table[index as usize].as_str();
        assert_eq!(read.string_table[0], "");
        let types: Vec<_> =
            read.sample_type.iter().map(|kind| (text(kind.r#type), text(kind.unit))).collect();
        assert_eq!(types, super::TYPES);
        assert_eq!(text(read.default_sample_type), "inuse_space");
        for (at, measure) in crate::format::four(instant).into_iter().enumerate() {
            let sum: i64 = read.sample.iter().map(|sample| sample.value[at]).sum();
            assert_eq!(sum as u64, small().total(measure), "{}", measure.name());
        }
        assert_eq!(text(read.comment[0]), "/bin/prog -x");
        assert_eq!((read.duration_nanos, read.time_nanos), (3_000_000, 1_700_000_000_000_000_000));
    }
    assert_eq!(small().total(Measure::PeakBytes), 136);
}

#[test]
fn inlined_functions_are_lines_of_one_location() {
    let read = decoded(&small(), CHOICE);
    assert_eq!(names(&read, 0), [vec![("xmalloc", 7), ("parse", 12)], vec![("main", 3)]]);
    let (location, mapping) = (&read.location[0], &read.mapping[0]);
    assert_eq!(read.string_table[mapping.filename as usize], "/bin/prog");
    assert_eq!(location.address, mapping.memory_start + 0x11f, "the call, not what follows it");
    assert!((mapping.memory_start..mapping.memory_limit).contains(&location.address));
    assert!(mapping.has_functions && mapping.has_line_numbers);
}

#[test]
fn hostile_names_stay_text() {
    let read = decoded(&hostile(), CHOICE);
    let names: Vec<_> = names(&read, 0).into_iter().map(|lines| lines[0].0).collect();
    assert_eq!(names, ["bin+0x40", "é \u{fffd}", "<script>alert(1)</script>", "new\nline", "a;b"]);
}

/// Before, a profile without names had none, though the file that was mapped is here.
#[test]
fn addresses_without_functions_get_those_of_the_files_that_were_mapped() {
    let mut message = decoded(&small(), CHOICE);
    message.location.iter_mut().for_each(|location| location.line.clear());
    let mut offsets = Vec::new();
    let found = super::read::read(&message.encode_to_vec(), 1 << 20, &mut |mapped, addresses| {
        let file = mapped.iter().find(|file| file.path == "/bin/prog").expect("the program");
        offsets.extend(addresses.iter().map(|address| address - file.start));
        vec![vec![Frame { function: "known".into(), ..Frame::default() }]; addresses.len()]
    });
    assert!(offsets.contains(&0x120), "what follows the call: {offsets:x?}");
    let found = found.expect("reads").profile;
    assert!(found.frames().iter().any(|frame| frame.function == "known"));
}
