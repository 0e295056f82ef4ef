/* What the parts of the channel router share: a channel as it is read, and the plan that an attempt makes for it. */
#ifndef CHANNEL_H
#define CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The pins on the two sides of a channel: a net's number, or 0 where there is none. */
typedef struct {
    int width;
    int nets; /* the highest number */
    int *top, *bottom;
} channel;

typedef struct column column;
typedef struct edge edge;
typedef struct use use;
typedef struct wire wire;

/* A column of a plan. Plans add columns, so they are a list. */
struct column {
    column *next;
    int at; /* from 0 */
    int top, bottom;
    int dogleg; /* the net that changes its track here although it has no pin here, or 0 */
    use *uses;
};

/* A wire that ends in a column. */
struct use {
    use *next;
    wire *wire;
};

/* A horizontal piece of a net, on one track. */
struct wire {
    wire *next;
    int net;
    column *left, *right;
    edge *below; /* the wires that have to be on lower tracks */
    int above;   /* how many of the wires that have to be on higher tracks are not placed */
    int height;  /* the longest way down over `below` */
    int track;   /* from 1, or 0 when it is not placed */
    int mark;
    wire *reached_from;
};

struct edge {
    edge *next;
    wire *to;
};

typedef struct {
    column *columns;
    wire *wires;
    int width, added, tracks;
} plan;

/* A plan of the channel whose constraints have no cycles: nets are split at their pins, and wires of a cycle are split
 * where no pin is in the way. No track is given yet. */
plan *plan_new(const channel *c);

/* How many nets cross the fullest column, by all wires or by those that have no track yet: so many tracks are needed. */
int plan_density(const plan *p, int *by_column, bool unplaced);

/* Gives every wire a track. What seems of equal use is weighed by chance, the more the larger `spread` is. */
void plan_assign(plan *p, uint64_t *random, int spread);

typedef struct grid grid;

/* Draws the plan; ends the program with status 3 when two nets meet. */
grid *grid_draw(const channel *c, const plan *p);

typedef struct {
    long length, adjacent, vias; /* in cells; adjacent: other nets' cells next to its own */
} cost;

cost grid_cost(const grid *g);

/* Removes one net after the other and searches a cheaper way by Lee's maze search; returns whether there was one. */
bool grid_improve(grid *g);

/* Whether each net's pins are connected. */
bool grid_is_connected(const grid *g);

void grid_print(const grid *g);

/* New objects. The program never gives any back. */
column *new_column(void);
use *new_use(void);
wire *new_wire(void);
edge *new_edge(void);
void *allocate(size_t count, size_t size);

#endif
