/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Root points. They are recorded when a block was returned, so no routine of the thread that runs is under way, and
 * where the program ends (where exit begins, before handlers and destructors): what is lost is decided there. Words whose value lies in the range of the heap are recorded, one event each; which of them lead to live blocks, the
 * consumer knows.
 *
 * A manager's own memory is left out: its tables know every block. That is what its routines map, what contains a block,
 * the data of the object that replaces malloc, and glibc's arena in the data of the C library. Pages that are not in memory hold nothing and are left out as well,
 * so that reservations of gigabytes cost little.
 */
#include "roots.h"

#include "call.h"
#include "guest.h"
#include "options.h"
#include "ranges.h"
#include "ring.h"
#include "routine.h"
#include "thread.h"

/* Of the core, not in its public headers: the auxiliary vector, which lies at the end of the first thread's stack. */
extern UWord *VG_(client_auxv);

/* Bytes below the stack pointer that a function may use. */
#if defined(VGA_amd64)
#define RED_ZONE 128
#else
#define RED_ZONE 0
#endif

/* Without --roots-every points begin at this distance, bytes, which doubles after each MOST_AT_ONE of them: so every run
 * that allocates more than MOST_AT_ONE times the first distance has that many, and a long one some hundreds. */
enum { FIRST_DISTANCE = 1024, MOST_AT_ONE = 128 };

/* ---- Whose memory it is ---- */

/* The core joins neighbouring segments: `made` has the mappings as system calls made them, but for managers', and `given`
 * those that pthread_create made for stacks. In `divided` ones coroutines have parts. `results` are the descriptors of
 * threads that have ended, whose results no thread has taken yet. */
static HtRanges managers, made = { .apart = True }, given = { .apart = True }, dead_stacks, living_stacks, divided;
static HtRanges results = { .apart = True };

/* Whether the system call under way is made by pthread_create, which maps a stack with the thread's own data at its end. */
static Bool by_thread_creation(ThreadId tid)
{
   Addr frames[3];
   const UInt count = VG_(get_StackTrace)(tid, frames, 3, NULL, NULL, 0);
   for (UInt i = 1; i < count; i++) {
      const HChar *name;
      if (VG_(get_fnname)(VG_(current_DiEpoch)(), frames[i], &name) && VG_(strstr)(name, "pthread_create") != NULL)
         return True;
   }
   return False;
}

static void forget(Addr start, Addr end)
{
   ht_ranges_take(&managers, start, end);
   ht_ranges_take(&made, start, end);
   ht_ranges_take(&given, start, end);
   ht_ranges_take(&dead_stacks, start, end);
   ht_ranges_take(&divided, start, end);
   ht_ranges_take(&results, start, end);
}

void ht_roots_mapped(Addr address, SizeT length)
{
   if (!ht_options.graph)
      return;
   const ThreadId tid = VG_(get_running_tid)();
   const Addr start = VG_PGROUNDDN(address), end = VG_PGROUNDUP(address + length);
   forget(address, address + length);
   if (tid != VG_INVALID_THREADID && ht_thread_in_routine(tid)) {
      ht_ranges_add(&managers, start, end);
      return;
   }
   ht_ranges_add(&made, start, end);
   if (tid != VG_INVALID_THREADID && by_thread_creation(tid))
      ht_ranges_add(&given, start, end);
}

void ht_roots_unmapped(Addr address, SizeT length)
{
   if (ht_options.graph)
      forget(address, address + length);
}

/* The address from which a thread's stack is not dead when it has ended: its descriptor, which has the result until the
 * thread is joined. */
static Addr descriptor(ThreadId tid)
{
   HtGuest guest;
   VG_(get_shadow_regs_area)(tid, (UChar *)&guest, 0, 0, sizeof guest);
#if defined(VGA_amd64)
   return guest.guest_FS_CONST;
#else
   /* It lies before the thread pointer, and its length is the C library's secret. */
   return guest.guest_XSP;
#endif
}

/* Where a descriptor has the number of its thread, from its beginning; 0: not known. The kernel sets it to 0 when the thread
 * ends, and the C library to -1 when another has joined it. */
