//! The frames of a trace as those of a profile.

use std::collections::HashSet;

use heaptoll_callsites as callsites;
use heaptoll_profiles::{Builder, Frame, inlined};
use heaptoll_trace::Sites;

/// Frames of a trace by their numbers, and what the builder made of them.
pub struct Frames<'a> {
    sites: &'a Sites,
    /// By frame: its number as a function of its own, and as an inlined one.
    known: Vec<[Option<u32>; 2]>,
}

impl<'a> Frames<'a> {
    /// Of these call stacks.
    pub fn new(sites: &'a Sites) -> Frames<'a> {
        Frames { sites, known: vec![[None; 2]; sites.frames.len()] }
    }

    /// The frames of a site by the builder's numbers, innermost first. What has none is shown as a frame in brackets, as
    /// the recorder's other remarks are.
    pub fn stack(&mut self, site: u32, further: bool, builder: &mut Builder) -> Vec<u32> {
        let remark = |text: &str, builder: &mut Builder| {
            vec![builder.frame(Frame { function: text.to_owned(), ..Frame::default() })]
        };
        if further {
            return remark("[further call stacks]", builder);
        }
        let numbers: &[u32] = self.sites.sites.get(site as usize).map_or(&[], |stack| &stack.frames);
        let numbers = &self.in_place(numbers);
        if numbers.is_empty() {
            return remark("[not recorded]", builder);
        }
        let frame = |number: u32| self.sites.frames.get(number as usize);
        let places: Vec<_> = numbers
            .iter()
            .map(|&number| (frame(number).map(|frame| (frame.object.as_str(), frame.offset)), number))
            .collect();
        let inlined = inlined(&places);
        let numbers = numbers.iter().zip(inlined);
        numbers.filter_map(|(&number, inlined)| self.number(number, inlined, builder)).collect()
    }

    /// A stack with the mark of folded recursion where callers were left out, and not at its end, where the recorder puts
    /// it: an address is kept twice, so the others lie beyond the outermost one that occurs again. At the end it would be
    /// another caller of `main`.
    fn in_place(&self, numbers: &[u32]) -> Vec<u32> {
        let mut numbers = numbers.to_vec();
        let is_mark = |&number: &u32| {
            let frame = self.sites.frames.get(number as usize);
            frame.is_some_and(|frame| callsites::is_folded(&frame.function))
        };
        let Some(mark) = numbers.iter().position(is_mark) else { return numbers };
        let mut known = HashSet::new();
        let again = numbers.iter().enumerate().filter(|(_, number)| !known.insert(**number));
        if let Some((outermost, _)) = again.last().filter(|(outermost, _)| *outermost < mark) {
            let mark = numbers.remove(mark);
            numbers.insert(outermost + 1, mark);
        }
        numbers
    }

    fn number(&mut self, number: u32, inlined: bool, builder: &mut Builder) -> Option<u32> {
        let frame = self.sites.frames.get(number as usize)?;
        let known = &mut self.known[number as usize][usize::from(inlined)];
        Some(*known.get_or_insert_with(|| builder.frame(frame_of(frame, inlined))))
    }
}

/// A frame of a trace as one of a profile; `inlined`: the compiler inlined it into the next one outward.
pub fn frame_of(frame: &heaptoll_trace::Frame, inlined: bool) -> Frame {
    let whole = callsites::Frame {
        function: &frame.function,
        line: &frame.line,
        object: &frame.object,
        offset: frame.offset,
    }
    .whole();
    Frame {
        function: whole.function,
        file: whole.file,
        line: whole.line.and_then(|line| u32::try_from(line).ok()).unwrap_or(0),
        object: whole.object,
        offset: whole.offset,
        inlined,
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_trace::{Frame, Site};

    use super::*;

    fn in_place(names: &[&str]) -> Vec<String> {
        let mut sites = Sites::default();
        let mut stack = Vec::new();
        for name in names {
            let known = sites.frames.iter().position(|frame| frame.function == *name);
            stack.push(known.unwrap_or(sites.frames.len()) as u32);
            if known.is_none() {
                sites.frames.push(Frame { function: (*name).to_owned(), ..Frame::default() });
            }
        }
        sites.sites.push(Site { frames: stack.clone() });
        let frames = Frames::new(&sites);
        let placed = frames.in_place(&stack);
        placed.iter().map(|&number| sites.frames[number as usize].function.clone()).collect()
    }

    /// Before, the mark was the caller of `_start`, and a flame graph had `main` twice.
    #[test]
    fn folded_recursion_is_marked_where_callers_were_left_out() {
        let mark = "[repeated callers]";
        assert_eq!(
            in_place(&["grow", "grow", "root", "main", "_start", mark]),
            ["grow", "grow", mark, "root", "main", "_start"]
        );
        assert_eq!(
            in_place(&["l", "r", "x", "l", "r", "main", mark, "[deeper frames]"]),
            ["l", "r", "x", "l", "r", mark, "main", "[deeper frames]"]
        );
        for unchanged in [&["f", "main"][..], &["f", "main", mark], &[mark], &[]] {
            assert_eq!(in_place(unchanged), unchanged);
        }
    }
}
