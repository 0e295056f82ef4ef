//! One line of a table of call sites: `insert (tree.cc:12, x3) < read < main`.

use std::fmt;

use crate::end::Place;
use crate::frame::Frame;
use crate::frame::file_name;
use crate::own::{allocates, begins, is_folded, is_own};
use crate::short::{DEEPEST, arguments, short, shortened};

/// A frame of a row, and how often it occurs consecutively.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Step {
    name: String,
    /// The name with the arguments of its templates.
    whole: String,
    /// `file:line` of the innermost, for the first step only.
    line: String,
    least: u32,
    /// [`MANY`]: the recorder left some out.
    most: u32,
}

/// More often than can be counted.
const MANY: u32 = u32::MAX;

impl Step {
    fn shown(&self, depth: usize) -> String {
        if depth == 0 { self.name.clone() } else { arguments(&self.whole, depth) }
    }
}

/// A call stack as a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    steps: Vec<Step>,
}

/// The parts of a frame that rows show, computed once for all stacks that have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) whole: String,
    line: String,
    own: bool,
    allocates: bool,
    begins: bool,
    folded: bool,
    pub(crate) place: Place,
}

impl Named {
    pub(crate) fn new(frame: &Frame) -> Named {
        let function = short(frame.function);
        let name = match (frame.function.is_empty(), frame.object.is_empty()) {
            (false, _) => function.clone(),
            (true, false) => format!("{}+{:#x}", file_name(frame.object), frame.offset),
            (true, true) => format!("{:#x} (in no file)", frame.offset),
        };
        Named {
            own: is_own(frame, &function),
            allocates: allocates(&function),
            begins: begins(&function),
            folded: is_folded(frame.function),
            place: Place::of(frame),
            line: frame.short_line().to_owned(),
            whole: if function.contains('…') || frame.function.contains("::<") {
                shortened(frame.function, DEEPEST)
            } else {
                name.clone()
            },
            name,
        }
    }
}

