//! Call stacks as rows; those that read alike are merged. Names are without the arguments of templates, unless these alone
//! distinguish rows: of `make<A>` and `make<B>` one may leak.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use crate::end::length;
use crate::frame::Frame;
use crate::row::{Named, Row};
use crate::short::DEEPEST;

/// Rows of a table, by number.
#[derive(Debug, Clone)]
pub struct Rows<Number = u64> {
    shown: usize,
    /// By the caller's number of a frame.
    frames: HashMap<Number, Named>,
    rows: Vec<Row>,
    numbers: HashMap<Vec<(String, String)>, usize>,
    /// By [`Row::short_key`].
    alike: HashMap<Vec<(String, String)>, Alike>,
}

/// Rows that differ in the arguments of templates alone.
#[derive(Debug, Clone, Default)]
struct Alike {
    rows: Vec<usize>,
    /// How deep in one another the arguments are shown, so that the rows stay different.
    depth: usize,
    /// The names of the rows so.
    names: HashSet<Vec<String>>,
    /// The steps in which they differ.
    differ: Vec<bool>,
}

impl<Number: Copy + Eq + Hash> Rows<Number> {
    /// No rows yet; each is to show `shown` frames of the program's own code.
    pub fn new(shown: usize) -> Self {
        Rows {
            shown,
            frames: HashMap::new(),
            rows: Vec::new(),
            numbers: HashMap::new(),
            alike: HashMap::new(),
        }
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

    pub(crate) fn number(&mut self, row: Row) -> usize {
        let next = self.rows.len();
        let number = *self.numbers.entry(row.key()).or_insert(next);
        match self.rows.get_mut(number) {
            Some(known) => known.merge(&row),
            None => {
                self.alike.entry(row.short_key()).or_default().add(number, &row, &self.rows);
                self.rows.push(row);
            }
        }
        number
    }

    /// The text of a row; complete when all stacks were added.
    pub fn name(&self, row: usize) -> String {
        let Some(row) = self.rows.get(row) else { return String::new() };
        match self.alike.get(&row.short_key()) {
            Some(alike) => row.text(alike.depth, &alike.differ),
            None => row.to_string(),
        }
    }
}

impl Alike {
    /// Adds a row, which is to be the next of `rows`.
    fn add(&mut self, number: usize, row: &Row, rows: &[Row]) {
        match self.rows.first() {
            Some(first) => {
                let differ = row.differs(&rows[*first]);
                self.differ.iter_mut().zip(differ).for_each(|(known, differs)| *known |= differs);
            }
            None => self.differ = vec![false; row.names(0).len()],
        }
        self.rows.push(number);
        let mut is_new = self.names.insert(row.names(self.depth));
        while !is_new && self.depth < DEEPEST {
            self.depth += 1;
            let names = |number: &usize| rows.get(*number).unwrap_or(row).names(self.depth);
            self.names = self.rows.iter().map(names).collect();
            is_new = self.names.len() == self.rows.len();
        }
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

    /// Before, `make<Session>` and `make<Conn>` were one row, which did not show the type that leaked.
    #[test]
    fn instances_of_a_template_are_rows_of_their_own_named_by_as_much_as_distinguishes_them() {
        let row = |names: &[&[&str]]| {
            let mut rows = Rows::new(3);
            let all: Vec<&str> = names.iter().flat_map(|stack| stack.iter().copied()).collect();
            let frame = |at: usize| all.get(at).map(|function| Frame { function, ..Frame::default() });
            let mut next = 0;
            let mut numbers = Vec::new();
            for stack in names {
                numbers.push(rows.stack(&(next..next + stack.len()).collect::<Vec<_>>(), frame));
                next += stack.len();
            }
            numbers.into_iter().map(|number| rows.name(number)).collect::<Vec<_>>()
        };
        let made = "Session* make<Session>(int)";
        assert_eq!(row(&[&[made, "main"], &[made, "main"]]), ["make<…> < main", "make<…> < main"]);
        assert_eq!(
            row(&[&[made, "f<int>()"], &["Conn* make<Conn>(int)", "f<int>()"]]),
            ["make<Session> < f<…>", "make<Conn> < f<…>"]
        );
        // As deep as they differ, and no deeper.
        assert_eq!(
            row(&[
                &["Box<V<A, V<int> > >::add(A)"],
                &["Box<V<B, V<int> > >::add(B)"],
                &["Box<V<A, V<int> > >::add(int)"],
            ]),
            ["Box<V<A, V<…>>>::add", "Box<V<B, V<…>>>::add", "Box<V<A, V<…>>>::add"]
        );
        assert_eq!(
            row(&[&["rs::make::<rs::Conn>"], &["rs::make::<rs::Session>"]]),
            ["rs::make::<rs::Conn>", "rs::make::<rs::Session>"]
        );
        // Deeper than is looked: one row.
        let deep = |inner: &str| format!("f<{}{inner}{}>()", "V<".repeat(9), " >".repeat(9));
        let (a, b) = (deep("A"), deep("B"));
        assert_eq!(row(&[&[&a], &[&b]]), ["f<…>", "f<…>"]);
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

    /// Before, code made at run time was a bare address.
    #[test]
    fn code_in_no_file_is_marked() {
        let made = Frame { offset: 0x7f00_1006, ..Frame::default() };
        let mut rows = Rows::new(3);
        let row = rows.stack(&[0], |_: u64| Some(made));
        assert_eq!(rows.name(row), "0x7f001006 (in no file)");
    }
}
