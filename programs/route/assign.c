/* Tracks: from the top, each track takes those wires that nothing unplaced has to be above, as many and as urgent ones
 * as fit side by side. This is the left-edge algorithm under vertical constraints, but what goes onto a track is the
 * best choice of intervals and not the first. */
#include "../common/random.h"
#include "../storage/storage.h"
#include "channel.h"

/* A wire that may go onto the track, and the best that can be put to its left. */
typedef struct choice choice;
struct choice {
    choice *next;
    choice *before;
    wire *wire;
    long total; /* the weight of this one and all before */
};

static struct kind choices;

int plan_density(const plan *p, int *by_column, bool unplaced) {
    int most = 0;
    for (int i = 0; i < p->width; i++) by_column[i] = 0;
    for (const wire *w = p->wires; w; w = w->next) {
        if (unplaced && w->track) continue;
        /* Where a wire of the same net goes on, the net is counted once. */
        for (int i = w->left->at; i < w->right->at; i++) by_column[i]++;
        bool goes_on = false;
        for (const use *u = w->right->uses; u; u = u->next)
            if (u->wire->net == w->net && u->wire->left == w->right && !(unplaced && u->wire->track)) goes_on = true;
        if (!goes_on) by_column[w->right->at]++;
    }
    for (int i = 0; i < p->width; i++)
        if (by_column[i] > most) most = by_column[i];
    return most;
}

/* Wires with much below them go first, and those through the fullest columns. */
static long weight(const wire *w, const int *by_column, int density, uint64_t *random, int spread) {
    int fullest = 0;
    for (int i = w->left->at; i <= w->right->at; i++)
        if (by_column[i] > fullest) fullest = by_column[i];
    long result = 100 + 60L * w->height + w->right->at - w->left->at;
    if (fullest >= density - 1) result += 120;
    if (spread) result += (long)(next_random(random) % (unsigned)(40 * spread));
    return result;
}

/* What may go onto the track, from left to right. The wires are a list from right to left, more or less. */
static choice *gather(const plan *p, const int *by_column, int density, uint64_t *random, int spread) {
    choice *all = NULL;
    for (wire *w = p->wires; w; w = w->next) {
        if (w->track || w->above) continue;
        choice *c = kind_take(&choices, sizeof *c);
        c->wire = w;
        c->before = NULL;
        c->total = weight(w, by_column, density, random, spread);
        choice **link = &all;
        while (*link && (*link)->wire->left->at < w->left->at) link = &(*link)->next;
        c->next = *link;
        *link = c;
    }
    return all;
}

static bool fits(const wire *left, const wire *right) {
    return left->right->at < right->left->at || (left->right == right->left && left->net == right->net);
}

static const choice *best(choice *all) {
    const choice *found = all;
    for (choice *c = all; c; c = c->next) {
        long most = 0;
        for (choice *other = all; other != c; other = other->next) {
            if (other->total <= most || !fits(other->wire, c->wire)) continue;
            most = other->total;
            c->before = other;
        }
        c->total += most;
        if (c->total > found->total) found = c;
    }
    return found;
}

void plan_assign(plan *p, uint64_t *random, int spread) {
    int *by_column = allocate((size_t)p->width, sizeof *by_column);
    for (;;) {
        /* The rest of the channel is a channel of its own. */
        int density = plan_density(p, by_column, true);
        choice *all = gather(p, by_column, density, random, spread);
        if (!all) return;
        p->tracks++;
        for (const choice *c = best(all); c; c = c->before) {
            c->wire->track = p->tracks;
            for (const edge *e = c->wire->below; e; e = e->next) e->to->above--;
        }
    }
}
