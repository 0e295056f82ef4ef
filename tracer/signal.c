/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Signal handlers: their work is the program's, also when they interrupt a routine of the malloc family, and routines
 * that they call are calls of their own.
 *
 * A handler ends by its return to the kernel or by a longjmp, which the core does not report; see call.c for those.
 */
#include "signal.h"

#include "call.h"
#include "guest.h"
#include "system.h"

/* A handler's first return is into the code that requests its end from the kernel: the frame begins with that code's
 * address. Only a return beyond it shows that the handler was left by other means. */
#define HANDLER_TAKES (HT_RETURN_TAKES + 1)

/* A handler that interrupts another one on an alternative stack is there too. */
static const HtFrame *handler_on_stack_of(const HtThread *thread, Addr sp)
{
   for (UInt depth = thread->depth; depth > 0; depth--) {
      const HtFrame *const frame = &thread->frames[depth - 1];
      if (frame->handler && frame->stack_low != 0 && frame->stack_low <= sp && sp <= frame->stack_high)
         return frame;
   }
   return NULL;
}

static void on_deliver(ThreadId tid, Int number, Bool alternative)
{
   HtThread *const thread = ht_thread(tid);
   const Addr sp = VG_(get_SP)(tid);
   ht_rseq_signal(tid);
   ht_signal_begins(tid, thread);
   ht_call_unwind(tid, thread, sp);
   ht_thread_event(tid, HT_SIGNAL, (UInt)number, NULL, 0);
   const HtFrame *const outer = handler_on_stack_of(thread, sp);
   HtFrame *const frame = ht_thread_push(thread);
   if (frame == NULL)
      return;
   frame->handler = True;
   frame->number = (UInt)number;
   frame->interrupted_sp = sp;
   frame->watched = ~0ULL;
   if (alternative) {
      frame->stack_low = VG_(thread_get_altstack_min)(tid);
      frame->stack_high = frame->stack_low + VG_(thread_get_altstack_size)(tid) - 1;
   } else if (outer != NULL) {
      frame->stack_low = outer->stack_low;
      frame->stack_high = outer->stack_high;
   }
   ht_thread_watch(thread);
}

void ht_signal_begins(ThreadId tid, HtThread *thread)
{
   HtFrame *const top = ht_thread_top(thread);
   if (top == NULL || !top->handler || top->sp != 0)
      return;
   top->sp = VG_(get_SP)(tid);
   top->watched = top->sp + HANDLER_TAKES;
   ht_thread_watch(thread);
}

static void on_delivered(ThreadId tid, Int number)
{
   (void)number;
   HtThread *const thread = ht_thread(tid);
   const Addr sp = VG_(get_SP)(tid);
   /* The handler that ends interrupted this stack pointer; those inside it were left before. */
   UInt depth = thread->depth;
   while (depth > 0 && !(thread->frames[depth - 1].handler && thread->frames[depth - 1].interrupted_sp == sp))
      depth--;
   if (depth == 0)
      return;
   while (thread->depth >= depth)
      ht_call_leave_by_force(tid, thread);
   ht_thread_watch(thread);
}

void ht_signal_register(void)
{
   VG_(track_pre_deliver_signal)(on_deliver);
   VG_(track_post_deliver_signal)(on_delivered);
}
