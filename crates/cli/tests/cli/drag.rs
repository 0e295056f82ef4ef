//! `heaptoll exact drag`: on programs whose every touch is known, under managers and collectors of all sorts.

use serde_json::Value;

use crate::fixture::{CommandOutput, Fixture, is_built, read_json};

/// Objects of sizes that nothing else has. The clock of bytes goes in steps of 64 KiB, that of instructions in loops of
/// two instructions that touch nothing.
const KNOWN: &str = r#"
    #define STEP 65536
    static void steps(int n) { while (n--) free(malloc(STEP)); }
    static void instructions(unsigned long n) {
        n /= 2;
        __asm__ volatile("1: sub $1, %0\n jnz 1b" : "+r"(n) : : "cc");
    }
    __attribute__((noinline)) char *make_used(void) { char *made = malloc(100); __asm__ volatile(""); return made; }
    __attribute__((noinline)) char *make_void(void) { char *made = malloc(3000); __asm__ volatile(""); return made; }
    struct node { struct node *next; long more[34]; };
    int main(void) {
        volatile char *used = make_used(), *kept, *grown, *read_into;
        char *untouched = make_void(), *zeroed, *moved;
        steps(10);
        instructions(10000000);
        used[99] = 1;
        steps(20);
        instructions(5000000);
        used[0] = 1;
        steps(30);
        instructions(15000000);
        free((char *)used);
        free(untouched);

        /* What calloc writes and realloc copies is no touch. */
        zeroed = calloc(3, 200);
        grown = malloc(1500);
        steps(3);
        grown[0] = 1;
        steps(2);
        moved = realloc((char *)grown, 20000);
        steps(7);
        free(moved);
        free(zeroed);

        /* What a system call writes is one. */
        read_into = malloc(10000);
        steps(4);
        if (read(0, (char *)read_into, 10000) < 0) return 1;
        steps(6);
        free((char *)read_into);

        /* Pointers from an older object to younger ones, and back. */
        volatile struct node *old = malloc(sizeof *old), *young = malloc(sizeof *old);
        for (int at = 0; at < 1000; at++) old->next = (struct node *)young;
        for (int at = 0; at < 300; at++) young->next = (struct node *)old;
        for (int at = 0; at < 7; at++) young->next = (struct node *)young;
        free((void *)old);
        free((void *)young);

        kept = malloc(200);
        kept[7] = 1;
        steps(9);
        return 0;
    }
"#;

const STEP: u64 = 65536;
/// The tracer emits counters a million instructions apart, or a time slice of its scheduler later: a touch lies
/// somewhere between.
const SLACK: u64 = 2_000_000;

/// The command's JSON and its output.
fn dragged(fixture: &Fixture, options: &[&str], command: &[&str]) -> (Value, CommandOutput) {
    let file = fixture.at("drag.json");
    let arguments = [&["exact", "drag", "--json", &file], options, &["--"], command].concat();
    let output = fixture.heaptoll(&arguments).exits(0);
    (read_json(&file), output)
}

fn figures<'a>(json: &'a Value, manager: &str) -> &'a Value {
    let rows = json["programs"][0]["managers"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["manager"] == manager);
    &row.unwrap_or_else(|| panic!("no {manager} in {json:#}"))["figures"]
}

fn named<'a>(groups: &'a Value, name: &str) -> &'a Value {
    let groups = groups.as_array().expect("groups");
    groups.iter().find(|group| group["name"] == name).unwrap_or_else(|| panic!("no {name} in {groups:#?}"))
}

/// Lag, use, drag, void.
fn space(group: &Value, clock: &str) -> [u64; 4] {
    ["lag", "use", "drag", "void"].map(|phase| group[clock][phase].as_u64().expect("a figure"))
}

fn assert_known(figures: &Value) {
    let class = |name: &str| named(&figures["classes"], name);
    // After `used` comes `untouched`, whose bytes are on the clock when it was made.
    let expected = [
        ("65 to 128", [100 * (3000 + 10 * STEP), 100 * 20 * STEP, 100 * 30 * STEP, 0]),
        ("2049 to 4096", [0, 0, 0, 3000 * 60 * STEP]),
        // While it grew the clock went by what it grew by.
        ("16385 to 32768", [1500 * 3 * STEP, 0, 1500 * (2 * STEP + 18500) + 20000 * 7 * STEP, 0]),
        ("513 to 1024", [0, 0, 0, 600 * (1500 + 12 * STEP + 18500)]),
        ("8193 to 16384", [10000 * 4 * STEP, 0, 10000 * 6 * STEP, 0]),
        ("129 to 256", [0, 0, 200 * 9 * STEP, 0]),
    ];
    for (name, expected) in expected {
        assert_eq!(space(class(name), "space_bytes"), expected, "{name}: {:#}", class(name));
    }
    assert_eq!(class("129 to 256")["not_freed"]["objects"], 1);
    assert_eq!(class("513 to 1024")["never_touched"]["objects"], 1);
    assert_eq!(class("32769 to 65536")["never_touched"]["objects"], 91);
    let used = space(class("65 to 128"), "space_instructions");
    for (found, expected) in used.into_iter().zip([10_000_000, 5_000_000, 15_000_000]) {
        let found = found / 100;
        assert!(found.abs_diff(expected) < SLACK, "{found} instead of {expected}: {used:?}");
    }
    let void = space(class("2049 to 4096"), "space_instructions");
    assert_eq!(void[..3], [0, 0, 0]);
    assert!((void[3] / 3000).abs_diff(30_000_000) < SLACK, "{void:?}");
}

