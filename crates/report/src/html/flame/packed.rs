//! A tree in the form that the page's script reads (`templates/flame/decode.js`): numbers in LEB128, first the length of
//! the head, which is JSON, and the head; then the functions in columns (name, object, file, as indices of the head's
//! texts); then the nodes in columns (how many levels up from the node before the parent is, function, calls merged, how
//! many source lines), then the first lines of all nodes, then for each measure the nodes' own values, and those of the
//! base where there is one. A column begins with nothing; functions and nodes with their number. Compressed, most of these
//! numbers take bits.

use std::collections::HashMap;
use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use heaptoll_profiles::{Measure, Unit};
use serde::Serialize;

use super::tree::{NONE, Tree};
use crate::ReportError;
use crate::format::printable;

/// Characters of a name that are kept.
const NAME: usize = 1000;

#[derive(Serialize)]
struct Head<'a> {
    measures: Vec<MeasureHead>,
    /// Names of the base and of the flame's own profile, of a comparison.
    sides: Option<&'a [String; 2]>,
    /// The measure that is shown first.
    first: usize,
    texts: Vec<String>,
}

#[derive(Serialize)]
struct MeasureHead {
    title: &'static str,
    unit: &'static str,
}

/// The tree as bytes; the picture begins with the measure at this index. `sides`: names of the base and of the flame's own
/// profile, where it has both.
///
/// # Errors
/// `Encode` when the head cannot be written.
pub fn pack(tree: &Tree, first: usize, sides: Option<&[String; 2]>) -> Result<Vec<u8>, ReportError> {
    let mut texts = Texts::default();
    let mut columns = Vec::new();
    let functions: Vec<[usize; 3]> = tree
        .functions
        .iter()
        .map(|function| [&function.name, &function.object, &function.file].map(|text| texts.number(text)))
        .collect();
    push(&mut columns, functions.len() as u64);
    for column in 0..3 {
        functions.iter().for_each(|function| push(&mut columns, function[column] as u64));
    }
    push(&mut columns, tree.nodes.len() as u64);
    ups(tree).for_each(|up| push(&mut columns, up));
    tree.nodes.iter().for_each(|node| push(&mut columns, node.function.into()));
    tree.nodes.iter().for_each(|node| push(&mut columns, node.merged));
    (0..tree.nodes.len()).for_each(|node| push(&mut columns, tree.lines.count(node).into()));
    let lines = (0..tree.nodes.len()).flat_map(|node| tree.lines.of(node));
    lines.for_each(|&line| push(&mut columns, line.into()));
    for (measure, side) in (0..tree.measures.len()).flat_map(|at| (0..tree.sides).map(move |side| (at, side)))
    {
        (0..tree.nodes.len()).for_each(|node| push(&mut columns, tree.value(node, measure, side)));
    }
    let head = Head {
        measures: tree.measures.iter().map(|measure| head(*measure)).collect(),
        sides,
        first,
        texts: texts.all,
    };
    let head = serde_json::to_vec(&head).map_err(failed)?;
    let mut out = Vec::with_capacity(head.len() + columns.len() + 10);
    push(&mut out, head.len() as u64);
    out.extend(head);
    out.extend(columns);
    Ok(out)
}

/// Bytes, gzip in base64.
///
/// # Errors
/// `Encode` when they cannot be compressed.
pub fn base64(bytes: &[u8]) -> Result<String, ReportError> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(6));
    let bytes = encoder.write_all(bytes).and_then(|()| encoder.finish());
    bytes.map(|bytes| STANDARD.encode(bytes)).map_err(failed)
}

fn failed(error: impl std::fmt::Display) -> ReportError {
    ReportError::Encode { form: "HTML", detail: error.to_string() }
}

fn head(measure: Measure) -> MeasureHead {
    let unit = match measure.unit() {
        Unit::Count => "",
        Unit::Bytes => "bytes",
        Unit::Nanoseconds => "ns",
        Unit::ByteInstructions => "bytes \u{d7} 1000 instructions",
        Unit::ByteBytes => "bytes \u{d7} KiB allocated",
    };
    MeasureHead { title: measure.title(), unit }
}

/// For each node, how many levels above the node before it its parent is: 0 where that is its parent.
fn ups(tree: &Tree) -> impl Iterator<Item = u64> {
    let mut depth = 0_u64;
    let mut depths = Vec::with_capacity(tree.nodes.len());
    tree.nodes.iter().map(move |node| {
        let own = if node.parent == NONE { 1 } else { depths[node.parent as usize] + 1 };
        depths.push(own);
        let up = depth + 1 - own;
        depth = own;
        up
    })
}

fn push(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Printable texts, each once.
#[derive(Default)]
struct Texts {
    all: Vec<String>,
    known: HashMap<String, usize>,
}

impl Texts {
    fn number(&mut self, text: &str) -> usize {
        if let Some(&number) = self.known.get(text) {
            return number;
        }
        self.known.insert(text.to_owned(), self.all.len());
        self.all.push(short(&printable(text)));
        self.all.len() - 1
    }
}

/// A text of bounded length.
fn short(text: &str) -> String {
    match text.char_indices().nth(NAME) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
