/* robson: an adversary of memory managers. It sees the addresses it gets and frees accordingly, to make the manager's
 * heap as large as possible while never more than M bytes are live.
 *
 * usage: robson [--strategy NAME] [-M BYTES] [-n BYTES] [--unit BYTES] [--overhead BYTES] [--page BYTES]
 *               [--limit BYTES] [--seconds S] [--json | --csv | --csv-head | --figures]
 * BYTES may end in K, M or G. With --figures the result is on standard error, and standard output has only what is the
 * same under every manager: the rules, and the bounds that are proved for them. It uses malloc and free and nothing else of the manager; preload one to play against it.
 *
 * exit status: 0 played (to the end or to a limit, which is reported), 1 the manager's own check found damage, 2
 * misuse. */
#define _GNU_SOURCE
#include "adversary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static const struct strategy {
    const char *name;
    void (*play)(void);
    const char *about;
} strategies[] = {
    {"robson", play_robson, "every manager that does not move blocks"},
    {"roving", play_roving, "first fit from a roving pointer"},
    {"best-fit", play_best_fit, "best fit"},
    {"classes", play_classes, "size classes that never coalesce"},
    {"pages", play_pages, "size classes in pages"},
    {"buddy", play_buddy, "blocks rounded up to powers of two"},
};
#define STRATEGIES (sizeof strategies / sizeof *strategies)

static size_t base_bytes;    /* resident before the first block, the adversary's tables apart */
static size_t most_resident; /* likewise, above that */

void sample(void) {
    size_t now = anonymous_bytes(), ours = base_bytes + own_bytes;
    if (now > ours && now - ours > most_resident) most_resident = now - ours;
}

/* Output by write: a stream would allocate its buffer from the manager. */
static void print(const char *text) {
    for (size_t left = strlen(text); left;) {
        ssize_t done = write(1, text, left);
        if (done <= 0) _exit(2);
        text += done;
        left -= (size_t)done;
    }
}

static size_t bytes_of(const char *text) {
    char *end;
    unsigned long long value = text ? strtoull(text, &end, 10) : 0;
    if (!text || end == text) die("a number of bytes is missing");
    int shift = 0;
    switch (*end) {
    case 'K': shift = 10; break;
    case 'M': shift = 20; break;
    case 'G': shift = 30; break;
    case 0: return value;
    default: die("a number of bytes ends in K, M, G or nothing");
    }
    if (end[1] || value > SIZE_MAX >> shift) die("a number of bytes is too large");
    return (size_t)value << shift;
}

static void usage(void) {
    print("usage: robson [--strategy NAME] [-M BYTES] [-n BYTES] [--unit BYTES] [--overhead BYTES] [--page BYTES]\n"
        "              [--limit BYTES] [--seconds S] [--json | --csv | --csv-head | --figures]\n"
        "strategies, and the managers each is against:\n");
    for (size_t i = 0; i < STRATEGIES; i++) {
        char line[128];
        snprintf(line, sizeof line, "  %-10s %s\n", strategies[i].name, strategies[i].about);
        print(line);
    }
}

static unsigned log2_of(size_t power) { return (unsigned)__builtin_ctzll(power); }

enum form { TEXT, JSON, CSV, FIGURES };

/* The rules and the bounds; the figures by name. */
static void print_figures(size_t memory, double bound) {
    char line[512];
    size_t most = log2_of(game.largest) + 1; /* first fit by address, and powers of two never combined */
    snprintf(line, sizeof line,
             "M %zu bytes, n %zu bytes, in units of %zu: any manager can be driven to %.3f M, first fit by address needs "
             "at most %zu M\n",
             game.live * game.unit, game.largest * game.unit, game.unit, bound, most);
    print(line);
    double grain = (double)memory / (double)game.most_taken;
    double addresses = (double)extent_bytes() / (double)game.most_taken;
    int length = snprintf(line, sizeof line, "robson: live=%zu heap=%zu factor=%.4f with_headers=%.4f addresses=%.4f bound=%.4f share=%.4f%s%s\n",
                          game.most_bytes, memory, (double)memory / (double)game.most_bytes, grain, addresses, bound,
                          addresses / bound, game.stopped ? " stopped: " : "", game.stopped ? game.stopped : "");
    if (write(2, line, (size_t)length) != length) _exit(2);
}