#[test]
fn a_program_of_known_drag_has_it() {
    let fixture = Fixture::new();
    let program = fixture.program("known", KNOWN);
    let page = fixture.at("drag.html");
    let (json, output) =
        dragged(&fixture, &["--sites", "--pointers", "--html", &page, "--stdin", "/dev/zero"], &[&program]);
    assert_eq!((&json["schema"], &json["complete"]), (&"heaptoll-drag/1".into(), &true.into()));
    let figures = figures(&json, "glibc");
    assert_known(figures);
    let site = |function: &str| {
        let sites = figures["sites"].as_array().expect("sites");
        let found = sites
            .iter()
            .find(|site| site["frames"][0].as_str().is_some_and(|frame| frame.contains(function)));
        found.unwrap_or_else(|| panic!("no {function} in {sites:#?}"))
    };
    assert_eq!(site("make_void")["space_bytes"]["void"].as_u64(), Some(3000 * 60 * STEP));
    assert_eq!(site("make_used")["space_bytes"]["use"].as_u64(), Some(100 * 20 * STEP));
    // Unwinding goes on below main: what it finds there is none of the program.
    let name = site("make_void")["name"].as_str().unwrap_or_default();
    assert!(name.starts_with("make_void") && name.ends_with("< main"), "{name}");
    let stores = &figures["pointers"]["program"];
    assert_eq!(
        (&stores["older_to_younger"], &stores["younger_to_older"], &stores["to_itself"]),
        (&1000.into(), &300.into(), &7.into())
    );
    output.shows(&["make_void", "older to younger", "By size", "Over time"]);
    let page = std::fs::read_to_string(page).expect("it was written");
    assert!(page.contains("Drag and void by call site"));
}

fn known_under(managers: &[&'static str]) {
    let fixture = Fixture::new();
    let program = fixture.program("known", KNOWN);
    let managers: Vec<&str> = managers.iter().copied().filter(|name| is_built(name)).collect();
    let options: Vec<&str> = managers.iter().flat_map(|name| ["-m", name]).collect();
    let (json, output) = dragged(
        &fixture,
        &[&options[..], &["--clock", "bytes", "--stdin", "/dev/zero"]].concat(),
        &[&program],
    );
    for manager in managers.into_iter().chain(["glibc"]) {
        assert_known(figures(&json, manager));
    }
    assert!(!output.out.contains("the program itself"), "{}", output.out);
}

#[test]
#[ignore = "slow: six CPU seconds under the tracer"]
fn managers_do_not_change_what_the_program_does() {
    known_under(&["lea", "tithe-collect"]);
}

#[test]
#[ignore = "slow: two more managers under the tracer"]
fn other_managers_do_not_change_it_either() {
    known_under(&["kingsley", "tithe"]);
}

/// Frees 64 MiB in blocks of 1000 bytes, and forgets one block in ten instead.
const LITTER: &str = r#"
    int main(void) {
        for (int at = 0; at < 67000; at++) {
            volatile char *block = malloc(1000);
            block[0] = 1;
            if (at % 10) free((char *)block);
        }
        return 0;
    }
"#;

#[test]
fn reclamation_of_freed_blocks_is_reported() {
    let fixture = Fixture::new();
    let program = fixture.program("litter", LITTER);
    if !is_built("bw16") || !is_built("tithe") {
        return;
    }
    let (json, output) = dragged(&fixture, &["-m", "bw16", "-m", "tithe", "--clock", "bytes"], &[&program]);
    assert!(figures(&json, "glibc")["collector"].is_null());
    // It does nothing at a free: blocks come again only after a collection.
    let ignoring = &figures(&json, "bw16")["collector"];
    assert_eq!(ignoring["reclaims_at_free"], false, "{ignoring:#}");
    assert!(ignoring["collections"].as_u64() > Some(0), "{ignoring:#}");
    assert!(ignoring["freed_blocks"]["after_collection"]["objects"].as_u64() > Some(1000), "{ignoring:#}");
    let all = &figures(&json, "bw16")["all"];
    assert!(all["space_bytes"]["unreclaimed"].as_u64() > Some(0), "{all:#}");
    assert!(all["reclaimed"]["objects"].as_u64() > Some(100), "{all:#}");
    let at_once = &figures(&json, "tithe")["collector"];
    assert_eq!(at_once["reclaims_at_free"], true, "{at_once:#}");
    assert_eq!(figures(&json, "tithe")["all"]["space_bytes"]["unreclaimed"], 0);
    output.shows(&["freed, not reclaimed", "What collectors keep"]);
}

#[test]
fn processes_of_a_command_are_summed_and_the_largest_shown_alone() {
    let fixture = Fixture::new();
    let program = fixture.program("known", KNOWN);
    let command = format!("{program} </dev/zero; {program} </dev/zero");
    let (json, output) = dragged(&fixture, &[], &["sh", "-c", &command]);
    let row = &json["programs"][0]["managers"][0];
    assert_known(&row["figures"]);
    let together = &row["all_images"];
    assert!(together["images"].as_u64() >= Some(2), "{together:#}");
    let one = row["figures"]["all"]["all"]["objects"].as_u64().expect("a figure");
    assert!(together["all"]["objects"].as_u64() >= Some(2 * one), "{together:#}");
    output.shows(&["all process images together"]);
}

#[test]
fn wrong_requests_are_refused() {
    let fixture = Fixture::new();
    fixture.heaptoll(&["exact", "drag"]).exits(2).complains(&["nothing to run"]);
    fixture
        .heaptoll(&["exact", "drag", "--clock", "sun", "--", "true"])
        .exits(2)
        .complains(&["instructions", "bytes"]);
    fixture
        .heaptoll(&["exact", "drag", "--json", "/nowhere/a", "--", "true"])
        .exits(2)
        .complains(&["/nowhere/a"]);
    fixture.heaptoll(&["exact", "drag", "-m", "absent", "--", "true"]).exits(2).complains(&["absent"]);
}