static UInt number_at;

/* The descriptor of a thread that has been detached has its own address once more, behind its head. */
enum { DESCRIPTOR_HEAD = 0x20, DESCRIPTOR_MOST = 0x800, JOINED = -1 };

static void find_number(Addr start, Addr end)
{
   for (Addr at = start; number_at == 0 && at + sizeof(Int) <= end && at < start + DESCRIPTOR_MOST; at += sizeof(Int))
      if (*(const Int *)at == VG_(gettid)())
         number_at = at - start;
}

static Bool is_result_taken(Addr start, Addr end)
{
   if (number_at != 0 && *(const Int *)(start + number_at) == JOINED)
      return True;
   for (Addr at = start + DESCRIPTOR_HEAD; at + sizeof(Addr) <= end && at < start + DESCRIPTOR_MOST; at += sizeof(Addr))
      if (*(const Addr *)at == start)
         return True;
   return False;
}

/* What no thread can take any more is as dead as the rest of the stack. */
static void leave_taken_results(void)
{
   for (UInt i = results.used; i > 0; i--) {
      const HtRange one = results.ranges[i - 1];
      if (is_result_taken(one.start, one.end)) {
         ht_ranges_take(&results, one.start, one.end);
         ht_ranges_add(&dead_stacks, one.start, one.end);
      }
   }
}

static Bool begins_with(const HChar *text, const HChar *start)
{
   return VG_(strncmp)(text, start, VG_(strlen)(start)) == 0;
}

static const HChar *name_of(const HChar *path)
{
   const HChar *const slash = VG_(strrchr)(path, '/');
   return slash == NULL ? path : slash + 1;
}

static Bool is_c_library(const HChar *path)
{
   const HChar *const name = name_of(path);
   return begins_with(name, "libc.") || begins_with(name, "libc-");
}

/* Whether this file is a library that replaces malloc. The C library's own data are scanned as well: the program's
 * streams and its environment are there. */
static Bool is_manager(const HChar *path)
{
   if (is_c_library(path) || VG_(strstr)(name_of(path), ".so") == NULL)
      return False;
   for (const DebugInfo *info = VG_(next_DebugInfo)(NULL); info != NULL; info = VG_(next_DebugInfo)(info)) {
      const HChar *const of = VG_(DebugInfo_get_filename)(info);
      if (of != NULL && VG_STREQ(of, path))
         return ht_routine_has_malloc(info);
   }
   return False;
}

static ULong heap_low;
static ULong heap_length;

/* glibc's first arena (struct malloc_state) lies in the data of the C library, among what the program reaches. Its words
 * lead to the headers of free chunks, and a header begins in the last word of the block before it. It is recognised by
 * its bins, two words each: those of an empty bin lead to the address two words before them. */
enum { BINS = 127, BIN = 2 * sizeof(ULong), FEWEST_EMPTY = 16, BEFORE_BINS = 104, AFTER_BINS = 16 };

static Bool is_empty_bin(Addr bin)
{
   const ULong *const words = (const ULong *)bin;
   return words[0] == bin - BIN && words[1] == bin - BIN;
}

/* Whether the word before the bins and the one before that are the last remainder and the top chunk, which ends with a
 * page: so the bins begin here and not later. */
static Bool follows_top(Addr bins)
{
   const ULong top = *(const ULong *)(bins - BIN);
   if (top == bins - BIN)
      return True;
   return top - heap_low < heap_length + VKI_PAGE_SIZE && top % BIN == 0 &&
          VG_(am_is_valid_for_client)(top, BIN, VKI_PROT_READ) &&
          VG_IS_PAGE_ALIGNED(top + (((const ULong *)top)[1] & ~(ULong)7));
}

