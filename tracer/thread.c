/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Threads: their counters, between translated code and the words that record them, and which of them runs.
 */
#include "thread.h"

#include "call.h"
#include "functions.h"
#include "roots.h"
#include "signal.h"
#include "starter.h"
#include "system.h"

/* The core's record of a thread, whose fields are hidden from tools. */
extern void *VG_(get_ThreadState)(ThreadId tid);

/* Instructions after which a thread without other events records its counters. */
#define TICK 1000000

static HtThread *threads; /* by ThreadId, */
static ThreadId slots;    /* those below this have been used */
static UInt last_number;
static ThreadId last_thread; /* the thread of the last event; 0: none */
static ThreadId in_client_code;
static ULong instructions_of_ended; /* threads */

Bool ht_thread_lives(ThreadId tid)
{
   return tid < slots && threads[tid].number != 0;
}

HtThread *ht_thread(ThreadId tid)
{
   tl_assert(ht_thread_lives(tid));
   return &threads[tid];
}

HtThread *ht_thread_running(void)
{
   return ht_thread(VG_(get_running_tid)());
}

UInt ht_thread_number(ThreadId tid)
{
   return ht_thread(tid)->number;
}

HtRegisters *ht_thread_registers(HtThread *thread)
{
   return in_client_code != VG_INVALID_THREADID && thread == &threads[in_client_code] ? thread->at : &thread->kept;
}

ULong ht_thread_instructions(void)
{
   ULong sum = instructions_of_ended;
   for (ThreadId tid = 0; tid < slots; tid++)
      if (threads[tid].number != 0)
         sum += ht_thread_registers(&threads[tid])->instructions;
   return sum;
}

/* Finds a thread's first shadow area. The core has functions that copy from and to it, but helpers of translated
 * code need its address: so a mark is copied to it and searched for. The distance is the same in all threads. */
static HtRegisters *find_shadow(ThreadId tid)
{
   static SizeT distance;
   UChar *const state = VG_(get_ThreadState)(tid);
   if (distance == 0) {
      const ULong mark[2] = { 0x68656170746f6c6cULL ^ (ULong)(Addr)state, 0x9e3779b97f4a7c15ULL };
      ULong kept[2];
      VG_(get_shadow_regs_area)(tid, (UChar *)kept, 1, 0, sizeof kept);
      VG_(set_shadow_regs_area)(tid, 1, 0, sizeof mark, (const UChar *)mark);
      SizeT at = sizeof(ULong);
      while (VG_(memcmp)(state + at, mark, sizeof mark) != 0)
         at += sizeof(ULong);
      VG_(set_shadow_regs_area)(tid, 1, 0, sizeof kept, (const UChar *)kept);
      distance = at;
   }
   return (HtRegisters *)(state + distance);
}

/* Updates a thread's loads and stores. */
static void settle(HtThread *thread)
{
   HtRegisters *const registers = ht_thread_registers(thread);
   thread->loads += registers->memory & 0xffffffffU;
   thread->stores += registers->memory >> 32;
   registers->memory = 0;
}

/* Reads I and M. */
static void counters(HtThread *thread, ULong words[2])
{
   settle(thread);
   words[0] = ht_thread_registers(thread)->instructions;
   words[1] = (thread->loads & 0xffffffffU) | (thread->stores << 32);
   thread->recorded = words[0];
}

static void put_with_counters(HtThread *thread, UInt kind, ULong payload)
{
   ULong words[2];
   counters(thread, words);
   ht_ring_put(kind, payload, words, 2);
}

static void switch_to(ThreadId tid)
{
   if (last_thread == tid)
      return;
   if (last_thread != VG_INVALID_THREADID
       && ht_thread_registers(&threads[last_thread])->instructions != threads[last_thread].recorded)
      put_with_counters(&threads[last_thread], HT_TICK, 0);
   last_thread = tid;
   ht_ring_put(HT_THREAD, threads[tid].number, NULL, 0);
}

void ht_thread_record_switch(void)
{
   const ThreadId tid = VG_(get_running_tid)();
   if (ht_thread_lives(tid))
      switch_to(tid);
}

void ht_thread_event(ThreadId tid, UInt kind, ULong payload, const ULong *more, UInt n)
{
   ULong words[10];
   tl_assert(n <= 8);
   switch_to(tid);
   counters(ht_thread(tid), words);
   for (UInt i = 0; i < n; i++)
      words[2 + i] = more[i];
   ht_ring_put(kind, payload, words, 2 + n);
}

HtFrame *ht_thread_top(HtThread *thread)
{
   return thread->depth == 0 ? NULL : &thread->frames[thread->depth - 1];
}

void ht_thread_watch(HtThread *thread)
{
   const HtFrame *const top = ht_thread_top(thread);
   ht_thread_registers(thread)->watched = top == NULL ? ~0ULL : top->watched;
}

