//! A [`Mosaic`] on the page: tiles that the style sheet draws, so that it is there without a script; figures of each on
//! hover, and by the page's script with the keys.

use askama::Template;

use super::views::encode;
use crate::ReportError;
use crate::document::{Mosaic, Tile};
use crate::format::printable;

/// What reads the figures of tiles aloud and finds those of one colour.
pub(super) const SCRIPT: &str = include_str!("../../templates/mosaic.js");
/// Hues of the style sheet.
const HUES: usize = 6;
/// A part that is there is seen: of a tile's height, in hundredths.
const LEAST: f64 = 9.0;

#[derive(Template)]
#[template(path = "items/mosaic.html")]
struct MosaicView {
    id: String,
    title: String,
    caption: String,
    bands: [String; 3],
    keys: Vec<KeyView>,
    steps_name: String,
    steps: Vec<String>,
    tiles: Vec<TileView>,
}

struct KeyView {
    /// Class of its tiles.
    class: String,
    name: String,
    figure: String,
}

struct TileView {
    /// Classes: hue, and step of tone.
    class: String,
    /// Heights from the bottom, in hundredths: of the solid band, and of the solid and the pale one.
    solid: u32,
    upper: u32,
    text: String,
}

/// Adds a mosaic to the page; nothing for one without tiles.
///
/// # Errors
/// `Encode` when a template cannot be filled.
pub(super) fn write(mosaic: &Mosaic, id: String, out: &mut String) -> Result<(), ReportError> {
    if mosaic.tiles.is_empty() {
        return Ok(());
    }
    let key = |(at, key): (usize, &crate::document::Key)| KeyView {
        class: hue(Some(at)),
        name: printable(&key.name),
        figure: printable(&key.figure),
    };
    let view = MosaicView {
        id,
        title: printable(&mosaic.title),
        caption: printable(&mosaic.caption),
        bands: mosaic.bands.each_ref().map(|band| printable(band)),
        keys: mosaic.keys.iter().enumerate().map(key).collect(),
        steps_name: printable(&mosaic.steps.0),
        steps: mosaic.steps.1.iter().map(|step| printable(step)).collect(),
        tiles: mosaic.tiles.iter().map(tile).collect(),
    };
    view.render_into(out).map_err(encode)
}

/// The class of a key's tiles; keys beyond the hues are grey, too.
fn hue(key: Option<usize>) -> String {
    key.filter(|key| *key < HUES).map_or_else(|| "h-base".into(), |key| format!("h-{key}"))
}

fn tile(tile: &Tile) -> TileView {
    let step = tile.step.map_or_else(String::new, |step| format!(" s-{step}"));
    let (solid, upper) = levels(tile.solid, tile.pale);
    let text: Vec<String> = tile.text.iter().map(|line| printable(line)).collect();
    TileView { class: format!("{}{step}", hue(tile.key)), solid, upper, text: text.join("\n") }
}

/// Heights of both bands. What is there is seen, and so is what is left: only a tile without an empty part is full.
fn levels(solid: f64, pale: f64) -> (u32, u32) {
    let band = |share: f64| if share > 0.0 { (share * 100.0).max(LEAST) } else { 0.0 };
    let rest = 1.0 - solid - pale;
    // Less is an error of rounding.
    let empty = if rest > 1e-4 { band(rest) } else { 0.0 };
    let (solid, pale) = (band(solid), band(pale));
    let all = (solid + pale + empty).max(1.0);
    let hundredths = |height: f64| (height * 100.0 / all).round() as u32;
    (hundredths(solid), hundredths(solid + pale))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Key;

    #[test]
    fn what_is_there_is_seen_and_what_is_full_is_full() {
        assert_eq!(levels(0.0, 0.0), (0, 0));
        assert_eq!(levels(1.0, 0.0), (100, 100));
        assert_eq!(levels(0.5, 0.5), (50, 100));
        assert_eq!(levels(0.25, 0.25), (25, 50));
        let (solid, upper) = levels(0.001, 0.999);
        assert!((7..=9).contains(&solid) && upper == 100, "{solid} {upper}");
        let (solid, upper) = levels(0.999, 0.001);
        assert!((91..=93).contains(&solid) && upper == 100, "{solid} {upper}");
        let (_, upper) = levels(0.0, 0.999);
        assert!(upper < 100);
    }

    #[test]
    fn tiles_have_their_figures_and_no_markup_of_others() {
        let mut out = String::new();
        let tile =
            |key, text: &str| Tile { key, step: Some(2), solid: 0.1, pale: 0.9, text: vec![text.into()] };
        let mosaic = Mosaic {
            title: "Pages".into(),
            keys: vec![Key { name: "f<b>".into(), figure: "3 MiB".into() }],
            steps: ("Age".into(), vec!["young".into(), "old".into()]),
            tiles: vec![tile(Some(0), "a \"quoted\" <img>"), tile(None, "b"), tile(Some(77), "c")],
            ..Mosaic::default()
        };
        write(&mosaic, "mosaic-0".into(), &mut out).expect("HTML");
        for text in
            ["class=\"h-0 s-2\"", "class=\"h-base s-2\"", "f&#60;b&#62;", "a &#34;quoted&#34; &#60;img&#62;"]
        {
            assert!(out.contains(text), "{text} in {out}");
        }
        assert_eq!(out.matches("--l:").count(), 3);
        let mut none = String::new();
        write(&Mosaic::default(), "mosaic-1".into(), &mut none).expect("nothing");
        assert_eq!(none, "");
    }
}
