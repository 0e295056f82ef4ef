/* graph.c: see graph.h. */
#include "graph.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "heaptoll.h"

enum { NODES = 6000, LINKS = 6, PLACES = 6, SLOTS_A_PLACE = 12, SHARED_PLACE = 4, SLOTS = PLACES * SLOTS_A_PLACE,
       POPULATION = 700, STALE = 64 };

/* A block of the graph. Its links hold the addresses; the bytes after them hold a pattern of its own. */
struct node {
    uint64_t check;
    uint32_t id, size, links, generation;
    void *link[];
};

/* An edge in the shadow: the target's number + 1, and where in it the word points. */
struct edge {
    uint32_t target, offset;
};
struct shadow_node {
    disguised address;
    uint32_t size, links, generation, indegree;
    uint8_t used, reachable, was_reachable;
    struct edge edge[LINKS];
};
struct shadow_slot {
    disguised where;
    struct edge edge;
};
/* Under a guard: a freed block to which a word leads. Without an address it is none. */
struct stale {
    disguised address;
    uint32_t size;
};
struct partition {
    struct rng rng;
    struct stale stale[STALE];
    struct shadow_slot slot[SLOTS];
    uint32_t free_ids[NODES], free_count, population;
};
/* Never allocated by malloc; holds addresses only disguised. */
struct shadow {
    struct shadow_node node[PARTITIONS * NODES];
    struct partition partition[PARTITIONS];
    uint32_t queue[PARTITIONS * NODES];
};
static struct shadow *shadow;

static unsigned workers;
static pthread_barrier_t barrier;
static pthread_t threads[PARTITIONS];
static size_t round_number, round_steps;
static int stopping, forking;

/* The places of root words. Those on the stack are in the frame of each worker. */
static void *volatile static_words[PARTITIONS][SLOTS_A_PLACE];
static __thread void *volatile thread_words[SLOTS_A_PLACE];
static void *volatile *volatile table_words[PARTITIONS]; /* keeps the tables allocated by malloc */

static void *volatile stale_words[PARTITIONS][STALE];
static void *volatile childs_words[SLOTS_A_PLACE];

static uint32_t partition_of(uint32_t id) { return id / NODES; }

static uint64_t check_word(const struct shadow_node *of, uint32_t id) {
    uint64_t mixed = ((uint64_t)id << 32 | of->size) * UINT64_C(0x9E3779B97F4A7C15);
    return (mixed ^ ((uint64_t)of->generation << 8 | of->links)) | UINT64_C(1) << 63;
}

static uint64_t pattern_of(const struct shadow_node *of, uint32_t id) {
    return (uint64_t)id << 20 ^ of->generation;
}

static size_t header_bytes(uint32_t links) { return sizeof(struct node) + links * sizeof(void *); }

static struct node *address_of(uint32_t id) { return undisguise(shadow->node[id].address); }

static void verify(uint32_t id, const char *when) {
    const struct shadow_node *expected = &shadow->node[id];
    const struct node *node = address_of(id);
    CHECK(node->check == check_word(expected, id) && node->id == id && node->size == expected->size &&
              node->links == expected->links && node->generation == expected->generation,
          "%s: node %u of %u bytes at %p is reachable and overwritten: id %u, size %u, check %#llx", when, id,
          expected->size, (const void *)node, node->id, node->size, (unsigned long long)node->check);
    for (uint32_t i = 0; i < expected->links; i++) {
        struct edge edge = expected->edge[i];
        const void *word = edge.target ? (char *)address_of(edge.target - 1) + edge.offset : NULL;
        CHECK(node->link[i] == word, "%s: link %u of node %u at %p is %p and should be %p", when, i, id,
              (const void *)node, node->link[i], word);
    }
    size_t header = header_bytes(expected->links);
    ptrdiff_t at = damage((const char *)node + header, expected->size - header, pattern_of(expected, id));
    CHECK(at < 0, "%s: node %u of %u bytes at %p is reachable and overwritten at byte %td", when, id, expected->size,
          (const void *)node, at + (ptrdiff_t)header);
}

