//! Call sites in words, as the tracer names their frames.

use std::collections::HashMap;

/// Frames shown of a site.
const SHOWN: usize = 4;
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

    /// Sites whose frames have the same names, each by the first of them: calls from one line, or of one function where
    /// lines are not known, are one site to a reader.
    pub fn alike(&self) -> HashMap<u32, u32> {
        let (mut ids, mut first) = (HashMap::new(), HashMap::new());
        let mut sites: Vec<(&u32, &Vec<u64>)> = self.frames.iter().collect();
        sites.sort_unstable();
        sites
            .into_iter()
            .map(|(site, frames)| {
                let name = |frame: &u64| match self.names.get(frame) {
                    Some(name) if !name.starts_with("???") => {
                        let next = ids.len() as u64;
                        (*ids.entry(name.as_str()).or_insert(next), true)
                    }
                    _ => (*frame, false),
                };
                let key: Vec<(u64, bool)> = frames.iter().map(name).collect();
                (*site, *first.entry(key).or_insert(*site))
            })
            .collect()
    }

    /// A site in one line: `parse (parse.c:12) < read < main`.
    pub fn name(&self, site: u32) -> String {
        if site == 0 {
            return "not known".into();
        }
        let frames = self.frames(site);
        let own = frames.iter().position(|frame| !hands_on(bare(frame))).unwrap_or(0);
        // What calls `main` is the same for all.
        let last = frames.iter().position(|frame| bare(frame) == "main").unwrap_or(frames.len()).max(own);
        let shown = &frames[own..frames.len().min(last + 1)];
        let mut words = Vec::new();
        for (depth, frame) in shown.iter().take(SHOWN).enumerate() {
            // `main (in /usr/bin/gawk)` is told with its object only where no function is.
            words.push(match depth {
                0 if !frame.contains("(in ") || frame.starts_with("0x") => frame.as_str(),
                _ => bare(frame),
            });
        }
        if words.is_empty() { format!("site {site}") } else { words.join(" < ") }
    }
}

/// Without the place in brackets at its end.
fn bare(frame: &str) -> &str {
    frame.rsplit_once(" (").filter(|(_, place)| place.ends_with(')')).map_or(frame, |(name, _)| name)
}

/// Functions that only hand the request on.
fn hands_on(function: &str) -> bool {
    let bare = function.trim_start_matches('_');
    matches!(bare, "strdup" | "strndup" | "asprintf" | "vasprintf")
        || bare.starts_with("operator new")
        || bare.starts_with("std::allocator")
        || bare.starts_with("GI_") && hands_on(&bare[3..])
        || matches!(bare, "malloc" | "calloc" | "realloc" | "reallocarray" | "memalign" | "aligned_alloc")
        || matches!(bare, "posix_memalign" | "valloc" | "pvalloc" | "xmalloc" | "xcalloc" | "xrealloc")
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
            (2, "make_node (node.c:12)"),
            (3, "std::foo(int) (in /usr/bin/x)"),
            (4, "??? (in /usr/bin/x)"),
            (6, "main (m.c:1)"),
        ] {
            sites.name_frame(frame, name.as_bytes());
        }
        assert_eq!(sites.name(3), "make_node (node.c:12) < std::foo(int) < 0x4 < 0x5");
        assert_eq!(sites.frames(3)[3], "0x4 (in /usr/bin/x)");
        sites.define(4, &[1, 2, 6, 5]);
        sites.define(5, &[1, 7, 6, 5]);
        sites.name_frame(7, b"make_node (node.c:12)");
        assert_eq!(sites.name(4), "make_node (node.c:12) < main");
        let alike = sites.alike();
        assert_eq!([3, 4, 5].map(|site| alike[&site]), [3, 4, 4]);
        assert_eq!((sites.name(0), sites.name(9)), ("not known".into(), "site 9".into()));
    }
}
