/* The drawn channel: a grid of two layers, one for horizontal pieces and one for vertical ones, connected by vias.
 * Row 0 holds the pins at the top, the last row those at the bottom.
 *
 * Nets are improved one by one: a net is taken out, and connected again from pin to pin along the cheapest way that is
 * free (Lee, "An Algorithm for Path Connections and Its Applications", 1961; with costs by buckets, after Dial 1969, and
 * the least distance to go added, after Hart, Nilsson and Raphael 1968). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../storage/storage.h"
#include "channel.h"

enum { HORIZONTAL, VERTICAL, LAYERS };
enum { STEP = 1, ADJACENT = 1, VIA = 3, MOST_AT_ONCE = STEP + 2 * ADJACENT + VIA };
enum { FREE = 0, BLOCKED = -1 };

/* A cell that a net has. */
typedef struct step step;
struct step {
    step *next;
    int cell;
    bool via; /* a way to the other layer, counted at one of its two cells */
};

/* A cell that is reached in a search, and how. */
typedef struct reach reach;
struct reach {
    reach *next, *from;
    int cell, cost;
};

typedef struct pin pin;
struct pin {
    pin *next;
    int cell;
    bool connected;
};

typedef struct {
    pin *pins;
    step *steps; /* without the pins' cells */
} net;

struct grid {
    int rows, width, nets;
    int *owner;    /* by cell */
    bool *via;     /* by place, the number of a cell in the layer of horizontal pieces */
    int *cheapest; /* in the search `searched[cell]` */
    unsigned *searched, search;
    reach **buckets; /* by cost and least distance to go, modulo their number */
    int bucket_count;
    net *net;
};

static struct kind steps, reaches, pins;

static int cells(const grid *g) { return g->rows * g->width; }

static int cell_at(const grid *g, int layer, int row, int column) {
    return layer * cells(g) + row * g->width + column;
}

static void die(const char *problem) {
    fprintf(stderr, "route: %s\n", problem);
    exit(3);
}

static void claim(grid *g, int of, int cell) {
    if (g->owner[cell] == of) return;
    if (g->owner[cell] != FREE) die("two nets meet: a constraint is missing");
    g->owner[cell] = of;
    step *s = kind_take(&steps, sizeof *s);
    s->cell = cell;
    s->via = false;
    s->next = g->net[of].steps;
    g->net[of].steps = s;
}

static void add_via(grid *g, int of, int place) {
    if (g->via[place]) return;
    g->via[place] = true;
    step *s = kind_take(&steps, sizeof *s);
    s->cell = place;
    s->via = true;
    s->next = g->net[of].steps;
    g->net[of].steps = s;
}

static void add_pin(grid *g, int of, int cell) {
    pin *p = kind_take(&pins, sizeof *p);
    p->cell = cell;
    p->connected = false;
    p->next = g->net[of].pins;
    g->net[of].pins = p;
    g->owner[cell] = of;
}

/* Draws what a net has in one column: from the topmost to the bottommost of its pins and wires there. */
static void draw_column(grid *g, const column *c, int of) {
    int first = g->rows, last = -1;
    if (c->top == of) first = last = 0;
    for (const use *u = c->uses; u; u = u->next) {
        if (u->wire->net != of) continue;
        if (u->wire->track < first) first = u->wire->track;
        if (u->wire->track > last) last = u->wire->track;
    }
    if (c->bottom == of) {
        last = g->rows - 1;
        if (first > last) first = last;
    }
    if (first >= last) return;
    for (int row = first; row <= last; row++) claim(g, of, cell_at(g, VERTICAL, row, c->at));
    for (const use *u = c->uses; u; u = u->next)
        if (u->wire->net == of) add_via(g, of, cell_at(g, HORIZONTAL, u->wire->track, c->at));
}

/* Whether a net is drawn in a column, as one that has a pin there or changes its track. */
static void draw_columns(grid *g, const plan *p) {
    for (const column *c = p->columns; c; c = c->next) {
        const int all[] = {c->top, c->bottom, c->dogleg};
        for (int i = 0; i < 3; i++) {
            /* A net with a single pin has nothing to be connected with. */
            bool lone = all[i] && (!g->net[all[i]].pins || !g->net[all[i]].pins->next);
            if (all[i] && !lone && !(i == 1 && c->top == c->bottom)) draw_column(g, c, all[i]);
        }
    }
}

