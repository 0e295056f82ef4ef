//! The C source of an allocator: a comment, the plan as tables, and the algorithm.

use std::fmt::Write;

use crate::compile::FLAGS;
use crate::plan::{Class, PAGE, Plan};
use crate::profile::GRANULE;

const PARTS: [&str; 6] = [
    include_str!("source/c/region.c"),
    include_str!("source/c/heap.c"),
    include_str!("source/c/classes.c"),
    include_str!("source/c/threads.c"),
    include_str!("source/c/caches.c"),
    include_str!("source/c/family.c"),
];

const INCLUDES: &str = "#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
";

/// What the comment at the top of a source states.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// The recorded command.
    pub command: String,
    /// The trace.
    pub trace: String,
    /// What was learned, a sentence a line.
    pub learned: Vec<String>,
}

/// The source.
pub fn source(plan: &Plan, origin: &Origin) -> String {
    let mut text = comment(origin);
    text.push_str(INCLUDES);
    text.push('\n');
    text.push_str(&tables(plan));
    for part in PARTS {
        text.push('\n');
        text.push_str(part);
    }
    text
}

fn comment(origin: &Origin) -> String {
    let mut lines = vec![
        format!("An allocator for {}", origin.command),
        format!("made by heaptoll tailor from the trace {}.", origin.trace),
        String::new(),
    ];
    lines.extend(origin.learned.iter().cloned());
    lines.push(String::new());
    lines.push("It serves any program, with any number of threads. Compile and use it by".to_owned());
    lines.push(format!("  cc {} -o my.so my.c", FLAGS[..7].join(" ")));
    lines.push(format!("     {}", FLAGS[7..].join(" ")));
    lines.push("  LD_PRELOAD=./my.so PROGRAM".to_owned());
    let lines: Vec<String> = lines.iter().map(|line| format!(" * {}", harmless(line)).trim_end().to_owned()).collect();
    format!("/*\n{}\n */\n", lines.join("\n"))
}

/// Text of the recorded program within a comment: it can neither end it, nor open one, nor continue a line.
fn harmless(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() || c == '\\' { '?' } else { c }).collect();
    clean.replace("*/", "* /").replace("/*", "/ *").replace("??/", "? ?/")
}

fn tables(plan: &Plan) -> String {
    let mut text = String::from("/* ---- The plan ---- */\n\n");
    for (name, value) in [
        ("PAGE", PAGE),
        ("UNIT", plan.unit_bytes),
        ("REGION_BYTES", plan.region_bytes),
        ("MIN_REGION_BYTES", 16 << 20),
        ("GROWTH_BYTES", plan.growth_bytes),
        ("GIVE_BACK_BYTES", plan.give_back_bytes),
        ("MAP_FROM_BYTES", plan.map_from_bytes),
        ("CLASSES", plan.classes.len() as u64 + 1),
        ("LARGEST_CLASS_BYTES", (plan.class_of.len() as u64 - 1) * GRANULE),
    ] {
        let _ = writeln!(text, "#define {name} {value}ul");
    }
    array(&mut text, "uint8_t", "class_of", plan.class_of.iter().map(|&class| u64::from(class)));
    let mut columns = |kind, name, column: fn(&Class) -> u64| {
        array(&mut text, kind, name, std::iter::once(0).chain(plan.classes.iter().map(column)));
    };
    columns("uint16_t", "block_bytes", |class| class.block_bytes);
    columns("uint8_t", "chunk_units", |class| class.chunk_units);
    columns("uint16_t", "kept_blocks", |class| class.kept_blocks);
    columns("uint8_t", "populate_pages", |class| class.populate_bytes / PAGE);
    text
}

fn array(text: &mut String, kind: &str, name: &str, values: impl Iterator<Item = u64>) {
    let values: Vec<String> = values.map(|value| value.to_string()).collect();
    let _ = write!(text, "static const {kind} {name}[{}] = {{", values.len());
    for line in values.chunks(16) {
        let _ = write!(text, "\n    {},", line.join(", "));
    }
    text.push_str("\n};\n");
}
