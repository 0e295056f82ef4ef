/* List reversal (reverse.c) by deferred reference counting (Deutsch and Bobrow, CACM 19(9), 1976): only links in the
 * heap are counted. Local pointers are not, so most assignments cost nothing. An element whose count is zero stands in
 * the zero count table; when the table is full, those that no local points to are freed, and then what they alone led
 * to.
 *
 * usage: reverse LENGTH REVERSALS [BYTES], as reverse.c; BYTES is without the count, which makes an element 8 bytes
 * larger. The output is the same as reverse.c's. */
#include "reverse.h"

enum { TABLE = 4096, LOCALS = 8 };

/* The lowest bit is set while the element stands in the table; the count is what is left of it. */
enum { IN_TABLE = 1, ONE = 2 };

struct element {
    struct element *next;
    uint64_t count;
    uint64_t value[]; /* as in reverse.c */
};

static size_t values;
static uint64_t made, freed;

static struct element *table[TABLE]; /* the zero count table */
static size_t in_table;

static struct element **locals[LOCALS]; /* the local pointers in use: the stack that a reconciliation reads */
static size_t local_count;

static void enter(struct element **local) {
    if (local_count == LOCALS) abort();
    locals[local_count++] = local;
}

static void leave(size_t many) { local_count -= many; }

static int is_local(const struct element *element) {
    for (size_t i = 0; i < local_count; i++)
        if (*locals[i] == element) return 1;
    return 0;
}

/* Frees an element and then, link by link, what it alone led to: a count that comes to zero here needs no table unless
 * a local points there. Returns the element that a local keeps, or none. */
static struct element *free_from(struct element *element) {
    for (;;) {
        struct element *next = element->next;
        free(element);
        freed++;
        if (!next || (next->count -= ONE) >= ONE) return NULL;
        if (next->count & IN_TABLE) return NULL; /* its turn comes */
        if (is_local(next)) return next;
        element = next;
    }
}

/* Reconciliation: what is in the table with no count and no local is garbage. */
static __attribute__((noinline)) void reconcile(void) {
    size_t kept = 0;
    for (size_t i = 0; i < in_table; i++) {
        struct element *element = table[i];
        if (element->count >= ONE) {
            element->count &= ~(uint64_t)IN_TABLE;
        } else if (is_local(element)) {
            table[kept++] = element;
        } else if ((element = free_from(element))) {
            element->count |= IN_TABLE;
            table[kept++] = element;
        }
    }
    in_table = kept;
}

static inline void add_to_table(struct element *element) {
    element->count |= IN_TABLE;
    table[in_table++] = element;
    if (in_table == TABLE) reconcile();
}

/* An element that only a local will point to: it is counted by nothing yet. `next` is a local of the caller's. */
static inline void element(struct element **result, uint64_t value, struct element *next) {
    struct element *new = must(malloc(sizeof(struct element) + values * sizeof(uint64_t)));
    made++;
    new->next = next;
    if (next) next->count += ONE;
    new->count = 0;
    for (size_t i = 0; i < values; i++) new->value[i] = value;
    *result = new;
    add_to_table(new);
}

static void reverse(struct element **result, struct element *list) {
    enter(&list);
    for (; list; list = list->next) element(result, values ? list->value[0] : 0, *result);
    leave(1);
}

static void check(const struct element *at, uint64_t *length, uint64_t *sum) {
    for (*length = 0; at; at = at->next) {
        ++*length;
        if (values) fold(sum, at->value[0]);
    }
}

int main(int count, char **arguments) {
    const struct task task = parse_arguments(count, arguments);
    values = task.values;
    struct element *list = NULL, *new = NULL;
    enter(&list);
    enter(&new);
    for (uint64_t i = 0; i < task.length; i++) element(&list, i, list);
    uint64_t found = 0, done = 0, sum = 0;
    while (done < task.reversals) {
        reverse(&new, list);
        list = new; /* the old list's first element stands in the table */
        new = NULL;
        fold(&sum, task.length + done++);
        if (done % 2 == 0) check(list, &found, &sum);
    }
    check(list, &found, &sum);
    list = NULL;
    reconcile();
    reconcile(); /* what the first one kept for a count that fell after it had been passed */
    if (freed != made) {
        fputs("reverse: elements were lost\n", stderr);
        return 1;
    }
    return report(&task, found, done, sum);
}
