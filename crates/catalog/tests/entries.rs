//! What a catalog accepts and refuses, seen from outside: names, sizes, and errors that name file, field and remedy.

use std::fs;
use std::path::Path;

use heaptoll_catalog::{Catalog, CatalogError, Places, Size};
use proptest::prelude::*;

const GOOD: &str = r#"
name = "demo"
about = "prints numbers"
command = ["/bin/cat", "{input:numbers}", "{share}/x", "{bin}/y", "{tmp}/z", "n={words}", "{{}} {{tmp}}"]

[environment]
SEED = "{words}"

[inputs.numbers]
generator = "text"
seed = 1
words = "{words}"
vocabulary = 9

[sizes.quick]
parameters = { words = 10 }
digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

[variants.more]
about = "prints more numbers"
environment = { EXTRA = "1" }

[variants.more.sizes.quick]
parameters = { words = 20 }
"#;

fn load(text: &str) -> (tempfile::TempDir, Result<Catalog, CatalogError>) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("demo.toml"), text).unwrap();
    let catalog = Catalog::load(folder.path());
    (folder, catalog)
}

fn places(folder: &Path) -> Places {
    Places { bin: "/opt/bin".into(), added: "/opt/added".into(), inputs_cache: folder.join("inputs") }
}

#[test]
fn the_projects_own_catalog_loads_and_every_size_is_there() {
    let share = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs");
    let catalog = Catalog::load(&share).unwrap();
    for name in [
        "cfrac",
        "cc1",
        "espresso",
        "fig2dev",
        "gawk",
        "gdb:static",
        "ghostscript",
        "gnugo",
        "hmmer:1-thread",
        "ld",
        "lua",
        "make",
        "perl",
        "python",
        "redis",
        "reverse:8-byte",
        "sqlite",
        "sqlite:lookaside",
        "sqlite:no-lookaside",
        "xalan",
        "z3",
    ] {
        assert!(catalog.find(name).is_ok(), "{name}");
    }
    for program in catalog.programs() {
        // The smallest is for what is traced.
        let measured = program.sizes().filter(|size| *size != Size::Tiny);
        assert_eq!(measured.collect::<Vec<_>>(), Size::ALL[1..], "{}", program.name());
        assert!(program.about().len() <= 110, "{} is too long for a table", program.name());
    }
}

#[test]
fn placeholders_become_paths_and_parameters() {
    let (folder, catalog) = load(GOOD);
    let catalog = catalog.unwrap();
    let prepared = catalog.find("demo").unwrap().prepare(Size::Quick, &places(folder.path())).unwrap();
    let here = folder.path().display();
    assert!(fs::metadata(&prepared.command[1]).unwrap().len() > 0);
    assert_eq!(
        prepared.command[2..],
        [format!("{here}/x"), "/opt/bin/y".into(), "{tmp}/z".into(), "n=10".into(), "{} {{tmp}}".into()]
    );
    assert_eq!(prepared.environment, [("SEED".to_owned(), "10".to_owned())]);
    assert!(prepared.expected_digest.is_some());
}

#[test]
fn a_variant_changes_only_what_it_names() {
    let (folder, catalog) = load(GOOD);
    let catalog = catalog.unwrap();
    assert_eq!(catalog.names(), ["demo", "demo:more"]);
    let variant = catalog.find("demo:more").unwrap();
    assert_eq!((variant.variant(), variant.about()), (Some("more"), "prints more numbers"));
    let prepared = variant.prepare(Size::Quick, &places(folder.path())).unwrap();
    let expected = [("EXTRA", "1"), ("SEED", "20")].map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(prepared.environment, expected);
    assert_eq!(prepared.command[0], "/bin/cat");
    assert_eq!(prepared.expected_digest, None, "a size of its own has its own digest");
}

#[test]
fn a_bundled_variant_of_a_packages_program_names_no_package() {
    let text = GOOD.replacen("command", "package = \"nsp\"\ncommand", 1).replacen(
        "about = \"prints more numbers\"",
        "package = \"\"\ncommand = [\"{bin}/own\"]",
        1,
    );
    let (folder, catalog) = load(&text);
    let catalog = catalog.unwrap();
    assert_eq!(catalog.find("demo").unwrap().package(), Some("nsp"));
    let variant = catalog.find("demo:more").unwrap();
    assert_eq!(variant.package(), None);
    assert!(variant.missing(&places(folder.path())).unwrap().contains("type `make build`"));
}

