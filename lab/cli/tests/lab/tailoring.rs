//! `tailor`: an allocator made from a recorded program serves that program, and others; what it refuses.

use std::process::Command;

use crate::fixture::{CommandOutput, Fixture, read_json};

/// Lists of two sizes, a text that grows, and threads that free what others allocated. Prints a sum over all blocks.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static unsigned char *shared[2000];
static void *allocates(void *from) {
    for (int i = 0; i < 1000; i++) {
        unsigned char *block = malloc(100);
        memset(block, i, 100);
        shared[(long)from * 1000 + i] = block;
    }
    return NULL;
}
int main(int argc, char **argv) {
    unsigned long sum = 0;
    char *text = NULL;
    for (int i = 0; i < 20000; i++) {
        unsigned char *one = malloc(24), *two = calloc(1, 60);
        memset(one, i, 24);
        sum += one[23] + two[59];
        free(one);
        if ((i & (i - 1)) == 0)
            text = realloc(text, 2 * i + 1);
        text[i] = i;
        free(two);
    }
    for (int i = 0; i < 20000; i++)
        sum += (unsigned char)text[i];
    if (argc > 1) {
        pthread_t threads[2];
        for (long i = 0; i < 2; i++)
            pthread_create(&threads[i], NULL, allocates, (void *)i);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        for (int i = 0; i < 2000; i++) {
            sum += shared[i][99];
            free(shared[i]);
        }
    }
    free(text);
    printf("%lu\n", sum);
    return 0;
}
"#;

/// A recorded program: its path, and its trace's.
fn recorded(fixture: &Fixture) -> (String, String) {
    let (program, trace) = (fixture.program("prog", PROGRAM), fixture.at("prog.heaptoll"));
    fixture.heaptoll(&["record", "-o", &trace, "--", &program]).exits(0);
    (program, trace)
}

/// What a program prints with an object preloaded.
fn printed(program: &str, argument: Option<&str>, object: Option<&str>) -> CommandOutput {
    let mut command = Command::new(program);
    command.args(argument).envs(object.map(|object| ("LD_PRELOAD", object)));
    command.output().expect("it runs").into()
}

#[test]
fn an_allocator_made_from_a_program_serves_it_and_another_run_of_it() {
    let fixture = Fixture::new();
    let (program, trace) = recorded(&fixture);
    let (object, json) = (fixture.at("my.so"), fixture.at("tailor.json"));
    let output = fixture.heaptoll(&["lab", "tailor", &trace, "-o", &object, "--json", &json]).exits(0);
    let output = output.shows(&[
        "An allocator for prog",
        "for 2 sizes, each with its own class",
        "64 B",
        "Compare it",
    ]);
    assert!(
        output.out.contains(&format!("heaptoll run -m glibc -m {object} -- {program}")),
        "{}",
        output.out
    );
    let figures = read_json(&json);
    assert_eq!(figures["schema"], "heaptoll-tailor/1");
    assert_eq!((&figures["allocations"], &figures["threads"]), (&40_002.into(), &1.into()));
    assert_eq!(figures["classes"].as_array().map(Vec::len), Some(2));
    let source = std::fs::read_to_string(fixture.path("my.c")).expect("the source is next to it");
    assert!(source.contains("An allocator for prog") && source.contains("#define CLASSES 3ul"), "{source}");
    for argument in [None, Some("threads")] {
        let (with, without) = (printed(&program, argument, Some(&object)), printed(&program, argument, None));
        assert_eq!(with.exits(0).out, without.out);
    }
    let run = ["run", "-n", "1", "--warmup", "0", "-m", "glibc", "-m", &object, "--", &program, "threads"];
    fixture.heaptoll(&run).exits(0).shows(&["my.so"]);
    fixture
        .heaptoll(&["lab", "tailor", &trace, "-o", &object])
        .exits(2)
        .complains(&["my.so exists", "--force"]);
    fixture.heaptoll(&["lab", "tailor", &trace, "-o", &object, "--force"]).exits(0);
    std::fs::remove_file(&object).expect("it is there");
    fixture.heaptoll(&["lab", "tailor", &trace, "-o", &object]).exits(2).complains(&["my.c exists"]);
}

#[test]
fn without_a_compiler_the_source_alone_is_written() {
    let fixture = Fixture::new();
    let (_, trace) = recorded(&fixture);
    let (object, source) = (fixture.at("my.so"), fixture.at("alone.c"));
    let without = |arguments: &[&str]| -> CommandOutput {
        let mut command = fixture.command(arguments);
        command.env_remove("CC").env("PATH", fixture.path("nowhere")).output().expect("it starts").into()
    };
    without(&["lab", "tailor", &trace, "-o", &object])
        .exits(2)
        .complains(&["there is no C compiler", "--source FILE"]);
    assert!(!fixture.path("my.c").exists(), "refused before anything is written");
    without(&["lab", "tailor", &trace, "--source", &source]).exits(0).shows(&["Only the source was written"]);
    let named = fixture.command(&["lab", "tailor", &trace, "-o", &object]).env("CC", "no-such-cc").output();
    CommandOutput::from(named.expect("it starts")).exits(2).complains(&["no-such-cc", "unset CC"]);
    let fails = fixture.command(&["lab", "tailor", &trace, "-o", &object]).env("CC", "false").output();
    CommandOutput::from(fails.expect("it starts")).exits(1).complains(&["false does not compile", "my.c"]);
}

#[test]
fn what_no_allocator_can_be_made_of_is_refused_with_the_reason() {
    let fixture = Fixture::new();
    let (program, trace) = recorded(&fixture);
    let object = fixture.at("my.so");
    let tailor =
        |trace: &str, object: &str| fixture.heaptoll(&["lab", "tailor", trace, "-o", object]).exits(2);
    tailor(&program, &object).complains(&["it seems to be a program"]);
    let small = fixture.program("small", "int main(void) { free(malloc(9)); return 0; }");
    let short = fixture.at("small.heaptoll");
    fixture.heaptoll(&["record", "-o", &short, "--", &small]).exits(0);
    tailor(&short, &object).complains(&["has only 1 allocations", "10\u{202f}000", "Record a longer run"]);
    let whole = std::fs::read(&trace).expect("the trace");
    let cut = fixture.at("cut.heaptoll");
    std::fs::write(&cut, &whole[..whole.len() - 200]).expect("writes");
    tailor(&cut, &object).complains(&["is incomplete", "record the program again"]);
    tailor(&trace, &fixture.at("")).complains(&["it is a folder"]);
    tailor(&trace, "./").complains(&["it is a folder"]);
    tailor(&trace, "/nowhere/my.so").complains(&["there is no folder /nowhere"]);
    tailor(&trace, &fixture.at("my.c")).complains(&["cannot be both the shared object and its source"]);
    fixture.heaptoll(&["lab", "tailor", &trace]).exits(2).complains(&["--output"]);
    let pipe = fixture.at("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    for (output, why) in [(&trace, "the same file"), (&pipe, "not a file")] {
        fixture.heaptoll(&["lab", "tailor", &trace, "-o", output, "--force"]).exits(2).complains(&[why]);
    }
    assert_eq!(std::fs::read(&trace).expect("the trace"), whole);
    assert!(!fixture.path("my.so").exists() && !fixture.path("my.c").exists());
}
