//! Programs that write over the rings' file: the recording ends with an error, and uses no impossible number.

use super::record;
use crate::fixture::{CommandOutput, Fixture};

/// Finds the mapped file and its own entry in the list of processes, and writes according to its first argument.
/// Offsets are those of `shm/alloc-ring/src/layout.rs`; 0 of a word in the list is waited for, for heaptoll reads it
/// then.
const CORRUPTOR: &str = "#include <string.h>\n#include <stdint.h>\n\
    #define U(at) (*(volatile uint32_t *)(map + (at)))\n#define W(at) (*(volatile uint64_t *)(map + (at)))\n\
    static char *map; static void forge(long pid) { long at = 4096 + 40 * 2048; memcpy(map + at, map + 4096, 64); \
    W(at) = (uint64_t)pid << 8 | 1; U(at + 32) = 0; U(192) = 41; \
    for (int i = 0; i < 60000 && U(192) == 41; i++) usleep(1000); }\n\
    int main(int c, char **v) { free(malloc(1)); FILE *f = fopen(\"/proc/self/maps\", \"r\"); char line[600]; \
    while (fgets(line, 600, f)) if (strstr(line, \".rings\") && !map) map = (char *)strtoul(line, 0, 16); \
    fclose(f); if (!map) return 9; \
    if (!strcmp(v[1], \"counters\")) { U(216) = U(220) = U(224) = U(232) = -1; \
        U(4096 + 256) = -1; W(4096 + 128) = 1ull << 60; for (int i = 4096 + 260; i < 4096 + 320; i += 4) U(i) = -1; } \
    if (!strcmp(v[1], \"shrinks\")) { U(220) = 3; usleep(200000); U(220) = 1; } \
    if (!strcmp(v[1], \"dead\")) for (int i = 0; i < 20; i++) forge(4000000 + i % 3); \
    if (!strcmp(v[1], \"tool\")) forge(getppid()); \
    if (!strcmp(v[1], \"other\")) forge(atol(v[2])); \
    for (int i = 0; i < 1000; i++) free(malloc(i)); return 0; }";

/// Its recording is not whole, and no sum in the report on it is one that was never counted.
fn is_marked(fixture: &Fixture, program: &str, arguments: &[&str]) -> CommandOutput {
    let command = [&[program], arguments].concat();
    let output = record(fixture, &["-f"], &command).exits(1);
    let digits =
        |word: &&str| word.len() > 7 && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b',');
    assert_eq!(output.err.split([' ', '(']).find(digits), None, "{}", output.err);
    output
}

#[test]
fn counters_that_were_written_over_become_no_sums() {
    let fixture = Fixture::new();
    let program = fixture.program("corruptor", CORRUPTOR);
    is_marked(&fixture, &program, &["counters"]).complains(&["overwrote the recording's"]);
    is_marked(&fixture, &program, &["shrinks"]);
}

#[test]
fn processes_that_never_were_mark_the_recording() {
    let fixture = Fixture::new();
    let program = fixture.program("corruptor", CORRUPTOR);
    is_marked(&fixture, &program, &["dead"]).complains(&["overwrote the recording's"]);
}

#[test]
fn a_process_that_never_had_the_rings_is_not_waited_for() {
    let fixture = Fixture::new();
    let program = fixture.program("corruptor", CORRUPTOR);
    let mut other = std::process::Command::new("sleep").arg("1000").spawn().expect("sleep runs");
    let output = is_marked(&fixture, &program, &["other", &other.id().to_string()]);
    assert!(other.try_wait().expect("waits").is_none(), "{}", output.err);
    other.kill().expect("kills");
    other.wait().expect("waits");
    output.complains(&["overwrote the recording's"]);
    is_marked(&fixture, &program, &["tool"]).complains(&["overwrote the recording's"]);
}