static void into(struct edge edge) {
    if (edge.target)
        __atomic_fetch_add(&shadow->node[edge.target - 1].indegree, 1, __ATOMIC_RELAXED);
}

static void out_of(struct edge edge) {
    if (edge.target)
        __atomic_fetch_sub(&shadow->node[edge.target - 1].indegree, 1, __ATOMIC_RELAXED);
}

static void *word_of(struct edge edge) {
    return edge.target ? (char *)address_of(edge.target - 1) + edge.offset : NULL;
}

static void set_slot(struct shadow_slot *slot, struct edge edge) {
    into(edge);
    out_of(slot->edge);
    slot->edge = edge;
    *(void *volatile *)undisguise(slot->where) = word_of(edge);
}

static void set_link(uint32_t id, uint32_t link, struct edge edge) {
    struct edge *old = &shadow->node[id].edge[link];
    into(edge);
    out_of(*old);
    *old = edge;
    address_of(id)->link[link] = word_of(edge);
}

static struct edge edge_to(struct rng *rng, uint32_t id) {
    uint32_t offset = rng_below(rng, 2) ? 0 : (uint32_t)rng_below(rng, shadow->node[id].size);
    return (struct edge){id + 1, offset};
}

static struct shadow_slot *random_slot(struct partition *of) { return &of->slot[rng_below(&of->rng, SLOTS)]; }

/* Finds a reachable node: from a random root some links on, inside the partition. Compares every word on the way. */
static int walk(uint32_t number, uint32_t *found) {
    struct partition *of = &shadow->partition[number];
    struct shadow_slot *slot = NULL;
    for (int i = 0; i < 8 && (!slot || !slot->edge.target); i++)
        slot = random_slot(of);
    if (!slot->edge.target || partition_of(slot->edge.target - 1) != number)
        return 0;
    CHECK(*(void *volatile *)undisguise(slot->where) == word_of(slot->edge),
          "root %td of partition %u, to node %u, is %p and should be %p", slot - of->slot, number, slot->edge.target - 1,
          *(void *volatile *)undisguise(slot->where), word_of(slot->edge));
    uint32_t at = slot->edge.target - 1;
    for (size_t steps = rng_below(&of->rng, 12); steps > 0; steps--) {
        const struct shadow_node *node = &shadow->node[at];
        if (!node->links)
            break;
        uint32_t link = (uint32_t)rng_below(&of->rng, node->links);
        struct edge edge = node->edge[link];
        if (!edge.target || partition_of(edge.target - 1) != number)
            break;
        CHECK(address_of(at)->link[link] == word_of(edge), "link %u of node %u at %p changed to %p", link, at,
              (void *)address_of(at), address_of(at)->link[link]);
        at = edge.target - 1;
    }
    *found = at;
    return 1;
}

static uint32_t random_size(struct rng *rng, uint32_t links) {
    static const uint32_t LIMITS[] = {16, 64, 200, 200, 1000, 4000, 4000, 33000};
    size_t range = rng_below(rng, 60);
    size_t more = range == 0 ? rng_below(rng, 500000) : rng_below(rng, LIMITS[range % 8]);
    return (uint32_t)(header_bytes(links) + more);
}

/* Frees a node's block. Under a guard a word still leads to it, at most one past its end. */
static void free_block(uint32_t number, uint32_t id) {
    struct partition *of = &shadow->partition[number];
    char *block = (char *)address_of(id);
    if (mode() != GUARD) {
        free(block);
        return;
    }
    size_t at = rng_below(&of->rng, STALE), size = shadow->node[id].size;
    __atomic_store_n(&of->stale[at].address, 0, __ATOMIC_SEQ_CST);
    stale_words[number][at] = block + (rng_below(&of->rng, 4) ? rng_below(&of->rng, size) : size);
    free(block);
    of->stale[at].size = (uint32_t)size;
    __atomic_store_n(&of->stale[at].address, disguise(block), __ATOMIC_SEQ_CST);
}