#[test]
fn errors_name_the_file_the_field_and_the_remedy() {
    let replaced = |from: &str, to: &str| {
        assert!(GOOD.contains(from), "{from}");
        GOOD.replacen(from, to, 1)
    };
    for (text, parts) in [
        (replaced("[environment]", "[enviroment]"), ["unknown field `enviroment`", "line 6"]),
        (replaced("name = \"demo\"\n", ""), ["missing field `name`", "docs/questions/programs.md"]),
        (replaced("name = \"demo\"", "name = \"My Demo\""), ["`name`", "use lower-case letters"]),
        (replaced("{input:numbers}", "{input:letters}"), ["input:letters", "add [inputs.\"letters\"]"]),
        (replaced("n={words}", "n={wrods}"), ["{wrods}", "sizes.quick.parameters"]),
        (replaced("n={words}", "n={words"), ["`{` without `}`", "{share}, {bin}"]),
        (replaced("words = \"{words}\"", "words = \"{lines}\""), ["inputs.numbers", "no parameter `lines`"]),
        (
            replaced("generator = \"text\"", "generator = \"poem\""),
            ["unknown variant `poem`", "lists the generators"],
        ),
        (replaced("digest = \"e3", "digest = \"E3"), ["sizes.quick.digest", "64 lower-case"]),
        (replaced("[sizes.quick]", "[sizes.small]"), ["unknown variant `small`", "quick"]),
        (replaced("command = [", "stdin = \"x\"\ncommand = ["), ["`stdin`", "no input `x`"]),
        (replaced("command = [", "threads = 0\ncommand = ["), ["`threads`", "1 or more"]),
        (replaced("[\"/bin/cat\"", "[\"\""), ["`command`", "give the program"]),
        (replaced("[variants.more]", "[variants.More]"), ["`More` is not a name", "use lower-case"]),
        (replaced("about = \"prints numbers\"", "about = 3"), ["line 3", "expected a string"]),
        (
            "name = \"x\"\nabout = \"y\"\n[sizes.quick]\n".to_owned(),
            ["either a command or a [serve]", "keep one"],
        ),
        (
            "name = \"x\"\nabout = \"y\"\ncommand = [\"z\"]\n[sizes]\n".to_owned(),
            ["`sizes`", "add [sizes.quick]"],
        ),
    ] {
        let (_folder, catalog) = load(&text);
        let message = catalog.unwrap_err().to_string();
        for part in parts.iter().chain(&["demo.toml"]) {
            assert!(message.contains(part), "{part} is not in: {message}");
        }
    }
}

#[test]
fn a_program_may_print_figures_and_run_only_by_name() {
    let text =
        GOOD.replacen("command = [", "by_name = true\nfigures = \"took (?<took_us>[0-9]+)\"\ncommand = [", 1);
    let (folder, catalog) = load(&text);
    let catalog = catalog.unwrap();
    let demo = catalog.find("demo").unwrap();
    let prepared = demo.prepare(Size::Quick, &places(folder.path())).unwrap();
    assert_eq!(prepared.figures.as_deref(), Some("took (?<took_us>[0-9]+)"));
    assert!(demo.is_by_name());
    let (_folder, catalog) = load(GOOD);
    let catalog = catalog.unwrap();
    assert!(!catalog.find("demo").unwrap().is_by_name() && catalog.find("demo:more").unwrap().is_by_name());
    for wrong in ["(took", "took [0-9]+"] {
        let text = GOOD.replacen("command = [", &format!("figures = \"{wrong}\"\ncommand = ["), 1);
        let message = load(&text).1.unwrap_err().to_string();
        assert!(message.contains("`figures`"), "{message}");
    }
}

#[test]
fn what_varies_in_the_output_is_a_pattern_and_standard_input_may_be_a_file() {
    let text = GOOD.replacen(
        "command = [",
        "varies = 'took (?<took_s>[0-9.]+)'\nstdin = \"{share}/words\"\ncommand = [",
        1,
    );
    let (folder, catalog) = load(&text);
    let prepared =
        catalog.unwrap().find("demo").unwrap().prepare(Size::Quick, &places(folder.path())).unwrap();
    assert_eq!(prepared.varies.as_deref(), Some("took (?<took_s>[0-9.]+)"));
    assert!(prepared.stdin.unwrap().ends_with("words"));
    for (wrong, field) in [
        ("varies = '(took'", "`varies`"),
        ("stdin = \"{nothing}/words\"", "parameters"),
        ("stdin = \"{x\"", "`stdin`"),
    ] {
        let text = GOOD.replacen("command = [", &format!("{wrong}\ncommand = ["), 1);
        let message = load(&text).1.unwrap_err().to_string();
        assert!(message.contains(field), "{message}");
    }
}

