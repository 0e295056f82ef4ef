/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Sets of ranges of addresses.
 */
#include "ranges.h"

void ht_ranges_add(HtRanges *all, Addr start, Addr end)
{
   for (UInt i = 0; i < all->used && !all->apart; i++)
      if (all->ranges[i].start <= end && start <= all->ranges[i].end) {
         /* They touch: what they make together may touch others. */
         if (all->ranges[i].start < start)
            start = all->ranges[i].start;
         if (all->ranges[i].end > end)
            end = all->ranges[i].end;
         all->ranges[i] = all->ranges[--all->used];
         i = (UInt)-1;
      }
   if (all->used == all->capacity) {
      all->capacity = all->capacity == 0 ? 64 : 2 * all->capacity;
      all->ranges = VG_(realloc)("ht.roots.ranges", all->ranges, all->capacity * sizeof(HtRange));
   }
   all->ranges[all->used++] = (HtRange){ start, end };
}

void ht_ranges_take(HtRanges *all, Addr start, Addr end)
{
   for (UInt i = 0; i < all->used; i++) {
      const HtRange old = all->ranges[i];
      if (end <= old.start || old.end <= start)
         continue;
      all->ranges[i] = all->ranges[--all->used];
      if (old.start < start)
         ht_ranges_add(all, old.start, start);
      if (end < old.end)
         ht_ranges_add(all, end, old.end);
      /* Their order may be another. What is left of this one does not overlap, so that ends. */
      i = (UInt)-1;
   }
}

Bool ht_ranges_outside(const HtRanges *all, Addr *start, Addr *end)
{
   Bool moved = True;
   while (moved) {
      moved = False;
      for (UInt i = 0; i < all->used; i++)
         if (all->ranges[i].start <= *start && *start < all->ranges[i].end) {
            *start = all->ranges[i].end;
            moved = True;
         }
   }
   for (UInt i = 0; i < all->used; i++)
      if (*start < all->ranges[i].start && all->ranges[i].start < *end)
         *end = all->ranges[i].start;
   return *start < *end;
}

const HtRange *ht_ranges_find(const HtRanges *all, Addr address)
{
   static UInt last;
   if (last < all->used && all->ranges[last].start <= address && address < all->ranges[last].end)
      return &all->ranges[last];
   for (UInt i = 0; i < all->used; i++)
      if (all->ranges[i].start <= address && address < all->ranges[i].end) {
         last = i;
         return &all->ranges[i];
      }
   return NULL;
}

Bool ht_ranges_contains(const HtRanges *all, Addr address)
{
   return ht_ranges_find(all, address) != NULL;
}