static void find_arena(Addr start, Addr end)
{
   for (Addr first = start + BEFORE_BINS; first + BINS * BIN <= end; first += sizeof(ULong)) {
      UInt empty = 0;
      if (!is_empty_bin(first))
         continue;
      for (UInt i = 0; i < BINS; i++)
         empty += is_empty_bin(first + i * BIN);
      if (empty < FEWEST_EMPTY)
         continue;
      for (Addr bins = first; bins >= start + BEFORE_BINS && first - bins < BINS * BIN; bins -= BIN)
         if (follows_top(bins)) {
            const Addr arena_end = bins + BINS * BIN + AFTER_BINS;
            ht_ranges_add(&managers, bins - BEFORE_BINS, arena_end < end ? arena_end : end);
            return;
         }
      return;
   }
}

/* ---- The scan ---- */

/* Values recorded last at this point: the same value is often there many times. */
enum { RECENT = 4096 };
static ULong recent[RECENT];

static void value(ULong word, UInt kind)
{
   if (word - heap_low >= heap_length)
      return;
   const ULong payload = word | (ULong)kind << HT_SIZE_SHIFT;
   ULong *const slot = &recent[(word >> 3 ^ word >> 15 ^ kind) % RECENT];
   if (*slot == payload)
      return;
   *slot = payload;
   ht_ring_event(HT_ROOT, payload, NULL, 0);
}

static void words(Addr start, Addr end, UInt kind)
{
   for (const ULong *word = (const ULong *)VG_ROUNDUP(start, sizeof(ULong)); (Addr)(word + 1) <= end; word++)
      value(*word, kind);
}

enum { PIECE_PAGES = 1024 };

/* Scans the pages of a range that are in memory. */
static void range(Addr start, Addr end, UInt kind)
{
   static UChar there[PIECE_PAGES];
   while (start < end) {
      const Addr first = VG_PGROUNDDN(start);
      const Addr stop = end - first > PIECE_PAGES * VKI_PAGE_SIZE ? first + PIECE_PAGES * VKI_PAGE_SIZE : end;
      if (sr_isError(HT_SYSCALL(__NR_mincore, first, VG_PGROUNDUP(stop) - first, there, 0, 0, 0)))
         return;
      for (Addr page = first; page < stop; page += VKI_PAGE_SIZE)
         if (there[(page - first) / VKI_PAGE_SIZE] & 1)
            words(page < start ? start : page, page + VKI_PAGE_SIZE < stop ? page + VKI_PAGE_SIZE : stop, kind);
      start = stop;
   }
}

typedef struct {
   Addr sp;
   Addr low, high; /* of its stack in use */
} Stack;

/* The mapping of the stack that this pointer is in, if nothing else lies in it: that of the first thread, or one that
 * pthread_create made. Empty for others, such as coroutines' and those that a program gives its threads: what they share a
 * mapping with is not known. */
static HtRange bounds_of_stack(Addr sp)
{
   const HtRange *const block = ht_ranges_find(&given, sp);
   const NSegment *const segment = VG_(am_find_nsegment)(sp);
   const Addr first = (Addr)VG_(client_auxv);
   if (block != NULL)
      return *block;
   if (segment != NULL && segment->start <= first && first <= segment->end)
      return (HtRange){ segment->start, segment->end + 1 };
   return (HtRange){ 0, 0 };
}

void ht_roots_switched(Addr from, Addr to)
{
   const HtRange stack = bounds_of_stack(to);
   if (stack.start <= from && from < stack.end)
      ht_ranges_add(&divided, stack.start, stack.end);
}

void ht_roots_thread_ended(ThreadId tid, Bool exits)
{
   if (!ht_options.graph)
      return;
   const Addr sp = VG_(get_SP)(tid);
   const HtRange stack = bounds_of_stack(sp);
   const Addr end = exits && ht_ranges_contains(&given, sp) ? descriptor(tid) : ht_ranges_contains(&divided, sp) ? 0 : sp - RED_ZONE;
   if (stack.start < end && end < stack.end) {
      ht_ranges_add(&dead_stacks, stack.start, end);
#if defined(VGA_amd64)
      if (exits && ht_ranges_contains(&given, sp)) {
         find_number(end, stack.end);
         /* It may have the stack of one that was joined since the last point. */
         ht_ranges_take(&dead_stacks, end, stack.end);
         ht_ranges_take(&results, end, stack.end);
         ht_ranges_add(&results, end, stack.end);
      }
#endif
   }
   if (exits)
      ht_ranges_take(&divided, stack.start, stack.end);
}

