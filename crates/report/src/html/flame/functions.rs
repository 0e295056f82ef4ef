//! The functions of a profile, each once: frames that differ only in the line that calls are one function.

use std::collections::HashMap;

use heaptoll_profiles::Frame;

/// What stands in a picture as one name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Function {
    /// Its name; that of the address when it has none.
    pub name: String,
    /// Path of the executable or library; empty when unknown.
    pub object: String,
    /// Path of the source file; empty when unknown.
    pub file: String,
}

/// Functions by number, and those of the frames.
#[derive(Debug, Default)]
pub struct Functions {
    /// The first two are [`Functions::MERGED`] and [`Functions::NO_STACK`].
    pub all: Vec<Function>,
    /// By frame.
    pub of_frames: Vec<u32>,
}

impl Functions {
    /// Calls that are too small to be drawn on their own.
    pub const MERGED: u32 = 0;
    /// Values without a stack.
    pub const NO_STACK: u32 = 1;

    /// Those of these frames.
    pub fn new(frames: &[Frame]) -> Functions {
        let named = |name: &str| Function { name: name.to_owned(), ..Function::default() };
        let mut functions = Functions {
            all: vec![named("(smaller calls)"), named("(no call stack)")],
            of_frames: Vec::new(),
        };
        let mut known = HashMap::new();
        for frame in frames {
            let name = frame.name();
            let next = functions.all.len() as u32;
            let number = *known.entry((name.clone(), frame.object.as_str())).or_insert(next);
            if number == next {
                let object = frame.object.clone();
                functions.all.push(Function { name: name.into_owned(), object, file: frame.file.clone() });
            } else if functions.all[number as usize].file.is_empty() {
                functions.all[number as usize].file.clone_from(&frame.file);
            }
            functions.of_frames.push(number);
        }
        functions
    }
}
