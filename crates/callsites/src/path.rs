//! Call stacks of several traces in one form, by which the stacks of two builds are joined: the functions of the
//! program's own code from the allocation outward, without lines, addresses and folders. Each function is there once, where
//! it is first: stacks that differ in the depth of a recursion, direct or through others, are one. Instances of a template
//! are functions of their own: of `make<A>` and `make<B>` one may have changed.

use std::collections::{HashMap, HashSet};

use crate::frame::{Frame, object_name};
use crate::row::{Named, Row, chosen, is_made_main};
use crate::rows::Rows;

/// The functions in all paths, each with a number.
#[derive(Debug, Clone)]
pub struct Paths {
    /// A row each, which has the function's number.
    functions: Rows,
    all: Vec<Function>,
    /// Numbers of the short names.
    templates: HashMap<String, u32>,

    stacks: u64,
    /// File names of executables and libraries of which all traces have the same build.
    one_build: HashSet<String>,
    /// The build that frames are added of.
    build: u32,
}

/// One function.
#[derive(Debug, Clone, Default)]
struct Function {
    /// Its name without the arguments of templates.
    short: String,
    /// The number that instances of one template share.
    template: u32,
    /// Path of its source file in the trace that was added last.
    file: String,
    /// The last stack that has it.
    seen: u64,
    /// Where it is code without a symbol, which no other build has: the number of what such code is called in all builds.
    any_build: Option<u32>,
}

impl Default for Paths {
    fn default() -> Paths {
        Paths {
            functions: Rows::new(1),
            all: Vec::new(),
            templates: HashMap::new(),
            stacks: 0,
            one_build: HashSet::new(),
            build: 0,
        }
    }
}

/// The frames of one trace, by its own numbers.
#[derive(Debug, Clone, Default)]
pub struct Steps {
    frames: Vec<(Named, u32)>,
}

impl Paths {
    /// For traces that have the same build of the executables and libraries of these file names. Code without a symbol is
    /// named by its address, which is the same place in those alone.
    pub fn of_one_build(files: impl IntoIterator<Item = String>) -> Paths {
        Paths { one_build: files.into_iter().collect(), ..Paths::default() }
    }

    /// The traces that follow are of another build than those before.
    pub fn next_build(&mut self) {
        self.build += 1;
    }

