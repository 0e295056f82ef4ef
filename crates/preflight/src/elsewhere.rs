//! Programs whose memory is mostly not malloc's: a comparison of managers means little for them.

use std::ffi::OsString;
use std::path::Path;

use heaptoll_units::whole_bytes;

use crate::proof::ProcessProof;

/// Less than this is no program's problem.
const MUCH: u64 = 16 << 20;

/// A runtime whose objects are not malloc's, by its program's names without a version.
struct Runtime {
    programs: &'static [&'static str],
    heap: &'static str,
    /// Whether the heap is divided from blocks of malloc's: then these are all that a manager or a trace has of it.
    is_of_blocks: bool,
}

const RUNTIMES: [Runtime; 5] = [
    Runtime { programs: &["java"], heap: "the Java virtual machine's own heap", is_of_blocks: false },
    Runtime { programs: &["node", "nodejs"], heap: "V8's own heap", is_of_blocks: false },
    Runtime { programs: &["dotnet"], heap: "the .NET runtime's own heap", is_of_blocks: false },
    Runtime { programs: &["pypy"], heap: "PyPy's own heap", is_of_blocks: false },
    Runtime {
        programs: &["tclsh", "wish"],
        heap: "Tcl's own allocator for blocks of up to 16 KiB",
        is_of_blocks: true,
    },
];

impl Runtime {
    /// A sentence on the heap of the program of this name.
    fn sentence(&self, name: &str) -> String {
        match self.is_of_blocks {
            true => format!("{name} has {}, which divides large blocks of malloc's", self.heap),
            false => format!("{name} has {} besides malloc's; no manager changes that part", self.heap),
        }
    }
}

/// A sentence for each program that holds much memory that malloc did not give.
pub fn of<'a>(
    processes: impl Iterator<Item = &'a ProcessProof>,
    environment: &[(OsString, OsString)],
) -> Vec<String> {
    let mut found = Vec::new();
    for process in processes {
        let name = process.exe.file_name().unwrap_or(process.exe.as_os_str()).to_string_lossy();
        if let Some(sentence) = sentence(&name, process, environment)
            && !found.contains(&sentence)
        {
            found.push(sentence);
        }
    }
    found
}

/// A sentence for a program whose name alone shows a runtime with objects that are not malloc's.
pub fn own_heap(exe: &Path, environment: &[(OsString, OsString)]) -> Option<String> {
    let name = exe.file_name()?.to_string_lossy();
    if is_python(&name) {
        return (!takes_all_from_malloc(environment)).then(|| python(&name));
    }
    runtime(&name).map(|runtime| runtime.sentence(&name))
}

/// The same for a program whose environment is not known any more.
pub fn own_heap_of_trace(exe: &Path) -> Option<String> {
    let name = exe.file_name()?.to_string_lossy();
    match is_python(&name) {
        true => Some(format!(
            "{name} takes objects of up to 512 bytes from its own allocator: the trace lacks them, unless it was \
             recorded with PYTHONMALLOC=malloc"
        )),
        false => runtime(&name).map(|runtime| runtime.sentence(&name)),
    }
}

/// The same for a heap that grows without a call of malloc.
pub fn hidden_heap_of_trace(exe: &Path) -> Option<String> {
    let name = exe.file_name()?.to_string_lossy();
    runtime(&name).filter(|runtime| !runtime.is_of_blocks).map(|runtime| runtime.sentence(&name))
}

/// A sentence for any program that held this memory of no file, and took less than half of that from malloc in all: bytes.
pub fn own_heap_by_size(exe: &Path, held: u64, requested: u64) -> Option<String> {
    by_size(&exe.file_name()?.to_string_lossy(), held, requested)
}

/// A name without its version.
fn stem(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

fn is_python(name: &str) -> bool {
    stem(name) == "python"
}

fn runtime(name: &str) -> Option<&'static Runtime> {
    RUNTIMES.iter().find(|runtime| runtime.programs.contains(&stem(name)))
}

fn python(name: &str) -> String {
    format!(
        "{name} takes objects of up to 512 bytes from its own allocator, not from malloc: set PYTHONMALLOC=malloc to \
         include them"
    )
}

fn sentence(name: &str, process: &ProcessProof, environment: &[(OsString, OsString)]) -> Option<String> {
    if is_python(name) {
        return (!takes_all_from_malloc(environment)).then(|| python(name));
    }
    by_size(name, process.anonymous_bytes, process.requested_bytes)
}