static void check_new(const void *block, size_t size) {
    for (uint32_t i = 0; i < PARTITIONS * STALE && mode() == GUARD; i++) {
        const struct stale *stale = &shadow->partition[i / STALE].stale[i % STALE];
        disguised address = __atomic_load_n(&stale->address, __ATOMIC_SEQ_CST);
        uintptr_t from = (uintptr_t)block, of = (uintptr_t)undisguise(address), bytes = stale->size;
        CHECK(!address || from >= of + bytes || of >= from + size ||
                  address != __atomic_load_n(&stale->address, __ATOMIC_SEQ_CST),
              "a block of %zu bytes at %p is handed out where a freed one of %zu is that a word leads to", size, block,
              (size_t)bytes);
    }
}

static void *random_block(struct rng *rng, size_t size) {
    size_t kind = rng_below(rng, 10), alignment = (size_t)16 << rng_below(rng, 9);
    void *block = NULL;
    if (kind < 6)
        block = malloc(size);
    else if (kind < 8) {
        block = calloc(1, size);
        for (size_t i = 0; block && i < size; i++)
            CHECK(((char *)block)[i] == 0, "byte %zu of a calloc of %zu bytes at %p is not zero", i, size, block);
    } else if (kind == 8)
        block = realloc(NULL, size);
    else {
        CHECK(posix_memalign(&block, alignment, size) == 0, "posix_memalign(%zu, %zu) failed", alignment, size);
        CHECK((uintptr_t)block % alignment == 0, "%p is not aligned to %zu", block, alignment);
    }
    CHECK(block, "no block of %zu bytes: errno %d", size, errno);
    check_new(block, size);
    return block;
}

static void label(uint32_t id) {
    struct shadow_node *of = &shadow->node[id];
    struct node *node = address_of(id);
    *node = (struct node){check_word(of, id), id, of->size, of->links, of->generation};
    for (uint32_t i = 0; i < of->links; i++)
        node->link[i] = word_of(of->edge[i]);
    size_t header = header_bytes(of->links);
    /* Only samples of large blocks are filled, and old contents must not be taken for links. */
    if (of->size - header > 4096)
        memset((char *)node + header, 0, of->size - header);
    fill((char *)node + header, of->size - header, pattern_of(of, id));
}

static void step_new(uint32_t number) {
    struct partition *of = &shadow->partition[number];
    uint32_t holder = 0;
    int has_holder = walk(number, &holder) && shadow->node[holder].links && rng_below(&of->rng, 4) > 0;
    if (!of->free_count)
        return;
    uint32_t id = of->free_ids[--of->free_count];
    struct shadow_node *node = &shadow->node[id];
    uint32_t links = (uint32_t)rng_below(&of->rng, LINKS + 1), size = random_size(&of->rng, links);
    *node = (struct shadow_node){.size = size, .links = links, .generation = node->generation + 1, .used = 1};
    node->address = disguise(random_block(&of->rng, size));
    label(id);
    if (has_holder)
        set_link(holder, (uint32_t)rng_below(&of->rng, shadow->node[holder].links), edge_to(&of->rng, id));
    else
        set_slot(random_slot(of), edge_to(&of->rng, id));
    of->population++;
}

static void step_link(uint32_t number) {
    struct rng *rng = &shadow->partition[number].rng;
    uint32_t from, to;
    if (!walk(number, &from) || !walk(number, &to) || !shadow->node[from].links)
        return;
    set_link(from, (uint32_t)rng_below(rng, shadow->node[from].links), edge_to(rng, to));
}

static void step_cut(uint32_t number) {
    struct partition *of = &shadow->partition[number];
    uint32_t from;
    size_t crowded = of->population > POPULATION ? 3 : 40;
    if (rng_below(&of->rng, crowded) == 0)
        set_slot(random_slot(of), (struct edge){0, 0});
    else if (walk(number, &from) && shadow->node[from].links)
        set_link(from, (uint32_t)rng_below(&of->rng, shadow->node[from].links), (struct edge){0, 0});
}

