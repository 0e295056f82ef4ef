//! The frames of a trace as those of a profile.

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

    fn number(&mut self, number: u32, inlined: bool, builder: &mut Builder) -> Option<u32> {
        let frame = self.sites.frames.get(number as usize)?;
        let known = &mut self.known[number as usize][usize::from(inlined)];
        Some(*known.get_or_insert_with(|| builder.frame(of_trace(frame, inlined))))
    }
}

fn of_trace(frame: &heaptoll_trace::Frame, inlined: bool) -> Frame {
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
