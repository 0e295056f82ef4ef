//! The JSON Schemas of everything that heaptoll writes as JSON, as files: `make reference` writes them.

use std::collections::BTreeSet;
use std::path::Path;

use heaptoll_command::labelled::{Envelope, Labelled, read};
use heaptoll_laboratory::{artifact, cluster};
use heaptoll_trace_reports::stat;
use heaptoll_traced::drag;
use serde_json::{Value, json};

use crate::REGISTRY;

fn schema<F: Labelled>() -> Value {
    REGISTRY.schemas().into_iter().find(|known| known.tag == F::SCHEMA).expect("a command states it").schema()
}

#[test]
fn every_command_has_a_schema_of_its_own_name() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/schemas");
    let mut names = BTreeSet::new();
    for command in REGISTRY.schemas() {
        assert!(names.insert(command.command()), "{} twice", command.command());
        if std::env::var_os("WRITE_DOCS").is_some() {
            std::fs::create_dir_all(&folder).expect("the folder");
            let text = serde_json::to_string_pretty(&command.schema()).expect("JSON");
            let path = folder.join(format!("{}.schema.json", command.command()));
            std::fs::write(path, text + "\n").expect("writes");
        }
    }
    assert!(names.contains("experiment") && names.contains("study"), "{names:?}");
}

#[test]
fn a_schema_names_its_version() {
    let stat = schema::<stat::Figures>();
    assert_eq!(stat["properties"]["schema"]["const"], "heaptoll-stat/1");
    assert!(stat["required"].as_array().is_some_and(|fields| fields.contains(&json!("subject"))));
}

#[test]
fn a_file_with_a_format_of_its_own_has_its_two_parts() {
    for (schema, format, version) in [
        (schema::<artifact::Description>(), artifact::format::FORMAT, artifact::format::VERSION),
        (schema::<cluster::Plan>(), cluster::format::FORMAT, cluster::format::VERSION),
    ] {
        assert_eq!(schema["properties"]["format"]["const"], format);
        assert_eq!(schema["properties"]["version"]["const"], version);
        assert_eq!(schema["properties"].get("schema"), None);
    }
}

#[test]
fn what_is_written_is_read_as_the_same_figures() {
    let figures = stat::Figures { objects: u64::MAX, average_size_bytes: Some(0.1), ..Default::default() };
    let text = serde_json::to_string(&Envelope::new(&figures)).expect("JSON");
    assert_eq!(read::<stat::Figures>(&text).expect("figures"), figures);
}

#[test]
fn space_time_of_more_than_64_bits_is_read_back_exactly() {
    let space = heaptoll_drag::space::Space { drag: u128::from(u64::MAX) * 1000, ..Default::default() };
    let totals = drag::ImageTotals { space_bytes: space, ..Default::default() };
    let row = drag::Row { all_images: Some(totals), ..Default::default() };
    let program = drag::Program { managers: vec![row], ..Default::default() };
    let clock = heaptoll_drag::Clock::Bytes;
    let figures = drag::ExactDragFigures { complete: true, pinned: true, clock, programs: vec![program] };
    let text = serde_json::to_string(&Envelope::new(&figures)).expect("JSON");
    assert_eq!(read::<drag::ExactDragFigures>(&text).expect("figures"), figures);
}
