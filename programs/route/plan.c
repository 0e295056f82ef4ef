/* A plan of a channel: the wires, what has to be above what, and no cycle in it.
 *
 * After Deutsch, "A Dogleg Channel Router" (1976): a net of more than two pins is one wire between each two neighbouring
 * pins, and each may have a track of its own. Where a column has a pin of one net at the top and of another at the
 * bottom, the wires of the first that end there have to be above those of the second. */
#include "channel.h"

enum { UNSEEN, OPEN, DONE };

static void connect(wire *w, column *at) {
    use *u = new_use();
    u->wire = w;
    u->next = at->uses;
    at->uses = u;
}

static void disconnect(const wire *w, column *at) {
    for (use **link = &at->uses; *link; link = &(*link)->next) {
        if ((*link)->wire != w) continue;
        *link = (*link)->next;
        return;
    }
}

static wire *wire_between(plan *p, int net, column *left, column *right) {
    wire *w = new_wire();
    w->net = net;
    w->left = left;
    w->right = right;
    w->next = p->wires;
    p->wires = w;
    connect(w, left);
    connect(w, right);
    return w;
}

static void number_columns(plan *p) {
    p->width = 0;
    for (column *c = p->columns; c; c = c->next) c->at = p->width++;
}

/* Where `w` may be split: a column inside it without pins that no other net uses; NULL when there is none. */
static column *vacant_inside(const wire *w) {
    for (column *c = w->left->next; c != w->right; c = c->next)
        if (!c->top && !c->bottom && !c->dogleg) return c;
    return NULL;
}

static void split(plan *p, wire *w) {
    column *at = vacant_inside(w);
    if (!at) {
        at = new_column();
        at->next = w->left->next;
        w->left->next = at;
        p->added++;
        number_columns(p);
    }
    at->dogleg = w->net;
    column *right = w->right;
    disconnect(w, right);
    w->right = at;
    connect(w, at);
    wire_between(p, w->net, at, right);
}

/* The longest wire of the cycle that ends with `last` and begins with `first`; one that can be split in a column that
 * is there already comes before all others. */
static wire *weakest(wire *last, const wire *first) {
    wire *found = NULL;
    int most = -1;
    for (wire *w = last;; w = w->reached_from) {
        int length = w->right->at - w->left->at + (vacant_inside(w) ? 1 << 20 : 0);
        if (length > most) {
            most = length;
            found = w;
        }
        if (w == first) return found;
    }
}

/* Goes down from `w` and measures the heights; the wire to split when there is a cycle. */
static wire *descend(wire *w) {
    w->mark = OPEN;
    for (const edge *e = w->below; e; e = e->next) {
        if (e->to->mark == OPEN) return weakest(w, e->to);
        if (e->to->mark == UNSEEN) {
            e->to->reached_from = w;
            wire *found = descend(e->to);
            if (found) return found;
        }
        if (e->to->height >= w->height) w->height = e->to->height + 1;
    }
    w->mark = DONE;
    return NULL;
}

static void constrain(plan *p) {
    for (wire *w = p->wires; w; w = w->next) {
        w->below = NULL;
        w->above = w->height = 0;
        w->mark = UNSEEN;
        w->reached_from = NULL;
    }
    for (const column *c = p->columns; c; c = c->next) {
        if (!c->top || !c->bottom || c->top == c->bottom) continue;
        for (const use *upper = c->uses; upper; upper = upper->next) {
            if (upper->wire->net != c->top) continue;
            for (const use *lower = c->uses; lower; lower = lower->next) {
                if (lower->wire->net != c->bottom) continue;
                edge *e = new_edge();
                e->to = lower->wire;
                e->next = upper->wire->below;
                upper->wire->below = e;
                lower->wire->above++;
            }
        }
    }
}

/* A wire of a cycle enters it at one end and leaves it at the other. Once split it does only one of both, so that this
 * ends. */
static wire *cycle_wire(const plan *p) {
    for (wire *w = p->wires; w; w = w->next) {
        if (w->mark != UNSEEN) continue;
        wire *found = descend(w);
        if (found) return found;
    }
    return NULL;
}

plan *plan_new(const channel *c) {
    plan *p = allocate(1, sizeof *p);
    column **last = &p->columns, **seen = allocate((size_t)c->nets + 1, sizeof(column *));
    for (int i = 0; i < c->width; i++) {
        column *here = new_column();
        here->top = c->top[i];
        here->bottom = c->bottom[i];
        *last = here;
        last = &here->next;
        const int pins[] = {here->top, here->bottom};
        for (int side = 0; side < 2; side++) {
            int net = pins[side];
            if (!net || seen[net] == here) continue;
            if (seen[net]) wire_between(p, net, seen[net], here);
            seen[net] = here;
        }
    }
    number_columns(p);
    wire *w;
    for (constrain(p); (w = cycle_wire(p)); constrain(p)) split(p, w);
    return p;
}
