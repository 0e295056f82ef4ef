/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Calls of routines of the malloc family: their entry, their return, and what ends them without one.
 */
#ifndef HT_CALL_H
#define HT_CALL_H

#include "routine.h"
#include "thread.h"

/* Helpers of translated code. A routine is entered; `link` is where it returns to on machines that keep that in a
 * register. */
void ht_call_entered(HtRoutine *routine, ULong sp, ULong link, ULong a, ULong b, ULong c);
/* A return to `target` has left the stack pointer at or above what is watched. */
void ht_call_returned(ULong sp, ULong target, ULong result);
/* The C library begins the program, whose main is here; */
void ht_call_starts(ULong main);
/* and main begins. */
void ht_call_main(void);
/* The manager announced an event. */
void ht_call_announced(ULong event);

/* Takes out frames that a thread with this stack pointer has left by longjmp. */
void ht_call_unwind(ThreadId tid, HtThread *thread, Addr sp);
/* Takes out the innermost frame, which was left without return. */
void ht_call_leave_by_force(ThreadId tid, HtThread *thread);
/* A thread is about to run: brings its registers of the heap's range up to date. */
void ht_call_begins(HtThread *thread);

#endif
