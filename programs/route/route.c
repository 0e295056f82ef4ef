/* Routes channels: connects the pins on both sides of a strip by wires on horizontal tracks and in vertical columns, on
 * two layers, with few tracks. A program of the kind of Zorn's YACR (1992), and as that one it never frees anything: it
 * makes its plans, keeps the best, and ends.
 *
 * For each channel several plans are made: doglegs, cycles broken, tracks from the top with some chance in the choice.
 * The one with the fewest tracks is drawn, and every net in turn is taken out and led along a cheaper way where there is
 * one.
 *
 * usage: route ATTEMPTS FILE
 *
 * The file has for each channel a line `channel WIDTH`, then `top` and `bottom`, each followed by WIDTH numbers of nets,
 * 0 where there is no pin. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../storage/storage.h"
#include "channel.h"

const char *const program = "route";

enum { WIDEST = 20000, MOST_NETS = 20000, MOST_ATTEMPTS = 10000, PASSES = 4 };

static struct kind columns, uses, wires, edges;

void *allocate(size_t count, size_t size) { return must(calloc(count, size)); }

column *new_column(void) { return memset(kind_take(&columns, sizeof(column)), 0, sizeof(column)); }

use *new_use(void) { return memset(kind_take(&uses, sizeof(use)), 0, sizeof(use)); }

wire *new_wire(void) { return memset(kind_take(&wires, sizeof(wire)), 0, sizeof(wire)); }

edge *new_edge(void) { return memset(kind_take(&edges, sizeof(edge)), 0, sizeof(edge)); }

static void refuse(const char *path, int number, const char *problem) {
    fprintf(stderr, "route: %s: channel %d: %s\n", path, number, problem);
    exit(2);
}

static int *read_side(FILE *file, const char *path, int number, const char *name, channel *c) {
    int *side = allocate((size_t)c->width, sizeof *side);
    char word[16];
    if (fscanf(file, "%15s", word) != 1 || strcmp(word, name) != 0) refuse(path, number, "a side is missing");
    for (int i = 0; i < c->width; i++) {
        if (fscanf(file, "%9d", &side[i]) != 1) refuse(path, number, "a side ends too early");
        if (side[i] < 0 || side[i] > MOST_NETS) refuse(path, number, "a net's number is out of range");
        if (side[i] > c->nets) c->nets = side[i];
    }
    return side;
}

/* The next channel of the file; false at its end. */
static bool read_channel(FILE *file, const char *path, int number, channel *c) {
    char word[16];
    *c = (channel){0};
    if (fscanf(file, "%15s", word) != 1) {
        if (ferror(file)) refuse(path, number, strerror(errno));
        return false;
    }
    if (strcmp(word, "channel") != 0 || fscanf(file, "%9d", &c->width) != 1) refuse(path, number, "no `channel WIDTH`");
    if (c->width < 1 || c->width > WIDEST) refuse(path, number, "its width is out of range");
    c->top = read_side(file, path, number, "top", c);
    c->bottom = read_side(file, path, number, "bottom", c);
    return true;
}

static void route(const channel *c, int number, long attempts) {
    uint64_t random = UINT64_C(0x9e3779b97f4a7c15);
    plan *best = NULL;
    for (long i = 0; i < attempts; i++) {
        plan *p = plan_new(c);
        plan_assign(p, &random, (int)(i % 8));
        if (!best || p->tracks + p->added < best->tracks + best->added) best = p;
    }
    int density = plan_density(best, allocate((size_t)best->width, sizeof(int)), false);
    grid *g = grid_draw(c, best);
    cost drawn = grid_cost(g);
    for (int i = 0; i < PASSES && grid_improve(g); i++) continue;
    if (!grid_is_connected(g)) {
        fprintf(stderr, "route: channel %d: a net is not connected\n", number);
        exit(3);
    }
    cost improved = grid_cost(g);
    printf("channel %d: %d nets, density %d, %d tracks, %d columns added\n", number, c->nets, density, best->tracks,
           best->added);
    printf("length %ld from %ld, %ld from %ld beside others, %ld vias from %ld\n", improved.length, drawn.length,
           improved.adjacent, drawn.adjacent, improved.vias, drawn.vias);
    grid_print(g);
}

int main(int count, char **arguments) {
    char *end = NULL;
    long attempts = count == 3 ? strtol(arguments[1], &end, 10) : 0;
    if (count != 3 || *end || end == arguments[1] || attempts < 1 || attempts > MOST_ATTEMPTS) {
        fprintf(stderr, "usage: route ATTEMPTS FILE\nATTEMPTS is a number from 1 to %d\n", MOST_ATTEMPTS);
        return 2;
    }
    FILE *file = fopen(arguments[2], "r");
    if (!file) {
        fprintf(stderr, "route: cannot open %s: %s\n", arguments[2], strerror(errno));
        return 2;
    }
    channel c;
    int number = 1;
    for (; read_channel(file, arguments[2], number, &c); number++) route(&c, number, attempts);
    fclose(file);
    if (number == 1) {
        fprintf(stderr, "route: there is no channel in %s\n", arguments[2]);
        return 2;
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