HtFrame *ht_thread_push(HtThread *thread)
{
   if (thread->depth == HT_FRAMES) {
      ht_ring_warn("heaptoll: signal handlers are nested more than %d deep; allocations in them are not recorded",
                   HT_FRAMES / 2);
      return NULL;
   }
   HtFrame *const frame = &thread->frames[thread->depth++];
   VG_(memset)(frame, 0, sizeof *frame);
   return frame;
}

void ht_thread_pop(HtThread *thread)
{
   tl_assert(thread->depth > 0);
   thread->depth--;
}

Bool ht_thread_in_routine(ThreadId tid)
{
   const HtFrame *const top = ht_thread_top(ht_thread(tid));
   return top != NULL && !top->handler;
}

static void begin(ThreadId tid)
{
   HtThread *const thread = &threads[tid];
   HtFrame *const frames =
      thread->frames != NULL ? thread->frames : VG_(malloc)("ht.thread.frames", HT_FRAMES * sizeof(HtFrame));
   VG_(memset)(thread, 0, sizeof *thread);
   thread->frames = frames;
   if (tid >= slots)
      slots = tid + 1;
   thread->number = ++last_number;
   thread->kept.watched = ~0ULL;
   thread->kept.caller = (ULong)(Addr)&ht_function_none()->for_it;
}

static void on_create(ThreadId parent, ThreadId tid)
{
   if (threads == NULL)
      threads = VG_(calloc)("ht.threads", VG_N_THREADS, sizeof(HtThread));
   begin(tid);
   if (parent != VG_INVALID_THREADID) {
      const ULong word = ht_thread_number(parent) | (ht_starter_is_manager(parent) ? HT_BY_MANAGER : 0);
      switch_to(parent);
      ht_ring_put(HT_THREAD_START, threads[tid].number, &word, 1);
   }
}

static Bool is_last(ThreadId tid)
{
   for (ThreadId other = 0; other < slots; other++)
      if (other != tid && threads[other].number != 0)
         return False;
   return True;
}

static void on_exit(ThreadId tid)
{
   HtThread *const thread = ht_thread(tid);
   ht_rseq_ended(tid);
   ht_roots_thread_ended(tid, False);
   /* The work of the last one is recorded at the end of the process. */
   if (is_last(tid))
      return;
   put_with_counters(thread, HT_THREAD_END, thread->number);
   instructions_of_ended += thread->kept.instructions;
   if (last_thread == tid)
      last_thread = VG_INVALID_THREADID;
   thread->number = 0;
}

static void on_start_client_code(ThreadId tid, ULong blocks)
{
   (void)blocks;
   HtThread *const thread = ht_thread(tid);
   ht_rseq_runs(tid);
   if (thread->at == NULL)
      thread->at = find_shadow(tid);
   switch_to(tid);
   if (thread->kept.instructions - thread->recorded >= TICK)
      put_with_counters(thread, HT_TICK, 0);
   ht_signal_begins(tid, thread);
   ht_call_begins(thread);
   *thread->at = thread->kept;
   in_client_code = tid;
   ht_ring_client(&thread->at->place);
}

static void on_stop_client_code(ThreadId tid, ULong blocks)
{
   (void)blocks;
   HtThread *const thread = ht_thread(tid);
   ht_ring_client(NULL);
   thread->kept = *thread->at;
   in_client_code = VG_INVALID_THREADID;
   settle(thread);
}

void ht_thread_child(ThreadId tid)
{
   for (ThreadId other = 0; other < slots; other++)
      if (other != tid)
         threads[other].number = 0;
   HtThread *const thread = ht_thread(tid);
   settle(thread);
   instructions_of_ended = 0;
   thread->kept.instructions = 0;
   thread->loads = thread->stores = thread->recorded = 0;
   last_thread = VG_INVALID_THREADID;
   switch_to(tid);
   /* It is still inside the calls of its parent. */
   for (UInt i = 0; i < thread->depth; i++) {
      const HtFrame *const frame = &thread->frames[i];
      ht_thread_event(tid, frame->handler ? HT_SIGNAL : HT_ENTER, frame->number, frame->arguments,
                      frame->handler ? 0 : 3);
   }
}

void ht_thread_end(Bool exits, Int status)
{
   const ThreadId running = VG_(get_running_tid)();
   ThreadId last = VG_INVALID_THREADID;
   for (ThreadId tid = 0; tid < slots; tid++) {
      if (threads[tid].number == 0)
         continue;
      if (last == VG_INVALID_THREADID || tid == running)
         last = tid;
      switch_to(tid);
   }
   if (last != VG_INVALID_THREADID)
      ht_thread_event(last, exits ? HT_END : HT_TICK, exits ? (UInt)status : 0, NULL, 0);
}

void ht_thread_register(void)
{
   VG_(track_pre_thread_ll_create)(on_create);
   VG_(track_pre_thread_ll_exit)(on_exit);
   VG_(track_start_client_code)(on_start_client_code);
   VG_(track_stop_client_code)(on_stop_client_code);
}
