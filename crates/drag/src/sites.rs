//! Call sites as the tracer names their frames, and the rows of a table that they form.

use std::collections::HashMap;

use heaptoll_callsites::{Frame, Rows};
use heaptoll_profiles as profiles;

/// Most sites and frames kept; later ones are shown as numbers.
pub const KEPT: usize = 1 << 20;
/// Most functions kept that are inlined into one another at one address.
const INLINED: usize = 64;

/// The code at an address.
#[derive(Debug, Clone, Default)]
pub struct Code {
    /// In the tracer's notation, innermost first; several where functions were inlined.
    pub names: Vec<String>,
    /// Path of the file that contains it; empty when it is not known.
    pub object: String,
    /// Its address there.
    pub offset: u64,
}

impl Code {
    /// One of the functions at an address.
    fn frame(&self, at: usize, address: u64) -> Frame<'_> {
        let name = self.names.get(at).map(|name| Frame::parse(name, address)).unwrap_or_default();
        match self.object.as_str() {
            // An address in memory does not show its location in its object.
            "" if name.function.is_empty() => Frame { offset: address, ..Frame::default() },
            "" => name,
            object => Frame { object, offset: self.offset, ..name },
        }
    }

    /// All functions as text.
    fn labels(&self, address: u64) -> Vec<String> {
        let label = |name: &String| match name.strip_prefix("???") {
            Some(rest) => format!("{address:#x}{rest}"),
            None => name.clone(),
        };
        match self.names.as_slice() {
            [] => vec![format!("{address:#x}")],
            names => names.iter().map(label).collect(),
        }
    }
}

/// The code at the addresses of frames.
#[derive(Debug, Clone, Default)]
pub struct Codes(HashMap<u64, Code>);

impl Codes {
    /// Records a frame's name. Where functions were inlined, several follow one another.
    pub fn name(&mut self, frame: u64, name: &[u8]) {
        if let Some(code) = self.of(frame)
            && code.names.len() < INLINED
        {
            code.names.push(String::from_utf8_lossy(name).into_owned());
        }
    }

    /// Records the object that contains a frame: `1139 /usr/bin/x`, the address there in hexadecimal. Other text is
    /// ignored.
    pub fn locate(&mut self, frame: u64, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        let Some((offset, object)) = text.split_once(' ') else { return };
        let Ok(offset) = u64::from_str_radix(offset, 16) else { return };
        if let Some(code) = self.of(frame) {
            (code.offset, code.object) = (offset, object.to_owned());
        }
    }

    /// The code of a frame; none where nothing is known of it.
    pub fn get(&self, frame: u64) -> Option<&Code> {
        self.0.get(&frame)
    }

    fn of(&mut self, frame: u64) -> Option<&mut Code> {
        let kept = self.0.len() < KEPT || self.0.contains_key(&frame);
        kept.then(|| self.0.entry(frame).or_default())
    }
}

/// Call sites and the names of their frames.
#[derive(Debug, Clone, Default)]
pub struct Sites {
    frames: HashMap<u32, Vec<u64>>,
    /// The frames' code.
    pub codes: Codes,
}

impl Sites {
    /// Records a site's frames, innermost first.
    pub fn define(&mut self, site: u32, frames: &[u64]) {
        if self.frames.len() < KEPT {
            self.frames.insert(site, frames.to_vec());
        }
    }

    /// All frames of a site, innermost first: `parse (parse.c:12)`, `0x401136` where there is no name.
    pub fn frames(&self, site: u32) -> Vec<String> {
        let frames = self.frames.get(&site).map(Vec::as_slice).unwrap_or_default();
        let unknown = Code::default();
        let labels = |frame: &u64| self.codes.get(*frame).unwrap_or(&unknown).labels(*frame);
        frames.iter().flat_map(labels).collect()
    }

    /// All frames of a site, innermost first, as those of a profile. A site that is not known has a frame in brackets; so
    /// has the caller of the last frame of `depth`, after which the tracer records none.
    pub fn stack(&self, site: u32, depth: usize) -> Vec<profiles::Frame> {
        let remark = |text: &str| profiles::Frame { function: text.to_owned(), ..profiles::Frame::default() };
        let Some(stack) = self.frames.get(&site).filter(|stack| site != 0 && !stack.is_empty()) else {
            return vec![remark("[not known]")];
        };
        let unknown = Code::default();
        let code = self.code_of(stack);
        let mut frames = Vec::with_capacity(code.len() + 1);
        for &address in code {
            let code = self.codes.get(address).unwrap_or(&unknown);
            let count = code.names.len().max(1);
            frames.extend((0..count).map(|at| profiled(code.frame(at, address), at + 1 < count)));
        }
        if code.len() == stack.len() && stack.len() >= depth {
            frames.push(remark("[further callers]"));
        }
        frames
    }

