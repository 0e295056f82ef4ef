/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Reads the rings of process images that have ended and were so short that no block was needed twice, and prints their
 * content, a line for each:
 *
 *   malloc RETURNED ABANDONED calloc RETURNED threads N end STATUS exec X depth D references yes|no
 *
 * STATUS is - if no end was recorded; D is 0 if every call was left. Status 1 if a word has no known kind.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long ULong;
#include "../words.h"

enum { KINDS = HT_WAITED + 1 };
enum { HEADER = 4096, BLOCK = 32768, BLOCKS = 16 };

static uint64_t ring[HEADER / 8 + BLOCK * BLOCKS];
static unsigned kinds[KINDS], left[HT_ROUTINES], abandoned[HT_ROUTINES];
static unsigned long loads, stores;
static char status[16];

static size_t following(unsigned kind, uint64_t payload)
{
   static const unsigned char words[KINDS] = {
      [HT_ENTER] = 5,     [HT_LEAVE] = 3,       [HT_ABANDON] = 2,      [HT_SIGNAL] = 2,     [HT_SIGNAL_END] = 2,
      [HT_ANNOUNCED] = 3, [HT_MAP] = 2,         [HT_UNMAP] = 2,        [HT_PROTECT] = 2,    [HT_KERNEL_LOAD] = 1,
      [HT_TICK] = 2,      [HT_KERNEL_STORE] = 1, [HT_THREAD_START] = 1, [HT_THREAD_END] = 2, [HT_EXEC] = 2,
      [HT_END] = 2,       [HT_MAIN] = 2,        [HT_WORD_AT] = 1,
   };
   switch (kind) {
   case HT_SITE_DEFINITION:
      return payload & 0xff;
   case HT_TEXT:
      return 1 + ((payload & 0xffffffff) + 7) / 8;
   case HT_SKIP:
      return payload;
   default:
      return words[kind];
   }
}

/* Status 1: a word without a known kind. */
static int read_block(const uint64_t *words)
{
   for (size_t at = 0; at < BLOCK && words[at] != 0; at++) {
      const uint64_t word = words[at], payload = word & HT_PAYLOAD;
      if ((word & HT_EVENT) == 0) {
         *(word & HT_STORE ? &stores : &loads) += 1;
         continue;
      }
      const unsigned kind = (word & ~HT_EVENT) >> HT_KIND_SHIFT;
      if (kind >= KINDS)
         return 1;
      kinds[kind]++;
      if (kind == HT_LEAVE)
         left[payload & 0xff]++;
      if (kind == HT_END)
         snprintf(status, sizeof status, "%u", (unsigned)payload);
      if (kind == HT_ABANDON)
         abandoned[payload]++;
      at += following(kind, payload);
   }
   return 0;
}

static int read_ring(const char *path)
{
   FILE *const file = fopen(path, "rb");
   if (file == NULL || fread(ring, 1, sizeof ring, file) != sizeof ring || memcmp(ring, "HTREFS01", 8) != 0) {
      fprintf(stderr, "%s: not a ring\n", path);
      return 1;
   }
   fclose(file);
   memset(kinds, 0, sizeof kinds), memset(left, 0, sizeof left), memset(abandoned, 0, sizeof abandoned);
   loads = stores = 0;
   strcpy(status, "-");
   const uint64_t published = ring[8];
   for (uint64_t block = 0; block <= published && block < BLOCKS; block++)
      if (read_block(ring + HEADER / 8 + block * BLOCK) != 0) {
         fprintf(stderr, "%s: an unknown word in block %lu\n", path, (unsigned long)block);
         return 1;
      }
   unsigned depth = kinds[HT_ENTER];
   for (unsigned routine = 0; routine < HT_ROUTINES; routine++)
      depth -= left[routine] + abandoned[routine];
   printf("%s malloc %u %u calloc %u threads %u end %s exec %u depth %u references %s\n", (const char *)ring + 512,
          left[HT_MALLOC], abandoned[HT_MALLOC] + abandoned[HT_CALLOC], left[HT_CALLOC], kinds[HT_THREAD_START],
          status, kinds[HT_EXEC], depth, loads + stores > 0 ? "yes" : "no");
   return 0;
}

int main(int count, char **paths)
{
   int result = 0;
   for (int i = 1; i < count; i++)
      result |= read_ring(paths[i]);
   return result;
}
