/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A program that shows which path a memory manager takes: it allocates blocks of many sizes, on several threads one
 * after another, beyond every limit that a tracer may set, and prints their addresses within their pages. A manager
 * that places them differently under the tracer than natively has taken another path.
 *
 * With an argument it starts no threads. Status: 0; 1: a call failed; 2: a block had changed.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Blocks of one step. */
#define BLOCKS 200
/* Bytes of small blocks allocated at once: more than the 8 MB of brk that Valgrind allows. */
#define MANY (12u << 20)
#define MANY_BLOCK 9000u

static void *blocks[MANY / MANY_BLOCK];

static uint64_t state = 88172645463325252u;

/* Marsaglia, Xorshift RNGs, 2003. */
static uint64_t draw(void)
{
   state ^= state << 13;
   state ^= state >> 7;
   state ^= state << 17;
   return state;
}

/* Fowler, Noll and Vo's 1a over the addresses of blocks within their pages. */
typedef struct {
   uint64_t hash;
} Places;

static void place(Places *places, const void *block)
{
   if (!block)
      _exit(1);
   places->hash = (places->hash ^ ((uintptr_t)block & 4095)) * 0x100000001b3u;
}

static void print_step(const char *step, Places places)
{
   /* Not printf, which allocates. */
   char line[64];
   int length = snprintf(line, sizeof line, "%s %016llx\n", step, (unsigned long long)places.hash);
   if (write(1, line, length) != length)
      _exit(1);
}

static const Places fresh = {0xcbf29ce484222325u};

/* Blocks of up to 2 KB, allocated and freed in random order. */
static void *small(void *step)
{
   Places places = fresh;
   static void *taken[BLOCKS];
   memset(taken, 0, sizeof taken);
   for (int i = 0; i < 3 * BLOCKS; i++) {
      uint64_t drawn = draw();
      unsigned at = drawn % BLOCKS;
      size_t size = 1 + (drawn >> 20) % (drawn >> 12 & 1 ? 128 : 2048);
      if (taken[at]) {
         if (*(unsigned char *)taken[at] != at % 251)
            _exit(2);
         free(taken[at]);
         taken[at] = NULL;
      } else {
         place(&places, taken[at] = malloc(size));
         *(unsigned char *)taken[at] = at % 251;
      }
   }
   for (int i = 0; i < BLOCKS; i++)
      free(taken[i]);
   print_step(step, places);
   return NULL;
}

static void many(void)
{
   Places places = fresh;
   unsigned count = MANY / MANY_BLOCK;
   for (unsigned i = 0; i < count; i++) {
      place(&places, blocks[i] = malloc(MANY_BLOCK));
      *(unsigned *)blocks[i] = i;
   }
   for (unsigned i = 0; i < count; i++) {
      if (*(unsigned *)blocks[i] != i)
         _exit(2);
      free(blocks[i]);
   }
   print_step("many", places);
}

static void large(void)
{
   Places places = fresh;
   static const size_t sizes[] = {20000, 70000, 200000, 1 << 20, 5 << 20, 40 << 20};
   for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      char *block = malloc(sizes[i]);
      place(&places, block);
      block[sizes[i] - 1] = 1;
      place(&places, block = realloc(block, sizes[i] + sizes[i] / 2));
      if (block[sizes[i] - 1] != 1)
         _exit(2);
      free(block);
   }
   print_step("large", places);
}

static void aligned(void)
{
   Places places = fresh;
   for (size_t alignment = 16; alignment <= 16384; alignment *= 4) {
      void *block = NULL;
      if (posix_memalign(&block, alignment, 3 * alignment / 2) != 0)
         _exit(1);
      if ((uintptr_t)block % alignment)
         _exit(2);
      place(&places, block);
      free(block);
      place(&places, block = calloc(alignment, 3));
      for (size_t i = 0; i < 3 * alignment; i++)
         if (((char *)block)[i])
            _exit(2);
      free(block);
   }
   print_step("aligned", places);
}

int main(int count, char **arguments)
{
   static char *const names[] = {"thread1", "thread2", "thread3"};
   small("small");
   many();
   large();
   aligned();
   (void)arguments;
   for (int i = 0; count == 1 && i < 3; i++) {
      pthread_t thread;
      if (pthread_create(&thread, NULL, small, names[i]) != 0 || pthread_join(thread, NULL) != 0)
         return 1;
   }
   small("after");
   return 0;
}