/* The next thread that lives: what has ended has no stack and no registers. */
static Bool next_thread(ThreadId *tid)
{
   Addr low, high;
   while (VG_(thread_stack_next)(tid, &low, &high))
      if (ht_thread_lives(*tid))
         return True;
   return False;
}

/* The stacks of all threads; returns how many. Nothing is below the pointer of the one that is `between` two functions. */
static UInt find_stacks(Stack **found, ThreadId between)
{
   living_stacks.used = 0;
   static Stack *stacks;
   static UInt capacity;
   UInt used = 0;
   ThreadId tid;
   VG_(thread_stack_reset_iter)(&tid);
   while (next_thread(&tid)) {
      if (used == capacity) {
         capacity = capacity == 0 ? 16 : 2 * capacity;
         stacks = VG_(realloc)("ht.roots.stacks", stacks, capacity * sizeof(Stack));
      }
      const Addr sp = VG_(get_SP)(tid);
      const HtRange bounds = bounds_of_stack(sp);
      Stack *const stack = &stacks[used++];
      *stack = (Stack){ .sp = sp };
      if (bounds.start == bounds.end)
         continue;
      const Addr low = ht_ranges_contains(&divided, sp) ? bounds.start : tid == between ? sp : sp - RED_ZONE;
      stack->low = low < bounds.start ? bounds.start : low;
      stack->high = bounds.end;
      ht_ranges_take(&dead_stacks, bounds.start, bounds.end);
      ht_ranges_take(&results, bounds.start, bounds.end);
      ht_ranges_add(&living_stacks, bounds.start, bounds.end);
   }
   *found = stacks;
   return used;
}

/* Where a thread is at a root point. */
typedef enum {
   BETWEEN,  /* at the return of a routine, or where it calls exit: only those registers count that a function keeps, and
                its result */
   RUNNING,  /* anywhere */
   ENDING    /* at its end: it computes no more, and what is in its vectors is what was copied last */
} Where;

static void registers(ThreadId tid, Where where)
{
   HtGuest guest;
   VG_(get_shadow_regs_area)(tid, (UChar *)&guest, 0, 0, sizeof guest);
#if defined(VGA_amd64)
   const ULong kept[] = { guest.guest_RAX, guest.guest_RBX, guest.guest_RBP, guest.guest_RSP,
                          guest.guest_R12, guest.guest_R13, guest.guest_R14, guest.guest_R15 };
   const ULong others[] = { guest.guest_RCX, guest.guest_RDX, guest.guest_RSI, guest.guest_RDI,
                            guest.guest_R8,  guest.guest_R9,  guest.guest_R10, guest.guest_R11 };
   const Addr vectors = (Addr)&guest.guest_YMM0, vectors_end = (Addr)(&guest.guest_YMM15 + 1);
#else
   const ULong *const first = (const ULong *)&guest.guest_X0;
   ULong kept[13], others[19];
   for (UInt i = 0; i < 13; i++)
      kept[i] = i == 0 ? first[0] : first[18 + i];
   for (UInt i = 0; i < 19; i++)
      others[i] = first[i];
   const Addr vectors = (Addr)&guest.guest_Q0, vectors_end = (Addr)(&guest.guest_Q31 + 1);
#endif
   for (UInt i = 0; i < sizeof kept / sizeof *kept; i++)
      value(kept[i], HT_ROOT_REGISTER);
   if (where == BETWEEN)
      return;
   for (UInt i = 0; i < sizeof others / sizeof *others; i++)
      value(others[i], HT_ROOT_REGISTER);
   if (where == RUNNING)
      words(vectors, vectors_end, HT_ROOT_REGISTER);
}