int main(int argc, char **argv) {
    /* Huge pages would make resident memory uncertain by 2 MiB. The loader has already allocated blocks from the
     * manager, so the program restarts without huge pages; where the system refuses, it continues. */
    if (prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 0 && prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0) {
        execv("/proc/self/exe", argv);
    }
    const struct strategy *strategy = &strategies[0];
    size_t live = 1 << 20, largest = 16 << 10, overhead = SIZE_MAX;
    enum form form = TEXT;
    game = (struct game){.unit = 64, .limit = (size_t)1 << 30, .seconds = 300, .page = 64 << 10};
    for (int i = 1; i < argc; i++) {
        const char *flag = argv[i], *value = argv[i + 1]; /* null at the end */
        if (!strcmp(flag, "--json")) form = JSON;
        else if (!strcmp(flag, "--csv")) form = CSV;
        else if (!strcmp(flag, "--figures")) form = FIGURES;
        else if (!strcmp(flag, "--csv-head")) {
            print("strategy,stopped,unit_bytes,overhead_bytes,live_bytes,largest_bytes,most_requested_bytes,"
                "most_taken_bytes,memory_bytes,memory_from,resident_bytes,census_bytes,address_bytes,span_bytes,pieces,"
                "factor,factor_grain,factor_addresses,bound_factor,share,mallocs,frees\n");
            return 0;
        } else if (!strcmp(flag, "--help") || !strcmp(flag, "-h")) {
            usage();
            return 0;
        } else if (!strcmp(flag, "--strategy") && value) {
            size_t at = 0;
            while (at < STRATEGIES && strcmp(strategies[at].name, value)) at++;
            if (at == STRATEGIES) {
                usage();
                die("there is no such strategy");
            }
            strategy = &strategies[at];
            i++;
        } else if (!strcmp(flag, "-M")) live = bytes_of(value), i++;
        else if (!strcmp(flag, "-n")) largest = bytes_of(value), i++;
        else if (!strcmp(flag, "--unit")) game.unit = bytes_of(value), i++;
        else if (!strcmp(flag, "--overhead")) overhead = bytes_of(value), i++;
        else if (!strcmp(flag, "--page")) game.page = bytes_of(value), i++;
        else if (!strcmp(flag, "--limit")) game.limit = bytes_of(value), i++;
        else if (!strcmp(flag, "--seconds") && value) game.seconds = strtod(value, NULL), i++;
        else {
            usage();
            die("what is this flag?");
        }
    }
    if (game.unit < 16 || (game.unit & (game.unit - 1))) die("the unit must be a power of two, 16 at least");
    if (largest < 2 * game.unit) die("n must be two units at least");
    if (live < 2 * largest) die("M must be twice n at least");
    if (game.page == 0) die("a page has at least one byte");
    game.live = live / game.unit;
    game.largest = (size_t)1 << (63 - __builtin_clzll(largest / game.unit));
    game.overhead = overhead == SIZE_MAX ? learn_overhead(game.unit) : overhead;
    if (game.overhead >= game.unit) die("the overhead must be less than a unit");
    /* All calls that may allocate by themselves precede the first sample of the process's memory. */
    bool has_census = census_find();
    base_bytes = anonymous_bytes();
    base_bytes = base_bytes > own_bytes ? base_bytes - own_bytes : 0;

    strategy->play();
    sample();

    uint64_t mapped_now = 0, mapped_most = 0;
    has_census = has_census && census_mapped(&mapped_now, &mapped_most);
    size_t memory = has_census ? (size_t)mapped_most : most_resident ? most_resident : extent_bytes();
    const char *from = has_census ? "census" : most_resident ? "resident" : "addresses";
    size_t pieces, span = extent_span(&pieces);
    double m = (double)game.live, n = (double)game.largest;
    double bound = (m * (log2_of(game.largest) / 2.0 + 1) - n + 1) / m;
    double factor = (double)memory / (double)game.most_bytes;
    double grain = (double)memory / (double)game.most_taken;
    double addresses = (double)extent_bytes() / (double)game.most_taken;
    const char *stopped = game.stopped ? game.stopped : "";

    char line[4096];
    if (form == JSON) {
        char object[1100];
        size_t end = 0;
        for (const char *at = malloc_object(); *at && end + 3 < sizeof object; at++) {
            if (*at == '"' || *at == '\\') object[end++] = '\\';
            object[end++] = *at;
        }
        object[end] = 0;
        snprintf(line, sizeof line,
                 "{\"object\":\"%s\",\"strategy\":\"%s\",\"stopped\":\"%s\",\"unit_bytes\":%zu,\"overhead_bytes\":%zu,\"page_bytes\":%zu,\"live_bytes\":%zu,"
                 "\"largest_bytes\":%zu,\"most_requested_bytes\":%zu,\"most_taken_bytes\":%zu,\"memory_bytes\":%zu,"
                 "\"memory_from\":\"%s\",\"resident_bytes\":%zu,\"census_bytes\":%zu,\"address_bytes\":%zu,"
                 "\"span_bytes\":%zu,\"pieces\":%zu,\"factor\":%.4f,\"factor_grain\":%.4f,\"factor_addresses\":%.4f,"
                 "\"bound_factor\":%.4f,\"share\":%.4f,\"mallocs\":%llu,\"frees\":%llu}\n",
                 object, strategy->name, stopped, game.unit, game.overhead, game.page, game.live * game.unit,
                 game.largest * game.unit, game.most_bytes, game.most_taken, memory, from, most_resident,
                 (size_t)mapped_most, extent_bytes(), span, pieces, factor, grain, addresses, bound, grain / bound,
                 (unsigned long long)game.gets, (unsigned long long)game.gives);
    } else if (form == FIGURES) {
        print_figures(memory, bound);
        line[0] = 0;
    } else if (form == CSV) {
        snprintf(line, sizeof line,
                 "%s,%s,%zu,%zu,%zu,%zu,%zu,%zu,%zu,%s,%zu,%zu,%zu,%zu,%zu,%.4f,%.4f,%.4f,%.4f,%.4f,%llu,%llu\n",
                 strategy->name, stopped, game.unit, game.overhead, game.live * game.unit, game.largest * game.unit,
                 game.most_bytes, game.most_taken, memory, from, most_resident, (size_t)mapped_most, extent_bytes(),
                 span, pieces, factor, grain, addresses, bound, grain / bound, (unsigned long long)game.gets,
                 (unsigned long long)game.gives);
    } else {
        snprintf(line, sizeof line,
                 "strategy                     %s%s%s\n"
                 "M, n                         %zu, %zu bytes, in units of %zu of which %zu are the manager's\n"
                 "most live                    %zu bytes requested, %zu with headers and rounding\n"
                 "heap high-water              %zu bytes (%s%s%s)\n"
                 "  addresses ever in a block  %zu bytes; from lowest to highest %zu, in %zu piece%s\n"
                 "  resident                   %zu bytes\n"
                 "factor                       %.3f of requested bytes, %.3f grain-corrected (%.3f by addresses)\n"
                 "Robson's bound for (M, n)    %.3f\n"
                 "share of it reached          %.1f %%\n",
                 strategy->name, game.stopped ? "; stopped: " : "", stopped, game.live * game.unit,
                 game.largest * game.unit, game.unit, game.overhead, game.most_bytes, game.most_taken, memory, from,
                 has_census ? " of " : "", census_name(), extent_bytes(), span, pieces, pieces == 1 ? "" : "s", most_resident,
                 factor, grain, addresses, bound, 100 * grain / bound);
    }
    print(line);
    int check = census_check();
    if (check > 0) {
        print("the manager's check of its heap found damage\n");
        return 1;
    }
    return 0;
}
