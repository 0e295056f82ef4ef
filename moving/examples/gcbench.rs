//! Writes GCBench's trace: `cargo run --release --example gcbench FILE DEPTH`.

#[path = "../tests/common/mod.rs"]
mod common;

use std::path::Path;

use common::gcbench::Bench;
use heaptoll_trace::TraceFile;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, file, depth] = arguments.as_slice() else {
        eprintln!("usage: gcbench FILE DEPTH");
        return;
    };
    let depth = depth.parse().expect("DEPTH is a number");
    let mut scenario =
        common::Scenario::begin(TraceFile::create(Path::new(file), true).expect("FILE can be made"));
    Bench::new(&mut scenario, 1 << 20).run(depth);
    scenario.end();
}
