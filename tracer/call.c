/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Calls: a routine is entered at its symbol, and has returned when a return leaves the stack pointer where it was
 * before the call. Both hold for tail calls, which leave the stack as they find it. Nothing else does: a longjmp out of
 * the routine shows only when the stack pointer is above its frame.
 */
#include "call.h"

#include "hooks.h"
#include "options.h"
#include "roots.h"

static Addr heap_low = ~(Addr)0, heap_high;

/* An announced event in the manager's memory (struct heaptoll_event). */
enum { EVENT_KIND_AT = 4, EVENT_VALUE_AT = 24 };

/* Inaccessible pages separate adjacent stacks, so that each is a mapping of its own. */
static Bool same_stack(Addr one, Addr other)
{
   const NSegment *const segment = VG_(am_find_nsegment)(one);
   return segment != NULL && segment->start <= other && other <= segment->end;
}

/* Whether a thread whose stack pointer is `sp` has left the frame. `returned`: by a return to `target`. */
static Bool has_left(const HtFrame *frame, Addr sp, Bool returned, Addr target)
{
   if (frame->handler) {
      if (frame->stack_low != 0)
         return sp < frame->stack_low || sp > frame->stack_high || sp >= frame->watched;
      return frame->sp != 0 && sp >= frame->watched && same_stack(frame->sp, sp);
   }
   if (sp < frame->watched)
      return False;
   if (sp == frame->watched && !returned)
      return target != frame->return_address;
   return same_stack(frame->sp, sp);
}

void ht_call_leave_by_force(ThreadId tid, HtThread *thread)
{
   const HtFrame *const top = ht_thread_top(thread);
   if (top->handler)
      ht_thread_event(tid, HT_SIGNAL_END, 0, NULL, 0);
   else
      ht_thread_event(tid, HT_ABANDON, top->number, NULL, 0);
   ht_thread_pop(thread);
}

/* Frames inside a handler that was left were left with it, wherever they are. */
static UInt depth_left(const HtThread *thread, Addr sp, Bool returned, Addr target)
{
   UInt left = thread->depth;
   for (UInt depth = thread->depth; depth > 0; depth--) {
      const HtFrame *const frame = &thread->frames[depth - 1];
      if (has_left(frame, sp, returned, target)) {
         left = depth - 1;
         /* A thread that left a handler by longjmp is in no tail call of the routine that the handler interrupted. */
         returned = returned || frame->handler;
      } else if (frame->handler) {
         break;
      }
   }
   return left;
}

static void unwind(ThreadId tid, HtThread *thread, Addr sp, Bool returned, Addr target)
{
   const UInt left = depth_left(thread, sp, returned, target);
   while (thread->depth > left)
      ht_call_leave_by_force(tid, thread);
   ht_thread_watch(thread);
}

void ht_call_unwind(ThreadId tid, HtThread *thread, Addr sp)
{
   unwind(tid, thread, sp, True, 0);
}

static Bool gives_block(UInt routine)
{
   return routine != HT_FREE && routine != HT_DELETE && routine != HT_USABLE_SIZE;
}

static ULong requested(const HtFrame *frame)
{
   const ULong *const arguments = frame->arguments;
   switch (frame->number) {
   case HT_CALLOC:
      return arguments[0] * arguments[1];
   case HT_REALLOCARRAY:
      return arguments[1] * arguments[2];
   case HT_REALLOC:
   case HT_MEMALIGN:
   case HT_ALIGNED_ALLOC:
      return arguments[1];
   case HT_POSIX_MEMALIGN:
      return arguments[2];
   default:
      return arguments[0];
   }
}

void ht_call_heap(ULong *low, ULong *length)
{
   *low = heap_low;
   *length = heap_high > heap_low ? heap_high - heap_low : 0;
}

void ht_call_begins(HtThread *thread)
{
   ht_call_heap(&thread->kept.heap_low, &thread->kept.heap_length);
}

static void extend_heap(HtThread *thread, Addr block, ULong size)
{
   /* A block of no bytes is referred to as one of one byte. */
   size = size == 0 ? 1 : size;
   if (block >= heap_low && block + size <= heap_high)
      return;
   if (block < heap_low)
      heap_low = block;
   if (block + size > heap_high)
      heap_high = block + size;
   HtRegisters *const registers = ht_thread_registers(thread);
   registers->heap_low = heap_low;
   registers->heap_length = heap_high - heap_low;
}

