//! Call stacks as rows; those that read alike are merged.

use std::collections::HashMap;
use std::hash::Hash;

use crate::end::length;
use crate::frame::Frame;
use crate::row::{Named, Row};

/// Rows of a table, by number.
#[derive(Debug, Clone)]
pub struct Rows<Number = u64> {
    shown: usize,
    /// By the caller's number of a frame.
    frames: HashMap<Number, Named>,
    rows: Vec<Row>,
    numbers: HashMap<Vec<(String, String)>, usize>,
}

impl<Number: Copy + Eq + Hash> Rows<Number> {
    /// No rows yet; each is to show `shown` frames of the program's own code.
    pub fn new(shown: usize) -> Self {
        Rows { shown, frames: HashMap::new(), rows: Vec::new(), numbers: HashMap::new() }
    }

    /// The number of the row of a stack: its frames by number, innermost first. `frame` returns the frame of a number;
    /// unknown numbers are left out. A stack without a frame has the row `not recorded`.
    pub fn stack<'a>(&mut self, stack: &[Number], frame: impl Fn(Number) -> Option<Frame<'a>>) -> usize {
        for &number in stack {
            if !self.frames.contains_key(&number)
                && let Some(frame) = frame(number)
            {
                self.frames.insert(number, Named::new(&frame));
            }
        }
        let named = stack.iter().filter_map(|number| self.frames.get(number));
        let code = length(named.clone().map(|frame| frame.place));
        let row = Row::new(named.take(code), self.shown);
        if row.key().is_empty() {
            return self.text("not recorded");
        }
        self.number(row)
    }

    /// The number of the row that has this text.
    pub fn text(&mut self, text: &str) -> usize {
        self.number(Row::of_text(text))
    }

    fn number(&mut self, row: Row) -> usize {
        let next = self.rows.len();
        let number = *self.numbers.entry(row.key()).or_insert(next);
        match self.rows.get_mut(number) {
            Some(known) => known.merge(&row),
            None => self.rows.push(row),
        }
        number
    }

    /// The text of a row; complete when all stacks were added.
    pub fn name(&self, row: usize) -> String {
        self.rows.get(row).map(Row::to_string).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_that_read_alike_are_one_row_however_deep_they_recurse() {
        let names = ["std::a", "f", "g", "main", "std::b"];
        let frame =
            |number: u64| names.get(number as usize).map(|function| Frame { function, ..Frame::default() });
        let mut rows = Rows::new(3);
        let numbers: Vec<usize> =
            [&[0, 1, 2, 3][..], &[4, 1, 1, 1, 2, 3], &[1, 3], &[], &[99], &[0, 1, 1, 4, 2, 3]]
                .map(|stack| rows.stack(stack, frame))
                .into();
        assert_eq!(numbers, [0, 0, 1, 2, 2, 0]);
        assert_eq!(rows.name(0), "f (x1 to x3) < g < main");
        assert_eq!((rows.name(1), rows.name(2)), ("f < main".into(), "not recorded".into()));
        assert_eq!(rows.text("not recorded"), 2);
        assert_eq!(rows.name(9), "");
    }
    /// What a library's constructor allocates has no frame of the program's: before, its row was made of the words that
    /// the tracer met past the dynamic linker's first function.
    #[test]
    fn a_stack_of_the_dynamic_linker_is_not_named_by_words_past_its_end() {
        let stack = [
            Frame { object: "/lib/libstdc++.so.6", offset: 0xa57ba, ..Frame::default() },
            Frame { function: "_dl_init", object: "/lib64/ld-linux-x86-64.so.2", ..Frame::default() },
            Frame { object: "/lib64/ld-linux-x86-64.so.2", offset: 9, ..Frame::default() },
            Frame { offset: 2, ..Frame::default() },
            Frame { offset: 0x7fff_0000, ..Frame::default() },
        ];
        let mut rows = Rows::new(3);
        let row = rows.stack(&[0, 1, 2, 3, 4], |number: u64| stack.get(number as usize).copied());
        assert_eq!(rows.name(row), "libstdc++.so.6+0xa57ba < _dl_init < ld-linux-x86-64.so.2+0x9");
    }
}
