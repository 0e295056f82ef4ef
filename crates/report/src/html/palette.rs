//! One colour and one symbol a name, of a stack most often, the same in every chart, table and legend of a page.
//!
//! The hues are those of Okabe and Ito, which readers with any common colour blindness distinguish; the page's style
//! sheet holds two shades of each, for paper and for the dark. Symbols differ too, so no figure rests on colour alone.

use heaptoll_units::each_once;

/// Hues besides the baseline's grey; the style sheet defines `--hue-0` to `--hue-5`.
const HUES: usize = 6;

/// How a stack is drawn.
#[derive(Debug, Clone)]
pub(super) struct Mark {
    /// A CSS variable, resolved by the page for its theme.
    pub color: String,
    /// Its symbol, as an SVG path in a box from -6 to 6.
    pub path: &'static str,
}

/// The marks of a page's names; of none by default.
#[derive(Default)]
pub(super) struct Palette {
    baseline: String,
    stacks: Vec<String>,
}

impl Palette {
    /// Marks for names, the first being the baseline.
    pub fn new<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let mut distinct = each_once(names.map(str::to_owned));
        let baseline = if distinct.is_empty() { String::new() } else { distinct.remove(0) };
        Palette { baseline, stacks: distinct }
    }

    /// Whether it has no names.
    pub fn is_empty(&self) -> bool {
        self.baseline.is_empty()
    }

    /// Every stack, the baseline first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.baseline.as_str()).chain(self.stacks.iter().map(String::as_str))
    }

    /// How this name is drawn, where it is one of the palette's.
    pub fn find(&self, name: &str) -> Option<Mark> {
        let known = !name.is_empty() && self.names().any(|known| known == name);
        known.then(|| self.mark(name))
    }

    /// How this stack is drawn.
    fn mark(&self, stack: &str) -> Mark {
        match self.stacks.iter().position(|name| name == stack) {
            None => Mark { color: "var(--hue-base)".into(), path: CIRCLE },
            Some(index) => {
                // Hues repeat after six stacks and symbols after eight: 24 stacks before a pair repeats.
                let shape = (index + 1) % PATHS.len();
                let color = format!("var(--hue-{})", index % HUES);
                Mark { color, path: PATHS[shape] }
            }
        }
    }
}

/// The first symbol.
pub(super) const CIRCLE: &str = PATHS[0];

const PATHS: [&str; 8] = [
    "M5,0A5,5 0 1,1 -5,0A5,5 0 1,1 5,0Z",
    "M-4.5,-4.5H4.5V4.5H-4.5Z",
    "M0,-5.8L5.8,0L0,5.8L-5.8,0Z",
    "M0,-5.4L5.6,4.4H-5.6Z",
    "M0,5.4L5.6,-4.4H-5.6Z",
    "M-1.9,-5.5H1.9V-1.9H5.5V1.9H1.9V5.5H-1.9V1.9H-5.5V-1.9H-1.9Z",
    "M-5.2,-2.6L-2.6,-5.2L0,-2.6L2.6,-5.2L5.2,-2.6L2.6,0L5.2,2.6L2.6,5.2L0,2.6L-2.6,5.2L-5.2,2.6L-2.6,0Z",
    "M0,-6L1.4,-1.9H5.7L2.2,0.7L3.5,4.9L0,2.3L-3.5,4.9L-2.2,0.7L-5.7,-1.9H-1.4Z",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_stable_and_differ() {
        let palette = Palette::new("glibc a b a c d e f".split(' '));
        let names: Vec<&str> = palette.names().collect();
        assert_eq!(names, ["glibc", "a", "b", "c", "d", "e", "f"]);
        assert!(palette.find("other").is_none() && Palette::default().find("").is_none());
        let mut marks: Vec<(String, &str)> =
            names.iter().map(|name| palette.mark(name)).map(|mark| (mark.color, mark.path)).collect();
        marks.sort();
        marks.dedup();
        assert_eq!(marks.len(), names.len());
    }
}