#[test]
fn a_variant_may_have_a_variant() {
    let text = GOOD.replacen("[variants.more]", "[variants.\"more:still\"]", 1);
    assert_eq!(load(&text).1.unwrap().find("demo:more:still").unwrap().variant(), Some("more:still"));
    let message =
        load(&GOOD.replacen("[variants.more]", "[variants.\"more:\"]", 1)).1.unwrap_err().to_string();
    assert!(message.contains("is not a name"), "{message}");
}

#[test]
fn patterns_of_a_server_are_checked() {
    let server = |ready: &str, figures: &str| {
        format!(
            "name = \"s\"\nabout = \"a\"\n[serve]\nserver = [\"a\"]\nload = [\"b\"]\nready = '{ready}'\n\
             figures = '{figures}'\n[sizes.quick]\n"
        )
    };
    assert!(load(&server("up", "(?<n>\\d+)")).1.is_ok());
    let bad = load(&server("(up", "(?<n>\\d+)")).1.unwrap_err().to_string();
    assert!(bad.contains("serve.ready"), "{bad}");
    let unnamed = load(&server("up", "(\\d+)")).1.unwrap_err().to_string();
    let stop = server("up", "(?<n>\\d+)").replace("[sizes", "stop = \"STOP\"\n[sizes");
    let unknown = load(&stop).1.unwrap_err().to_string();
    assert!(unknown.contains("serve.stop") && unknown.contains("TERM"), "{unknown}");
    assert!(unnamed.contains("serve.figures") && unnamed.contains("(?<name>...)"), "{unnamed}");
}

#[test]
fn a_misspelt_name_is_answered_with_the_nearest() {
    let (_folder, catalog) = load(GOOD);
    let catalog = catalog.unwrap();
    let message = catalog.find("dmeo").unwrap_err().to_string();
    assert!(message.contains("did you mean `demo`"), "{message}");
    let message = catalog.find("zzzz").unwrap_err().to_string();
    assert!(message.contains("there are: demo, demo:more"), "{message}");
}

#[test]
fn a_missing_size_names_those_there_are() {
    let (folder, catalog) = load(GOOD);
    let error =
        catalog.unwrap().find("demo").unwrap().prepare(Size::Full, &places(folder.path())).unwrap_err();
    assert!(error.to_string().contains("no size `full`; it has: quick"), "{error}");
}

#[test]
fn what_is_missing_is_named_with_its_package() {
    let absent = GOOD.replacen("/bin/cat", "/usr/bin/no-such-program", 1);
    let (folder, catalog) = load(&absent);
    let message = catalog.unwrap().find("demo").unwrap().missing(&places(folder.path())).unwrap();
    assert_eq!(message, "/usr/bin/no-such-program is not installed");
    let (folder, catalog) = load(&absent.replacen("command", "package = \"nsp\"\ncommand", 1));
    let message = catalog.unwrap().find("demo").unwrap().missing(&places(folder.path())).unwrap();
    assert!(message.ends_with("apt-get install nsp"), "{message}");
    let (folder, catalog) = load(&GOOD.replacen("/bin/cat", "{bin}/thing", 1));
    let message = catalog.unwrap().find("demo").unwrap().missing(&places(folder.path())).unwrap();
    assert!(message.contains("/opt/bin/thing is not built: type `make build`"), "{message}");
    let (folder, catalog) = load(GOOD);
    assert_eq!(catalog.unwrap().find("demo").unwrap().missing(&places(folder.path())), None);
}

#[test]
fn folders_without_entries_and_double_names_are_errors() {
    let empty = tempfile::tempdir().unwrap();
    let message = Catalog::load(empty.path()).unwrap_err().to_string();
    assert!(message.contains("no program entries"), "{message}");
    let message = Catalog::load(&empty.path().join("gone")).unwrap_err().to_string();
    assert!(message.contains("gone") && message.contains("check that the path is right"), "{message}");

    let (folder, _) = load(GOOD);
    fs::write(folder.path().join("other.toml"), GOOD).unwrap();
    let message = Catalog::load(folder.path()).unwrap_err().to_string();
    assert!(
        message.contains("demo.toml") && message.contains("other.toml") && message.contains("rename"),
        "{message}"
    );
}