fn by_size(name: &str, held: u64, requested: u64) -> Option<String> {
    let runtime = runtime(name);
    if let Some(runtime) = runtime.filter(|runtime| runtime.is_of_blocks || held >= MUCH && requested >= held)
    {
        return Some(runtime.sentence(name));
    }
    // The total ever requested exceeds what was live at once: less than half of what is held is certain.
    if held < MUCH || runtime.is_none() && requested >= held / 2 {
        return None;
    }
    let place = runtime.map_or("mappings or an allocator of its own", |runtime| runtime.heap);
    Some(format!(
        "{name} had {} of memory, but took only {} from malloc: the rest is {place}, and no manager changes it",
        whole_bytes(held),
        whole_bytes(requested)
    ))
}

/// Whether CPython is set to take every object from malloc.
fn takes_all_from_malloc(environment: &[(OsString, OsString)]) -> bool {
    let set = environment.iter().rev().find(|(name, _)| Path::new(name) == Path::new("PYTHONMALLOC"));
    set.is_some_and(|(_, value)| value == "malloc" || value == "malloc_debug")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(exe: &str, held_mib: u64, requested_mib: u64) -> ProcessProof {
        ProcessProof {
            exe: exe.into(),
            pid: 1,
            layers: vec![],
            malloc_bound_to: None,
            new_bound_to: None,
            malloc_calls: 1,
            free_calls: 0,
            requested_bytes: requested_mib << 20,
            anonymous_bytes: held_mib << 20,
            cpu_s: None,
            unreached: None,
        }
    }

    fn sentences(exe: &str, held_mib: u64, requested_mib: u64, set: &[(&str, &str)]) -> Vec<String> {
        let environment: Vec<_> = set.iter().map(|(name, value)| (name.into(), value.into())).collect();
        of(std::iter::once(&process(exe, held_mib, requested_mib)), &environment)
    }

    #[test]
    fn a_program_that_holds_what_malloc_did_not_give_is_named_with_both_figures() {
        let java = sentences("/usr/lib/jvm/bin/java", 101, 80, &[]);
        assert!(java[0].contains("java had 101 MiB") && java[0].contains("Java virtual machine"), "{java:?}");
        let own = sentences("/opt/server", 101, 9, &[]);
        assert!(own[0].contains("took only 9.00 MiB from malloc"), "{own:?}");
        assert_eq!(own_heap_by_size(Path::new("/opt/server"), 101 << 20, 9 << 20), own.first().cloned());
    }

    #[test]
    fn runtimes_are_known_by_their_names_alone() {
        let of = |exe: &str, set: &[(OsString, OsString)]| own_heap(Path::new(exe), set);
        let malloc = [("PYTHONMALLOC".into(), "malloc".into())];
        assert!(of("/usr/bin/python3.11", &[]).is_some_and(|text| text.contains("PYTHONMALLOC=malloc")));
        assert_eq!(of("/usr/bin/python3.11", &malloc), None);
        assert!(of("/usr/bin/node", &malloc).is_some_and(|text| text.contains("V8's own heap")));
        assert_eq!(of("/usr/bin/gawk", &[]), None);
        let tcl = Path::new("/usr/bin/tclsh8.6");
        assert!(own_heap_of_trace(tcl).is_some_and(|text| text.contains("divides large blocks of malloc's")));
        let hidden = [Path::new("/usr/bin/node"), tcl].map(|exe| hidden_heap_of_trace(exe).is_some());
        assert_eq!(hidden, [true, false], "a trace has the blocks");
        let of_trace = own_heap_of_trace(Path::new("/usr/bin/python3"));
        assert!(
            of_trace.is_some_and(|text| text.contains("unless it was recorded with PYTHONMALLOC=malloc"))
        );
        assert_eq!(own_heap_of_trace(Path::new("/usr/bin/gawk")), None);
    }

    #[test]
    fn a_program_of_which_malloc_may_have_given_most_is_not_named() {
        assert!(sentences("/opt/server", 101, 60, &[]).is_empty());
        assert!(sentences("/opt/small", 15, 0, &[]).is_empty(), "too little to matter");
        assert!(sentences("/opt/stopped", 0, 500, &[]).is_empty(), "not known");
        assert!(sentences("/usr/bin/java", 10, 1, &[]).is_empty());
        assert!(sentences("/usr/bin/java", 10, 11, &[]).is_empty());
    }

    #[test]
    fn python_is_named_with_its_remedy_until_that_is_taken() {
        assert!(sentences("/usr/bin/python3.11", 9, 9, &[])[0].contains("PYTHONMALLOC=malloc"));
        assert!(sentences("/usr/bin/python3.11", 9, 9, &[("PYTHONMALLOC", "pymalloc")]).len() == 1);
        assert!(sentences("/usr/bin/python3.11", 900, 9, &[("PYTHONMALLOC", "malloc")]).is_empty());
    }
}
