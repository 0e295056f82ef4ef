//! Tests of the laboratory's binary, and of what every command of the product and the laboratory does. One test binary, so
//! that all tests run in parallel.

// The product's tests use the rest.
#[allow(dead_code)]
#[path = "../../../../crates/cli/tests/cli/fixture.rs"]
mod fixture;
#[path = "../../../../crates/cli/tests/cli/golden_files.rs"]
mod golden_files;
#[path = "../../../../crates/cli/tests/cli/schemas.rs"]
mod schemas;

mod added_managers;
mod artifact;
mod catalog_entry;
mod cluster;
mod cluster_gate;
mod conservatism;
mod delay;
mod documented;
mod frequency;
mod golden;
mod handed_over;
mod java;
mod minheap;
mod oracle;
mod originals;
mod over_managers;
mod proximity;
mod replaying_graphs;
mod sets;
mod standard_input;
mod studies;
mod tailoring;
mod typed;
mod unreachable;

use heaptoll_lab::REGISTRY;

/// The binary under test.
const HEAPTOLL: &str = env!("CARGO_BIN_EXE_heaptoll-lab");
