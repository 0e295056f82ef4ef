/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Calls of routines of the malloc family: their entry, their return, and what ends them without one.
 */
#ifndef HT_CALL_H
#define HT_CALL_H

#include "guest.h"
#include "routine.h"
#include "thread.h"

/* Helpers of translated code. A routine is entered with these arguments; `link` is its return address on machines that
 * keep that in a register. On amd64 a helper has six arguments at most. */
#if HT_RETURN_ON_STACK
void ht_call_entered(HtRoutine *routine, ULong sp, ULong a, ULong b, ULong c, ULong d);
#else
void ht_call_entered(HtRoutine *routine, ULong sp, ULong a, ULong b, ULong c, ULong d, ULong link);
#endif
/* A return to `target` has left the stack pointer at or above the watched address. */
void ht_call_returned(ULong sp, ULong target, ULong result);
/* The C library begins the program, whose main is at this address. */
void ht_call_starts(ULong main);
/* The program's main begins. */
void ht_call_main(void);
/* exit begins: no matter who called it, also within the C library. */
void ht_call_exits(void);
/* The manager announced an event. */
void ht_call_announced(ULong event);
/* The program marks that a request begins (1) or ends (0). */
void ht_call_request(ULong begins);

/* Removes frames that a thread with this stack pointer has left by longjmp. */
void ht_call_unwind(ThreadId tid, HtThread *thread, Addr sp);
/* Removes the innermost frame, which was left without a return. */
void ht_call_leave_by_force(ThreadId tid, HtThread *thread);
/* Where blocks have been: the lowest address, and bytes from there to the highest. */
void ht_call_heap(ULong *low, ULong *length);
/* A thread is about to run: updates its registers of the heap's range. */
void ht_call_begins(HtThread *thread);

#endif
