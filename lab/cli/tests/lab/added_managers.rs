//! `heaptoll managers add`: a manager of others is checked, built and proved before it can be measured.

use std::fs;

use sha2::{Digest, Sha256};

use crate::fixture::{CommandOutput, Fixture, git, outcomes, read_json};

/// An allocator in two files: small blocks are cut from chunks and never reused, large ones are mappings of their own.
const HEADER: &str = "#include <stddef.h>\nstruct head { size_t size, length; void *map; };\nvoid *take(size_t alignment, size_t size);\n";
const HEAP: &str = r#"
#include "heap.h"
#include <stdint.h>
#include <sys/mman.h>
static volatile char taken;
static uintptr_t at, end;
static uintptr_t map(size_t length)
{
	void *made = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return made == MAP_FAILED ? 0 : (uintptr_t)made;
}
void *take(size_t alignment, size_t size)
{
	size_t total = size + alignment + 48;
	int large = total > 65536;
	uintptr_t from;
	if (size > PTRDIFF_MAX || alignment > PTRDIFF_MAX / 2 || total < size)
		return NULL;
	while (__atomic_test_and_set(&taken, __ATOMIC_ACQUIRE)) ;
	if (!large && end - at < total && (at = map(1 << 20)) != 0)
		end = at + (1 << 20);
	from = large ? map(total) : at;
	if (!large && from != 0)
		at += total;
	__atomic_clear(&taken, __ATOMIC_RELEASE);
	if (from == 0)
		return NULL;
	uintptr_t block = (from + 48 + alignment - 1) & ~(alignment - 1);
	struct head *head = (struct head *)block - 1;
	head->size = size; head->length = total; head->map = large ? (void *)from : NULL;
	return (void *)block;
}
"#;
const FAMILY: &str = r#"
#include "heap.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
static size_t size_of(void *p) { return p ? ((struct head *)p)[-1].size : 0; }
static void *full(void *p) { if (!p) errno = ENOMEM; return p; }
#define EXPORT __attribute__((visibility("default")))
EXPORT size_t malloc_usable_size(void *p) { return size_of(p); }
EXPORT void *malloc(size_t n) { return full(take(16, n)); }
EXPORT void free(void *p) { if (p && ((struct head *)p)[-1].map) munmap(((struct head *)p)[-1].map, ((struct head *)p)[-1].length); }
EXPORT void *calloc(size_t a, size_t b) { size_t n; return __builtin_mul_overflow(a, b, &n) ? full(NULL) : malloc(n); }
EXPORT void *realloc(void *p, size_t n)
{
	void *q = malloc(n);
	if (q && p) { memcpy(q, p, size_of(p) < n ? size_of(p) : n); free(p); }
	return q;
}
EXPORT void *reallocarray(void *p, size_t a, size_t b) { size_t n; return __builtin_mul_overflow(a, b, &n) ? full(NULL) : realloc(p, n); }
EXPORT void *memalign(size_t a, size_t n) { return full(take(a < 16 ? 16 : a, n)); }
EXPORT void *aligned_alloc(size_t a, size_t n) { return memalign(a, n); }
EXPORT int posix_memalign(void **p, size_t a, size_t n) { void *q = memalign(a, n); if (!q) return ENOMEM; *p = q; return 0; }
EXPORT void *valloc(size_t n) { return memalign(4096, n); }
#ifndef LACKS
EXPORT void *pvalloc(size_t n) { return memalign(4096, (n + 4095) & ~(size_t)4095); }
#endif
"#;