/* A link whose target nothing else points to: that target may be freed or moved. */
static int sole_link(uint32_t number, uint32_t *from, uint32_t *link) {
    if (!walk(number, from))
        return 0;
    const struct shadow_node *node = &shadow->node[*from];
    for (*link = 0; *link < node->links; ++*link) {
        uint32_t target = node->edge[*link].target;
        if (target && target - 1 != *from && partition_of(target - 1) == number &&
            __atomic_load_n(&shadow->node[target - 1].indegree, __ATOMIC_RELAXED) == 1)
            return 1;
    }
    return 0;
}

static void forget(uint32_t id) {
    struct shadow_node *node = &shadow->node[id];
    for (uint32_t i = 0; i < node->links; i++) {
        out_of(node->edge[i]);
        node->edge[i] = (struct edge){0, 0};
    }
    node->used = 0;
    struct partition *of = &shadow->partition[partition_of(id)];
    of->free_ids[of->free_count++] = id;
}

static void step_free(uint32_t number) {
    uint32_t from, link;
    if (!sole_link(number, &from, &link))
        return;
    uint32_t id = shadow->node[from].edge[link].target - 1;
    verify(id, "before free");
    set_link(from, link, (struct edge){0, 0});
    free_block(number, id);
    forget(id);
    shadow->partition[number].population--;
}

static void step_realloc(uint32_t number) {
    struct rng *rng = &shadow->partition[number].rng;
    uint32_t from, link;
    if (!sole_link(number, &from, &link))
        return;
    uint32_t id = shadow->node[from].edge[link].target - 1;
    struct shadow_node *node = &shadow->node[id];
    verify(id, "before realloc");
    size_t header = header_bytes(node->links);
    uint32_t size = random_size(rng, node->links);
    char *block = realloc(address_of(id), size);
    CHECK(block, "realloc to %u bytes gave null", size);
    size_t common = (size < node->size ? size : node->size) - header;
    /* Of blocks up to 4 KiB every byte is filled. */
    if (node->size - header <= 4096) {
        ptrdiff_t at = damage(block + header, common, pattern_of(node, id));
        CHECK(at < 0, "realloc from %u to %u bytes changed byte %td", node->size, size, at + (ptrdiff_t)header);
    }
    const struct node *moved = (const void *)block;
    CHECK(moved->check == check_word(node, id), "realloc from %u to %u bytes lost the beginning", node->size, size);
    for (uint32_t i = 0; i < node->links; i++)
        CHECK(moved->link[i] == word_of(node->edge[i]) || node->edge[i].target == id + 1,
              "realloc from %u to %u bytes changed link %u", node->size, size, i);
    node->address = disguise(block);
    node->size = size;
    label(id);
    set_link(from, link, edge_to(rng, id));
}

static void step(uint32_t number) {
    struct partition *of = &shadow->partition[number];
    uint32_t id;
    size_t kind = rng_below(&of->rng, 100);
    if (kind < 40)
        step_new(number);
    else if (kind < 55)
        step_link(number);
    else if (kind < 72)
        step_cut(number);
    else if (kind < 82)
        step_free(number);
    else if (kind < 90)
        step_realloc(number);
    else if (walk(number, &id))
        verify(id, "on the way");
}

