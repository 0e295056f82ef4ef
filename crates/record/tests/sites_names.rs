//! Call stacks from the program to the trace: programs that know their own chains of calls, recorded with stacks.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::layer_support::{Fixture, layers};
use heaptoll_record::{Manager, RecordingOptions, Request, Silent, record};
use heaptoll_trace::{Batch, EventKind, Frame, Reader};

/// Every stack of a trace, with the sizes that were allocated there.
struct Stacks {
    by_size: BTreeMap<u64, BTreeSet<u32>>,
    frames: Vec<Vec<Frame>>,
}

impl Stacks {
    fn read(path: &Path) -> Stacks {
        let mut reader = Reader::open(path).unwrap();
        let mut by_size: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
        let mut batch = Batch::default();
        while reader.read(&mut batch).unwrap() {
            for event in batch.events.iter().filter(|event| event.kind.allocates()) {
                assert!(event.kind != EventKind::Failed);
                by_size.entry(event.size).or_default().insert(event.site);
            }
        }
        let sites = reader.tables().sites.as_ref().unwrap();
        let frame = |&frame: &u32| sites.frames[frame as usize].clone();
        let frames = sites.sites.iter().map(|site| site.frames.iter().map(frame).collect()).collect();
        Stacks { by_size, frames }
    }

    /// The stacks of a size.
    fn of(&self, size: u64) -> impl Iterator<Item = &[Frame]> {
        self.by_size[&size].iter().map(|&site| &*self.frames[site as usize])
    }

    /// Whether all stacks of a size have these functions, innermost first, with nothing between them but what `...`
    /// stands for.
    #[track_caller]
    fn expect(&self, size: u64, functions: &[&str]) {
        for stack in self.of(size) {
            let names: Vec<&str> = stack.iter().map(|frame| &*frame.function).collect();
            assert!(matches(&names, functions), "{size} bytes: {names:#?} are not {functions:?}");
        }
    }
}

fn matches(names: &[&str], pattern: &[&str]) -> bool {
    match (pattern, names) {
        (["..."], _) | ([], []) => true,
        (["...", rest @ ..], names) => (0..=names.len()).any(|from| matches(&names[from..], rest)),
        ([first, rest @ ..], [name, names @ ..]) => first == name && matches(names, rest),
        _ => false,
    }
}

fn recorded(fixture: &Fixture, command: Vec<OsString>) -> (PathBuf, Vec<PathBuf>) {
    let output = fixture.path("trace.heaptoll");
    let request = Request {
        command,
        layer: layers().join("libheaptoll_record.so"),
        manager: Manager { name: "glibc".to_owned(), ..Manager::default() },
        output: output.clone(),
        force: true,
        options: RecordingOptions { sites: true, ..RecordingOptions::default() },
        ..Request::default()
    };
    let recorded = record(&request, &mut Silent).unwrap();
    assert!(recorded.is_whole(), "{:?}", recorded.recordings);
    let others = recorded.recordings.iter().map(|recording| recording.path.clone());
    (output.clone(), others.filter(|path| *path != output).collect())
}

