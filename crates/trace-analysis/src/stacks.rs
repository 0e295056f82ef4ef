//! The call stacks of a trace as rows of a table: those that read alike are one.

use std::collections::HashMap;

use heaptoll_callsites::{Frame, Rows, WholeFrame};
use heaptoll_trace::Sites;

use crate::site_sums::SITES;

/// Call stacks by their numbers in a trace, and their rows.
#[derive(Debug)]
pub struct CallSites<'a> {
    sites: &'a Sites,
    rows: Rows,
}

impl<'a> CallSites<'a> {
    /// Rows of the stacks of a trace; a row shows `shown` frames of the program's own code.
    pub fn new(sites: &'a Sites, shown: usize) -> CallSites<'a> {
        CallSites { sites, rows: Rows::new(shown) }
    }

    /// The row of a site. Site 0, and one without frames, is `not recorded`; one that the trace does not describe has
    /// a row for itself, `unknown site 7`.
    pub fn row(&mut self, site: u32) -> usize {
        let Some(stack) = self.sites.sites.get(site as usize) else {
            return self.rows.text(&format!("unknown site {site}"));
        };
        let numbers: Vec<u64> = stack.frames.iter().map(|&frame| u64::from(frame)).collect();
        let sites = self.sites;
        self.rows.stack(&numbers, |number| sites.frames.get(number as usize).map(borrowed))
    }

    /// The row of a site of which sums are kept: the last one has all further sites.
    pub fn row_of_sums(&mut self, site: u32) -> usize {
        if site == SITES - 1 { self.rows.text("all further sites") } else { self.row(site) }
    }

    /// For each site of the trace the first one that has the same row.
    pub fn first_alike(&mut self) -> Vec<u32> {
        let mut first_by_row: HashMap<usize, u32> = HashMap::new();
        let sites = u32::try_from(self.sites.sites.len()).unwrap_or(u32::MAX);
        (0..sites).map(|site| *first_by_row.entry(self.row(site)).or_insert(site)).collect()
    }

    /// The text of a row, once all its sites were added: `parse_term (parse.c:120) < parse (x1 to x7) < main`.
    pub fn name(&self, row: usize) -> String {
        self.rows.name(row)
    }

    /// All frames of a site, innermost first.
    pub fn whole(&self, site: u32) -> Vec<WholeFrame> {
        let frames = self.numbers(site).iter().filter_map(|&frame| self.sites.frames.get(frame as usize));
        frames.map(|frame| borrowed(frame).whole()).collect()
    }

    /// Numbers of a site's frames, innermost first.
    pub fn numbers(&self, site: u32) -> &'a [u32] {
        self.sites.sites.get(site as usize).map_or(&[], |stack| &stack.frames)
    }

    /// All frames of the trace, by number.
    pub fn frames(&self) -> Vec<WholeFrame> {
        self.sites.frames.iter().map(|frame| borrowed(frame).whole()).collect()
    }
}

fn borrowed(frame: &heaptoll_trace::Frame) -> Frame<'_> {
    Frame { function: &frame.function, line: &frame.line, object: &frame.object, offset: frame.offset }
}

#[cfg(test)]
mod tests {
    use heaptoll_trace::{Frame, Site};

    use super::*;

    fn frame(function: &str, line: &str, object: &str, offset: u64) -> Frame {
        Frame { object: object.into(), offset, function: function.into(), line: line.into() }
    }

    #[test]
    fn a_stack_begins_with_the_programs_own_frame() {
        let sites = Sites {
            sites: [vec![], vec![0, 1, 2, 3, 4], vec![0], vec![3, 99], vec![5], vec![0, 1, 2, 2, 3]]
                .map(|frames| Site { frames })
                .into(),
            frames: vec![
                frame("operator new(unsigned long)", "", "/lib/libstdc++.so.6", 1),
                frame("term", "/src/parse.c:120", "/bin/p", 2),
                frame("parse", "/src/parse.c:9", "/bin/p", 3),
                frame("", "", "/bin/p", 0x40),
                frame("main", "", "/bin/p", 5),
                frame("", "", "", 0x1234),
            ],
        };
        let mut rows = CallSites::new(&sites, 3);
        let numbers: Vec<usize> = (0..7).map(|site| rows.row(site)).collect();
        let name = |site: usize| rows.name(numbers[site]);
        assert_eq!(name(0), "not recorded");
        assert_eq!(name(1), "term (parse.c:120) < parse (x1 to x2) < p+0x40");
        assert_eq!(name(2), "operator new", "nothing else is left");
        assert_eq!(name(3), "p+0x40", "a frame that is not there is left out");
        assert_eq!(name(4), "0x1234 (in no file)");
        assert_eq!(numbers[5], numbers[1], "they read alike");
        assert_eq!(name(6), "unknown site 6");
        assert_eq!(rows.first_alike(), [0, 1, 2, 3, 4, 1]);
        assert_eq!((rows.whole(5).len(), rows.whole(3).len(), rows.whole(9).len()), (5, 1, 0));
        assert_eq!((rows.whole(1)[1].file.as_str(), rows.whole(1)[1].line), ("/src/parse.c", Some(120)));
    }
}
