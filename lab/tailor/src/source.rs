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
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
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
        format!("made by heaptoll lab tailor from the trace {}.", origin.trace),
        String::new(),
    ];
    lines.extend(origin.learned.iter().cloned());
    lines.push(String::new());
    lines.push("It serves any program, with any number of threads. Compile and use it by".to_owned());
    lines.push(format!("  cc {} -o my.so my.c", FLAGS[..7].join(" ")));
    lines.push(format!("     {}", FLAGS[7..].join(" ")));
    lines.push("  LD_PRELOAD=./my.so PROGRAM".to_owned());
    let lines: Vec<String> =
        lines.iter().map(|line| format!(" * {}", harmless(line)).trim_end().to_owned()).collect();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    fn plan() -> Plan {
        let mut profile = Profile::default();
        profile.requests = 100;
        profile.sizes[3].requests = 100;
        Plan::new(&profile)
    }

    #[test]
    fn the_plan_is_tables_in_front_of_the_code() {
        let text = source(&plan(), &Origin::default());
        for line in [
            "#define CLASSES 2ul",
            "static const uint8_t class_of[4] = {\n    0, 0, 1, 1,\n};",
            "static const uint16_t block_bytes[2] = {\n    0, 48,\n};",
            "EXPORT void *malloc(size_t bytes) {",
        ] {
            assert!(text.contains(line), "no `{line}` in\n{}", &text[..3000]);
        }
    }

    #[test]
    fn text_of_the_program_stays_in_the_comment() {
        let origin = Origin { command: "a*/ int x; /*\n#error \\".into(), ..Origin::default() };
        let text = source(&plan(), &origin);
        assert!(text.starts_with("/*\n * An allocator for a* / int x; / *?#error ?\n"), "{}", &text[..200]);
        assert_eq!(text.find("*/"), text.find(" */\n#define").map(|at| at + 1));
    }

    #[test]
    fn lines_are_no_longer_than_those_of_the_other_c_sources() {
        for line in PARTS.iter().flat_map(|part| part.lines()) {
            assert!(line.len() <= 120, "{line}");
        }
    }
}
