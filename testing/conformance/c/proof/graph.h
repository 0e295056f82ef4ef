/* graph.h: a random graph of blocks in several partitions, one a thread, and a shadow of it that records what is
 * reachable.
 *
 * The shadow lies in mappings of its own and holds only disguised addresses, so that it keeps nothing alive.
 */
#ifndef GRAPH_H
#define GRAPH_H

#include "proof.h"

enum { PARTITIONS = 8, NO_PARTITION = -1 };

struct figures {
    size_t objects, bytes;           /* made unreachable at once */
    size_t kept_objects, kept_bytes; /* of them, kept by a collection */
};

/* Starts `threads` workers, each with a partition of its own, and waits until they are ready. */
void graph_start(unsigned threads, uint64_t seed);
/* Each worker does `steps` steps on a partition, another one in each round; returns when all have stopped. With
 * `forks`, each works on its own partition and forks once, in the middle. */
void graph_round(size_t steps, int forks);
/* While the workers are stopped: make links between partitions; check that every reachable node is intact, and forget
 * the unreachable ones. */
void graph_join(size_t links);
void graph_check(const char *when);
/* Cuts half of the roots without allocating, collects, and counts the dropped nodes that were kept. */
struct figures graph_measure(void);
/* Bytes of the reachable blocks. */
size_t graph_bytes(void);
void graph_stop(void);

#endif
