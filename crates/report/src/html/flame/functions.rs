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

/// Functions by number.
#[derive(Debug, Default)]
pub struct Functions {
    /// The first two are [`Functions::MERGED`] and [`Functions::NO_STACK`].
    pub all: Vec<Function>,
    /// By name and object.
    known: HashMap<(String, String), u32>,
}

impl Functions {
    /// Calls that are too small to be drawn on their own.
    pub const MERGED: u32 = 0;
    /// Values without a stack.
    pub const NO_STACK: u32 = 1;

    /// None but the two.
    pub fn new() -> Functions {
        let named = |name: &str| Function { name: name.to_owned(), ..Function::default() };
        Functions { all: vec![named("(smaller calls)"), named("(no call stack)")], known: HashMap::new() }
    }

    /// Those of these frames, by number.
    pub fn of(&mut self, frames: &[Frame]) -> Vec<u32> {
        frames.iter().map(|frame| self.number(frame)).collect()
    }

    fn number(&mut self, frame: &Frame) -> u32 {
        let name = frame.name().into_owned();
        let next = self.all.len() as u32;
        let number = *self.known.entry((name.clone(), frame.object.clone())).or_insert(next);
        if number == next {
            let object = frame.object.clone();
            self.all.push(Function { name, object, file: frame.file.clone() });
        } else if self.all[number as usize].file.is_empty() {
            self.all[number as usize].file.clone_from(&frame.file);
        }
        number
    }
}
