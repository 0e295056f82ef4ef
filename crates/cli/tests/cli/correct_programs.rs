//! `heaptoll leaks` on correct programs in other languages than C, whose own are in `leak_owners`: a gate that fails one of
//! them is of no use.

use std::process::Command;

use crate::fixture::Fixture;

/// The ending of its file shows the language.
const PROGRAMS: [(&str, &str); 20] = [
    (
        "threads.cc",
        "#include <iostream>\n#include <map>\n#include <memory>\n#include <stdexcept>\n#include <string>\n#include <thread>\n#include <vector>\n
        int main() { std::map<int, std::shared_ptr<std::string>> m; std::vector<std::thread> t;
        for (int i = 0; i < 3; i++) { m[i] = std::make_shared<std::string>(100, 'x'); t.emplace_back([] {
        try { throw std::runtime_error(std::string(90, 'y')); } catch (...) {} }); }
        for (auto &one : t) one.join(); std::cout << m.size() << std::endl; }",
    ),
    (
        "static_containers.cc",
        "#include <string>\n#include <unordered_map>\nstatic std::unordered_map<int, std::string> all;
        int main() { for (int i = 0; i < 500; i++) all[i] = std::string(60, 'x'); }",
    ),
    (
        "arrays_with_cookies.cc",
        "struct one { int *p = new int(3); ~one() { delete p; } }; static one *all; int main() { all = new one[20]; }",
    ),
    (
        "bases.cc",
        "struct a { virtual ~a() {} long x; }; struct b { virtual ~b() {} long y; }; struct both : a, b { long z; };
        static b *volatile second; int main() { second = new both; }",
    ),
    (
        "exceptions.cc",
        "#include <exception>\n#include <stdexcept>\nstatic std::exception_ptr kept; int main() {
        try { throw std::runtime_error(\"kept for later, and longer than a small string\"); }
        catch (...) { kept = std::current_exception(); } }",
    ),
    (
        "own_data_of_threads.cc",
        "#include <string>\n#include <thread>\nthread_local std::string own; int main() { own = std::string(99, 'x');
        std::thread([] { own = std::string(99, 'y'); }).join(); }",
    ),
    (
        "futures.cc",
        "#include <future>\n#include <vector>\nint main() { std::vector<std::future<std::vector<int>>> all;
        for (int i = 0; i < 3; i++) all.push_back(std::async(std::launch::async, [] { return std::vector<int>(50); }));
        return (int)all[1].get().size() - 50; }",
    ),
    (
        "streams_and_locales.cc",
        "#include <iostream>\n#include <locale>\n#include <regex>\n#include <sstream>\nint main() { std::ostringstream s;
        s.imbue(std::locale(\"C\")); s << 1.5; std::regex r(\"1.*\"); return !std::regex_match(s.str(), r); }",
    ),
    (
        "ends_within.cc",
        "#include <cstdlib>\n#include <string>\n#include <vector>\nint main() { std::vector<std::string> all(20, std::string(99, 'x'));
        std::exit(all.size() != 20); }",
    ),
    (
        "threads.rs",
        "use std::collections::HashMap; fn main() { let all: Vec<_> = (0..3).map(|i| std::thread::spawn(move ||
        (0..100).map(|j| (j, format!(\"{i}{j}\"))).collect::<HashMap<_, _>>().len())).collect();
        println!(\"{}\", all.into_iter().map(|one| one.join().unwrap()).sum::<usize>()); }",
    ),
    (
        "shared.rs",
        "use std::sync::{Arc, Mutex, OnceLock}; static ALL: OnceLock<Mutex<Vec<Arc<str>>>> = OnceLock::new();
        fn main() { let all = ALL.get_or_init(Default::default); (0..50).for_each(|i| all.lock().unwrap().push(format!(\"{i}\").into())); }",
    ),
    (
        "exits.rs",
        "fn main() { let all: Vec<Box<u64>> = (0..50).map(Box::new).collect(); println!(\"{}\", all.len()); std::process::exit(0) }",
    ),
    (
        "channels.rs",
        "fn main() { let (to, from) = std::sync::mpsc::channel(); let one = std::thread::spawn(move || for i in 0..99 { to.send(vec![i]).unwrap() });
        one.join().unwrap(); assert_eq!(from.iter().take(50).count(), 50); }",
    ),
    (
        "panics.rs",
        "fn main() { let caught = std::panic::catch_unwind(|| { let all = vec![1_u8; 99]; all[std::env::args().count() + 99] });
        assert!(caught.is_err()); thread_local!(static OWN: String = \"x\".repeat(99)); OWN.with(|own| assert_eq!(own.len(), 99)); }",
    ),
    (
        "frees.go",
        "package main\n/*\n#include <stdlib.h>\nstatic void *made(void) { return malloc(50); }\n*/\nimport \"C\"\nimport \"fmt\"
        func main() { p := C.made(); C.free(p); done := make(chan int); go func() { done <- 3 }(); fmt.Println(<-done) }\n",
    ),
    (
        "keeps.go",
        "package main\n// #include <stdlib.h>\n// static void *kept; static void keep(void) { kept = malloc(50); }\nimport \"C\"
        func main() { C.keep() }\n",
    ),
    (
        "texts.go",
        "package main\n// #include <stdlib.h>\nimport \"C\"\nimport \"unsafe\"
        func main() { for i := 0; i < 50; i++ { s := C.CString(\"text\"); C.free(unsafe.Pointer(s)) } }\n",
    ),
    (
        "threads.go",
        "package main\n// #include <stdlib.h>\n// #include <unistd.h>\n// static void work(void) { void *volatile p = malloc(50); usleep(1000); free(p); }\nimport \"C\"\nimport \"sync\"
        func main() { var all sync.WaitGroup; for i := 0; i < 4; i++ { all.Add(1); go func() { C.work(); all.Done() }() }; all.Wait() }\n",
    ),
    (
        "arrays.f90",
        "program p\n real, allocatable :: a(:)\n allocate(a(1000))\n a = 2\n print *, sum(a)\n deallocate(a)\nend program\n",
    ),
    (
        "pointers.f90",
        "program p\n real, pointer, save :: a(:)\n allocate(a(1000))\n a = 2\n print *, sum(a)\nend program\n",
    ),
];

/// The program; none where there is no compiler of its language.
fn built(fixture: &Fixture, file: &str, source: &str) -> Option<String> {
    let (path, program) = (fixture.at(file), fixture.at(&file.replace('.', "-")));
    std::fs::write(&path, source).expect("writes");
    let words: &[&str] = match file.rsplit('.').next() {
        Some("cc") => &["c++", "-g", "-std=c++17", "-pthread", "-o", &program, &path],
        Some("rs") => &["rustc", "-g", "-o", &program, &path],
        Some("go") => &["go", "build", "-o", &program, &path],
        _ => &["gfortran", "-g", "-o", &program, &path],
    };
    let mut command = Command::new(words[0]);
    match command.args(&words[1..]).env("GOCACHE", fixture.at("go-cache")).output() {
        Ok(output) if output.status.success() => Some(program),
        Ok(output) => panic!("{file}: {}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => {
            eprintln!("{file} is left out: {}: {error}", words[0]);
            None
        }
    }
}

fn pass_the_gate(programs: &[(&str, &str)]) {
    let fixture = Fixture::new();
    let failed = programs.iter().filter_map(|(file, source)| {
        let program = built(&fixture, file, source)?;
        let found = fixture.heaptoll(&["leaks", "--fail-on", "definite", "--", &program]);
        (found.code != Some(0)).then(|| format!("{file}: {}\n{}", found.out, found.err))
    });
    let failed: Vec<String> = failed.collect();
    assert!(failed.is_empty(), "{} fail:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn correct_programs_in_cpp_and_rust_pass_the_gate() {
    pass_the_gate(&[PROGRAMS[0], PROGRAMS[9]]);
}

#[test]
#[ignore = "slow: runs 20 programs under the tracer"]
fn every_correct_program_of_another_language_passes_the_gate() {
    pass_the_gate(&PROGRAMS);
}
