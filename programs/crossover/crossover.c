/* Where is a collector cheaper than free? A table of live objects of one size, of which a random one is replaced again
 * and again: the costs of free are those of an object, those of a collector those of the live data over what is
 * allocated between collections (Boehm, "Memory Allocation Myths and Half-Truths", GC myths 3 and 4).
 *
 * usage: crossover BYTES LIVE-KIB OBJECTS
 * Objects of BYTES, of which LIVE-KIB are alive at any time and OBJECTS are made in all. An object is written whole
 * when it is made, and read once when it is replaced. With CROSSOVER_GC nothing is freed. */
#include "../common/arguments.h"
#include "../common/random.h"

const char *const program = "crossover";

#define MOST (UINT64_C(1) << 32)

static uint64_t **table; /* here, so that a collector finds it */

static uint64_t *object(uint64_t words, uint64_t value) {
    uint64_t *new = must(malloc(words * sizeof *new));
    for (uint64_t i = 0; i < words; i++) new[i] = value;
    return new;
}

static void give_up(uint64_t *object) {
#ifdef CROSSOVER_GC
    (void)object;
#else
    free(object);
#endif
}

int main(int count, char **arguments) {
    if (count != 4) {
        fputs("usage: crossover BYTES LIVE-KIB OBJECTS\n", stderr);
        return 2;
    }
    uint64_t words = number(arguments[1], "BYTES", 8, MOST) / 8, live = number(arguments[2], "LIVE-KIB", 1, MOST) * 128 / words;
    uint64_t objects = number(arguments[3], "OBJECTS", 1, MOST);
    if (live == 0) {
        fputs("crossover: an object is larger than what is to be alive\n", stderr);
        return 2;
    }
    table = must(calloc(live, sizeof *table));
    for (uint64_t i = 0; i < live; i++) table[i] = object(words, i);
    uint64_t sum = 0, random = 1;
    for (uint64_t i = 0; i < objects; i++) {
        uint64_t **place = &table[(next_xorshift(&random) >> 32) * live >> 32];
        sum = sum * UINT64_C(6364136223846793005) + (*place)[words - 1] + 1;
        give_up(*place);
        *place = object(words, live + i);
    }
    printf("%llu objects of %llu bytes, %llu of them alive, checksum %016llx\n", (unsigned long long)objects,
           (unsigned long long)words * 8, (unsigned long long)live, (unsigned long long)sum);
    return 0;
}
