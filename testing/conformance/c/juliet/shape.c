/* shape.c: see shape.h. */
#include "shape.h"

#include <string.h>
#include <unistd.h>

#include "heaptoll.h"

enum { BLOCKS = 256, PASSES = 4, LARGEST = 800 };

static unsigned char *blocks[BLOCKS];

static void say(const char *line) {
    if (write(STDOUT_FILENO, line, strlen(line)) < 0)
        _exit(4);
}

void attack(void *(*take)(void), size_t size) {
    const struct heaptoll_control *manager = control();
    for (int i = 0; i < BLOCKS; i++) {
        if (i % (BLOCKS / PASSES) == 0 && manager && manager->collect)
            manager->collect();
        blocks[i] = take();
        CHECK(blocks[i], "no block of %zu bytes", size);
        memset(blocks[i], ATTACKERS, size);
    }
}

int frees_twice(void) { return strncmp(case_name, "cwe415", 6) == 0; }

static size_t count(const unsigned char *bytes, size_t size, unsigned char byte) {
    size_t found = 0;
    for (size_t i = 0; i < size; i++)
        found += bytes[i] == byte;
    return found;
}

void judge_read(const void *read, size_t size) {
    size_t theirs = count(read, size, ATTACKERS), zeroes = count(read, size, 0);
    note("read %zu bytes: %zu of the attacker's, %zu zeroes, %zu of its own", size, theirs, zeroes,
         count(read, size, OWN));
    say(theirs > size / 2 ? "happened\n" : zeroes == size ? "zeroes\n" : "prevented\n");
}

void judge_blocks(void *(*take)(void), size_t size) {
    for (int i = 0; i < BLOCKS; i++) {
        void *own = take();
        CHECK(own, "no block of %zu bytes", size);
        memset(own, OWN, size);
    }
    for (int i = 0; i < BLOCKS; i++)
        if (count(blocks[i], size, ATTACKERS) < size) {
            note("the attacker's block %d has %zu bytes of the program's", i, count(blocks[i], size, OWN));
            say("happened\n");
            return;
        }
    say("prevented\n");
}

const int global_const_true = 1, global_const_five = 5;
int global_true = 1, global_five = 5;
int is_so(void) { return (int)hidden(1); }
