//! A call stack as one line: the program's own frame first, without the allocation functions that every stack begins
//! with.

use heaptoll_trace::{Frame, Sites};

/// Frames shown of a stack.
const SHOWN: usize = 3;

/// The stack of a site in words: `parse_term (parse.c:120) < parse < main`; `not recorded` for site 0 and
/// `unknown site 7` for one that the trace does not describe.
pub fn name(sites: &Sites, site: u32) -> String {
    let Some(stack) = sites.sites.get(site as usize) else { return format!("unknown site {site}") };
    let frames: Vec<&Frame> =
        stack.frames.iter().filter_map(|&frame| sites.frames.get(frame as usize)).collect();
    if frames.is_empty() {
        return "not recorded".to_owned();
    }
    let own = frames.iter().position(|frame| !allocates(&frame.function)).unwrap_or(0);
    let mut words = Vec::new();
    for (depth, frame) in frames[own..].iter().take(SHOWN).enumerate() {
        let line = file_name(&frame.line);
        words.push(match (depth, line.is_empty()) {
            (0, false) => format!("{} ({line})", place(frame)),
            _ => place(frame),
        });
    }
    words.join(" < ")
}

/// The function, or where it lies when it has no name.
fn place(frame: &Frame) -> String {
    match (frame.function.is_empty(), frame.object.is_empty()) {
        (false, _) => frame.function.clone(),
        (true, false) => format!("{}+{:#x}", file_name(&frame.object), frame.offset),
        (true, true) => format!("{:#x}", frame.offset),
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Functions that only hand the request on.
fn allocates(function: &str) -> bool {
    const NAMES: [&str; 10] = [
        "malloc",
        "calloc",
        "realloc",
        "reallocarray",
        "memalign",
        "aligned_alloc",
        "posix_memalign",
        "valloc",
        "pvalloc",
        "strdup",
    ];
    let bare = function.trim_start_matches('_');
    NAMES.contains(&bare)
        || function.starts_with("operator new")
        || function.starts_with("std::allocator")
        || function.starts_with("std::__new_allocator")
        || function.starts_with("__gnu_cxx::new_allocator")
}

#[cfg(test)]
mod tests {
    use heaptoll_trace::Site;

    use super::*;

    fn frame(function: &str, line: &str, object: &str, offset: u64) -> Frame {
        Frame { object: object.into(), offset, function: function.into(), line: line.into() }
    }

    #[test]
    fn a_stack_begins_with_the_programs_own_frame() {
        let sites = Sites {
            sites: [vec![], vec![0, 1, 2, 3, 4], vec![0], vec![3, 99], vec![5]]
                .map(|frames| Site { frames })
                .into(),
            frames: vec![
                frame("operator new(unsigned long)", "", "/lib/libstdc++.so", 1),
                frame("term", "/src/parse.c:120", "/bin/p", 2),
                frame("parse", "/src/parse.c:9", "/bin/p", 3),
                frame("", "", "/bin/p", 0x40),
                frame("main", "", "/bin/p", 5),
                frame("", "", "", 0x1234),
            ],
        };
        assert_eq!(name(&sites, 0), "not recorded");
        assert_eq!(name(&sites, 1), "term (parse.c:120) < parse < p+0x40");
        assert_eq!(name(&sites, 2), "operator new(unsigned long)", "nothing else is left");
        assert_eq!(name(&sites, 3), "p+0x40", "a frame that is not there is left out");
        assert_eq!(name(&sites, 4), "0x1234");
        assert_eq!(name(&sites, 5), "unknown site 5");
    }
}