/// The frames of a stack, innermost first, that show where an allocation is: those of the program's own code. When there
/// are none, all from the first on that is not malloc; when there are none of these either, all.
pub(crate) fn chosen<'a, T: 'a>(
    stack: impl Iterator<Item = &'a T> + Clone + 'a,
    named: impl Fn(&'a T) -> &'a Named + Copy + 'a,
) -> Box<dyn Iterator<Item = &'a T> + 'a> {
    // Frames below these are not code: the walk has gone past the end of the stack.
    let own =
        stack.clone().take_while(move |frame| !named(frame).begins).filter(move |frame| named(frame).own);
    if own.clone().next().is_some() {
        return Box::new(own);
    }
    let other = stack.clone().skip_while(move |frame| named(frame).allocates);
    if other.clone().next().is_some() {
        return Box::new(other);
    }
    Box::new(stack)
}

/// Whether a function that calls another is the `main` that the compiler generates for Rust's.
pub(crate) fn is_made_main(name: &str, called: &str) -> bool {
    name == "main" && called.ends_with("::main")
}

impl Row {
    /// A line of text that is no stack: `not recorded`.
    pub fn of_text(text: &str) -> Row {
        Row {
            steps: vec![Step {
                name: text.to_owned(),
                whole: text.to_owned(),
                line: String::new(),
                least: 1,
                most: 1,
            }],
        }
    }

    /// One function, without its line.
    pub(crate) fn of_function(named: &Named) -> Row {
        Row {
            steps: vec![Step {
                name: named.name.clone(),
                whole: named.whole.clone(),
                line: String::new(),
                least: 1,
                most: 1,
            }],
        }
    }

    /// Of a stack, innermost frame first: the first `shown` of its [`chosen`] frames.
    pub(crate) fn new<'a>(stack: impl Iterator<Item = &'a Named> + Clone + 'a, shown: usize) -> Row {
        let is_folded = stack.clone().any(|frame| frame.folded);
        let mut row = Row::folded(chosen(stack, |frame| frame), shown);
        if is_folded {
            row.steps.iter_mut().filter(|step| step.most > 1).for_each(|step| step.most = MANY);
        }
        row
    }

    fn folded<'a>(frames: impl Iterator<Item = &'a Named>, shown: usize) -> Row {
        let mut steps: Vec<Step> = Vec::new();
        for frame in frames {
            if let Some(last) = steps.last_mut()
                && last.name == frame.name
            {
                (last.least, last.most) = (last.least + 1, last.most + 1);
                continue;
            }
            let is_made = steps.last().is_some_and(|last| is_made_main(&frame.name, &last.name));
            if steps.len() == shown.max(1) || is_made {
                break;
            }
            let line = if steps.is_empty() { frame.line.clone() } else { String::new() };
            steps.push(Step {
                name: frame.name.clone(),
                whole: frame.whole.clone(),
                line,
                least: 1,
                most: 1,
            });
        }
        Row { steps }
    }

    /// The key that stacks of one row share: the depth of a recursion is not part of it.
    pub(crate) fn key(&self) -> Vec<(String, String)> {
        self.steps.iter().map(|step| (step.whole.clone(), step.line.clone())).collect()
    }

    /// The key that rows share which read alike when the arguments of templates are left out.
    pub(crate) fn short_key(&self) -> Vec<(String, String)> {
        self.steps.iter().map(|step| (step.name.clone(), step.line.clone())).collect()
    }

    /// Its names with the arguments of templates, so deep in one another.
    pub(crate) fn names(&self, depth: usize) -> Vec<String> {
        self.steps.iter().map(|step| step.shown(depth)).collect()
    }

    /// Whether the names of each step differ from another row's.
    pub(crate) fn differs<'a>(&'a self, other: &'a Row) -> impl Iterator<Item = bool> + 'a {
        self.steps.iter().zip(&other.steps).map(|(step, other)| step.whole != other.whole)
    }

    /// The line with the arguments of templates, so deep in one another, in the steps that `differ`.
    pub(crate) fn text(&self, depth: usize, differ: &[bool]) -> String {
        let mut steps = self.steps.clone();
        for (step, _) in steps.iter_mut().zip(differ).filter(|(_, differs)| **differs) {
            step.name = step.shown(depth);
        }
        Row { steps }.to_string()
    }

    /// Adds another row of the same key.
    pub(crate) fn merge(&mut self, other: &Row) {
        for (step, other) in self.steps.iter_mut().zip(&other.steps) {
            step.least = step.least.min(other.least);
            step.most = step.most.max(other.most);
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.steps.iter().enumerate() {
            let times = match (step.least, step.most) {
                (1, 1) => String::new(),
                (least, MANY) => format!("x{least} or more"),
                (least, most) if least == most => format!("x{least}"),
                (least, most) => format!("x{least} to x{most}"),
            };
            let remarks: Vec<&str> =
                [step.line.as_str(), &times].into_iter().filter(|remark| !remark.is_empty()).collect();
            let separator = if at == 0 { "" } else { " < " };
            write!(f, "{separator}{}", step.name)?;
            if !remarks.is_empty() {
                write!(f, " ({})", remarks.join(", "))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(stack: &[(&str, &str)], shown: usize) -> String {
        let frame = |&(function, line): &(&str, &str)| {
            Named::new(&Frame { function, line, object: "/bin/p", offset: 0x40 })
        };
        let stack: Vec<Named> = stack.iter().map(frame).collect();
        Row::new(stack.iter(), shown).to_string()
    }

    #[test]
    fn a_row_begins_with_the_programs_own_code_and_has_nothing_else() {
        let stack = [
            ("operator new(unsigned long)", ""),
            ("std::vector<int>::reserve(unsigned long)", "/usr/include/c++/12/bits/vector.tcc:9"),
            ("Index::add(int)", "/src/index.cc:120"),
            ("void std::for_each<int>(int)", ""),
            ("", ""),
            ("main", "/src/main.cc:4"),
            ("__libc_start_main", ""),
        ];
        assert_eq!(row(&stack, 3), "Index::add (index.cc:120) < p+0x40 < main");
        assert_eq!(row(&stack, 1), "Index::add (index.cc:120)");
        assert_eq!(row(&stack, 0), "Index::add (index.cc:120)");
    }

    #[test]
    fn nothing_is_shown_from_below_main() {
        let stack = [("f", "a.c:1"), ("main", ""), ("__libc_start_main@@GLIBC_2.34", ""), ("", ""), ("", "")];
        assert_eq!(row(&stack, 9), "f (a.c:1) < main");
        assert_eq!(row(&[("f", "a.c:1"), ("start_thread", ""), ("clone", ""), ("", "")], 9), "f (a.c:1)");
    }

    #[test]
    fn recursion_is_folded() {
        let stack =
            [("f", "a.c:1"), ("f", "a.c:2"), ("std::x", ""), ("f", "a.c:2"), ("g", ""), ("f", "a.c:9")];
        assert_eq!(row(&stack, 9), "f (a.c:1, x3) < g < f");
        assert_eq!(row(&[("f", ""), ("g", "a.c:2"), ("g", "a.c:2")], 9), "f < g (x2)");
    }

    /// The recorder keeps a return address twice.
    #[test]
    fn a_recursion_that_was_folded_has_no_most() {
        let stack = [("f", "a.c:1"), ("f", "a.c:2"), ("g", ""), ("main", ""), ("[repeated callers]", "")];
        assert_eq!(row(&stack, 9), "f (a.c:1, x2 or more) < g < main");
        assert_eq!(row(&stack[..4], 9), "f (a.c:1, x2) < g < main");
    }

    #[test]
    fn a_stack_without_own_code_shows_what_there_is() {
        assert_eq!(
            row(&[("__libc_malloc", ""), ("_dl_init", ""), ("_dl_start", "")], 3),
            "_dl_init < _dl_start"
        );
        assert_eq!(row(&[("malloc", "m.c:1")], 3), "malloc (m.c:1)");
        assert_eq!(row(&[], 3), "");
    }

    #[test]
    fn the_main_that_rust_makes_is_not_shown() {
        let stack = [("rs::main", "rs.rs:3"), ("std::rt::lang_start", ""), ("main", ""), ("_start", "")];
        assert_eq!(row(&stack, 3), "rs::main (rs.rs:3)");
    }
}