/* Scans a segment but for what is a stack, or the manager's. */
static void scan_segment(const NSegment *segment, UInt kind)
{
   Addr start = segment->start;
   while (start <= segment->end) {
      Addr end = segment->end + 1;
      if (!ht_ranges_outside(&managers, &start, &end))
         return;
      if (!ht_ranges_outside(&dead_stacks, &start, &end) || !ht_ranges_outside(&living_stacks, &start, &end)
          || ht_ranges_contains(&managers, start) || ht_ranges_contains(&dead_stacks, start))
         continue;
      range(start, end, kind);
      start = end;
   }
}

/* Writable memory besides the stacks: data of the program and its libraries, and mappings. Memory without a file that
 * follows an object's data at once is that object's too. */
static void memory(void)
{
   static Addr *starts;
   static Int capacity = 1024;
   Int used;
   if (starts == NULL)
      starts = VG_(malloc)("ht.roots.segments", capacity * sizeof(Addr));
   while ((used = VG_(am_get_segment_starts)(SkFileC | SkAnonC | SkShmC, starts, capacity)) < 0) {
      capacity = -used;
      starts = VG_(realloc)("ht.roots.segments", starts, capacity * sizeof(Addr));
   }
   Addr object_end = 0;
   Bool of_manager = False;
   for (Int i = 0; i < used; i++) {
      const NSegment *const here = VG_(am_find_nsegment)(starts[i]);
      const HChar *const path = here->kind == SkFileC ? VG_(am_get_filename)(here) : NULL;
      UInt kind = HT_ROOT_MAPPING;
      if (path != NULL || here->start == object_end) {
         if (path != NULL)
            of_manager = here->hasW && is_manager(path);
         if (path != NULL && here->hasR && here->hasW && is_c_library(path))
            find_arena(here->start, here->end + 1);
         kind = HT_ROOT_STATIC;
         object_end = here->end + 1;
      }
      if (!here->hasR || !here->hasW || (kind == HT_ROOT_STATIC && of_manager))
         continue;
      scan_segment(here, kind);
   }
}

/* Records a point; `between` is the thread, if any, that is between two functions: it has returned from a routine, or
 * called exit. */
static void record_point(ThreadId between, Bool ends)
{
   ht_call_heap(&heap_low, &heap_length);
   VG_(memset)(recent, 0, sizeof recent);
   ht_ring_event(HT_ROOTS, 1, NULL, 0);
   Stack *stacks;
   const UInt count = find_stacks(&stacks, between);
   leave_taken_results();
   ThreadId tid;
   VG_(thread_stack_reset_iter)(&tid);
   while (next_thread(&tid))
      registers(tid, tid == between ? BETWEEN : ends ? ENDING : RUNNING);
   for (UInt i = 0; i < count; i++)
      if (!ht_ranges_contains(&managers, stacks[i].sp))
         range(stacks[i].low, stacks[i].high, HT_ROOT_STACK);
   memory();
   ht_ring_event(HT_ROOTS, 0, NULL, 0);
}

/* ---- When ---- */

void ht_roots_allocated(ThreadId tid, Addr block, ULong size)
{
   static ULong distance, allocated;
   static UInt points;
   if (!ht_options.graph)
      return;
   if (!ht_ranges_contains(&managers, block)) {
      const NSegment *const segment = VG_(am_find_nsegment)(block);
      const HtRange *const mapping = ht_ranges_find(&made, block);
      if (mapping != NULL)
         ht_ranges_add(&managers, mapping->start, mapping->end);
      else if (segment != NULL)
         ht_ranges_add(&managers, segment->start, segment->end + 1);
   }
   if (distance == 0)
      distance = ht_options.roots_every != 0 ? (ULong)ht_options.roots_every : FIRST_DISTANCE;
   allocated += size;
   if (allocated < distance || !ht_ring_is_open())
      return;
   allocated = 0;
   if (++points == MOST_AT_ONE && ht_options.roots_every == 0) {
      points = 0;
      distance *= 2;
   }
   record_point(tid, False);
}

void ht_roots_ending(ThreadId exits)
{
   static Bool ended;
   if (!ht_options.graph || ended || !ht_ring_is_open())
      return;
   ended = True;
   record_point(exits, True);
}
