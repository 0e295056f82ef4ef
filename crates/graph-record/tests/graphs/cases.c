/* Programs whose graphs are known, one after the other. Every block has a size of its own, by which the test names it:
 * the case's number times 1000, and 8 times the block's number in it. Nothing is freed unless the case is about that. */
#define _GNU_SOURCE
#include <immintrin.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define SIZE(a_case, block) ((a_case)*1000 + 8 * (block))
#define BLOCK(a_case, block) kept(malloc(SIZE(a_case, block)))

/* So that the compiler leaves out no store to a block that nothing reads. */
static void *volatile last;

static void **kept(void *block)
{
   last = block;
   return block;
}

/* The compiler must make each store, and none of its own. */
#define STORE(type, place, value) (*(volatile type *)(place) = (value))

static void plain(void)
{
   void **a = BLOCK(1, 1), **b = BLOCK(1, 2), **c = BLOCK(1, 3);
   STORE(void *, &a[0], b);
   STORE(void *, &a[1], c);
   STORE(void *, &a[1], b);          /* another pointer */
   STORE(void *, &b[2], (char *)c + 5); /* an interior one */
   STORE(void *, &c[0], a);
   STORE(void *, &c[0], NULL);       /* none any more */
   STORE(void *, &c[1], c);          /* to itself */
   STORE(void *, &c[2], (char *)b + SIZE(1, 2)); /* the end is outside */
}

static void parts(void)
{
   void **a = BLOCK(2, 1), **b = BLOCK(2, 2);
   for (int i = 0; i < 6; i++)
      STORE(void *, &a[i], b);
   STORE(uint8_t, a, 1);                        /* the lowest byte */
   STORE(uint8_t, (char *)&a[1] + 7, 1);        /* the highest */
   STORE(uint16_t, (char *)&a[2] + 3, 1);       /* in the middle */
   STORE(uint32_t, (char *)&a[3] + 6, 0x10001); /* across two words */
   /* a[5]: bytes that it has already */
   STORE(uint8_t, &a[5], (uint8_t)(uintptr_t)b);
   /* A pointer byte for byte, and half by half. */
   for (int i = 0; i < 8; i++)
      STORE(uint8_t, (char *)&a[8] + i, (uint8_t)((uintptr_t)b >> 8 * i));
   STORE(uint32_t, &a[9], (uint32_t)(uintptr_t)b);
   STORE(uint32_t, (char *)&a[9] + 4, (uint32_t)((uintptr_t)b >> 32));
   /* Not aligned: no edge. */
   STORE(void *, (char *)&a[11] + 4, b);
}

__attribute__((target("avx2"))) static void vectors(void)
{
   void **a = BLOCK(3, 1), **b = BLOCK(3, 2), **c = BLOCK(3, 3);
   void *two[2] = { b, c }, *four[4] = { b, NULL, c, (char *)b + 1 };
   const __m128i pair = _mm_loadu_si128((const __m128i *)two);
   const __m256i quad = _mm256_loadu_si256((const __m256i *)four);
   _mm_storeu_si128((__m128i *)&a[0], pair);
   _mm256_storeu_si256((__m256i *)&a[4], quad);
   _mm256_storeu_si256((__m256i *)&a[8], quad);
   _mm_storeu_si128((__m128i *)&a[9], _mm_setzero_si128());
   /* At an odd address: over a[13] to a[15], wholly only a[14]. */
   STORE(void *, &a[13], b);
   STORE(void *, &a[15], b);
   _mm_storeu_si128((__m128i *)((char *)&a[13] + 4), _mm_set1_epi32(7));
}

static void copies(void)
{
   void **a = BLOCK(4, 1), **b = BLOCK(4, 2), **c = BLOCK(4, 3), **d = BLOCK(4, 4);
   void **large = BLOCK(4, 64), **copy = BLOCK(4, 65);
   for (int i = 0; i < 20; i++)
      STORE(void *, &a[i], i % 2 ? (void *)b : (void *)((char *)c + i));
   memcpy(d, a, 5 * sizeof(void *));
   memcpy(&d[6], a, 20);            /* two and a half */
   memmove(&a[1], &a[0], 6 * sizeof(void *));
   memset(&a[10], 0, 10 * sizeof(void *));
   memset((char *)&a[8] + 1, 0, 2); /* a part of one */
   for (int i = 0; i < 500; i++)
      STORE(void *, &large[i], i % 3 ? NULL : (void *)c);
   memcpy(copy, large, 500 * sizeof(void *));
   memset(large, 0, 500 * sizeof(void *));
}