/* Marks what is reachable from the slots of partitions [first, end), inside them. */
static size_t mark(uint32_t first, uint32_t end) {
    uint32_t *queue = shadow->queue + first * NODES;
    size_t head = 0, tail = 0;
    for (uint32_t id = first * NODES; id < end * NODES; id++)
        shadow->node[id].reachable = 0;
    for (uint32_t number = first; number < end; number++)
        for (size_t i = 0; i < SLOTS; i++) {
            uint32_t target = shadow->partition[number].slot[i].edge.target;
            if (target && partition_of(target - 1) >= first && partition_of(target - 1) < end &&
                !shadow->node[target - 1].reachable) {
                shadow->node[target - 1].reachable = 1;
                queue[tail++] = target - 1;
            }
        }
    while (head < tail) {
        const struct shadow_node *node = &shadow->node[queue[head++]];
        for (uint32_t i = 0; i < node->links; i++) {
            uint32_t target = node->edge[i].target;
            if (target && partition_of(target - 1) >= first && partition_of(target - 1) < end &&
                !shadow->node[target - 1].reachable) {
                shadow->node[target - 1].reachable = 1;
                queue[tail++] = target - 1;
            }
        }
    }
    return tail;
}

APART static void verify_all(uint32_t first, uint32_t end, const char *when) {
    size_t count = mark(first, end);
    for (size_t i = 0; i < count; i++) {
        uint32_t id = shadow->queue[first * NODES + i];
        CHECK(is_live(shadow->node[id].address) != 0, "%s: node %u of %u bytes at %p is reachable and was reclaimed",
              when, id, shadow->node[id].size, (void *)address_of(id));
        verify(id, when);
    }
}

/* A worker's child of fork: it has one thread, its own partition, and all that the slots of other partitions hold. */
static void child_of(uint32_t number) {
    /* The parent continues to change the words in shared memory: the child takes its own copy of them. */
    for (size_t i = 0; i < SLOTS_A_PLACE; i++) {
        struct shadow_slot *slot = &shadow->partition[number].slot[SHARED_PLACE * SLOTS_A_PLACE + i];
        childs_words[i] = word_of(slot->edge);
        slot->where = disguise(&childs_words[i]);
    }
    verify_all(number, number + 1, "in a child of fork");
    for (int round = 0; round < 3; round++) {
        collect();
        verify_all(number, number + 1, "in a child of fork, after a collection");
        for (int i = 0; i < 300; i++)
            step(number);
    }
    verify_all(number, number + 1, "in a child of fork, at its end");
    check_heap("in a child of fork");
    _exit(0);
}

APART static void work(uint32_t number) {
    size_t at = forking ? rng_below(&shadow->partition[number].rng, round_steps) : round_steps;
    size_t collect_every = 1 + rng_below(&shadow->partition[number].rng, 900);
    for (size_t i = 0; i < round_steps; i++) {
        step(number);
        if (i == at) {
            pid_t child = fork();
            if (child == 0)
                child_of(number);
            reap(child, 20, "a child of fork in the middle of the graph");
        }
        if (i % collect_every == collect_every - 1)
            collect();
    }
}

static void enter_slots(uint32_t number, size_t place, void *volatile *words) {
    for (size_t i = 0; i < SLOTS_A_PLACE; i++) {
        words[i] = NULL;
        shadow->partition[number].slot[place * SLOTS_A_PLACE + i].where = disguise(&words[i]);
    }
}

static void *mapping(size_t bytes, int kind) {
    void *found = mmap(NULL, bytes, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);
    CHECK(found != MAP_FAILED, "mmap of %zu bytes: errno %d", bytes, errno);
    return found;
}

static void *worker(void *argument) {
    uint32_t number = (uint32_t)(uintptr_t)argument;
    void *volatile stack_words[SLOTS_A_PLACE];
    enter_slots(number, 0, static_words[number]);
    enter_slots(number, 1, stack_words);
    enter_slots(number, 2, thread_words);
    enter_slots(number, 3, mapping(4096, MAP_PRIVATE));
    enter_slots(number, SHARED_PLACE, mapping(4096, MAP_SHARED));
    table_words[number] = calloc(SLOTS_A_PLACE, number % 2 ? sizeof(void *) : 4096);
    CHECK(table_words[number], "calloc gave null");
    enter_slots(number, 5, table_words[number]);
    for (;;) {
        scrub_stack(SCRUB);
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        if (stopping)
            break;
        /* Another partition in each round: blocks that one thread allocated, another frees. A forked child keeps only
           its own stack. */
        work(forking ? number : (uint32_t)((number + round_number) % workers));
    }
    hidden_pointer((void *)stack_words);
    return NULL;
}

