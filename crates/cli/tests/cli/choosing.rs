//! `heaptoll choose`: finds what is better for certain, keeps the default where nothing is, and refuses what makes no
//! sense.

use crate::fixture::{Fixture, read_json};

/// A program that holds 8 MiB in small blocks.
const HOLDER: &str =
    "int main(void) { for (int at = 0; at < 80000; at++) memset(malloc(100), 1, 100); return 0; }";

/// A manager that takes 64 MiB more than glibc.
const LARGE: &str = "#include <sys/mman.h>\nstatic char *extra;\n#define BEFORE(bytes) if (!extra) { extra = mmap(0, 64 << \
                     20, 3, 34, -1, 0); for (int at = 0; at < 64 << 20; at += 4096) extra[at] = 1; }";

#[test]
fn a_default_that_takes_most_memory_is_replaced_and_a_lean_one_is_kept() {
    let fixture = Fixture::new();
    let program = fixture.program("holder", HOLDER);
    let large = fixture.manager("large.so", LARGE);
    let json = fixture.path("choice.json");
    let json = json.to_str().expect("a name of text");
    let choose = |baseline: &str, options: &[&str]| {
        let mut words =
            vec!["choose", "--prefer", "memory", "-n", "6", "--baseline", baseline, "--json", json];
        words.extend(options);
        words.extend(["--", &program]);
        let output = fixture.heaptoll(&words);
        assert_eq!(output.code, Some(0), "{words:?}: {}\n{}", output.out, output.err);
        (output.out, read_json(json))
    };
    let all = ["-m", "glibc", "-m", "glibc,top_pad=64K", "-m", "knuth", "-m", &large];
    let (text, figures) = choose(&large, &all);
    let choice = figures["choice"].as_str().expect("a name").to_owned();
    assert!(choice != large && text.contains(&format!("{choice}: ")), "{text}");
    assert!(text.contains(" less memory ("), "{text}");
    assert_eq!(figures["finalists"].as_array().map(Vec::len), Some(3), "two and the baseline");
    assert_eq!(figures["candidates"].as_array().map(Vec::len), Some(3));
    assert_eq!(figures["search_runs"], 8, "three candidates and the baseline, twice");
    let (text, figures) = choose("glibc", &["-m", &large, "-m", "glibc"]);
    assert_eq!(figures["choice"], "glibc");
    assert!(text.contains("Keep glibc"), "{text}");
    assert_eq!(figures["search_runs"], 0, "one candidate needs no search");
    // What takes more than the limit is out, the baseline too.
    let (_, figures) =
        choose(&large, &["-m", "glibc", "-m", "knuth", "-m", "glibc,top_pad=64K", "--memory-limit", "40M"]);
    assert_ne!(figures["choice"].as_str(), Some(large.as_str()));
}

#[test]
fn choices_that_make_no_sense_are_refused() {
    let fixture = Fixture::new();
    let refused = |words: &[&str], why: &str| {
        let output = fixture.heaptoll(words);
        assert_eq!(output.code, Some(2), "{words:?}: {}", output.out);
        assert!(output.err.contains(why), "{words:?}: {}", output.err);
    };
    refused(&["choose"], "nothing to run");
    refused(&["choose", "-m", "glibc", "--", "/bin/true"], "nothing to choose from but glibc");
    refused(&["choose", "-m", "nowhere", "--", "/bin/true"], "nowhere");
    refused(&["choose", "-m", "glibc,arenas=0", "--", "/bin/true"], "arenas");
    refused(&["choose", "--settings", "--", "/bin/true"], "--manager");
}