fn compile(fixture: &Fixture, compiler: &str, source: &str, name: &str, flags: &[&str]) -> PathBuf {
    let out = fixture.path(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sites_programs").join(source);
    let done = Command::new(compiler).args(flags).arg("-o").arg(&out).arg(source).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    out
}

const C: [&str; 8] = [
    "-O2",
    "-g",
    "-fno-builtin",
    "-fomit-frame-pointer",
    "-fno-optimize-sibling-calls",
    "-pthread",
    "-w",
    "-fno-ipa-icf",
];

#[test]
fn c_without_frame_pointers() {
    let fixture = Fixture::new();
    let program = compile(&fixture, "gcc", "chains.c", "chains", &C);
    let mut command = vec![program.clone().into()];
    for (name, size) in [("apple", 1100), ("pear", 1101), ("plum", 1102)] {
        let name_flag = format!("-DNAME={name}");
        let size_flag = format!("-DSIZE={size}");
        let flags = [&["-shared", "-fPIC", &name_flag, &size_flag], &C[..]].concat();
        command.push(compile(&fixture, "gcc", "plugin.c", &format!("{name}.so"), &flags).into());
    }
    let (trace, children) = recorded(&fixture, command);
    let stacks = Stacks::read(&trace);
    stacks.expect(1001, &["take", "first", "main", "...", "_start"]);
    stacks.expect(1002, &["take", "second", "main", "...", "_start"]);
    stacks.expect(1003, &["inlined", "around", "main", "...", "_start"]);
    stacks.expect(1004, &["take", "varying", "main", "...", "_start"]);
    stacks.expect(1005, &["take", "aligned", "main", "...", "_start"]);
    stacks.expect(1006, &["take", "large", "main", "...", "_start"]);
    stacks.expect(1008, &["take", "compare", "...", "sorting", "main", "...", "_start"]);
    stacks.expect(1009, &["take", "handler", "...", "interrupted", "signals", "main", "...", "_start"]);
    stacks.expect(1010, &["take", "handler", "...", "interrupted", "signals", "main", "...", "_start"]);
    stacks.expect(1012, &["take", "", "[unknown callers]"]);
    // The innermost call, which has a return address of its own, and two of those that repeat.
    for stack in stacks.of(1007) {
        let names: Vec<&str> = stack.iter().map(|frame| &*frame.function).collect();
        assert_eq!(names, ["take", "deep", "deep", "deep", "[repeated callers]", "[deeper frames]"]);
    }
    for stack in stacks.of(1011) {
        let names: Vec<&str> = stack.iter().map(|frame| &*frame.function).collect();
        assert_eq!(names[..2], ["take", "thread"]);
        assert!(stack.last().unwrap().object.contains("libc"), "{stack:?}");
        assert_ne!(names.last(), Some(&"[unknown callers]"));
    }
    // Wherever they were loaded.
    for (name, size) in [("apple", 1100), ("pear", 1101), ("plum", 1102)] {
        stacks.expect(size, &["take", name, "enter", "plugins", "main", "...", "_start"]);
        for stack in stacks.of(size) {
            assert_eq!(stack[2].object, fixture.path(&format!("{name}.so")).to_str().unwrap());
        }
    }
    // One stack a place, however often; the signal's context has no stack of its own.
    for size in [1001, 1002, 1003, 1004, 1005, 1006, 1007] {
        assert_eq!(stacks.by_size[&size].len(), 1, "{size} bytes");
    }
    // Its position in the file: at a call's end.
    let first = &stacks.of(1001).next().unwrap()[1];
    assert_eq!(first.object, program.to_str().unwrap());
    assert!(first.line.ends_with(&format!("chains.c:{}", line("take(1001)"))), "{first:?}");
    let symbol = Command::new("nm").arg(&program).output().unwrap().stdout;
    let symbol = String::from_utf8(symbol).unwrap();
    let start = symbol.lines().find_map(|line| line.strip_suffix(" t first")).unwrap();
    let start = u64::from_str_radix(start, 16).unwrap();
    assert!((start..start + 64).contains(&first.offset), "{start:x}: {first:?}");
    // The child recorded its own.
    let [child] = &children[..] else { panic!("{children:?}") };
    let stacks = Stacks::read(child);
    stacks.expect(1001, &["take", "first", "main", "...", "_start"]);
    stacks.expect(1013, &["take", "in_child", "main", "...", "_start"]);
}

/// Node's own binary is like that.
#[test]
fn a_program_with_holes_between_its_segments() {
    let fixture = Fixture::new();
    let flags = [&["-no-pie", "-Wl,--section-start=.text=0x2000000"], &C[..]].concat();
    let program = compile(&fixture, "gcc", "apart.c", "apart", &flags);
    let (trace, _) = recorded(&fixture, vec![program.into()]);
    Stacks::read(&trace).expect(1200, &["inner", "outer", "main", "..."]);
}

fn line(text: &str) -> usize {
    let source = include_str!("sites_programs/chains.c");
    1 + source.lines().position(|line| line.contains(text)).unwrap()
}

#[test]
fn without_debug_information_or_symbols_the_place_is_left() {
    let fixture = Fixture::new();
    let flags = [&["-s"], &C[2..]].concat();
    let program = compile(&fixture, "gcc", "chains.c", "chains", &flags);
    let (trace, _) = recorded(&fixture, vec![program.clone().into()]);
    let stacks = Stacks::read(&trace);
    for stack in stacks.of(1001) {
        assert_eq!(stack[0].object, program.to_str().unwrap());
        assert!(stack[0].offset != 0 && stack[0].function.is_empty() && stack[0].line.is_empty());
        assert!(stack.iter().any(|frame| frame.function.starts_with("__libc_start_main")), "{stack:?}");
    }
}

#[test]
fn a_file_that_has_changed_gives_no_names() {
    let fixture = Fixture::new();
    let program = compile(&fixture, "gcc", "chains.c", "chains", &C);
    let apple =
        compile(&fixture, "gcc", "plugin.c", "a.so", &["-shared", "-fPIC", "-DNAME=apple", "-DSIZE=1100"]);
    // While the program runs, a compiler puts another file there.
    let script = fixture.path("script.sh");
    let (program_text, apple_text) = (program.display(), apple.display());
    let change = format!(
        "{program_text} {apple_text}; sleep 0.1; cp {apple_text} {apple_text}.new; mv {apple_text}.new {apple_text}\n"
    );
    std::fs::write(&script, change).unwrap();
    let (_, others) = recorded(&fixture, vec!["/bin/sh".into(), script.into()]);
    let traces: Vec<Stacks> = others.iter().map(|path| Stacks::read(path)).collect();
    let stacks =
        traces.iter().find(|stacks| stacks.by_size.contains_key(&1100)).expect("the program's trace");
    // It had ended, and its names were looked up, before; or after; or between them the file changed.
    let (before, after) = (apple_text.to_string(), format!("{apple_text} (changed)"));
    for stack in stacks.of(1100) {
        let found = (&*stack[1].function, &*stack[1].object);
        assert!([("apple", &*before), ("apple", &*after), ("", &*after)].contains(&found), "{stack:?}");
    }
}

#[test]
fn cpp_with_templates_and_exceptions() {
    let fixture = Fixture::new();
    let program = compile(&fixture, "g++", "chains.cc", "chains", &["-O2", "-w"]);
    let (trace, _) = recorded(&fixture, vec![program.into()]);
    let stacks = Stacks::read(&trace);
    stacks.expect(2002, &["shop::attempt()", "main", "...", "_start"]);
    stacks.expect(2006, &["shop::Buffer<short>::fill(unsigned long)", "main", "...", "_start"]);
    // An exception and what the C++ library keeps with it.
    let thrown = *stacks.by_size.keys().find(|&&size| (5000..5200).contains(&size)).expect("an exception");
    stacks.expect(
        thrown,
        &["__cxa_allocate_exception", "shop::fail()", "shop::attempt()", "main", "...", "_start"],
    );
}

#[test]
fn rust_with_generics_and_panics() {
    let fixture = Fixture::new();
    let program =
        compile(&fixture, "rustc", "chains.rs", "chains", &["-O", "--edition", "2024", "-Cdebuginfo=0"]);
    let (trace, _) = recorded(&fixture, vec![program.into()]);
    let stacks = Stacks::read(&trace);
    let names = |size| -> Vec<Vec<String>> {
        let names = |stack: &[Frame]| stack.iter().map(|frame| frame.function.clone()).collect();
        stacks.of(size).map(names).collect()
    };
    for (size, outer) in [(3001, "chains::careful"), (3002, "chains::careful"), (3003, "clone3")] {
        for stack in names(size) {
            let at = |name: &str| stack.iter().position(|function| function.contains(name));
            assert!(at(outer).is_some() || outer == "clone3", "{size}: {stack:#?}");
            if size != 3002 {
                let (eat, feed) = (at("<chains::Cat as chains::Animal>::eat"), at("chains::feed"));
                assert!(eat.is_some() && feed == eat.map(|at| at + 1), "{size}: {stack:#?}");
            }
            assert_ne!(stack.last().unwrap(), "[unknown callers]");
        }
    }
}