    /// The frames of a stack without the outermost ones of no file and no name: words that the walk met past its end. All,
    /// where nothing is known of any.
    fn code_of<'a>(&self, stack: &'a [u64]) -> &'a [u64] {
        let is_known = |frame: &u64| {
            self.codes.get(*frame).is_some_and(|code| {
                let is_named = |name: &String| {
                    let frame = Frame::parse(name, 0);
                    !frame.function.is_empty() || !frame.object.is_empty()
                };
                !code.object.is_empty() || code.names.iter().any(is_named)
            })
        };
        let end = stack.iter().rposition(is_known).map_or(stack.len(), |last| last + 1);
        &stack[..end]
    }

    /// The row of a site: its first frames of the program's own code, `parse (parse.c:12) < read < main`. Site 0 is
    /// `not known`.
    pub fn row(&self, site: u32, rows: &mut Rows<(u64, usize)>) -> usize {
        let Some(stack) = self.frames.get(&site).filter(|stack| site != 0 && !stack.is_empty()) else {
            return rows.text(&if site == 0 { "not known".to_owned() } else { format!("site {site}") });
        };
        let functions = |frame: &u64| self.codes.get(*frame).map_or(1, |code| code.names.len().max(1));
        let numbers: Vec<(u64, usize)> = self
            .code_of(stack)
            .iter()
            .flat_map(|frame| (0..functions(frame)).map(|at| (*frame, at)))
            .collect();
        let unknown = Code::default();
        rows.stack(&numbers, |(frame, at)| Some(self.codes.get(frame).unwrap_or(&unknown).frame(at, frame)))
    }
}

fn profiled(frame: Frame<'_>, inlined: bool) -> profiles::Frame {
    let whole = frame.whole();
    profiles::Frame {
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
    use super::*;

    #[test]
    fn sites_are_named_from_the_programs_own_frame_on() {
        let mut sites = Sites::default();
        sites.define(3, &[1, 2, 3, 4, 5, 6]);
        for (frame, name) in [
            (1, "strdup (strdup.c:42)"),
            (2, "make_node(int) (node.c:12)"),
            (3, "std::foo(int) (in /usr/bin/x)"),
            (4, "??? (in /usr/bin/x)"),
            (6, "main (m.c:1)"),
        ] {
            sites.codes.name(frame, name.as_bytes());
        }
        assert_eq!(sites.frames(3)[3], "0x4 (in /usr/bin/x)");
        sites.define(4, &[1, 2, 6, 5]);
        sites.define(5, &[1, 7, 3, 6, 5]);
        sites.codes.name(7, b"make_node(long) (node.c:12)");
        let mut rows = Rows::new(3);
        let numbers: Vec<usize> = [3, 4, 5, 0, 9].map(|site| sites.row(site, &mut rows)).into();
        assert_eq!(numbers, [0, 1, 1, 2, 3], "4 and 5 read alike");
        assert_eq!(rows.name(0), "make_node (node.c:12) < 0x4 (in no file) < 0x5 (in no file)");
        assert_eq!(rows.name(1), "make_node (node.c:12) < main");
        assert_eq!((rows.name(2), rows.name(3)), ("not known".into(), "site 9".into()));
    }

    /// Before, code of a library that is inlined into the program's had the name of the program's function and the
    /// library's line, and functions of libraries that come with their source had no library.
    #[test]
    fn inlined_code_and_objects_show_which_frames_are_the_programs_own() {
        let mut sites = Sites::default();
        sites.define(1, &[9, 8, 7, 6, 5]);
        for (frame, name) in [
            (9, "allocate_dtv (elf/../rtld-malloc.h:44)"),
            (8, "to_vec (/rustc/0123/library/alloc/src/slice.rs:5)"),
            (8, "add (/src/rs.rs:7)"),
            (8, "rs::Store::fill (/src/rs.rs:12)"),
            (7, "??? (in /usr/bin/rs)"),
            (6, "(below main) (csu/libc-start.c:360)"),
        ] {
            sites.codes.name(frame, name.as_bytes());
        }
        sites.codes.locate(9, b"1234 /lib/x86_64-linux-gnu/ld-linux-x86-64.so.2");
        sites.codes.locate(7, b"1139 /usr/bin/rs");
        sites.codes.locate(7, b"no place");
        let mut rows = Rows::new(9);
        let row = sites.row(1, &mut rows);
        assert_eq!(rows.name(row), "add (rs.rs:7) < rs::Store::fill < rs+0x1139", "and nothing below main");
        let stack = sites.stack(1, 5);
        let names: Vec<_> = stack.iter().map(|frame| frame.name().into_owned()).collect();
        assert_eq!(
            names[..4],
            ["allocate_dtv", "to_vec", "add", "rs::Store::fill"],
            "past the end is no code"
        );
        assert_eq!((names.len(), names[4].as_str(), names[5].as_str()), (6, "rs+0x1139", "(below main)"));
        let inlined: Vec<bool> = stack.iter().map(|frame| frame.inlined).collect();
        assert_eq!(inlined, [false, true, true, false, false, false]);
        assert_eq!((stack[3].file.as_str(), stack[3].line), ("/src/rs.rs", 12));
        sites.define(2, &[9, 8]);
        assert_eq!(sites.stack(2, 2).last().map(|frame| frame.function.as_str()), Some("[further callers]"));
        assert_eq!(sites.stack(7, 12)[0].function, "[not known]");
        assert_eq!(sites.frames(1).len(), 7);
        assert_eq!(sites.frames(1)[4], "0x7 (in /usr/bin/rs)");
    }
}
