/* A program whose call sites are known: 64 functions that allocate, of which each holds its share of what is in use at
 * the end, by Zipf's law. Its random numbers come from a seed, so that each run makes the same calls.
 *
 * Usage: sites MODE SEED
 *   even   the objects of a site have one size of 16 bytes to 64 KiB; half of all are freed
 *   mixed  sizes within a site are from 16 bytes to 64 KiB, as likely in each doubling; half of all are freed
 *   churn  as even, and of 16 objects that a site makes 15 are freed soon
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SITES = 64, SOON = 4096 };

static uint64_t state;

static uint64_t random_number(void) {
    state += 0x9e3779b97f4a7c15;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static double uniform(void) { return (double)(random_number() >> 11) / 9007199254740992.0; }

/* A size between two powers of two, as likely in each doubling. */
static size_t size_between(int low, int high) {
    int power = low + (int)(uniform() * (high - low));
    return ((size_t)1 << power) + random_number() % ((size_t)1 << power);
}

/* Each function differs from the others, or the compiler makes them one. */
#define SITE(n)                                                                                                        \
    __attribute__((noinline)) static void *site_##n(size_t bytes) {                                                    \
        static volatile unsigned calls = n;                                                                            \
        uint64_t *block = malloc(bytes);                                                                               \
        if (block == NULL) abort();                                                                                    \
        *block = calls++;                                                                                              \
        return block;                                                                                                  \
    }
#define SITES8(n) SITE(n##0) SITE(n##1) SITE(n##2) SITE(n##3) SITE(n##4) SITE(n##5) SITE(n##6) SITE(n##7)
#define NAMES8(n) site_##n##0, site_##n##1, site_##n##2, site_##n##3, site_##n##4, site_##n##5, site_##n##6, site_##n##7
SITES8(1) SITES8(2) SITES8(3) SITES8(4) SITES8(5) SITES8(6) SITES8(7) SITES8(8)

static void *(*const sites[SITES])(size_t) = {NAMES8(1), NAMES8(2), NAMES8(3), NAMES8(4),
                                              NAMES8(5), NAMES8(6), NAMES8(7), NAMES8(8)};

struct site {
    size_t bytes, quota, made;
};

static void *soon[SOON];

__attribute__((noinline)) static void keep(void *block) {
    static void *volatile head;
    *(void **)block = (void *)head;
    head = block;
}

/* The block takes the place of an older one, which is freed. */
__attribute__((noinline)) static void keep_a_while(void *block) {
    unsigned place = random_number() % SOON;
    free(soon[place]);
    soon[place] = block;
}

__attribute__((noinline)) static void fill(struct site *site, int number, int mixed, unsigned freed_of_16) {
    size_t bytes = mixed ? size_between(4, 16) : site->bytes;
    void *block = sites[number](bytes);
    if (random_number() % 16 < freed_of_16) {
        keep_a_while(block);
    } else {
        keep(block);
        site->made += bytes;
    }
}

int main(int count, char **words) {
    if (count != 3) return fputs("usage: sites even|mixed|churn SEED\n", stderr), 2;
    int mixed = strcmp(words[1], "mixed") == 0, churn = strcmp(words[1], "churn") == 0;
    unsigned freed_of_16 = churn ? 15 : 8;
    size_t all = (size_t)(churn ? 64 : 128) << 20;
    state = strtoull(words[2], NULL, 10);
    struct site plan[SITES];
    double shares[SITES], sum = 0;
    for (int n = 0; n < SITES; n++) sum += shares[n] = 1.0 / (n + 1);
    for (int n = 0; n < SITES; n++)
        plan[n] = (struct site){.bytes = size_between(4, churn ? 12 : 16), .quota = (size_t)(all * shares[n] / sum)};
    /* In small parts and in turns, so that what a site holds is spread over the run. */
    for (int part = 1; part <= 64; part++)
        for (int n = 0; n < SITES; n++)
            while (plan[n].made < plan[n].quota / 64 * part) fill(&plan[n], n, mixed, freed_of_16);
    for (int place = 0; place < SOON; place++) free(soon[place]);
    return 0;
}
