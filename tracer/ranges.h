/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Sets of ranges of addresses.
 */
#ifndef HT_RANGES_H
#define HT_RANGES_H

#include "core.h"

typedef struct {
   Addr start, end;
} HtRange;

/* Not in order: they are few. */
typedef struct {
   HtRange *ranges;
   UInt used, capacity;
   Bool apart; /* ranges that touch are not joined */
} HtRanges;

void ht_ranges_add(HtRanges *all, Addr start, Addr end);
void ht_ranges_take(HtRanges *all, Addr start, Addr end);
/* The first part of the range from `start` to `end` that none of them has; False if there is none. */
Bool ht_ranges_outside(const HtRanges *all, Addr *start, Addr *end);
/* The range that has this address; NULL if none has. */
const HtRange *ht_ranges_find(const HtRanges *all, Addr address);
Bool ht_ranges_contains(const HtRanges *all, Addr address);

#endif