grid *grid_draw(const channel *c, const plan *p) {
    grid *g = allocate(1, sizeof *g);
    g->rows = p->tracks + 2;
    g->width = p->width;
    g->nets = c->nets;
    size_t all = (size_t)cells(g) * LAYERS;
    g->owner = allocate(all, sizeof *g->owner);
    g->cheapest = allocate(all, sizeof *g->cheapest);
    g->searched = allocate(all, sizeof *g->searched);
    g->via = allocate((size_t)cells(g), sizeof *g->via);
    /* What is to be reached in one search differs by the size of the grid at most, and one way more. */
    g->bucket_count = g->rows + g->width + MOST_AT_ONCE + 1;
    g->buckets = allocate((size_t)g->bucket_count, sizeof *g->buckets);
    g->net = allocate((size_t)c->nets + 1, sizeof *g->net);
    for (const column *k = p->columns; k; k = k->next) {
        for (int layer = 0; layer < LAYERS; layer++) {
            g->owner[cell_at(g, layer, 0, k->at)] = BLOCKED;
            g->owner[cell_at(g, layer, g->rows - 1, k->at)] = BLOCKED;
        }
        if (k->top) add_pin(g, k->top, cell_at(g, VERTICAL, 0, k->at));
        if (k->bottom) add_pin(g, k->bottom, cell_at(g, VERTICAL, g->rows - 1, k->at));
    }
    for (const wire *w = p->wires; w; w = w->next)
        for (int i = w->left->at; i <= w->right->at; i++) claim(g, w->net, cell_at(g, HORIZONTAL, w->track, i));
    draw_columns(g, p);
    return g;
}

/* How many other nets run next to a cell, where they disturb each other. */
static int adjacent(const grid *g, int of, int cell) {
    int layer = cell / cells(g), place = cell % cells(g), row = place / g->width, column = place % g->width;
    int stride = layer == HORIZONTAL ? g->width : 1;
    bool before = layer == HORIZONTAL ? row > 0 : column > 0;
    bool after = layer == HORIZONTAL ? row + 1 < g->rows : column + 1 < g->width;
    int sum = 0;
    if (before && g->owner[cell - stride] > 0 && g->owner[cell - stride] != of) sum++;
    if (after && g->owner[cell + stride] > 0 && g->owner[cell + stride] != of) sum++;
    return sum;
}

static cost cost_of(const grid *g, int of, const step *all) {
    cost sum = {0, 0, 0};
    for (const step *s = all; s; s = s->next) {
        if (s->via) {
            sum.vias++;
        } else {
            sum.length++;
            sum.adjacent += adjacent(g, of, s->cell);
        }
    }
    return sum;
}

static long weight(cost of) { return STEP * of.length + ADJACENT * of.adjacent + VIA * of.vias; }

cost grid_cost(const grid *g) {
    cost sum = {0, 0, 0};
    for (int i = 1; i <= g->nets; i++) {
        cost of = cost_of(g, i, g->net[i].steps);
        sum.length += of.length;
        sum.adjacent += of.adjacent;
        sum.vias += of.vias;
    }
    return sum;
}

/* Takes a net's cells from the grid, or puts them back. */
static void place_steps(grid *g, const step *all, int owner) {
    for (const step *s = all; s; s = s->next) {
        if (s->via) g->via[s->cell] = owner != FREE;
        else g->owner[s->cell] = owner;
    }
}

/* From a cell to the nearest pin that is not connected, at least. */
static int distance(const grid *g, int of, int cell) {
    int place = cell % cells(g), row = place / g->width, column = place % g->width, least = g->rows + g->width;
    for (const pin *p = g->net[of].pins; p; p = p->next) {
        if (p->connected) continue;
        int there = p->cell % cells(g), away = abs(there / g->width - row) + abs(there % g->width - column);
        if (away < least) least = away;
    }
    return least;
}

static void push(grid *g, int of, int cell, int cost, reach *from) {
    if (g->searched[cell] == g->search && g->cheapest[cell] <= cost) return;
    g->searched[cell] = g->search;
    g->cheapest[cell] = cost;
    reach *r = kind_take(&reaches, sizeof *r);
    r->cell = cell;
    r->cost = cost;
    r->from = from;
    reach **bucket = &g->buckets[(cost + distance(g, of, cell)) % g->bucket_count];
    r->next = *bucket;
    *bucket = r;
}

/* Goes on from `r` to the adjacent cells, along its layer's direction and to the other layer. */
static void spread_from(grid *g, int of, reach *r) {
    int layer = r->cell / cells(g), place = r->cell % cells(g), row = place / g->width, column = place % g->width;
    int stride = layer == HORIZONTAL ? 1 : g->width;
    bool before = layer == HORIZONTAL ? column > 0 : row > 0;
    bool after = layer == HORIZONTAL ? column + 1 < g->width : row + 1 < g->rows;
    int other = layer == HORIZONTAL ? r->cell + cells(g) : r->cell - cells(g);
    const int next[] = {before ? r->cell - stride : -1, after ? r->cell + stride : -1, other};
    for (int i = 0; i < 3; i++) {
        if (next[i] < 0 || (g->owner[next[i]] != FREE && g->owner[next[i]] != of)) continue;
        int cost = STEP + ADJACENT * adjacent(g, of, next[i]) + (i == 2 ? VIA : 0);
        push(g, of, next[i], r->cost + cost, r);
    }
}

