//! pprof's `profile.proto`, compressed by gzip, with the four sample types of Go's heap profiles.
//!
//! A message of protocol buffers may be written in parts that are joined by their reader. So samples go out one by one,
//! and the tables that they lead to follow: a profile of a million stacks takes no second copy in memory.

mod read;
mod schema;
mod tables;

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use heaptoll_profiles::Profile;
use prost::Message;

use crate::format::{Instant, four};
pub use read::read;
use schema::{Sample, ValueType};
use tables::Tables;

/// Names and units of the sample types, in the order of [`four`].
const TYPES: [(&str, &str); 4] = [
    ("alloc_objects", "count"),
    ("alloc_space", "bytes"),
    ("inuse_objects", "count"),
    ("inuse_space", "bytes"),
];

pub fn write(profile: &Profile, instant: Instant, out: &mut dyn Write) -> io::Result<()> {
    let mut gzip = GzEncoder::new(out, Compression::default());
    let mut tables = Tables::new(profile);
    part(&head(profile, instant, &mut tables), &mut gzip)?;
    let columns = four(instant).map(|measure| profile.column(measure));
    for stack in profile.stacks() {
        let value = columns.map(|column| column.map_or(0, |column| stack.values[column]));
        let sample = Sample {
            location_id: tables.locations(stack.call),
            value: value.map(|value| i64::try_from(value).unwrap_or(i64::MAX)).to_vec(),
        };
        part(&schema::Profile { sample: vec![sample], ..schema::Profile::default() }, &mut gzip)?;
    }
    part(&tables.finish(), &mut gzip)?;
    gzip.finish()?.flush()
}

/// What a profile is of.
fn head(profile: &Profile, instant: Instant, tables: &mut Tables) -> schema::Profile {
    let subject = &profile.subject;
    let sample_type =
        TYPES.map(|(name, unit)| ValueType { r#type: tables.text(name), unit: tables.text(unit) }).to_vec();
    let live = profile.total(instant.measures()[1]);
    let shown_first = if live > 0 { TYPES[3] } else { TYPES[1] };
    let when = match instant {
        Instant::End => format!("inuse: live at {:.3} s, the end", subject.to_ns as f64 / 1e9),
        Instant::Peak => format!("inuse: live at {:.3} s, the peak", subject.peak_ns as f64 / 1e9),
    };
    let comment = [subject.command.join(" "), when].map(|text| tables.text(&text)).to_vec();
    let ns = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
    schema::Profile {
        sample_type,
        comment,
        time_nanos: ns(subject.started_unix_s.saturating_mul(1_000_000_000).saturating_add(subject.from_ns)),
        duration_nanos: ns(subject.to_ns.saturating_sub(subject.from_ns)),
        period_type: Some(ValueType { r#type: tables.text("space"), unit: tables.text("bytes") }),
        // Without samples every byte is counted. The values of both are those of all objects: readers scale nothing.
        period: ns(subject.sampled_bytes.unwrap_or(1)),
        default_sample_type: tables.text(shown_first.0),
        ..schema::Profile::default()
    }
}

fn part(message: &schema::Profile, out: &mut impl Write) -> io::Result<()> {
    out.write_all(&message.encode_to_vec())
}

#[cfg(test)]
mod tests;