fn digest(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The tree `trees/made` and a recipe of it, for a manager `fine` and one, `lacking`, without pvalloc.
fn made_up(fixture: &Fixture) {
    let tree = fixture.path("trees/made");
    fs::create_dir_all(&tree).expect("made");
    fs::create_dir_all(fixture.path("recipe")).expect("made");
    let mut manifest = String::new();
    for (name, content) in
        [("heap.h", HEADER), ("heap.c", HEAP), ("family.c", FAMILY), ("LICENSE", "Do as you please.\n")]
    {
        fs::write(tree.join(name), content).expect("written");
        manifest.push_str(&format!("{}  made/{name}\n", digest(content.as_bytes())));
    }
    fs::write(fixture.path("recipe/files.sha256"), manifest).expect("written");
    write_recipe(fixture, |_| {});
}

/// Writes the recipe, with what `change` makes of it.
fn write_recipe(fixture: &Fixture, change: impl FnOnce(&mut String)) {
    let mut recipe = format!(
        "name = \"made-up\"\nversion = \"1.2\"\nlicence = \"as you please\"\nsources = [\"made/heap.c\", \"made/family.c\"]\n\
         c_flags = [\"-O1\", \"-fno-builtin\"]\n\
         [[repositories]]\nname = \"made\"\nurl = \"file:///nowhere/at-all\"\ncommit = \"{}\"\npaths = [\"LICENSE\", \"heap.h\", \
         \"heap.c\", \"family.c\"]\nlicence_files = [\"LICENSE\"]\n\
         [managers.fine]\nabout = \"made up\"\n[managers.fine.environment]\nFINE = \"yes\"\n",
        "0".repeat(40)
    );
    change(&mut recipe);
    fs::write(fixture.path("recipe/recipe.toml"), recipe).expect("written");
}

fn add(fixture: &Fixture, from: &str) -> CommandOutput {
    fixture.heaptoll(&["managers", "add", &fixture.at("recipe"), "--from", &fixture.at(from)])
}

/// The files of added managers, and whatever else is left there.
fn added(fixture: &Fixture) -> Vec<String> {
    let entries = fs::read_dir(fixture.path("data/heaptoll/managers")).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

const WHOLE: [&str; 3] = ["fine.LICENSE", "fine.so", "fine.toml"];

#[test]
fn a_manager_that_is_added_can_be_measured_and_one_that_lacks_a_function_is_not_there() {
    let fixture = Fixture::new();
    made_up(&fixture);
    write_recipe(&fixture, |recipe| {
        recipe.push_str("[managers.lacking]\nabout = \"a\"\nflags = [\"-DLACKS\"]\n")
    });
    add(&fixture, "trees").exits(1).shows(&["data/heaptoll/managers: fine\n"]).complains(&[
        "made-up: licence: as you please",
        "lacking: it was built, but does not serve",
        "pvalloc",
    ]);
    assert_eq!(added(&fixture), WHOLE, "nothing temporary and nothing unproved is left");
    let folder = fixture.path("data/heaptoll/managers");
    let description = fs::read_to_string(folder.join("fine.toml")).expect("there");
    let object = fs::read(folder.join("fine.so")).expect("there");
    for part in ["version = \"1.2\"", "file:///nowhere/at-all 000000000000", "-fno-builtin", &digest(&object)]
    {
        assert!(description.contains(part), "{part}: {description}");
    }
    assert!(
        fs::read_to_string(folder.join("fine.LICENSE"))
            .expect("there")
            .contains("made/LICENSE:\n\nDo as you please.")
    );
    let json = fixture.at("o.json");
    let run = |manager: &str| {
        let words = [
            "run", "-n", "1", "--warmup", "0", "--json", &json, "-m", "glibc", "-m", manager, "--", "ls", "/",
        ];
        fixture.heaptoll(&words)
    };
    for word in ["fine", "added"] {
        run(word).exits(0);
        assert_eq!(outcomes(&read_json(&json), "fine"), ["ok"], "{word}");
    }
    fs::remove_file(folder.join("fine.so")).expect("removed");
    run("fine").exits(2).complains(&["fine.toml", "add that manager again", "or remove the file"]);
}

#[test]
fn other_sources_and_names_that_are_taken_are_refused() {
    let fixture = Fixture::new();
    made_up(&fixture);
    for taken in ["glibc", "tithe", "modern", "added", "jvm-g1"] {
        write_recipe(&fixture, |recipe| {
            *recipe = recipe.replace("managers.fine", &format!("managers.{taken}"))
        });
        add(&fixture, "trees").exits(2).complains(&[&format!("`-m {taken}` already means something else")]);
    }
    write_recipe(&fixture, |_| {});
    fs::write(fixture.path("trees/made/heap.c"), format!("{HEAP} ")).expect("written");
    add(&fixture, "trees").exits(2).complains(&["made-up: made/heap.c is another file than the recipe's"]);
    fs::remove_file(fixture.path("trees/made/heap.c")).expect("removed");
    add(&fixture, "trees").exits(2).complains(&["made-up: made/heap.c is missing"]);
    assert!(added(&fixture).is_empty(), "{:?}", added(&fixture));
    fs::create_dir_all(fixture.path("empty")).expect("made");
    add(&fixture, "empty").exits(2).complains(&["has none of the folders of made"]);
    fixture
        .heaptoll(&["managers", "add", &fixture.at("recipe")])
        .exits(2)
        .complains(&["cannot fetch file:///nowhere/at-all", "or give a clone"]);
    fixture
        .heaptoll(&["managers", "add", "horde"])
        .exits(2)
        .complains(&["`horde`; there are: hardened_malloc, hoard"]);
}

#[test]
fn a_bare_repository_serves_by_itself_or_below_a_folder_of_several() {
    let fixture = Fixture::new();
    made_up(&fixture);
    let tree = fixture.path("trees/made");
    git(&tree, &["init", "--quiet"]);
    git(&tree, &["add", "."]);
    git(&tree, &["commit", "--quiet", "-m", "all"]);
    fs::create_dir_all(fixture.path("bare")).expect("made");
    git(&tree, &["clone", "--quiet", "--bare", ".", &fixture.at("bare/made.git")]);
    add(&fixture, "bare/made.git").exits(0);
    assert_eq!(added(&fixture), WHOLE);
    let other = "[[repositories]]\nname = \"other\"\nurl = \"u\"\ncommit = \"c\"\npaths = [\"a\"]\nlicence_files = [\"a\"]\n";
    let manifest = fs::read_to_string(fixture.path("recipe/files.sha256")).expect("there");
    fs::write(fixture.path("recipe/files.sha256"), format!("{manifest}{}  other/a\n", digest(b"")))
        .expect("written");
    write_recipe(&fixture, |recipe| *recipe = recipe.replacen("[managers", &format!("{other}[managers"), 1));
    add(&fixture, "bare").exits(2).complains(&["made-up has several repositories", "made and other"]);
    fs::create_dir_all(fixture.path("bare/other")).expect("made");
    fs::write(fixture.path("bare/other/a"), "").expect("written");
    add(&fixture, "bare").exits(0);
}

#[test]
fn without_a_compiler_nothing_is_added_and_what_was_added_earlier_stays() {
    let fixture = Fixture::new();
    made_up(&fixture);
    add(&fixture, "trees").exits(0);
    let mut command =
        fixture.command(&["managers", "add", &fixture.at("recipe"), "--from", &fixture.at("trees")]);
    let output: CommandOutput = command.env("CC", "false").output().expect("runs").into();
    output.exits(2).complains(&["false compiles no C", "install gcc"]);
    write_recipe(&fixture, |recipe| *recipe = recipe.replace("-O1", "-Dtake=1"));
    add(&fixture, "trees").exits(2).complains(&["fine: it does not build"]);
    assert_eq!(added(&fixture), WHOLE);
}

#[test]
#[ignore = "slow: half a minute of compiling; HEAPTOLL_MANAGERS names a folder with clones, each of its repository's name"]
fn the_recipes_give_managers_that_serve() {
    let Ok(from) = std::env::var("HEAPTOLL_MANAGERS") else {
        eprintln!(
            "left out: HEAPTOLL_MANAGERS names no folder with clones of Hoard, Heap-Layers and the others"
        );
        return;
    };
    let fixture = Fixture::new();
    for recipe in ["hoard", "hardened_malloc", "mallocng", "mesh"] {
        fixture.heaptoll(&["managers", "add", recipe, "--from", &from]).exits(0);
    }
    let json = fixture.at("o.json");
    let words =
        ["run", "-n", "1", "--warmup", "0", "--json", &json, "-m", "glibc", "-m", "added", "-p", "cfrac"];
    fixture.heaptoll(&[&words[..], &["--size", "tiny"]].concat()).exits(0);
    for name in ["hoard", "hardened_malloc", "hardened_malloc-light", "mallocng", "mesh"] {
        assert_eq!(outcomes(&read_json(&json), name), ["ok"], "{name}");
    }
}
