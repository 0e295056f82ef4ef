/* stress.c: random graphs in 1 to 8 threads, with collections at any time. PROOF_THREADS and PROOF_SEED choose one,
 * PROOF_STEPS how far it changes in a round.
 */
#include "graph.h"

#include <stdlib.h>

#include "heaptoll.h"

/* After a collection live blocks are the reachable ones and few others: garbage does not accumulate. */
static void check_census(void) {
    struct heaptoll_census census = {.size = sizeof census};
    if (!collects() || control()->census(&census) != 0)
        return;
    /* Size classes waste up to an eighth, aligned blocks up to their alignment. */
    uint64_t expected = graph_bytes() + graph_bytes() / 4 + ((uint64_t)2 << 20);
    CHECK(census.live_bytes <= expected, "%llu bytes are live where %zu are reachable",
          (unsigned long long)census.live_bytes, graph_bytes());
}

static void stress(size_t rounds, size_t steps, int forks) {
    unsigned threads = (unsigned)setting("PROOF_THREADS", 4);
    graph_start(threads, setting("PROOF_SEED", 1));
    for (size_t round = 0; round < rounds; round++) {
        graph_round(steps, forks && round > 0);
        graph_check("after a round");
        graph_join(100);
        collect();
        graph_check("after a collection");
        if (round % 2 == 0)
            continue;
        struct figures found = graph_measure();
        check_census();
        check_heap("while the threads are stopped");
        if (collects() && reports_live())
            note("dropped %zu objects %zu bytes, kept %zu objects %zu bytes", found.objects, found.bytes,
                 found.kept_objects, found.kept_bytes);
    }
    graph_stop();
}

CASE(PLAIN, stress_graph, "random graphs: nothing reachable is lost, unreachable blocks are reclaimed") {
    stress(effort(16, 6), setting("PROOF_STEPS", effort(4000, 1500)), 0);
}

CASE(PLAIN, stress_fork, "the same while every thread forks in the middle of its work") {
    stress(effort(8, 4), effort(2000, 800), 1);
}
