//! A [`Flame`] on the page: the stacks, packed for the page's script, which draws them, and a table of the largest ones,
//! which needs no script.

mod functions;
mod lines;
mod packed;
mod paths;
mod tree;

use askama::Template;
use heaptoll_units::number;

use super::palette::Palette;
use super::table;
use super::views::encode;
use crate::ReportError;
use crate::document::Flame;
use crate::format::{plural, printable};
use tree::{LeftOut, Tree};

/// What draws it.
pub(super) const SCRIPT: &str = concat!(
    include_str!("../../templates/flame/inflate.js"),
    include_str!("../../templates/flame/decode.js"),
    include_str!("../../templates/flame/tree.js"),
    include_str!("../../templates/flame/text.js"),
    include_str!("../../templates/flame/change.js"),
    include_str!("../../templates/flame/picture.js"),
    include_str!("../../templates/flame/view.js")
);
/// Calls that are drawn: those with the largest shares. A page has about 15 bytes for each.
const CALLS: usize = 100_000;

#[derive(Template)]
#[template(path = "items/flame.html")]
struct FlameView {
    id: String,
    title: String,
    caption: String,
    /// Names of the base and of the flame's own profile, of a comparison.
    sides: Option<[String; 2]>,
    /// What the picture does not have.
    left_out: String,
    packed: String,
    /// The largest stacks, as HTML.
    paths: String,
}

/// Adds a flame graph to the page; nothing for a profile in which nothing has a value.
///
/// # Errors
/// `Encode` when it cannot be packed or a template cannot be filled.
pub(super) fn write(flame: &Flame, id: String, out: &mut String) -> Result<(), ReportError> {
    let tree = Tree::new(flame, CALLS);
    if tree.nodes.is_empty() {
        return Ok(());
    }
    let first = tree.measures.iter().position(|measure| *measure == flame.first).unwrap_or(0);
    let sides = flame.base.as_ref().map(|base| base.names.each_ref().map(|name| printable(name)));
    let table = match &sides {
        Some(sides) => paths::changes(&tree, first, sides),
        None => paths::table(&tree, first),
    };
    let view = FlameView {
        id,
        title: printable(&flame.title),
        caption: printable(&flame.caption),
        left_out: left_out(&tree.left_out),
        packed: packed::base64(&packed::pack(&tree, first, sides.as_ref())?)?,
        paths: table::view(&table, &Palette::default()).render().map_err(encode)?,
        sides,
    };
    view.render_into(out).map_err(encode)
}

fn left_out(left_out: &LeftOut) -> String {
    if left_out.calls == 0 {
        return String::new();
    }
    format!(
        "Of {0}, {2} have at most {1} of every measure. They are merged into one grey frame below their \
         caller, with their number and exact sum. A search does not find them.",
        plural(left_out.all, "call"),
        share(left_out.share),
        number(left_out.calls)
    )
}

/// A share that may be small, with two digits.
fn share(share: f64) -> String {
    let percent = share * 100.0;
    let digits = if percent > 0.0 { (1.0 - percent.log10().floor()).clamp(0.0, 12.0) } else { 0.0 };
    format!("{percent:.*} %", digits as usize)
}

#[cfg(test)]
mod tests;
