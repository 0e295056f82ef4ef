//! The end of a stack. The tracer's walk goes past a process's first function, which has no caller, and takes the words
//! there (the arguments' number, their addresses) for return addresses.

use crate::frame::{Frame, file_name};
use crate::own::begins;
use crate::short::short;

/// What the place of a frame shows about the end of its stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Code that has a caller.
    Inner,
    /// Code that may have none: what calls `main`, a thread's first function, the dynamic linker.
    First,
    /// Neither a function nor a file: code made at run time, or no code.
    Nowhere,
}

impl Place {
    pub(crate) fn of(frame: &Frame) -> Place {
        if frame.function.is_empty() && frame.object.is_empty() {
            Place::Nowhere
        } else if begins(&short(frame.function)) || file_name(frame.object).starts_with("ld-linux") {
            Place::First
        } else {
            Place::Inner
        }
    }
}

/// How many frames of a stack are code, innermost first: all, unless a function that may have no caller is followed by
/// nothing but places without a function and a file.
pub fn whole<'a>(stack: impl Iterator<Item = Frame<'a>>) -> usize {
    length(stack.map(|frame| Place::of(&frame)))
}

/// As [`whole`].
pub(crate) fn length(places: impl Iterator<Item = Place>) -> usize {
    let (mut known, mut all, mut last) = (0, 0, Place::Inner);
    for place in places {
        all += 1;
        if place != Place::Nowhere {
            (known, last) = (all, place);
        }
    }
    if last == Place::First { known } else { all }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame<'a>(function: &'a str, object: &'a str) -> Frame<'a> {
        Frame { function, object, ..Frame::default() }
    }

    #[test]
    fn words_past_the_first_function_are_no_frames() {
        let nowhere = Frame { offset: 2, ..Frame::default() };
        let linker = frame("", "/lib64/ld-linux-x86-64.so.2");
        for first in [linker, frame("(below main)", "/bin/x"), frame("clone3", "/lib/libc.so.6")] {
            assert_eq!(whole([frame("f", "/bin/x"), first, nowhere, nowhere].into_iter()), 2, "{first:?}");
        }
        // Code made at run time is called, and calls.
        assert_eq!(whole([nowhere, frame("f", "/bin/x"), nowhere].into_iter()), 3);
        assert_eq!(whole([frame("f", "/bin/x"), linker, nowhere, frame("main", "/bin/x")].into_iter()), 4);
        assert_eq!(whole([].into_iter()), 0);
    }
}