static pin *unconnected_at(const net *n, int cell) {
    for (pin *p = n->pins; p; p = p->next)
        if (p->cell == cell && !p->connected) return p;
    return NULL;
}

/* Connects one more pin with what the net has already; false when there is no way. */
static bool connect_one(grid *g, int of) {
    net *n = &g->net[of];
    for (int i = 0; i < g->bucket_count; i++) g->buckets[i] = NULL;
    g->search++;
    for (const step *s = n->steps; s; s = s->next)
        if (!s->via) push(g, of, s->cell, 0, NULL);
    for (const pin *p = n->pins; p; p = p->next)
        if (p->connected) push(g, of, p->cell, 0, NULL);
    for (int now = 0, empty = 0; empty < g->bucket_count;) {
        reach *r = g->buckets[now % g->bucket_count];
        if (!r) {
            now++;
            empty++;
            continue;
        }
        empty = 0;
        g->buckets[now % g->bucket_count] = NULL;
        for (; r; r = r->next) {
            if (g->cheapest[r->cell] < r->cost) continue;
            pin *found = g->owner[r->cell] == of ? unconnected_at(n, r->cell) : NULL;
            if (!found) {
                spread_from(g, of, r);
                continue;
            }
            found->connected = true;
            for (; r->from; r = r->from) {
                int layer = r->cell / cells(g), before = r->from->cell / cells(g);
                if (r->cell != found->cell) claim(g, of, r->cell);
                if (layer != before) add_via(g, of, r->cell % cells(g));
            }
            return true;
        }
    }
    return false;
}

static bool reroute(grid *g, int of) {
    net *n = &g->net[of];
    step *old = n->steps;
    if (!old) return false;
    long was = weight(cost_of(g, of, old));
    place_steps(g, old, FREE);
    n->steps = NULL;
    for (pin *p = n->pins; p; p = p->next) p->connected = p == n->pins;
    bool complete = true;
    for (const pin *p = n->pins; complete && p; p = p->next)
        while (complete && !p->connected) complete = connect_one(g, of);
    if (complete && weight(cost_of(g, of, n->steps)) < was) return true;
    place_steps(g, n->steps, FREE);
    n->steps = old;
    place_steps(g, old, of);
    return false;
}

bool grid_improve(grid *g) {
    bool better = false;
    for (int i = 1; i <= g->nets; i++)
        if (reroute(g, i)) better = true;
    return better;
}

/* Walks from one pin over all that is connected, and looks whether that reaches the other pins. */
static bool is_connected(const grid *g, int of) {
    bool *seen = allocate((size_t)cells(g) * LAYERS, sizeof *seen);
    reach *todo = NULL;
    int at = g->net[of].pins->cell;
    for (;;) {
        int layer = at / cells(g), place = at % cells(g), row = place / g->width, column = place % g->width;
        int next[3] = {-1, -1, -1};
        seen[at] = true;
        if (layer == HORIZONTAL) {
            if (column > 0) next[0] = at - 1;
            if (column + 1 < g->width) next[1] = at + 1;
            if (g->via[place]) next[2] = at + cells(g);
        } else {
            if (row > 0) next[0] = at - g->width;
            if (row + 1 < g->rows) next[1] = at + g->width;
            if (g->via[place]) next[2] = at - cells(g);
        }
        for (int i = 0; i < 3; i++) {
            if (next[i] < 0 || seen[next[i]] || g->owner[next[i]] != of) continue;
            reach *r = kind_take(&reaches, sizeof *r);
            *r = (reach){.next = todo, .cell = next[i]};
            todo = r;
        }
        if (!todo) break;
        at = todo->cell;
        todo = todo->next;
    }
    for (const pin *p = g->net[of].pins; p; p = p->next)
        if (!seen[p->cell]) return false;
    return true;
}

bool grid_is_connected(const grid *g) {
    for (int i = 1; i <= g->nets; i++)
        if (g->net[i].pins && !is_connected(g, i)) return false;
    return true;
}

/* Prints the pieces of a layer: runs of cells of one net, at right angles to `lines`. */
static void print_pieces(const grid *g, char name, int layer, int lines, int length) {
    for (int line = 0; line < lines; line++) {
        for (int i = 0; i < length;) {
            int begin = i, first = layer == HORIZONTAL ? cell_at(g, layer, line, i) : cell_at(g, layer, i, line);
            int stride = layer == HORIZONTAL ? 1 : g->width, of = g->owner[first];
            while (i < length && g->owner[first + (i - begin) * stride] == of) i++;
            if (of > 0 && i - begin > 1) printf("%c %d %d %d %d\n", name, of, line, begin, i - 1);
        }
    }
}

void grid_print(const grid *g) {
    print_pieces(g, 'h', HORIZONTAL, g->rows, g->width);
    print_pieces(g, 'v', VERTICAL, g->width, g->rows);
    for (int i = 0; i < cells(g); i++)
        if (g->via[i]) printf("x %d %d %d\n", g->owner[i], i / g->width, i % g->width);
}
