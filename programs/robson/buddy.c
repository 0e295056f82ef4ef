/* `buddy`: Robson's adversary against managers that round every block up to a power of two (buddies, 4.2BSD's and
 * Boehm's powers of two).
 *
 * Where the general adversary requests 2^i units this one requests half of that and a byte: the manager must give 2^i,
 * and only half of it was requested. The blocks lie as in the general game, but for the first M of one unit there are
 * twice as many of them: the heap has nearly M (log2 n + 1) units. */
#include "adversary.h"

void play_buddy(void) { robson_steps(true); }
