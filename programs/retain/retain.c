/* A program that needs nearly all it allocates until it ends, as compilers and linkers do: it enters records into a
 * table, each with a text of its own, uses them, and is done (Boehm, "Memory Allocation Myths and Half-Truths",
 * allocation myth 4).
 *
 * usage: retain RECORDS
 * One block in ten is temporary, and freed at once. What happens to the rest is chosen at compile time:
 *   (nothing)            it is left to the system
 *   RETAIN_FREE_AT_EXIT  it is freed just before the end
 *   RETAIN_NEVER         it is left, and so are the temporary blocks */
#include "../common/checked.h"
#include "../common/random.h"

const char *const program = "retain";

enum { BUCKETS = 1 << 14, MOST_TEXT = 160 };

struct record {
    struct record *next;
    char *text;
    uint64_t length, number;
};

static struct record *table[BUCKETS];
static uint64_t random_state = 88172645463325252u;

static uint64_t draw(void) { return next_xorshift(&random_state) >> 16; }

static void enter(uint64_t which) {
    struct record *record = must(malloc(sizeof *record));
    record->length = 8 + draw() % (MOST_TEXT - 8);
    record->text = must(malloc(record->length));
    record->number = which;
    for (uint64_t i = 0; i < record->length; i++) record->text[i] = (char)('a' + (which + i) % 26);
    struct record **bucket = &table[draw() % BUCKETS];
    record->next = *bucket;
    *bucket = record;
    if (which % 5 == 0) {
        char *temporary = must(malloc(MOST_TEXT));
        memcpy(temporary, record->text, record->length);
        record->number += (uint64_t)temporary[record->length / 2];
#ifndef RETAIN_NEVER
        free(temporary);
#endif
    }
}

#ifdef RETAIN_FREE_AT_EXIT
static void give_up(void) {
    for (size_t i = 0; i < BUCKETS; i++) {
        while (table[i]) {
            struct record *next = table[i]->next;
            free(table[i]->text);
            free(table[i]);
            table[i] = next;
        }
    }
}
#endif

int main(int count, char **arguments) {
    char *end = NULL;
    uint64_t records = count == 2 ? strtoull(arguments[1], &end, 10) : 0;
    if (records == 0 || *end || records > UINT64_C(1) << 32) {
        fputs("usage: retain RECORDS\n", stderr);
        return 2;
    }
    for (uint64_t i = 0; i < records; i++) enter(i);
    uint64_t sum = 0;
    for (size_t i = 0; i < BUCKETS; i++) {
        for (const struct record *record = table[i]; record; record = record->next)
            sum = sum * 31 + record->number + (uint64_t)record->text[record->length - 1];
    }
#ifdef RETAIN_FREE_AT_EXIT
    give_up();
#endif
    printf("%llu records, checksum %016llx\n", (unsigned long long)records, (unsigned long long)sum);
    return 0;
}