#[test]
fn an_inputs_folder_that_cannot_be_made_is_an_error() {
    let (folder, catalog) = load(GOOD);
    let file = folder.path().join("demo.toml");
    let places =
        Places { bin: "/opt/bin".into(), added: "/opt/added".into(), inputs_cache: file.join("inputs") };
    let message =
        catalog.unwrap().find("demo").unwrap().prepare(Size::Quick, &places).unwrap_err().to_string();
    assert!(
        message.contains("cannot write the input `numbers`") && message.contains("in the way"),
        "{message}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn loading_damaged_entries_never_panics(at in 0..GOOD.len(), length in 0..40usize, text in "[\\[\\]{}\"a-z= \n]{0,6}") {
        let mut damaged = GOOD.to_owned();
        let end = (at + length).min(damaged.len());
        damaged.replace_range(at..end, &text);
        if let Err(error) = load(&damaged).1 {
            prop_assert!(error.to_string().contains("demo.toml"));
        }
    }
}

/// What the page of programs promises, by what `heaptoll trace stat` found.
#[test]
fn the_projects_own_catalog_has_many_programs_large_heaps_and_threads_that_allocate() {
    let share = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs");
    let catalog = Catalog::load(&share).unwrap();
    let programs: Vec<_> = catalog.programs().filter(|program| program.variant().is_none()).collect();
    assert!(programs.len() >= 75, "{}", programs.len());
    let stated: Vec<_> = programs.iter().filter_map(|program| program.stat()).collect();
    assert!(stated.iter().filter(|stat| stat.live_mib > 50.0).count() >= LARGE);
    assert!(stated.iter().filter(|stat| stat.threads > 1).count() >= THREADED);
    for program in programs.iter().filter(|program| program.stat().is_some()) {
        assert!(program.pools().is_some(), "{} states what was found, and not what it pools", program.name());
    }
}

/// With a live heap over 50 MiB, and with several threads that allocate.
const LARGE: usize = 15;
const THREADED: usize = 10;

#[test]
fn a_digest_of_another_version_does_not_count() {
    let of = |version: &str| {
        let field = format!("package = \"coreutils\"\ndigests_of = \"{version}\"\ncommand = [");
        let (folder, catalog) = load(&GOOD.replacen("command = [", &field, 1));
        let prepared = catalog.unwrap().find("demo").unwrap().prepare(Size::Quick, &places(folder.path()));
        prepared.unwrap().expected_digest
    };
    assert_eq!(of("0.0-none"), None);
}

/// A set of our own, and what is refused of one.
#[test]
fn a_set_names_known_programs_once() {
    let (folder, _) = load(GOOD);
    let sets = folder.path().join("sets");
    fs::create_dir(&sets).unwrap();
    let with = |text: &str| {
        fs::write(sets.join("few.toml"), text).unwrap();
        Catalog::load(folder.path())
    };
    let set = |programs: &str| {
        format!("name = \"few\"\nabout = \"a few\"\ncriteria = [\"small\"]\nprograms = [{programs}]\n")
    };
    let catalog = with(&set("\"demo:more\", \"demo\"")).unwrap();
    assert_eq!(catalog.set("few").unwrap().programs, ["demo:more", "demo"]);
    let message = catalog.set("fewer").unwrap_err().to_string();
    assert_eq!(message, "no set of programs is called `fewer`; there are: few");
    for (programs, problem) in [
        ("\"dem\"", "did you mean `demo`"),
        ("\"demo\", \"demo\"", "named twice"),
        ("", "name one or more"),
        ("demo", "few.toml"),
    ] {
        let message = with(&set(programs)).unwrap_err().to_string();
        assert!(message.contains(problem) && message.contains("few.toml"), "{message}");
    }
    with(&set("\"demo\"")).unwrap();
    fs::copy(sets.join("few.toml"), sets.join("other.toml")).unwrap();
    let message = Catalog::load(folder.path()).unwrap_err().to_string();
    assert!(message.contains("few.toml") && message.contains("other.toml"), "{message}");
}

/// What is promised of the set over which means are formed.
#[test]
fn the_set_of_twenty_has_twenty_programs_with_one_thread_and_a_quick_input() {
    let share = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs");
    let catalog = Catalog::load(&share).unwrap();
    let programs = &catalog.set("twenty").unwrap().programs;
    assert_eq!(programs.len(), 20);
    for name in programs {
        let program = catalog.find(name).unwrap();
        assert!(!program.is_server() && !program.is_by_name() && program.threads() == 1, "{name}");
        assert!(program.sizes().any(|size| size == Size::Quick), "{name}");
    }
}