    /// The frames of a trace, in the order of their numbers.
    pub fn steps<'a>(&mut self, frames: impl Iterator<Item = Frame<'a>>) -> Steps {
        let frames = frames.map(|frame| {
            let mut named = Named::new(&frame);
            let any_build = frame.function.is_empty().then(|| self.unnamed(&frame, &mut named)).flatten();
            let number = self.number(&named, any_build);
            if !frame.line.is_empty() {
                self.all[number as usize].file = frame.whole().file;
            }
            (named, number)
        });
        Steps { frames: frames.collect() }
    }

    /// Names code without a symbol by its address. Returns the number of what it is called in all builds, where each has
    /// its own.
    fn unnamed(&mut self, frame: &Frame, named: &mut Named) -> Option<u32> {
        let file = object_name(frame.object);
        if !file.is_empty() {
            named.name = format!("{file}+{:#x}", frame.offset);
        }
        named.whole.clone_from(&named.name);
        if self.one_build.contains(file) {
            return None;
        }
        // Two builds may have one address.
        named.whole += &format!(" (build {})", self.build + 1);
        // The executable may have another name in each build.
        let text = match file.split_once(".so") {
            _ if file.is_empty() => "(made at run time)".to_owned(),
            Some((library, _)) => format!("(no symbol in {library}.so)"),
            None => "(no symbol)".to_owned(),
        };
        let mut any_build = named.clone();
        (any_build.name, any_build.whole) = (text.clone(), text);
        Some(self.number(&any_build, None))
    }

    fn number(&mut self, named: &Named, any_build: Option<u32>) -> u32 {
        let number = self.functions.number(Row::of_function(named));
        if number == self.all.len() {
            let next = self.templates.len() as u32;
            let template = match any_build {
                Some(any_build) => self.all[any_build as usize].template,
                None => *self.templates.entry(named.name.clone()).or_insert(next),
            };
            self.all.push(Function { short: named.name.clone(), template, any_build, ..Function::default() });
        }
        number as u32
    }

    /// The path of a stack, whose frames are numbers of `steps`, innermost first. Unknown numbers are left out.
    pub fn path(&mut self, steps: &Steps, stack: &[u32]) -> Box<[u32]> {
        self.stacks += 1;
        let known = stack.iter().filter_map(|&frame| steps.frames.get(frame as usize));
        let mut path: Vec<u32> = Vec::new();
        for &(_, number) in chosen(known, |(named, _)| named) {
            let called = path.last().map_or("", |&last| self.all[last as usize].short.as_str());
            if is_made_main(&self.all[number as usize].short, called) {
                break;
            }
            let seen = &mut self.all[number as usize].seen;
            if *seen != self.stacks {
                *seen = self.stacks;
                path.push(number);
            }
        }
        path.into()
    }

    /// By number, when all stacks were added: the names of all functions.
    pub fn names(&self) -> Vec<String> {
        (0..self.all.len()).map(|number| self.functions.name(number)).collect()
    }

    /// Path of the source file of a function by its number, in the trace that was added last; empty where it is unknown.
    pub fn file(&self, number: u32) -> &str {
        self.all.get(number as usize).map_or("", |function| function.file.as_str())
    }

    /// The path with one number for all instances of a template.
    pub fn templates(&self, path: &[u32]) -> Box<[u32]> {
        path.iter().map(|&number| self.all[number as usize].template).collect()
    }

    /// The path with one number for all code without a symbol that no other build has.
    pub fn any_build(&self, path: &[u32]) -> Box<[u32]> {
        path.iter().map(|&number| self.all[number as usize].any_build.unwrap_or(number)).collect()
    }

    /// How many of the first functions no other build has.
    pub fn of_this_build(&self, path: &[u32]) -> usize {
        path.iter().take_while(|&&number| self.all[number as usize].any_build.is_some()).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame<'a>(function: &'a str, line: &'a str, object: &'a str, offset: u64) -> Frame<'a> {
        Frame { function, line, object, offset }
    }

    fn text(paths: &Paths, path: &[u32]) -> String {
        let names = paths.names();
        path.iter().map(|&number| names[number as usize].as_str()).collect::<Vec<_>>().join(" < ")
    }

    #[test]
    fn two_builds_in_other_folders_have_the_same_paths() {
        let build = |folder: &'static str, hash: &str| {
            let line = format!("{folder}/parse.c:12");
            [
                ("malloc".to_owned(), String::new(), "/lib/libc.so.6".to_owned(), 1),
                ("term(int)".to_owned(), line, format!("{folder}/prog"), hash.len() as u64),
                (format!("p::parse::h{hash}"), String::new(), format!("{folder}/prog"), 3),
                ("main".to_owned(), String::new(), format!("{folder}/prog"), 4),
                (String::new(), String::new(), format!("{folder}/prog"), 0x40),
                (String::new(), String::new(), format!("{folder}/libx.so.1.2"), 0x40),
                ("_start".to_owned(), String::new(), format!("{folder}/prog"), 9),
            ]
        };
        let mut paths = Paths::of_one_build(["prog".to_owned(), "libx.so.1.2".to_owned()]);
        let mut path = |folder, hash| {
            let frames = build(folder, hash);
            let borrowed = frames.iter().map(|(name, line, object, at)| frame(name, line, object, *at));
            let steps = paths.steps(borrowed);
            paths.path(&steps, &[0, 1, 2, 4, 5, 3, 6])
        };
        let (base, new) = (path("/b", "0123456789abcdef"), path("/tmp/new", "fedcba9876543210"));
        assert_eq!(base, new);
        assert_eq!(text(&paths, &base), "term < p::parse < prog+0x40 < libx.so.1.2+0x40 < main");
    }

    #[test]
    fn recursion_of_any_depth_is_one_path() {
        let mut paths = Paths::default();
        let names = ["std::a", "f", "g", "main", "x::main"];
        let steps = paths.steps(names.iter().map(|name| frame(name, "", "/p", 0)));
        let first = paths.path(&steps, &[0, 1, 2, 3]);
        assert_eq!(text(&paths, &first), "f < g < main");
        for stack in [&[1, 1, 1, 2, 3][..], &[1, 2, 1, 2, 1, 1, 2, 3], &[0, 1, 2, 0, 2, 3]] {
            assert_eq!(paths.path(&steps, stack), first);
        }
        assert_ne!(paths.path(&steps, &[2, 1, 3]), first);
        let rust = paths.path(&steps, &[1, 4, 3]);
        assert_eq!(text(&paths, &rust), "f < x::main");
        assert!(paths.path(&steps, &[]).is_empty() && paths.path(&steps, &[77]).is_empty());
        let other = paths.path(&steps, &[0]);
        assert_eq!(text(&paths, &other), "std::a", "nothing of the program's own is there");
    }

    #[test]
    fn code_without_symbols_is_the_same_at_one_address_of_one_build_alone() {
        let mut paths = Paths::of_one_build(["prog".to_owned()]);
        let mut path = |object: &str| {
            let places = [(object, 0x1139), ("/a/libx.so.1", 7), ("", 0x7f00)];
            let steps = paths.steps(places.iter().map(|(object, offset)| frame("", "", object, *offset)));
            paths.next_build();
            paths.path(&steps, &[0, 1, 2])
        };
        let [base, new] = [path("/a/prog"), path("/b/prog (changed)")];
        assert_eq!((base[0], base[1] == new[1], base[2] == new[2]), (new[0], false, false));
        assert_eq!(paths.any_build(&base), paths.any_build(&new));
        assert_eq!(paths.templates(&base), paths.templates(&new));
        assert_eq!((paths.of_this_build(&base), paths.of_this_build(&base[1..])), (0, 2));
        let shared = paths.any_build(&base);
        assert_eq!(text(&paths, &shared), "prog+0x1139 < (no symbol in libx.so) < (made at run time)");
    }

    /// Before, `diff` had one row for `make_it<Session>` and `make_it<Conn>`, of which one had changed.
    #[test]
    fn instances_of_a_template_are_paths_of_their_own_and_one_by_their_template() {
        let mut paths = Paths::default();
        let names = ["void make_it<Session>()", "void make_it<Conn>()", "V<int>::add(int)", "main"];
        let steps = paths.steps(names.iter().map(|name| frame(name, "", "/p", 0)));
        let [session, conn, add] = [[0, 3], [1, 3], [2, 3]].map(|stack| paths.path(&steps, &stack));
        assert_eq!(text(&paths, &session), "make_it<Session> < main");
        assert_eq!(text(&paths, &conn), "make_it<Conn> < main");
        assert_eq!(text(&paths, &add), "V<…>::add < main");
        assert_eq!(paths.templates(&session), paths.templates(&conn));
        assert_ne!(paths.templates(&session), paths.templates(&add));
    }
}