#if HT_RETURN_ON_STACK
void ht_call_entered(HtRoutine *routine, ULong sp, ULong a, ULong b, ULong c, ULong d)
{
   const Addr return_address = *(const Addr *)sp;
#else
void ht_call_entered(HtRoutine *routine, ULong sp, ULong a, ULong b, ULong c, ULong d, ULong link)
{
   const Addr return_address = link;
#endif
   const ThreadId tid = VG_(get_running_tid)();
   HtThread *const thread = ht_thread(tid);
   const Addr watched = sp + HT_RETURN_TAKES;
   if (thread->depth > 0)
      unwind(tid, thread, watched, False, return_address);
   HtFrame *const top = ht_thread_top(thread);
   if (top != NULL && !top->handler) {
      if (routine->symbol.family != top->family && top->served_by == 0)
         top->served_by = 1 + routine->symbol.family;
      return;
   }
   ht_routine_record_object(routine);
   if (routine->number == HT_INSIDE)
      return;
   if (ht_options.sites > 0)
      ht_sites_enter(tid);
   const ULong called_with[HT_ARGUMENTS] = { a, b, c, d };
   ULong arguments[3];
   for (UInt i = 0; i < 3; i++)
      arguments[i] = ht_symbols_argument(&routine->symbol.arguments[i], called_with);
   HtFrame *const frame = ht_thread_push(thread);
   if (frame == NULL)
      return;
   ht_thread_event(tid, HT_ENTER, ht_routine_word(routine), arguments, 3);
   frame->number = routine->number;
   frame->family = routine->symbol.family;
   frame->served_by = 0;
   frame->sp = sp;
   frame->watched = watched;
   frame->return_address = return_address;
   for (UInt i = 0; i < 3; i++)
      frame->arguments[i] = arguments[i];
   ht_thread_registers(thread)->watched = watched;
}

/* The block that posix_memalign put there. The place is what a table states, which may be wrong. */
static ULong block_at(Addr place)
{
   return VG_(am_is_valid_for_client)(place, sizeof(Addr), VKI_PROT_READ) ? *(const Addr *)place : 0;
}

void ht_call_returned(ULong sp, ULong target, ULong result)
{
   const ThreadId tid = VG_(get_running_tid)();
   HtThread *const thread = ht_thread(tid);
   const HtFrame *const top = ht_thread_top(thread);
   if (top != NULL && !top->handler && sp == top->watched && target == top->return_address) {
      ULong block = 0;
      if (top->number == HT_POSIX_MEMALIGN)
         block = (UInt)result == 0 ? block_at(top->arguments[0]) : 0;
      else if (gives_block(top->number))
         block = result;
      const ULong size = requested(top);
      if ((ht_options.pointers || ht_options.graph) && block != 0)
         extend_heap(thread, block, size);
      ht_thread_event(tid, HT_LEAVE, top->number + 256 * (ULong)top->family + 65536 * (ULong)top->served_by, &block, 1);
      ht_thread_pop(thread);
      ht_thread_watch(thread);
      if (block != 0)
         ht_roots_allocated(tid, block, size);
      return;
   }
   unwind(tid, thread, sp, True, target);
}

void ht_call_starts(ULong main)
{
   ht_routine_main(main);
}

void ht_call_main(void)
{
   static Bool begun;
   /* A main may call itself. */
   if (!begun)
      ht_thread_event(VG_(get_running_tid)(), HT_MAIN, 0, NULL, 0);
   begun = True;
}

void ht_call_announced(ULong event)
{
   const UInt kind = *(const UInt *)(event + EVENT_KIND_AT);
   const ULong value = *(const ULong *)(event + EVENT_VALUE_AT);
   ht_thread_event(VG_(get_running_tid)(), HT_ANNOUNCED, kind, &value, 1);
}

void ht_call_exits(void)
{
   /* What is lost is decided before handlers and destructors run. */
   ht_roots_ending(VG_(get_running_tid)());
   ht_ring_event(HT_EXIT, 0, NULL, 0);
}

void ht_call_request(ULong begins)
{
   ht_ring_event(HT_REQUEST, begins, NULL, 0);
}