static void system_calls(void)
{
   int pipes[2], sockets[2];
   void **a = BLOCK(5, 1), **b = BLOCK(5, 2), **c = BLOCK(5, 3);
   for (int i = 0; i < 12; i++)
      STORE(void *, &a[i], b);
   void *sent[2] = { c, (void *)1 };
   if (pipe(pipes) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0)
      abort();
   /* Over a[0] a pointer, over a[1] none. */
   if (write(pipes[1], sent, sizeof sent) != sizeof sent || read(pipes[0], a, sizeof sent) != sizeof sent)
      abort();
   /* Three bytes of a[3]. */
   if (write(pipes[1], "abc", 3) != 3 || read(pipes[0], (char *)&a[3] + 2, 100) != 3)
      abort();
   if (send(sockets[0], "0123456789abcdef", 16, 0) != 16 || recv(sockets[1], &a[5], 16, 0) != 16)
      abort();
   struct iovec to = { &a[8], 8 };
   if (write(pipes[1], "01234567", 8) != 8 || readv(pipes[0], &to, 1) != 8)
      abort();
}

static void grows(void)
{
   void **b = BLOCK(6, 2), **c = BLOCK(6, 3);
   void **a = BLOCK(6, 1);
   STORE(void *, &a[0], b);
   STORE(void *, &a[3], (char *)c + 16);
   STORE(void *, &a[4], a);
   STORE(void *, &b[0], a);
   BLOCK(6, 4); /* in the way */
   a = kept(realloc(a, SIZE(6, 120))); /* moves: what pointed to the old block dangles */
   STORE(void *, &a[7], b);
   /* At the top of the heap it grows in place: what points to it still does. */
   void **top = BLOCK(6, 5);
   STORE(void *, &top[1], (char *)top + 8);
   STORE(void *, &c[1], (char *)top + 24);
   top = kept(realloc(top, SIZE(6, 6)));
   /* It shrinks: the last word is cut off. */
   void **shrunk = BLOCK(6, 100);
   STORE(void *, &shrunk[2], b);
   STORE(void *, &shrunk[800], b);
   shrunk = kept(realloc(shrunk, SIZE(6, 7)));
}

static void remapped(void)
{
   enum { LARGE = 1 << 20 };
   mallopt(M_MMAP_THRESHOLD, 128 << 10);
   void **b = BLOCK(7, 2);
   void **a = kept(malloc(LARGE));
   STORE(void *, &a[1], b);
   STORE(void *, &a[LARGE / 8 - 1], b);
   STORE(void *, &b[0], a);
   /* Its mapping grows by mremap, and moves, for below it is another and above as well. */
   void **below = kept(malloc(LARGE));
   a = kept(realloc(a, 16 * LARGE));
   STORE(void *, &b[1], a);
   STORE(void *, &a[2 * LARGE / 8], b);
   STORE(void *, &below[0], NULL);
}

static void **shared, **target;

static void *thread(void *unused)
{
   (void)unused;
   void **mine = BLOCK(8, 3);
   STORE(void *, &shared[1], mine);
   STORE(void *, &mine[2], target);
   STORE(void *, &shared[2], NULL);
   return NULL;
}

static void threads(void)
{
   pthread_t one;
   shared = BLOCK(8, 1), target = BLOCK(8, 2);
   STORE(void *, &shared[0], target);
   STORE(void *, &shared[2], target);
   if (pthread_create(&one, NULL, thread, NULL) != 0 || pthread_join(one, NULL) != 0)
      abort();
   STORE(void *, &target[0], shared[1]);
}

static void recycled(void)
{
   void **a = BLOCK(9, 1), **b = BLOCK(9, 2), **c = BLOCK(9, 3);
   STORE(void *, &a[5], b);
   STORE(void *, &c[0], a);
   STORE(void *, &c[1], b);
   free(a);
   /* The same memory, with the stale words; c[0] dangles and then holds the address of another object. */
   void **again = BLOCK(9, 1);
   if (again != a)
      abort();
   STORE(void *, &again[6], c);
   STORE(void *, &c[2], again);
   /* Zeroed memory. */
   free(again);
   void **zeroed = kept(calloc(1, SIZE(9, 1)));
   STORE(void *, &zeroed[7], b);
}

static void aligned(void)
{
   void **a = BLOCK(10, 1);
   if (posix_memalign(&a[1], 64, SIZE(10, 2)) != 0)
      abort();
   a[0] = aligned_alloc(64, SIZE(10, 8));
}

int main(void)
{
   plain();
   parts();
   vectors();
   copies();
   system_calls();
   grows();
   remapped();
   threads();
   recycled();
   aligned();
   return 0;
}
