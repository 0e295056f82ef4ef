/* Does a heap grow the longer a program runs? A set of live blocks of a fixed number of bytes is replaced at random, by
 * blocks whose sizes change from one phase to the next; after all phases it begins again. Memory that a run needs in
 * the second round and the eighth beyond the first is due to its length alone (Boehm, "Memory Allocation Myths and
 * Half-Truths", allocation myth 1).
 *
 * usage: churn LIVE-KIB ROUNDS
 * In each phase twice LIVE-KIB are allocated. Standard error gets the most memory resident so far, in KiB, after 1, 2,
 * 4, ... rounds: `churn: 1=5120 2=5124 4=5124`. */
#include "../common/arguments.h"
#include "../common/process.h"
#include "../common/random.h"

const char *const program = "churn";

/* Middle sizes of the phases, bytes: small and large in turn, so that each phase must use what another left. */
static const uint32_t phases[] = {32, 1200, 96, 6000, 48, 300, 2400, 160};

struct block {
    unsigned char *at;
    uint32_t bytes;
};

static struct block *blocks;
static uint64_t alive, live_bytes, sum;
static uint64_t random_state = 88172645463325252u;

static uint64_t draw(void) { return next_xorshift(&random_state) >> 16; }

static void drop_one(void) {
    struct block *victim = &blocks[draw() % alive];
    sum = sum * 31 + victim->at[0] + victim->at[victim->bytes - 1];
    live_bytes -= victim->bytes;
    free(victim->at);
    *victim = blocks[--alive];
}

/* A block of half to one and a half times the middle size, written whole. */
static void add_one(uint32_t middle) {
    struct block new = {.bytes = middle / 2 + (uint32_t)(draw() % (middle + 1))};
    new.at = must(malloc(new.bytes));
    memset(new.at, (int)(new.bytes & 0x7f), new.bytes);
    live_bytes += new.bytes;
    blocks[alive++] = new;
}

static void round_of(uint64_t most) {
    for (size_t phase = 0; phase < sizeof phases / sizeof *phases; phase++) {
        for (uint64_t allocated = 0; allocated < 2 * most;) {
            /* First make space for the largest block of the phase, so that the live bytes never exceed `most`. */
            while (live_bytes + 2 * phases[phase] > most) drop_one();
            uint64_t before = live_bytes;
            add_one(phases[phase]);
            allocated += live_bytes - before;
        }
    }
}

/* The output would be wrong without it. */
static long peak_rss(void) {
    long kib = peak_rss_kib();
    if (kib < 0) {
        fputs("churn: /proc/self/status has no VmHWM\n", stderr);
        exit(1);
    }
    return kib;
}

int main(int count, char **arguments) {
    if (count != 3) {
        fputs("usage: churn LIVE-KIB ROUNDS\n", stderr);
        return 2;
    }
    uint64_t most = number(arguments[1], "LIVE-KIB", 64, 1 << 22) * 1024, rounds = number(arguments[2], "ROUNDS", 1, 1 << 20);
    /* The smallest block has half the smallest middle size. */
    blocks = must(malloc((most / (phases[0] / 2) + 1) * sizeof *blocks));
    char report_line[512] = "churn:";
    for (uint64_t round = 1, next = 1; round <= rounds; round++) {
        round_of(most);
        if (round == next) {
            size_t length = strlen(report_line);
            snprintf(report_line + length, sizeof report_line - length, " %llu=%ld", (unsigned long long)round, peak_rss());
            next *= 2;
        }
    }
    while (alive) drop_one();
    free(blocks);
    printf("%llu rounds, at most %llu bytes alive, checksum %016llx\n", (unsigned long long)rounds,
           (unsigned long long)most, (unsigned long long)sum);
    fprintf(stderr, "%s\n", report_line);
    return 0;
}
