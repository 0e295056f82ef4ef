/* Allocating and freeing within the rules: never more than M live, every page touched, an end when memory, time or the
 * limit runs out. */
#define _GNU_SOURCE
#include "adversary.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../common/process.h"

struct game game;
static char *first;
static double began;

void die(const char *message) {
    const char *parts[] = {"robson: ", message, "\n"};
    for (int i = 0; i < 3; i++) {
        if (write(2, parts[i], strlen(parts[i])) < 0) break;
    }
    _exit(2);
}

size_t own_bytes;

void *own(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count ? count : 1, size, &bytes) || bytes > SIZE_MAX / 2) die("M is too large");
    bytes = (bytes + 4095) & ~(size_t)4095;
    own_bytes += bytes;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) die("no memory for the adversary's own tables: choose a smaller M");
    return memory;
}

int64_t position(const struct block *block) {
    int64_t distance = block->at - first;
    int64_t unit = (int64_t)game.unit;
    return distance >= 0 ? distance / unit : -((-distance + unit - 1) / unit);
}

bool get_bytes(struct block *block, size_t bytes, size_t units, size_t taken) {
    if (game.stopped) return false;
    if (game.now_units + units > game.live) die("a strategy requested more than M");
    if ((game.gets & 255) == 0) {
        if (began == 0) began = monotonic_s();
        if (monotonic_s() - began > game.seconds) {
            game.stopped = "out of time";
            return false;
        }
    }
    char *at = malloc(bytes);
    if (!at) {
        game.stopped = "malloc gave nothing";
        return false;
    }
    if (!first) first = at;
    for (size_t i = 0; i < bytes; i += 4096) ((volatile char *)at)[i] = 1;
    if (bytes) ((volatile char *)at)[bytes - 1] = 1;
    *block = (struct block){at, bytes, units, taken};
    game.gets++;
    game.now_bytes += bytes;
    game.now_units += units;
    game.now_taken += taken;
    if (game.now_bytes > game.most_bytes) game.most_bytes = game.now_bytes;
    if (game.now_units > game.most_units) game.most_units = game.now_units;
    if (game.now_taken > game.most_taken) game.most_taken = game.now_taken;
    extent_add((uintptr_t)at, taken);
    if (extent_bytes() > game.limit) game.stopped = "at the limit";
    return true;
}

bool get(struct block *block, size_t units) {
    return get_bytes(block, units * game.unit - game.overhead, units, units * game.unit);
}

void give(struct block *block) {
    if (!block->at) return;
    game.gives++;
    game.now_bytes -= block->bytes;
    game.now_units -= block->units;
    game.now_taken -= block->taken;
    free(block->at);
    block->at = NULL;
}
