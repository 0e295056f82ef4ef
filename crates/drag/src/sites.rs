//! Call sites as the tracer names their frames, and the rows of a table that they read as.

use std::collections::HashMap;

use heaptoll_callsites::{Frame, Rows};

/// Sites and frames kept; more are numbers.
const KEPT: usize = 1 << 20;

/// Call sites and the names of their frames.
#[derive(Debug, Clone, Default)]
pub struct Sites {
    frames: HashMap<u32, Vec<u64>>,
    names: HashMap<u64, String>,
}

impl Sites {
    /// A site's frames, innermost first.
    pub fn define(&mut self, site: u32, frames: &[u64]) {
        if self.frames.len() < KEPT {
            self.frames.insert(site, frames.to_vec());
        }
    }

    /// A frame's name.
    pub fn name_frame(&mut self, frame: u64, name: &[u8]) {
        if self.names.len() < KEPT {
            self.names.insert(frame, String::from_utf8_lossy(name).into_owned());
        }
    }

    /// All frames of a site, innermost first: `parse (parse.c:12)`, `0x401136` where there is no name.
    pub fn frames(&self, site: u32) -> Vec<String> {
        let frames = self.frames.get(&site).map(Vec::as_slice).unwrap_or_default();
        let name = |frame: &u64| match self.names.get(frame) {
            Some(name) if !name.starts_with("???") => name.clone(),
            Some(name) => format!("{frame:#x}{}", name.trim_start_matches('?')),
            None => format!("{frame:#x}"),
        };
        frames.iter().map(name).collect()
    }

    /// The row of a site: its first frames of the program's own code, `parse (parse.c:12) < read < main`. Site 0 is
    /// `not known`.
    pub fn row(&self, site: u32, rows: &mut Rows) -> usize {
        let Some(stack) = self.frames.get(&site).filter(|stack| site != 0 && !stack.is_empty()) else {
            return rows.text(&if site == 0 { "not known".to_owned() } else { format!("site {site}") });
        };
        rows.stack(stack, |frame| {
            // An address in memory tells nothing of where it lies in its object.
            let parsed = self.names.get(&frame).map(|name| Frame::parse(name, frame)).unwrap_or_default();
            let nameless = Frame { offset: frame, ..Frame::default() };
            Some(if parsed.function.is_empty() { nameless } else { parsed })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_are_told_from_the_programs_own_frame_on() {
        let mut sites = Sites::default();
        sites.define(3, &[1, 2, 3, 4, 5, 6]);
        for (frame, name) in [
            (1, "strdup (strdup.c:42)"),
            (2, "make_node(int) (node.c:12)"),
            (3, "std::foo(int) (in /usr/bin/x)"),
            (4, "??? (in /usr/bin/x)"),
            (6, "main (m.c:1)"),
        ] {
            sites.name_frame(frame, name.as_bytes());
        }
        assert_eq!(sites.frames(3)[3], "0x4 (in /usr/bin/x)");
        sites.define(4, &[1, 2, 6, 5]);
        sites.define(5, &[1, 7, 3, 6, 5]);
        sites.name_frame(7, b"make_node(long) (node.c:12)");
        let mut rows = Rows::new(3);
        let numbers: Vec<usize> = [3, 4, 5, 0, 9].map(|site| sites.row(site, &mut rows)).into();
        assert_eq!(numbers, [0, 1, 1, 2, 3], "4 and 5 read alike");
        assert_eq!(rows.name(0), "make_node (node.c:12) < 0x4 < 0x5");
        assert_eq!(rows.name(1), "make_node (node.c:12) < main < 0x5");
        assert_eq!((rows.name(2), rows.name(3)), ("not known".into(), "site 9".into()));
    }
}