void graph_start(unsigned count, uint64_t seed) {
    CHECK(count >= 1 && count <= PARTITIONS, "1 to %d threads", PARTITIONS);
    workers = count;
    stopping = 0;
    shadow = mapping(sizeof *shadow, MAP_PRIVATE);
    for (uint32_t number = 0; number < count; number++) {
        struct partition *of = &shadow->partition[number];
        of->rng.state = seed * 1000003 + number + 1;
        for (uint32_t id = 0; id < NODES; id++)
            of->free_ids[of->free_count++] = number * NODES + id;
    }
    pthread_barrier_init(&barrier, NULL, count + 1);
    for (uint32_t number = 0; number < count; number++)
        threads[number] = start_thread(worker, (void *)(uintptr_t)number);
    pthread_barrier_wait(&barrier);
}

void graph_round(size_t steps, int forks) {
    round_steps = steps;
    forking = forks;
    round_number++;
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
}

APART void graph_join(size_t links) {
    struct rng *rng = &shadow->partition[0].rng;
    for (size_t i = 0; i < links; i++) {
        uint32_t from, to;
        if (!walk((uint32_t)rng_below(rng, workers), &from) || !walk((uint32_t)rng_below(rng, workers), &to) ||
            !shadow->node[from].links)
            continue;
        set_link(from, (uint32_t)rng_below(rng, shadow->node[from].links), edge_to(rng, to));
    }
}

static void forget_unreachable(void) {
    for (uint32_t id = 0; id < workers * NODES; id++)
        if (shadow->node[id].used && !shadow->node[id].reachable) {
            /* What was not freed is never reclaimed by a guard. */
            if (mode() == GUARD)
                free_block(partition_of(id), id);
            forget(id);
        }
    for (uint32_t number = 0; number < workers; number++)
        shadow->partition[number].population = NODES - shadow->partition[number].free_count;
}

APART void graph_check(const char *when) {
    verify_all(0, workers, when);
    forget_unreachable();
}

size_t graph_bytes(void) {
    size_t sum = 0, count = mark(0, workers);
    for (size_t i = 0; i < count; i++)
        sum += shadow->node[shadow->queue[i]].size;
    return sum;
}

APART static void cut_half(void) {
    mark(0, workers);
    for (uint32_t id = 0; id < workers * NODES; id++)
        shadow->node[id].was_reachable = shadow->node[id].reachable;
    for (uint32_t number = 0; number < workers; number++) {
        struct partition *of = &shadow->partition[number];
        for (size_t i = 0; i < SLOTS; i++)
            if (of->slot[i].edge.target && rng_below(&of->rng, 2))
                set_slot(&of->slot[i], (struct edge){0, 0});
    }
    mark(0, workers);
}

APART struct figures graph_measure(void) {
    struct figures found = {0, 0, 0, 0};
    cut_half();
    scrub_stack(SCRUB);
    collect();
    for (uint32_t id = 0; id < workers * NODES; id++) {
        const struct shadow_node *node = &shadow->node[id];
        if (!node->used || node->reachable || !node->was_reachable)
            continue;
        found.objects++;
        found.bytes += node->size;
        if (is_live(node->address) <= 0)
            continue;
        found.kept_objects++;
        found.kept_bytes += node->size;
        if (found.kept_objects <= 5)
            CHECK(print_why(node->address) > 0 || !reports_chains(), "a block at %p is kept and no chain explains it",
                  undisguise(node->address));
    }
    graph_check("after the collection that was measured");
    return found;
}

void graph_stop(void) {
    stopping = 1;
    pthread_barrier_wait(&barrier);
    for (uint32_t number = 0; number < workers; number++)
        join_thread(threads[number]);
}
